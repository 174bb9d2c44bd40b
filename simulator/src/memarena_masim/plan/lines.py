"""Chooses the lines around each statement, so that no one present heard the same line a few days ago.

These are the lines that its speaker adds (``more``) and the next speaker's opinion. The plan chooses them, and not an
engine, since only the planner knows what each person heard on other days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.phrases.grammar import sentences_of, wordings_of
from memarena_masim.plan.frames import more_rule, opinion_rule
from memarena_masim.plan.model import SessionPlan, Statement
from memarena_masim.rng import Stream

_TWO_LINES = 0.7
"""Chance that a speaker of usual pace adds two lines to a fact, if there are two."""
_LINE_OF_ASIDE = 0.6
"""Chance that a speaker adds a line to a fact that they state within another person's story, without a wish."""
_OPINION = 0.7
"""Chance that the next speaker has an opinion of a fact, if there is a wording that no one present has heard."""
_AGAIN_DAYS = 2
"""Days after which a line may be said again to a person who heard it."""

_NEVER = -(10**6)
"""The day of a line that a person never met."""

Met = tuple[str, str, str]
"""A person's id, a rule, and the line of it that they said or heard: its index as text, or a sentence."""


class Lines:
    """Chooses the lines around statements: first those that no one present has met, then those met longest ago."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._days: dict[tuple[str, str], dict[str, int]] = {}
        """By person and rule, the last day on which each line was met."""
        self._today: dict[tuple[str, str], set[str]] = {}
        self._day = 0

    def begin_day(self, day: int) -> None:
        """Drop what was noted since the last commit."""
        self._day, self._today = day, {}

    @property
    def noted(self) -> frozenset[Met]:
        """Return what people met since the day began."""
        return frozenset((person, rule, line) for (person, rule), lines in self._today.items() for line in lines)

    def commit(self, day: int, noted: frozenset[Met]) -> None:
        """Record what people met on a day, at midnight."""
        for person, rule, line in noted:
            self._days.setdefault((person, rule), {})[line] = day

    def with_lines(self, stream: Stream, plan: SessionPlan) -> SessionPlan:
        """Return ``plan`` with the lines around each of its statements."""
        people = [speaker.agent_id for speaker in plan.speakers if not speaker.assistant]
        statements = sorted(plan.statements, key=lambda statement: statement.turn)
        lined = {statement.statement_id: self._lined(stream, plan, statement, people) for statement in statements}
        return replace(plan, statements=tuple(lined[statement.statement_id] for statement in plan.statements))

    def _lined(self, stream: Stream, plan: SessionPlan, statement: Statement, people: Sequence[str]) -> Statement:
        speaker, following = (plan.speakers[plan.speaker_index(statement.turn + step)] for step in (0, 1))
        aside = not plan.in_news(statement.turn)
        more: tuple[int, ...] = ()
        later: tuple[int, ...] = ()
        if not statement.prompt:
            rule = more_rule(statement, self._catalogue)
            count = 1 + stream.chance(_TWO_LINES * speaker.pace**3)
            if aside:
                more = self._more(stream, rule, people, int(not statement.level and stream.chance(_LINE_OF_ASIDE)))
            elif plan.kind.with_assistant:
                more = self._more(stream, rule, people, count)
            else:  # a friend takes up the fact, and then its teller says more
                lines = self._more(stream, rule, people, count + 1)
                more, later = lines[1:], lines[:1]
        view = opinion_rule(statement, self._catalogue)
        views = view is not None and not (following.assistant or aside) and stream.chance(_OPINION)
        opinion = self._opinion(stream, view, people) if view and views else None
        return replace(statement, more=more, later=later, opinion=opinion)

    def _more(self, stream: Stream, rule: str, people: Sequence[str], count: int) -> tuple[int, ...]:
        """Choose at most ``count`` lines of a rule, those met longest ago first.

        Returns their indices, sorted; none of them was met by one of the people within _AGAIN_DAYS.
        """
        lasts = self._last_days(rule, people)
        numbers = stream.shuffled(range(len(self._catalogue.bank.rules[rule].alternatives)))
        last = {number: _last(lasts, [str(number)]) for number in numbers}
        possible = [number for number in numbers if self._day - last[number] >= _AGAIN_DAYS]
        chosen = tuple(sorted(possible, key=last.__getitem__)[:count])
        self._note(people, rule, map(str, chosen))
        return chosen

    def _opinion(self, stream: Stream, rule: str, people: Sequence[str]) -> int | None:
        """Return the index of a wording of a rule of which the people have met no sentence; None if there is none."""
        lasts = self._last_days(rule, people)
        texts = wordings_of(self._catalogue.bank.rules[rule])
        for number in stream.shuffled(range(len(texts))):
            sentences = sentences_of(texts[number])
            if _last(lasts, sentences) == _NEVER:
                self._note(people, rule, sentences)
                return number
        return None

    def _note(self, people: Sequence[str], rule: str, lines: Iterable[str]) -> None:
        all_lines = tuple(lines)
        for person in people:
            self._today.setdefault((person, rule), set()).update(all_lines)

    def _last_days(self, rule: str, people: Sequence[str]) -> list[dict[str, int]]:
        """Return for each of the people the last day on which they met each line of a rule, today included."""
        lasts = []
        for person in people:
            today = dict.fromkeys(self._today.get((person, rule), ()), self._day)
            lasts.append({**self._days.get((person, rule), {}), **today})
        return lasts


def _last(lasts: Sequence[Mapping[str, int]], lines: Sequence[str]) -> int:
    """Return the last day on which any of the people met any of the lines; _NEVER if none did."""
    return max((days.get(line, _NEVER) for days in lasts for line in lines), default=_NEVER)
