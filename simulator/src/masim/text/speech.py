"""The offline engine: words for a planned session, from the phrase banks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise

from masim.facts.catalogue import catalogue
from masim.plan.model import SessionPlan, Speaker, Statement, Thread
from masim.streams import Stream
from masim.text.grammar import Scope, Voice, phrase
from masim.text.library import Library, Topic

_NARRATOR = (
    *("tell.detail",) * 8,
    *("tell.trouble",) * 2,
    *("tell.joy",) * 2,
    *("mood",) * 2,
    *("life",) * 3,
    "opine",
    "memory",
)
_LISTENER = (
    *("opine",) * 2,
    *("advise",) * 2,
    *("tell.self",) * 3,
    *("life",) * 2,
    "offer",
    "memory",
    "echo",
    "mood",
)
_ASSISTANT = (*("pa.note",) * 4, *("pa.echo",) * 2)
_STATEMENTS = frozenset(
    (
        "tell.start",
        "tell.detail",
        "tell.trouble",
        "tell.joy",
        "tell.end",
        "tell.self",
        "mood",
        "life",
        "opine",
        "memory",
        "setting",
    )
)
"""Rules whose sentences may get a small word before, and a word in passing inside or behind."""
_PAUSE_AFTER = frozenset(
    ("and", "but", "so", "because", "then", "that", "which", "with", "was", "about", "or", "until")
)
"""Words after which speakers hesitate."""
_PAUSES = ("um,", "uh,", "er,", "well,", "like,", "you know,", "I mean,", "hm,", "let's say,", "what was it,", "oh,")
_SMALL = ("just", "really", "still", "even", "also", "actually", "only", "almost", "soon", "then", "honestly", "simply")
"""Small words behind an I."""
_NOT_AFTER_I = frozenset(("and", "or", "then", *_SMALL))
_JOINT = re.compile(r", (and|but|so|because|since|which) ")
_SENTENCE_START = re.compile(r"(^\"?|[.?!] \"?)([a-z])")
_TWICE = re.compile(r"\b([A-Za-z']+) \1\b", re.IGNORECASE)


@dataclass(slots=True)
class _Talk:
    """What a session's turns share."""

    plan: SessionPlan
    stream: Stream
    library: Library
    slots: dict[str, str]
    used: set[int] = field(default_factory=set)
    topic: Topic | None = None
    tone: str = "plain"
    asked: str = ""
    """What the turn before ended with: "ask.follow", "ask.you" or nothing."""


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """Words of one turn: who says it to whom (indices into the plan's speakers)."""

    speaker: int
    listener: int
    text: str


def speak(plan: SessionPlan, stream: Stream, library: Library) -> tuple[SpokenTurn, ...]:
    """Word every turn of ``plan``; a pure function of its arguments."""
    slots = {"weekday": plan.weekday, "daypart": plan.daypart, "weather": plan.weather, "place": plan.place_name}
    slots |= {"other": plan.looks_back[0], "lastday": plan.looks_back[1], "owner": plan.speakers[0].first_name}
    talk = _Talk(plan, stream, library, slots)
    turns: list[SpokenTurn] = []
    index, speaker = 0, plan.threads[0].narrator if not plan.kind.with_assistant else len(plan.speakers) - 1
    by_turn: dict[int, list[Statement]] = {}
    for statement in plan.statements:
        by_turn.setdefault(statement.turn, []).append(statement)
    prompts = {statement.turn - 1: statement for statement in plan.statements if statement.prompt}
    for number, thread in enumerate(plan.threads):
        _bind(talk, thread)
        for place in range(thread.turns):
            listener = _listener(plan, speaker, index)
            acts, closing = _acts(talk, thread, number, place, speaker, index)
            text = _turn(talk, speaker, listener, acts, closing, by_turn.get(index, []), prompts.get(index))
            turns.append(SpokenTurn(speaker, listener, text))
            index += 1
            speaker = _next_speaker(plan, speaker, index)
    return tuple(turns)


def _next_speaker(plan: SessionPlan, speaker: int, _index: int) -> int:
    return (speaker + 1) % len(plan.speakers)


