"""Writes one session with a model: requested in one reply, checked and repaired by turn, completed from the banks.

No statement is lost: if the model omits one in its turn, the phrase banks' sentence is inserted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memarena_dataset.values.phrases import normal, phrase_occurs
from pydantic import JsonValue

from memarena_masim.engines import sentences
from memarena_masim.engines.endpoint import Endpoint, NoReplyError
from memarena_masim.engines.hard_facts import Allowed, Detector, HardFact
from memarena_masim.engines.model import Setting
from memarena_masim.engines.offline import words_of
from memarena_masim.engines.points import asks_of, points_of
from memarena_masim.engines.prompting import TURN_SCHEMA, Brief, session_prompt, session_schema, turn_prompt
from memarena_masim.engines.replies import ReadSession, read_session, read_text
from memarena_masim.engines.tally import Tally
from memarena_masim.plan.model import SessionPlan
from memarena_masim.plan.state import StatedFact
from memarena_masim.realization.spoken import SpokenTurn

TOKENS_PER_WORD = 1.6
"""Tokens allowed per word of a reply; English needs about 1.3."""
OVERHEAD_TOKENS = 24
"""Tokens allowed for the JSON around a turn."""
LONGEST = 3.0
"""Maximum words of a turn, as a multiple of the planned number; a longer one is rejected."""
_SHORTEST_WORDS = 3
"""Minimum words of a turn; a shorter one is requested again, or worded offline."""
_REMEMBERED_WORDS = 12
"""Turns with more words than this may occur only once in a world."""


@dataclass(slots=True)
class Shared:
    """The input that all sessions of a world share."""

    setting: Setting
    endpoint: Endpoint
    detector: Detector
    spoken: set[str] = field(default_factory=set)
    """Texts of turns of more than twelve words so far: none may occur twice in a world."""


@dataclass(slots=True)
class _Checked:
    """A turn's text after checking. ``missing`` has the kinds of missing statements, ``problem`` the fault or ""."""

    text: str
    missing: list[str]
    found: list[HardFact]
    problem: str


