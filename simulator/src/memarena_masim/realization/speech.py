"""Writes the text of a planned session from the phrase banks.

Each thread of a session has a record (``record.py``): a thing and everything that talk about it draws on, drawn once.
A turn takes up what the one before dwelt on or asked, goes on with the record, says its planned facts, and hands over.
"""

from __future__ import annotations

import math

from memarena_masim.phrases.library import Library
from memarena_masim.plan.model import EventTalk, Kind, SessionPlan, Statement, Thread
from memarena_masim.realization.record import Record, last_noun, marked, new_record, to_me, to_you
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.realization.turn import Hook, Talk, TurnText
from memarena_masim.rng import Stream

_TELLER = (
    "detail",
    "why",
    "detail",
    "plan",
    "detail",
    "fear",
    "said",
    "detail",
    "hope",
    "view",
    "detail",
    "detail",
    "plan",
)
"""What a teller goes through, roughly in this order."""
_MORE = ("said", "scene", "wish", "scene", "mine", "tip", "view.topic")
"""What is left to say of a topic when its matter is told, and for those who listen."""
_LISTENER = ("mine", "said", "scene", "tip", "mine", "wish", "view.topic", "advise", "scene", "said")
_ASSISTANT = ("remind", "sum", "note", "remind", "sum", "note")
_FREE = {
    "note": ("pa.note", "view"),
    "mine": ("mine.trouble", "mine"),
    "said": ("tell.said", "view"),
    "scene": ("tell.scene", "mine"),
    "tip": ("tip", "view"),
    "wish": ("wish", "mine"),
    "view.topic": ("tell.view.topic", "view"),
}
"""Sentences that draw on the topic alone: their rule, and what they leave to be taken up."""
_DEEDS = {
    "plan": ("plan", "tell.plan", "plan", False),
    "hope": ("hope", "tell.hope", "plan", False),
    "advise": ("plan", "advise", "advice", True),
    "remind": ("plan", "pa.remind", "advice", True),
}
"""Sentences about what is to be done: list, rule, what they leave, and whether the other one is to do it."""
_KEYS_TO_SUM_UP = 2
_ECHO_WORDS = 6
"""An answer that asks back within so many words needs nothing before it."""
_ASSISTANT_LENGTH = 0.6
"""How long an assistant's turns are, next to people's."""
QUESTIONS_BY_LISTENERS = 0.72
QUESTIONS_BY_TELLERS = 0.4
LINKED = 0.8
"""Share of the planned facts that are led up to."""
_MOST_ASKING = 0.95
_RAISING_LENGTH = 0.5
"""How much of its length a turn keeps that asks for a thread's matter: it is the other one's turn to tell."""
TIE_SHOWS = 0.5
"""Share of the openings and of the endings that show whether people are family, friends, colleagues, or hardly meet."""
FROM_AFAR = 0.5
"""Share of the remote talks that open with the distance; the others open as their modality does."""
TAKEN_UP = 0.9
"""Share of them that the next speaker takes up."""


def speak(plan: SessionPlan, stream: Stream, library: Library) -> tuple[SpokenTurn, ...]:
    """Word every turn of ``plan``; a pure function of its arguments."""
    slots = {"weekday": plan.weekday, "daypart": plan.daypart, "weather": plan.weather, "place": plan.place_name}
    slots |= {"other": plan.looks_back[0], "lastday": plan.looks_back[1], "owner": plan.speakers[0].first_name}
    talk = Talk(plan, stream, library, slots)
    turns: list[SpokenTurn] = []
    taken: set[str] = set()
    index, speaker = 0, plan.threads[0].narrator if not plan.kind.with_assistant else len(plan.speakers) - 1
    for number, thread in enumerate(plan.threads):
        teller = 0 if plan.kind.with_assistant else thread.narrator
        topic = library.topics[thread.topic]
        record = new_record(library, topic, teller, len(plan.speakers), stream, frozenset(taken))
        taken.add(record.matter.key)
        told = _Thread(talk, thread, number, record)
        for place in range(thread.turns):
            listener = (speaker - 1) % len(plan.speakers) if index else (speaker + 1) % len(plan.speakers)
            turns.append(SpokenTurn(speaker, listener, told.turn(index, place, speaker, listener)))
            index += 1
            speaker = (speaker + 1) % len(plan.speakers)
    return tuple(turns)