def _listener(plan: SessionPlan, speaker: int, index: int) -> int:
    return (speaker - 1) % len(plan.speakers) if index else (speaker + 1) % len(plan.speakers)


def _bind(talk: _Talk, thread: Thread) -> None:
    talk.topic = talk.library.topics[thread.topic]
    scope = _scope(talk, talk.plan.speakers[thread.narrator])
    for slot, item in (("topic", "name"), ("thing", "thing"), ("who", "who")):
        talk.slots[slot] = phrase(scope.draw(talk.topic.bank.rules[item]), scope)


def _scope(talk: _Talk, speaker: Speaker) -> Scope:
    bank = talk.topic.bank if talk.topic else None
    rules = talk.library.dialogue.rules
    return Scope(talk.stream, Voice(speaker.leaning), talk.slots, bank, talk.used, rules["colour"], rules["adjunct"])


def _acts(
    talk: _Talk, thread: Thread, number: int, place: int, speaker: int, index: int
) -> tuple[list[str], list[str]]:
    """Rules that a turn opens with, and rules that it ends with."""
    plan, stream = talk.plan, talk.stream
    if plan.kind.with_assistant:
        return _assistant_acts(talk, speaker, index)
    last = index >= plan.turn_count - len(plan.speakers)
    opening = _greeting(plan, index) if index < 2 else ["shift"] if place == 0 and number else []
    if talk.asked and opening != ["shift"]:
        opening.append("answer." + talk.asked.removeprefix("ask."))
    if speaker == thread.narrator:
        if place <= 1:
            opening.append("tell.start")
        ending = ["tell.end"] if last or place >= thread.turns - 2 else []
        if not last and stream.chance(0.4):
            ending.append("ask.you")
    else:
        if index and not talk.asked:
            opening.append(stream.pick(("react." + talk.tone, "react." + talk.tone, "agree", "disagree", "echo")))
        ending = ["ask.follow"] if not last and stream.chance(0.6) else []
    if stream.chance(0.1):
        opening.append("setting")
    if last and index:
        ending.append("close")
    talk.asked = ending[-1] if ending and ending[-1].startswith("ask.") else ""
    return opening, ending


def _greeting(plan: SessionPlan, index: int) -> list[str]:
    if index == 1:
        return ["reply.open"]
    return ["open." + plan.modality, *(["open.at_place"] if plan.names_place else [])]


def _assistant_acts(talk: _Talk, speaker: int, index: int) -> tuple[list[str], list[str]]:
    plan, stream = talk.plan, talk.stream
    last = index >= plan.turn_count - 2
    if plan.speakers[speaker].assistant:
        if index == 0:
            kind = {"activity_narration": "narrate", "memory_reflection": "reflect", "memory_probe": "probe"}[
                plan.kind.value
            ]
            return [f"pa.{kind}.open"], []
        return [stream.pick(("pa.ack", "pa.ack", "pa.echo"))], ["pa.close" if last else "pa.ask"]
    opening = ["pa.user.open"] if index == 1 else ["answer.follow"]
    if plan.kind.value == "memory_reflection" and stream.chance(0.6):
        opening.append("pa.user.reflect")
    elif index == 1:
        opening.append("tell.start")
    return opening, ["pa.user.close"] if last else []