class SessionWriter:
    """Writes one session."""

    def __init__(self, shared: Shared, plan: SessionPlan, stated: Mapping[str, StatedFact], tally: Tally) -> None:
        config = shared.setting.config
        self._shared, self._plan, self._tally = shared, plan, tally
        self._brief = Brief(plan, points_of(config, plan, dict(stated)), asks_of(config, plan))
        self._messages = session_prompt(self._brief, shared.setting)
        self._names = self._brief.names
        self._offline: tuple[SpokenTurn, ...] = ()
        self.log: list[dict[str, JsonValue]] = []

    async def write(self) -> tuple[SpokenTurn, ...]:
        """Return the turns. MasimError if the endpoint is unusable."""
        self._tally.add("sessions", "planned")
        try:
            reply_turns = await self._session()
        except NoReplyError as error:
            self._tally.add("sessions", "no_reply")
            self._note("no_reply", str(error))
            reply_turns = ReadSession((None,) * self._plan.turn_count, ())
        if not reply_turns.usable:
            return self._all_offline()
        turns: list[str] = []
        for turn, text in enumerate(reply_turns.turns):
            turns.append(await self._turn(turn, text, turns))
        return tuple(self._spoken(turn, text) for turn, text in enumerate(turns))

    async def _session(self) -> ReadSession:
        """Return the reply for the session; it is requested once more if half of its turns or more are unusable."""
        brief, room = self._brief, self._room(sum(self._brief.words_of(turn) for turn in range(len(self._names))))
        schema, best = session_schema(brief), None
        for attempt in range(2):
            reply = await self._shared.endpoint.complete(self._messages, room, schema)
            reply_turns = read_session(reply.text, reply.cut, self._names)
            self._tally.add("replies", "read")
            for fault in reply_turns.faults:
                self._tally.add("replies", fault)
            if best is None or reply_turns.usable > best.usable:
                best = reply_turns
            if 2 * reply_turns.usable > len(self._names):
                break
            if attempt == 0:
                self._tally.add("sessions", "asked_again")
                self._note("asked_again", ", ".join(reply_turns.faults))
        assert best is not None
        return best

    async def _turn(self, turn: int, text: str | None, before: list[str]) -> str:
        """Return the text of a turn: with everything planned, and without any other hard fact."""
        self._tally.add("turns", "planned")
        checked = self._checked(turn, text)
        first = checked
        if checked.problem:
            self._tally.add("turns", "asked_again")
            for kind in checked.missing:
                self._tally.add(f"statements/{kind}", "asked_again")
            again = await self._asked_again(turn, before, checked.problem)
            if again is not None:
                second = self._checked(turn, again)
                if len(second.missing) < len(checked.missing) or not second.problem or not checked.text:
                    checked = second
        self._count(turn, first, checked)
        return self._final_text(turn, checked)

    async def _asked_again(self, turn: int, before: list[str], problem: str) -> str | None:
        """Request one turn again; return its text, None without a usable reply."""
        spoken = [f"{self._names[index]}: {text}" for index, text in enumerate(before)]
        messages = turn_prompt(self._brief, self._shared.setting, turn, spoken, problem)
        try:
            reply = await self._shared.endpoint.complete(messages, self._room(self._words_in(turn)), TURN_SCHEMA)
        except NoReplyError as error:
            self._note("no_reply", str(error), turn)
            return None
        self._tally.add("replies", "read")
        if reply.cut:
            self._tally.add("replies", "endless")
        text = read_text(reply.text, "text", self._names[turn])
        if text is None:
            self._tally.add("replies", "not_json")
        return text

    def _checked(self, turn: int, text: str | None) -> _Checked:
        """Remove sentences with unplanned hard facts from a turn, and list the planned content that it then lacks."""
        points, asks = self._brief.points_in(turn), self._brief.asks_in(turn)
        everything = [point.kind for point in points]
        if text is None:
            return _Checked("", everything, [], "Nobody has written it yet.")
        if len(text.split()) > LONGEST * self._words_in(turn):
            self._tally.add("replies", "overlong_turn")
            return _Checked("", everything, [], "Keep it short.")
        cleaned, hard_facts = self._clean_turn(turn, text)
        missing = [point.kind for point in points if not point.said_in(cleaned)]
        unasked = [ask for ask in asks if not ask.said_in(cleaned)]
        problem = ""
        if missing or unasked:
            problem = "A first version left out, or changed, what the turn has to say."
        elif len(cleaned.split()) < _SHORTEST_WORDS:
            problem = "A first version had nothing left that it may say."
        elif cleaned in self._shared.spoken:
            cleaned, problem = "", "Say something that has not been said before."
        return _Checked(cleaned, missing, hard_facts, problem)

    def _clean_turn(self, turn: int, text: str) -> tuple[str, list[HardFact]]:
        """Return ``text`` without the sentences that have unplanned hard facts, and these facts."""
        allowed = self._allowed(turn)
        allowed_sentences: list[str] = []
        hard_facts: list[HardFact] = []
        others = [point.stated.value.text for point in self._brief.points if point.turn != turn]
        elsewhere = [value for value in others if not phrase_occurs(value, allowed.normal)]
        for sentence in sentences.split(text):
            extra = list(self._shared.detector.find(sentence, allowed))
            words = normal(sentence) if elsewhere else ""
            extra += [HardFact("value", value) for value in elsewhere if phrase_occurs(value, words)]
            hard_facts += extra
            if not extra:
                allowed_sentences.append(sentence)
        return " ".join(allowed_sentences), hard_facts

    def _allowed(self, turn: int) -> Allowed:
        """Return the facts that a turn may name: its statements, the session's topic, its people and its time."""
        plan, brief = self._plan, self._brief
        texts = [text for point in brief.points_in(turn) for text in (*point.sentences, dict(point.slots).get("v", ""))]
        texts += [ask.sentence for ask in brief.asks_in(turn)]
        texts += [text for point in brief.points for name, text in point.slots if name in ("item", "source", "subject")]
        texts += [speaker.first_name for speaker in plan.speakers]
        texts += [
            plan.weekday,
            plan.weather,
            plan.daypart,
            *plan.looks_back,
            *(thread.topic for thread in plan.threads),
        ]
        if plan.names_place:
            texts.append(plan.place_name)
        if plan.event is not None:
            texts.append(plan.event.told)
        config = self._shared.setting.config
        said_on = brief.points[0].said_on if brief.points else config.calendar_epoch
        hidden = [point.stated.value.text for point in brief.points_in(turn) if point.kind == "fate"]
        return Allowed([text for text in texts if text not in hidden], said_on)

    def _final_text(self, turn: int, checked: _Checked) -> str:
        """Return the final text: the model's, with the banks' sentences for missing content, or the banks' turn."""
        points, asks = self._brief.points_in(turn), self._brief.asks_in(turn)
        text = checked.text
        lost = [point for point in points if not point.said_in(text)]
        for point in lost:
            if point.kind == "fate":  # nothing else of the turn may name what it leaves unnamed
                text = " ".join(
                    sentence for sentence in sentences.split(text) if point.said_in(f"{sentence} {point.sentence}")
                )
            text = sentences.insert(text, point.sentences)
        for ask in asks:
            if not ask.said_in(text):
                text = f"{text} {ask.sentence}".strip()
        words = len(text.split())
        if not checked.text or words < _SHORTEST_WORDS or (words > _REMEMBERED_WORDS and text in self._shared.spoken):
            self._tally.add("turns", "offline")
            text = self._offline_turn(turn)
        elif lost:
            self._tally.add("turns", "with_offline_sentence")
        else:
            self._tally.add("turns", "from_model")
        if words > _REMEMBERED_WORDS:
            self._shared.spoken.add(text)
        return text

    def _count(self, turn: int, first: _Checked, last: _Checked) -> None:
        """Count how each statement was worded, and the unplanned hard facts."""
        missing_points = list(last.missing)
        repaired = [kind for kind in first.missing if kind not in missing_points]
        for point in self._brief.points_in(turn):
            self._tally.add(f"statements/{point.kind}", "planned")
            if point.kind in missing_points:
                missing_points.remove(point.kind)
                self._tally.add(f"statements/{point.kind}", "offline")
            elif point.kind in repaired:
                repaired.remove(point.kind)
                self._tally.add(f"statements/{point.kind}", "repaired")
            else:
                self._tally.add(f"statements/{point.kind}", "at_once")
        for fact in (*first.found, *(last.found if last is not first else ())):
            self._tally.add("unplanned", fact.kind)
            self._note(f"unplanned {fact.kind}", fact.words, turn)

    def _all_offline(self) -> tuple[SpokenTurn, ...]:
        self._tally.add("sessions", "offline")
        self._note("offline", "")
        for point in self._brief.points:
            for what in ("planned", "offline"):
                self._tally.add(f"statements/{point.kind}", what)
        self._tally.add("turns", "planned", self._plan.turn_count)
        self._tally.add("turns", "offline", self._plan.turn_count)
        return words_of(self._shared.setting.config, self._plan)

    def _offline_turn(self, turn: int) -> str:
        if not self._offline:
            self._offline = words_of(self._shared.setting.config, self._plan)
        return self._offline[turn].text

    def _spoken(self, turn: int, text: str) -> SpokenTurn:
        count = len(self._plan.speakers)
        speaker = self._plan.speaker_index(turn)
        return SpokenTurn(speaker, (speaker - 1 if turn else speaker + 1) % count, text)

    def _words_in(self, turn: int) -> int:
        planned = sum(len(text.split()) for point in self._brief.points_in(turn) for text in point.sentences)
        return self._brief.words_of(turn) + planned

    def _room(self, words: int) -> int:
        """Return the maximum tokens of a reply of ``words`` words."""
        return round(words * TOKENS_PER_WORD) + OVERHEAD_TOKENS * (len(self._names) + 1)

    def _note(self, what: str, words: str, turn: int | None = None) -> None:
        row: dict[str, JsonValue] = {"session_id": self._plan.session_id, "what": what, "words": words}
        if turn is not None:
            row["turn"] = turn
        self.log.append(row)
