"""Writes the text of a planned session from scenes: each thread goes on with one scene, beat by beat.

A turn answers the one before, goes on with the scene, states its planned facts and hands over. What a teller's scene
holds (amounts, names, times) is drawn once per teller, so that every telling agrees with every other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.grammar import Scope, Sequence_, Voice, phrase
from memarena_masim.phrases.library import Library
from memarena_masim.phrases.references import stems
from memarena_masim.phrases.scenes import Beat, Scene, Sentence
from memarena_masim.plan.model import Kind, SessionPlan, Statement, Thread
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.rng import Stream
from memarena_masim.world.build import pools

LINKED = 0.75
"""Share of the planned facts that a word leads up to."""
TIE_SHOWS = 0.4
"""Share of the openings that show what people are to each other."""
TAKEN_UP = 0.85
"""Share of the stated facts that the next speaker takes up."""
FACT_FIRST = 0.25
"""Share of the turns that state their facts before they go on with the scene."""
PAUSES = 0.3
"""How often a speaker thinks aloud, next to the share of sentences with filler in his or her style."""
RETURNS = 0.6
"""Share of the turns that mark the way back to the scene after something that lay beside it."""
_WITHOUT_FACTS = 1.4
"""How much longer a turn is that states no fact: room for what the others spend on theirs."""
_FACT_WORDS = 24
"""Words of a fact with what leads up to it."""
_LEAD_IN = re.compile(r"^(?:so|well|and|oh|oh, and),? ", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(^\"?|[.?!] \"?)([a-z])")
_MINE = re.compile(r"\b(?:my|our)\b")


@dataclass(frozen=True, slots=True)
class Told:
    """A thread's scene in this session: who tells it, its values, and the text of its slots by speaker."""

    scene: Scene
    thread: Thread
    values: Mapping[str, str]
    kin: str

    def thing(self, teller: bool) -> str:
        """The scene's thing in the mouth of its teller, or of anybody else."""
        return self.scene.thing if teller else _MINE.sub("your", self.scene.thing)

    def slots(self, teller: bool) -> dict[str, str]:
        """Slots of a line of the scene."""
        return {**self.values, "kin": self.kin if teller else _MINE.sub("your", self.kin)}


@dataclass(slots=True)
class _Talk:
    config: WorldConfig
    plan: SessionPlan
    stream: Stream
    library: Library
    turns: list[SpokenTurn] = field(default_factory=list)
    stated: tuple[Statement, ...] = ()
    """Facts of the turn before."""


def speak(config: WorldConfig, plan: SessionPlan, stream: Stream, library: Library) -> tuple[SpokenTurn, ...]:
    """Word every turn of ``plan``; a pure function of its arguments."""
    talk = _Talk(config, plan, stream, library)
    assistant = plan.kind.with_assistant
    speaker = len(plan.speakers) - 1 if assistant else plan.threads[0].narrator
    before: Told | None = None
    for number, thread in enumerate(plan.threads):
        told = _told(talk, thread, 0 if assistant else thread.narrator)
        following = plan.threads[number + 1] if number + 1 < len(plan.threads) else None
        speaker = _thread(talk, told, before, speaker, last_thread=following is None)
        before = told
    return tuple(talk.turns)


def _told(talk: _Talk, thread: Thread, narrator: int) -> Told:
    scene = talk.library.scenes[thread.scene]
    who = talk.plan.speakers[narrator]
    stream = Stream(talk.config.key, "scene", who.agent_id, scene.key)
    names = {"man": pools()["other_men"], "woman": pools()["other_women"]}
    values = {name: draw(stream, names) for name, draw in sorted(scene.values.items())}
    anybody = phrase(talk.library.frame.rules["kin"].draw(stream), Scope(stream, Voice(), {}))
    return Told(scene, thread, values, values.pop("kin", anybody))