class _Thread:
    """The turns of one thread."""

    def __init__(self, talk: Talk, thread: Thread, number: int, record: Record) -> None:
        self._talk, self._thread, self._number, self._record = talk, thread, number, record
        self._agenda: dict[int, list[str]] = {}
        self._opened = False

    def turn(self, index: int, place: int, speaker: int, listener: int) -> str:
        """The words of a turn; what it leaves to be taken up goes to the talk."""
        talk, plan, record = self._talk, self._talk.plan, self._record
        turn = TurnText(talk, record, speaker, listener)
        due = [one for one in plan.statements if one.turn == index]
        asked = [one for one in plan.statements if one.turn == index + 1 and one.prompt]
        target = plan.words_per_turn * (_ASSISTANT_LENGTH if turn.who.assistant else 1.0) * turn.who.pace
        target *= math.exp(0.28 * talk.stream.bell() - 0.04)
        last = index >= plan.turn_count - len(plan.speakers)
        for statement in [one for one in due if one.prompt]:
            turn.state(statement, linked=False)
        due = [one for one in due if not one.prompt]
        target -= sum(14 + 12 * bool(one.level) for one in due) + 12 * (last + bool(asked))
        self._begin(turn, index, place)
        if turn.hook is not None and turn.hook.kind == "raised":
            target *= _RAISING_LENGTH
        gap = talk.stream.unit()
        if due and gap < 0.3:
            self._state(turn, due)
        while turn.words < target - 8:
            self._go_on(turn)
            if due and gap < turn.words / max(target, 1):
                self._state(turn, due)
        if due:
            self._state(turn, due)
        if index == 0 and len(turn.sentences) == 1:
            self._open_further(turn)
        self._hand_over(turn, index, place, bool(asked), last)
        for statement in asked:
            turn.prompt(statement)
        talk.hook = turn.hook
        talk.stated = tuple(one for one in plan.statements if one.turn == index)
        return " ".join(turn.sentences)

    def _state(self, turn: TurnText, due: list[Statement]) -> None:
        while due:
            turn.state(due.pop(0), linked=self._talk.stream.chance(LINKED))

    # ---------------------------------------------------------------- beginning

    def _begin(self, turn: TurnText, index: int, place: int) -> None:
        plan = self._talk.plan
        if index == 0:
            self._open_session(turn)
            return
        if index == 1 and not plan.kind.with_assistant:
            turn.frame("reply.open")
            if plan.event is not None:
                self._take_up_event(turn, plan.event)
        self._take_up(turn)
        for statement in self._talk.stated:
            if self._talk.stream.chance(TAKEN_UP) and not statement.prompt:
                turn.react_to(statement)
        if place == 0 and self._number:
            self._raise(turn, shift=True)

    def _open_session(self, turn: TurnText) -> None:
        plan = self._talk.plan
        if turn.who.assistant:
            kinds = {"activity_narration": "narrate", "memory_reflection": "reflect", "memory_probe": "probe"}
            turn.frame(f"pa.{kinds[plan.kind.value]}.open")
            self._record.named = self._opened = True
            turn.hook = Hook("raised", self._record.full(0))
            return
        turn.frame(self._opening())
        if plan.names_place:
            turn.frame("open.at_place")
        if plan.relation and self._talk.stream.chance(TIE_SHOWS):
            turn.frame(f"open.{plan.relation}")
        if plan.event is not None:
            clause = marked(plan.event.clauses[turn.speaker]).text
            turn.frame("open.ours" if plan.event.ours else "open.event", e=clause)
        self._raise(turn, shift=False)

    def _opening(self) -> str:
        """The rule that a talk between people opens with."""
        plan = self._talk.plan
        if plan.kind is Kind.ENCOUNTER:
            return "open.encounter"
        if plan.kind is Kind.REMOTE and self._talk.stream.chance(FROM_AFAR):
            return "open.remote"
        return f"open.{plan.modality}"

    def _take_up_event(self, turn: TurnText, event: EventTalk) -> None:
        key = marked(event.clauses[turn.speaker]).key
        turn.frame("reply.ours" if event.ours else "reply.event", k=key)

    def _open_further(self, turn: TurnText) -> None:
        """A line more for an opening that would stand alone and might come twice in a world; it asks as before."""
        raised = turn.hook
        turn.free("pa.note" if turn.who.assistant else "tell.scene")
        turn.hook = raised

    def _raise(self, turn: TurnText, shift: bool) -> None:
        """Bring the thread's matter up: the teller tells, anybody else asks for it."""
        stream, record = self._talk.stream, self._record
        if shift:
            turn.lead = turn.rule("shift")
        self._opened = True
        if turn.speaker != record.narrator:
            turn.frame("pa.raise" if turn.who.assistant else "raise.asked")
            record.named = True
            turn.hook = Hook("raised", record.full(record.narrator))
            return
        happened = record.clause("happened")
        assert happened is not None
        turn.told("raise.named" if stream.chance(0.6) else "raise.plain", happened)

    def _take_up(self, turn: TurnText) -> None:
        """Answer the question, or take up what the turn before dwelt on."""
        hook = self._talk.hook
        if hook is None:
            return
        if hook.kind == "raised" and turn.speaker == self._record.narrator:
            happened = self._record.clause("happened")
            if happened is not None:
                turn.told("pa.user.reply" if self._talk.plan.kind.with_assistant else "raise.reply", happened)
                return
        if hook.kind == "question":
            self._answer(turn, hook)
            return
        key = to_you(hook.key) or self._record.short(turn.speaker)
        if hook.kind in ("plan", "advice"):
            name = "pa.told" if turn.who.assistant else f"react.{hook.kind}"
            turn.frame(name, vp=hook.deed[0], ving=hook.deed[1], k=hook.deed[1])
            turn.hook = Hook("told")
            return
        turn.frame(self._reaction(turn, hook), k=key)
        turn.hook = Hook("told", hook.key)

    def _reaction(self, turn: TurnText, hook: Hook) -> str:
        stream, tone = self._talk.stream, self._record.matter.tone
        if turn.who.assistant:
            return f"pa.told.{tone}" if tone != "plain" and stream.chance(0.3) else "pa.told"
        if hook.kind == "view":
            return "react.view.agree" if stream.chance(0.6) else "react.view.differ"
        if hook.kind == "mine" and stream.chance(0.6):
            return "react.mine"
        if turn.speaker == self._record.narrator or hook.kind == "fear" or stream.chance(0.35):
            return "react.told.plain"
        return f"react.told.{tone}"

    def _answer(self, turn: TurnText, hook: Hook) -> None:
        stream = self._talk.stream
        key = to_me(hook.key) or self._record.short(turn.speaker)
        if not hook.answers:
            yes = hook.question.split(" ", 1)[0].lower() in _YES_OR_NO
            turn.frame("answer.yes" if yes else "answer.open", k=key)
            turn.hook = Hook("mine", last_noun(turn.item))
            return
        answer = marked(turn.render(stream.pick(hook.answers)))
        self._record.named = True
        echoes = "?" in " ".join(answer.text.split(" ")[:_ECHO_WORDS])
        turn.say(answer.text if echoes else turn.rule("answer.lead", k=key, a=answer.text))
        turn.hook = Hook("told", answer.key or hook.key)

    # ---------------------------------------------------------------- middle

    def _go_on(self, turn: TurnText) -> None:
        """One more sentence, of what this speaker has left to say."""
        kind = self._next(turn)
        said = self._free(turn, kind) if kind in _FREE else self._of_matter(turn, kind)
        if not said and not self._agenda[turn.speaker]:
            turn.free("tell.scene")

    def _free(self, turn: TurnText, kind: str) -> bool:
        """Say something of the topic, which never runs out."""
        rule, hook = _FREE[kind]
        if kind == "mine":
            rule = "mine.joy" if self._record.matter.tone == "joy" else "mine.trouble"
        turn.free(rule, hook)
        return True

    def _of_matter(self, turn: TurnText, kind: str) -> bool:
        """Say something of the matter; False if all of that kind was said."""
        record = self._record
        if kind == "sum":
            if len(record.keys) < _KEYS_TO_SUM_UP:
                return False
            first, second = self._talk.stream.sample(record.keys, _KEYS_TO_SUM_UP)
            turn.frame("pa.sum", k=to_you(first), k2=to_you(second))
            return True
        if kind in _DEEDS:
            listed, rule, hook, other = _DEEDS[kind]
            deed = record.deed(listed)
            if deed is not None:
                turn.deed(rule, deed, hook, other)
            return deed is not None
        clause = record.clause(kind)
        if clause is not None:
            turn.told(f"tell.{kind}", clause, kind if kind in ("view", "fear") else "told")
        return clause is not None

    def _next(self, turn: TurnText) -> str:
        stream = self._talk.stream
        agenda = self._agenda.setdefault(turn.speaker, [])
        if not agenda:
            if turn.who.assistant:
                agenda += stream.shuffled(_ASSISTANT)
            elif turn.speaker == self._record.narrator:
                first = self._record.left("detail") > 1
                agenda += _TELLER if first else stream.shuffled(_MORE)
            else:
                agenda += stream.shuffled(_LISTENER)
        at = stream.below(min(3, len(agenda)))
        return agenda.pop(at)

    # ---------------------------------------------------------------- end

    def _hand_over(self, turn: TurnText, index: int, place: int, asked: bool, last: bool) -> None:
        """End a turn: with a question, or the session."""
        talk, record, plan = self._talk, self._record, self._talk.plan
        if last and index:
            if not asked:
                rule = "close"
                if plan.relation and talk.stream.chance(TIE_SHOWS):
                    rule = f"close.{plan.relation}"
                if plan.kind.with_assistant:
                    rule = "pa.close" if turn.who.assistant else "pa.user.close"
                turn.it = False
                turn.frame(rule)
            return
        ends = place == self._thread.turns - 1
        if asked or ends or (turn.hook is not None and turn.hook.kind == "raised"):
            return
        telling = turn.speaker == record.narrator
        following = (turn.speaker + 1) % len(plan.speakers)
        chance = 0.95 if turn.who.assistant else QUESTIONS_BY_TELLERS if telling else QUESTIONS_BY_LISTENERS
        if plan.kind.with_assistant and telling:
            return
        if talk.stream.chance(min(_MOST_ASKING, chance * turn.who.asking)):
            self._ask(turn, "ask" if following == record.narrator else "back")

    def _ask(self, turn: TurnText, kind: str) -> None:
        record = self._record
        lead = "ask.lead" if kind == "ask" or turn.speaker != record.narrator else "ask.back"
        if turn.who.assistant:
            lead = "pa.ask.lead"
        exchange = record.talk(kind)
        if exchange is None:
            text = turn.rule("ask.topic")
            turn.say(turn.rule(lead, q=text))
            turn.hook = Hook("question", last_noun(text), question=text)
            return
        question = marked(turn.render(exchange.question))
        turn.say(turn.rule(lead, q=question.text))
        record.named = True
        turn.hook = Hook("question", question.key, question.text, exchange.answers)


_YES_OR_NO = frozenset(
    (
        *("do", "does", "did", "is", "are", "was", "were", "have", "has", "had"),
        *("can", "could", "would", "will", "shall", "should", "may", "might"),
    )
)
