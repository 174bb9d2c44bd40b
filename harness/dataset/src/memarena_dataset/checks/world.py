"""Gives the checks access to a data set: instances with file and line, evidence as passages, projections as text.

The projection of only one ego is kept as text at a time, so checks that need it process the instances ego by ego.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from memarena_dataset.checks.findings import Finding, Severity
from memarena_dataset.errors import FieldError, RowProblem
from memarena_dataset.io.files import FACTS, Folder
from memarena_dataset.io.gold_reading import lettered_options
from memarena_dataset.io.reading import Dataset
from memarena_dataset.io.rows import load_object, to_record
from memarena_dataset.model import Event, Fact, Family, Instance, Session, Turn, display_name_of
from memarena_dataset.values.phrases import normal
from memarena_dataset.values.possible import Passage


@dataclass(frozen=True, slots=True)
class Window:
    """Normalised words of a turn and the one before it (speakers' names included), or of an event, with its time."""

    time: float
    words: str
    where: str


class World:
    """A data set as the checks see it."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.fact_problems: list[RowProblem] = []
        self._windows: tuple[str, tuple[Window, ...]] | None = None
        self._sessions: dict[str, Session] = {}

    # -------------------------------------------------------------- findings

    def at(self, instance: Instance, check: str, field: str, reason: str, severity: Severity = "error") -> Finding:
        """Return a finding in the row of an instance."""
        file, line = self.dataset.instance_lines[instance.instance_id]
        return Finding(check, severity, RowProblem(file, f"{reason} [{instance.instance_id}]", line, field))

    # -------------------------------------------------------------- instances

    def of(self, *families: Family) -> Iterator[Instance]:
        """Yield the instances of some families, grouped by ego, so that each projection is made once."""
        for instance in self.by_ego:
            if instance.family in families:
                yield instance

    @cached_property
    def by_ego(self) -> tuple[Instance, ...]:
        """All instances, grouped by ego."""
        return tuple(sorted(self.dataset.instances, key=lambda instance: instance.ego_agent_id))

    def asked_until(self, instance: Instance) -> float:
        """Return the time up to which sessions count: the midnight after the day of the question."""
        return float(self.dataset.question_day(instance) + 1)

    def name(self, agent_id: str | None) -> str:
        """Return the display name of an agent; "" for None."""
        if agent_id is None:
            return ""
        agent = self.dataset.agents.get(agent_id)
        return display_name_of(agent_id) if agent is None else agent.name

    def date_of(self, time: float) -> date:
        """Return the calendar date of a time in simulated days."""
        return self.dataset.calendar_epoch + timedelta(days=int(time))

    # -------------------------------------------------------------- evidence

    def session(self, session_id: str) -> Session:
        """Return a session; the last 64 are cached, since successive checks read the same evidence."""
        session = self._sessions.pop(session_id, None) or self.dataset.session(session_id)
        self._sessions[session_id] = session
        if len(self._sessions) > 64:
            del self._sessions[next(iter(self._sessions))]
        return session

    def evidence(self, instance: Instance) -> tuple[Session, ...]:
        """Return the evidence sessions of an instance."""
        return tuple(self.session(session_id) for session_id in instance.evidence_session_ids)

    def evidence_turns(self, instance: Instance) -> tuple[Turn, ...]:
        """Return the turns that an instance cites, or all turns of its evidence sessions if it cites none."""
        cited = frozenset(instance.evidence_turn_ids)
        turns = [turn for session in self.evidence(instance) for turn in session.turns]
        return tuple(turn for turn in turns if not cited or turn.turn_id in cited)

    def passages(self, instance: Instance, only: frozenset[str] = frozenset()) -> tuple[Passage, ...]:
        """Return the evidence as passages: the head of each session (who, where, when, which group), then the turns.

        ``only``: ids of the evidence turns that count, with the heads of their sessions; empty: all.
        """
        turns = tuple(turn for turn in self.evidence_turns(instance) if not only or turn.turn_id in only)
        heads = tuple(
            self.head(session)
            for session in self.evidence(instance)
            if not only or any(turn.turn_id in only for turn in session.turns)
        )
        return heads + tuple(Passage(turn.text, self.date_of(turn.timestamp)) for turn in turns)

    def head(self, session: Session) -> Passage:
        """Return the head of a session: names of people, place and group, and the session's other labels."""
        dataset = self.dataset
        parts = [self.name(agent_id) for agent_id in session.participants]
        location = dataset.locations.get(session.location_id or "")
        if location is not None:
            parts.append(location.name)
        group = dataset.groups.get(session.group_id or "")
        if group is not None:
            parts += [group.name, *(self.name(member) for member in group.members)]
            extras = [value for value in (group.model_extra or {}).values() if isinstance(value, str)]
            parts += [dataset.locations[value].name if value in dataset.locations else value for value in extras]
        parts += [part for part in (session.role_name, session.modality, session.interest_domain) if part]
        return Passage(". ".join(parts).replace("_", " "), self.date_of(session.start_time))

    # -------------------------------------------------------------- projections

    def windows(self, ego: str) -> tuple[Window, ...]:
        """Return an ego's whole projection as windows, not sorted by time."""
        if self._windows is None or self._windows[0] != ego:
            corpus = self.dataset.corpus
            sessions = (corpus.session(session_id) for session_id in corpus.session_ids_of(ego))
            events = (event for event in self.dataset.events if ego in event.visibility_mask)
            self._windows = (ego, (*self._session_windows(sessions), *self._event_windows(events)))
        return self._windows[1]

    def _session_windows(self, sessions: Iterable[Session]) -> Iterator[Window]:
        for session in sessions:
            before = ""
            for turn in session.turns:
                words = normal(f"{self.name(turn.speaker_id)}: {turn.text}")
                yield Window(turn.timestamp, before + words, turn.turn_id)
                before = words

    @staticmethod
    def _event_windows(events: Iterable[Event]) -> Iterator[Window]:
        for event in events:
            yield Window(event.timestamp, normal(event.content), event.event_id)

    # -------------------------------------------------------------- facts

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Statements of ``facts.jsonl``; empty if it does not exist. Unusable rows go to ``fact_problems``."""
        facts: list[Fact] = []
        for line in Folder(self.dataset.path).lines(FACTS):
            try:
                facts.append(to_record(Fact, load_object(line.data)))
            except FieldError as error:
                self.fact_problems.append(RowProblem(FACTS, error.reason, line.number, error.field))
        return tuple(facts)

    @cached_property
    def facts_by_id(self) -> Mapping[str, tuple[Fact, ...]]:
        """Statements by ``fact_id``."""
        grouped: defaultdict[str, list[Fact]] = defaultdict(list)
        for fact in self.facts:
            grouped[fact.fact_id].append(fact)
        return {fact_id: tuple(facts) for fact_id, facts in grouped.items()}

    @cached_property
    def facts_by_subject(self) -> Mapping[tuple[str, str, str | None], tuple[Fact, ...]]:
        """Statements by subject, attribute and scope."""
        grouped: defaultdict[tuple[str, str, str | None], list[Fact]] = defaultdict(list)
        for fact in self.facts:
            grouped[fact.subject, fact.attribute, fact.scope].append(fact)
        return {key: tuple(facts) for key, facts in grouped.items()}


def fact_id_of(instance: Instance) -> str | None:
    """Return the id of the fact that an instance asks for; None if its metadata has none."""
    fact_id = instance.metadata.get("fact_id")
    return fact_id if isinstance(fact_id, str) and fact_id else None


def stem_of(instance: Instance) -> str:
    """Return the question without its lettered options."""
    options = lettered_options(instance.query)
    if not options:
        return instance.query
    lettered = {f"{chr(ord('A') + index)}{mark} {option}" for index, option in enumerate(options) for mark in ").:"}
    return "\n".join(line for line in instance.query.splitlines() if line.strip().lstrip("(") not in lettered)