def _thread(talk: _Talk, told: Told, before: Told | None, speaker: int, last_thread: bool) -> int:
    """Say a thread's turns; returns who speaks next."""
    plan, thread = talk.plan, told.thread
    people = len(plan.speakers)
    narrator = 0 if plan.kind.with_assistant else thread.narrator
    beat, opened = thread.first_beat, False
    answer: Beat | None = None
    for place in range(thread.turns):
        index = len(talk.turns)
        turn = _Turn(talk, told, speaker, (speaker - 1) % people if index else (speaker + 1) % people)
        ends = place == thread.turns - 1
        asked = [one for one in plan.statements if one.turn == index + 1 and one.prompt]
        turn.begin(index, before if place == 0 else None)
        asks = speaker != narrator and not opened
        turn.aside(always=asks, goes_back=place > 0 and answer is not None)
        if speaker == narrator:
            answer = told.scene.beats[beat] if beat < len(told.scene.beats) else None
            if place == 0 and before is not None:
                turn.frame("shift")
            if not opened and thread.first_beat:
                turn.line("resume")
            opened = True
            turn.body(answer.tell if answer else (), question=True)
            beat += 1
        elif asks:
            if turn.who.assistant and not thread.first_beat:  # a scene's own questions are those of somebody with eyes
                if not asked:
                    turn.frame("pa.ask" if index else "pa.ask.first")
            else:
                if place == 0 and before is not None:
                    turn.frame("pa.shift.ask" if turn.who.assistant else "shift.ask")
                turn.line("again" if thread.first_beat else "ask")
            opened = True
            turn.body((), question=False)
        elif answer is not None and (speaker - narrator) % people == 1:
            sentences = turn.answer(beat - 1)
            goes_on = not (ends or asked) and beat < len(told.scene.beats) and talk.stream.chance(turn.who.asking)
            turn.body(sentences, question=goes_on)
        else:
            turn.line("also")
            turn.body((), question=False)
        turn.end(index, last_thread and ends, asked)
        talk.turns.append(SpokenTurn(speaker, turn.listener, turn.text))
        talk.stated = tuple(one for one in plan.statements if one.turn == index)
        speaker = (speaker + 1) % people
    return speaker