def _turn(
    talk: _Talk,
    speaker: int,
    listener: int,
    opening: list[str],
    ending: list[str],
    statements: list[Statement],
    prompt: Statement | None,
) -> str:
    plan, stream = talk.plan, talk.stream
    who = plan.speakers[speaker]
    talk.slots["you"] = plan.speakers[listener].first_name
    scope = _scope(talk, who)
    target = plan.words_per_turn * (0.78 if who.assistant else 1.0) * who.pace * math.exp(0.28 * stream.bell() - 0.04)
    telling = (
        plan.threads
        and not who.assistant
        and (plan.kind.with_assistant or "tell.start" in opening or speaker == _narrator_now(talk))
    )
    filler = _ASSISTANT if who.assistant else _NARRATOR if telling else _LISTENER
    head = [_sentence(talk, scope, who, rule) for rule in opening]
    tail = [_sentence(talk, scope, who, rule) for rule in ending]
    stated = [text for statement in statements for text in _stated(talk, scope, statement)]
    if prompt is not None:
        tail = [*tail[:-1], _plain(talk, scope, prompt.prompt, dict(prompt.slots))]
    words = sum(text.count(" ") + 1 for text in (*head, *tail, *stated))
    body: list[str] = []
    tones = {"tell.trouble": "trouble", "tell.joy": "joy"}
    while words < target - 6:
        rule = stream.pick(filler)
        if not who.assistant and telling and rule in tones:
            talk.tone = tones[rule]
        text = _sentence(talk, scope, who, rule)
        words += text.count(" ") + 1
        body.append(text)
    if stated:
        at = stream.below(len(body) + 1)
        body[at:at] = stated
    if not head and stream.chance(0.5):
        head = [_finish(_raw(talk, scope, "backchannel"))]
    return " ".join((*head, *body, *tail))


def _narrator_now(talk: _Talk) -> int:
    left = 0
    for thread in talk.plan.threads:
        if talk.topic is not None and thread.topic == talk.topic.key:
            return thread.narrator
        left += thread.turns
    return talk.plan.threads[0].narrator


def _raw(talk: _Talk, scope: Scope, rule: str) -> str:
    return phrase(scope.draw(talk.library.dialogue.rules[rule]), scope)


def _sentence(talk: _Talk, scope: Scope, who: Speaker, rule: str) -> str:
    """A sentence of a rule, with this speaker's small words around it."""
    text, stream = _raw(talk, scope, rule), talk.stream
    if who.assistant:
        return _finish(_TWICE.sub(r"\1", text))
    chance = who.fillers
    if rule in _STATEMENTS:
        joints = list(_JOINT.finditer(text))
        if joints and stream.chance(chance):
            at = stream.pick(joints).end() - 1
            text = f"{text[:at]}, {_raw(talk, scope, 'aside')},{text[at:]}"
        elif text[-1] not in ".?!" and stream.chance(chance):
            text = f"{text}, {_raw(talk, scope, 'aside')}"
        if stream.chance(chance):
            opener = _raw(talk, scope, "opener")
            text = f"{opener} {text}" if opener[-1] == ":" or opener.endswith("but") else f"{opener}, {text}"
    text = _hesitate(stream, chance * (0.5 if talk.plan.modality == "text_message" else 1.0), text)
    return _finish(_TWICE.sub(r"\1", text))


def _hesitate(stream: Stream, rate: float, text: str) -> str:
    """``text`` with small words where speakers look for the next one."""
    words = text.split(" ")
    out: list[str] = []
    for word, after in pairwise([*words, ""]):
        out.append(word)
        if word == "I" and after.isalpha() and after not in _NOT_AFTER_I and stream.chance(rate * 0.7):
            out.append(stream.pick(_SMALL))
        if word in _PAUSE_AFTER and after and after[0].isalpha() and stream.chance(rate * 0.45):
            out.append(stream.pick(_PAUSES))
    return " ".join(out)


def _finish(text: str) -> str:
    """``text`` as a sentence, or several: capitals where they start, a full stop where there is no other mark."""
    if text[-1] in ",;:":
        text = text[:-1]
    if text[-1] not in ".?!":
        text += "."
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)


def _plain(talk: _Talk, scope: Scope, rule: str, slots: dict[str, str]) -> str:
    """A sentence of the facts bank; it gets no small words, so that its values stay whole."""
    own = Scope(scope.stream, scope.voice, talk.slots | slots, scope.topic, scope.used)
    rules = catalogue(talk.library.banks).bank.rules
    return _finish(phrase(own.draw(rules[rule]), own))


def _stated(talk: _Talk, scope: Scope, statement: Statement) -> list[str]:
    """The sentence that states a fact and, where a level is asked for, the sentence that asks for it."""
    slots = dict(statement.slots)
    texts = [_plain(talk, scope, statement.frame, slots)]
    if statement.level:
        texts.append(_plain(talk, scope, f"level.{statement.level}", slots))
    return texts