class _Turn:
    """Sentences of one turn."""

    def __init__(self, talk: _Talk, told: Told, speaker: int, listener: int) -> None:
        self._talk, self._told, self.speaker, self.listener = talk, told, speaker, listener
        plan = talk.plan
        self.who = plan.speakers[speaker]
        self._teller = speaker == (0 if plan.kind.with_assistant else told.thread.narrator)
        self._slots = {
            "you": plan.speakers[listener].first_name,
            "weekday": plan.weekday,
            "daypart": plan.daypart,
            "weather": plan.weather,
            "place": plan.place_name,
            "other": plan.looks_back[0],
            "lastday": plan.looks_back[1],
            "owner": plan.speakers[0].first_name,
            "thing": told.thing(self._teller),
        }
        self._sentences: list[str] = []
        self._words = 0
        self._due = [one for one in plan.statements if one.turn == len(talk.turns) and not one.prompt]
        """Facts to be stated yet."""
        self._states = bool(self._due)
        self._aside = False
        """Whether something beside the scene was said since the turn began."""

    @property
    def text(self) -> str:
        """The turn."""
        return " ".join(self._sentences)

    # ------------------------------------------------------------ parts

    def say(self, text: str) -> None:
        """Add a sentence."""
        self._sentences.append(finish(text))
        self._words += text.count(" ") + 1

    def frame(self, rule: str, **slots: str) -> None:
        """Say a line of the frame bank."""
        self.say(self._framed(rule, **slots))

    def _framed(self, rule: str, **slots: str) -> str:
        line = self._talk.library.frame.rules[rule].draw(self._talk.stream)
        return self._phrase(line, {**self._slots, **slots})

    def line(self, name: str) -> None:
        """Say one of the scene's single lines."""
        text = self._of_scene(self._talk.stream.pick(self._told.scene.lines[name]))
        if self.who.assistant and "?" in text:  # what a friend adds to a question speaks of the friend
            text = f"{text.split('?')[0]}?"
        self.say(text)

    def _of_scene(self, words: Sequence_) -> str:
        return self._phrase(words, {"you": self._slots["you"], **self._told.slots(self._teller)})

    def _phrase(self, words: Sequence_, slots: Mapping[str, str]) -> str:
        return phrase(words, Scope(self._talk.stream, Voice(self.who.leaning), slots))

    # ------------------------------------------------------------ course

    def begin(self, index: int, before: Told | None) -> None:
        """Greet, answer the greeting, or take up what was said last."""
        plan, stream = self._talk.plan, self._talk.stream
        for statement in [one for one in plan.statements if one.turn == index and one.prompt]:
            self._state(statement, linked=False)
            self._aside = True
        if index == 0:
            self._greet()
            return
        if index == 1 and not plan.kind.with_assistant:
            self.frame("reply")
            if plan.event is not None:
                rule = "ours.reply" if plan.event.ours else "event.reply"
                self.frame(rule, k=_taken_up(plan.event.clauses[self.speaker]))
        for statement in self._talk.stated:
            if not statement.prompt and stream.chance(TAKEN_UP):
                self._react_to(statement)
                self._aside = True
        if before is not None:
            self._answer_last(before)

    def _greet(self) -> None:
        plan, stream = self._talk.plan, self._talk.stream
        if self.who.assistant:
            names = {Kind.NARRATION: "narrate", Kind.REFLECTION: "reflect", Kind.PROBE: "probe"}
            self.frame(f"pa.{names[plan.kind]}")
            return
        self.frame("open.encounter" if plan.kind is Kind.ENCOUNTER else f"open.{plan.modality}")
        if plan.names_place:
            self.frame("open.place")
        if plan.relation and stream.chance(TIE_SHOWS):
            self.frame(f"open.{plan.relation}")
        if plan.event is not None:
            rule = "ours" if plan.event.ours else "event"
            self.frame(rule, e=plan.event.clauses[self.speaker].replace("*", ""))

    def _answer_last(self, before: Told) -> None:
        """At a change of subject: the answer to the last beat of the scene before, if its teller spoke last."""
        plan = self._talk.plan
        people = len(plan.speakers)
        narrator = 0 if plan.kind.with_assistant else before.thread.narrator
        spoken = [turn for turn in self._talk.turns[-before.thread.turns :] if turn.speaker == narrator]
        if self._talk.turns[-1].speaker != narrator or (self.speaker - narrator) % people != 1:
            return
        beat = before.thread.first_beat + len(spoken) - 1
        if beat >= len(before.scene.beats):
            return
        now, self._told, teller, self._teller = self._told, before, self._teller, False
        for sentence in self.answer(beat):
            if not sentence.optional and not sentence.question:
                self.say(self._of_scene(sentence.words))
        self._told, self._teller = now, teller

    def answer(self, beat: int) -> tuple[Sentence, ...]:
        """The answer to a beat of the scene, without what takes up words that the teller left out."""
        scene, given = self._told.scene, self._told.scene.beats[beat]
        kind, sentences = ("assistant", given.assistant) if self.who.assistant else ("friend", given.friend)
        needs = self._talk.library.needs[scene.key, beat, kind]
        heard = " ".join(turn.text for turn in self._talk.turns)
        said = stems(heard) | {f"${name}" for name, value in self._told.values.items() if value in heard}
        return tuple(one for one, needed in zip(sentences, needs, strict=True) if needed <= said)

    def aside(self, always: bool, goes_back: bool) -> None:
        """Before the scene goes on: the turn's facts, here or after it, and the way back from what lay beside it."""
        stream = self._talk.stream
        if self._due and (always or (self._sentences and stream.chance(FACT_FIRST))):
            self._state_due()
        if self._aside and goes_back and not self.who.assistant and stream.chance(RETURNS):
            self.frame("return.own" if self._teller else "return")

    def body(self, sentences: Sequence[Sentence], question: bool) -> None:
        """The sentences of a beat, and facts not stated yet. Optional sentences come in as the turn's length allows."""
        talk = self._talk
        if sentences and not self.who.assistant and talk.stream.chance(PAUSES * self.who.fillers):
            self.frame("pause" if self._teller else "pause.answer")
        # The pace counts twice, for it can only add or leave out optional sentences.
        aim = talk.plan.words_per_turn * self.who.pace**2 * math.exp(0.15 * talk.stream.bell() - 0.01)
        aim *= 1.0 if self._states else _WITHOUT_FACTS
        texts = [self._of_scene(one.words) for one in sentences]
        said = [n for n, one in enumerate(sentences) if question or not one.question]
        kept = {n for n in said if not sentences[n].optional} or set(said[:1])
        words = self._words + sum(texts[n].count(" ") + 1 for n in kept) + _FACT_WORDS * len(self._due)
        for n in talk.stream.shuffled([n for n in said if n not in kept]):
            length = texts[n].count(" ") + 1
            if words + length / 2 <= aim:
                kept.add(n)
                words += length
        for n in sorted(kept):
            self.say(texts[n])
        self._state_due()

    def end(self, index: int, last: bool, asked: list[Statement]) -> None:
        """Hand over: with the question for a fact that the next turn states, or take leave when all is told."""
        plan = self._talk.plan
        leave = "close.remote" if plan.place_id is None else "close"
        people, left = len(plan.speakers), plan.turn_count - 1 - index
        if plan.kind.with_assistant:
            if last:
                self.frame("pa.close" if self.who.assistant else "pa.user.close")
        elif last:
            self.frame(leave if self._teller else "close.reply")
        elif self._teller and left < people and (self.speaker + left) % people != self.speaker:
            self.frame(leave)
        for statement in asked:
            self.say(self._fact(statement.prompt, statement))

    # ------------------------------------------------------------ facts

    def _state_due(self) -> None:
        for statement in self._due:
            self._state(statement, linked=self._talk.stream.chance(LINKED))
            self._aside = True
        self._due = []

    def _state(self, statement: Statement, linked: bool) -> None:
        text = self._fact(statement.frame, statement)
        if linked:
            text = f"{self._framed('link')} {_LEAD_IN.sub('', text)}"
        self.say(text)
        if statement.level:
            self.say(self._fact(f"level.{statement.level}", statement))

    def _react_to(self, statement: Statement) -> None:
        """Take up a fact without giving its value, and the wish that went with it."""
        found = catalogue(self._talk.library.banks)
        form, attribute, _ = statement.frame.split(".")
        slots = dict(statement.slots)
        restricted = bool(statement.level) and statement.level != "public"
        if self.who.assistant:
            if attribute in found.community:
                kind = found.community[attribute]
                slots["about"] = kind.fill(kind.about, "you", "", slots["group"])
            self.frame("pa.react" if "about" in slots else "pa.react.other", **slots)
            if restricted:
                self.frame("pa.react.level")
            return
        if form == "change":
            self.frame("react.change")
        elif attribute in ("find", "fate"):
            self.frame(f"react.{attribute}", **slots)
        elif attribute in ("friends", "not_friends"):
            self.frame("react.tie", **slots)
        else:
            self.say(
                self._fact(f"react.{found.moods[slots['do']] if attribute == 'happening' else attribute}", statement)
            )
        if restricted:
            self.frame("react.level")

    def _fact(self, rule: str, statement: Statement) -> str:
        slots = {**self._slots, **dict(statement.slots)}
        line = catalogue(self._talk.library.banks).bank.rules[rule].draw(self._talk.stream)
        return self._phrase(line, slots)


def _taken_up(clause: str) -> str:
    """What of an event's clause the other one takes up: what stands between asterisks."""
    return clause.split("*")[1]


def finish(text: str) -> str:
    """``text`` as a sentence, or several: capitals where they start, a full stop where there is no other mark."""
    text = text.rstrip(",;: ")
    if text[-1] not in ".?!" and not text.endswith(('."', '?"', '!"')):
        text += "."
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)
