"""Opens a data set folder: loads the small files, indexes the corpus, and reports every row that cannot be used.

``open_dataset`` is the entry point. A backend may see only the results of ``day_sessions`` and ``day_events``, which
are exactly the ego's projection: the sessions in which the ego takes part and the events that it could see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeVar

from memarena_dataset.errors import DatasetError, FieldError, RowProblem
from memarena_dataset.io.corpus import Corpus
from memarena_dataset.io.files import (
    CORPUS,
    EVENTS,
    GROUPS,
    INSTANCE_FOLDER,
    LOCATIONS,
    PERSONAS,
    REPORT,
    Folder,
)
from memarena_dataset.io.rows import (
    MAX_DAYS,
    Raw,
    agent_of,
    event_of,
    group_of,
    instance_of,
    load_json,
    load_object,
    location_of,
)
from memarena_dataset.io.variants import keyed_objects, relations_of
from memarena_dataset.model import (
    SUFFICIENT_TURNS_VERSION,
    Agent,
    Event,
    Family,
    Group,
    Instance,
    Location,
    Session,
)
from memarena_dataset.safe_files import pack_hash

DEFAULT_EPOCH = date(2025, 1, 1)
"""Date of day 0 if ``pipeline_report.json`` names no other."""

EARLIEST_EPOCH, LATEST_EPOCH = date(1900, 1, 1), date(2999, 12, 31)
"""Limits of the date of day 0; all days of a world are then valid calendar dates."""

T = TypeVar("T")


class Dataset:
    """A data set that is open for reading. Use it as a context manager; close releases the corpus file.

    ``instances`` are in the order of the files (names sorted) and rows; ``problems`` names every row that could not
    be used, and is empty after a strict opening.
    """

    def __init__(self, folder: Folder, loader: _Loader, corpus: Corpus) -> None:
        self.path = folder.path
        self.name = folder.path.resolve().name
        self.sha256 = folder.sha256()
        self.calendar_epoch = loader.epoch
        self.agents: Mapping[str, Agent] = MappingProxyType(loader.agents)
        self.groups: Mapping[str, Group] = MappingProxyType(loader.groups)
        self.locations: Mapping[str, Location] = MappingProxyType(loader.locations)
        self.events: tuple[Event, ...] = tuple(loader.events.values())
        self.instances: tuple[Instance, ...] = tuple(row.instance for row in loader.instances.values())
        self.problems: tuple[RowProblem, ...] = tuple(loader.problems)
        self.unknown_askers = loader.unknown_askers
        """Askers that are in no persona and in no session."""
        self.corpus = corpus
        self.instance_lines: Mapping[str, tuple[str, int]] = MappingProxyType(
            {instance_id: (row.file, row.line) for instance_id, row in loader.instances.items()}
        )
        """File and line of each instance."""
        last_event = max((event.day + 1 for event in self.events), default=0)
        self.day_count: int = max(corpus.day_count, last_event, loader.day_count)

    # -------------------------------------------------------------- life cycle

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the corpus file. Closing twice is fine."""
        self.corpus.close()

    # -------------------------------------------------------------- what an ego sees

    @cached_property
    def egos(self) -> tuple[str, ...]:
        """Agents with at least one instance, sorted."""
        return tuple(sorted({instance.ego_agent_id for instance in self.instances}))

    @cached_property
    def evidence_session_ids(self) -> frozenset[str]:
        """Ids of all sessions that are evidence of a question of any ego."""
        return frozenset(session for instance in self.instances for session in instance.evidence_session_ids)

    def day_sessions(self, ego: str | None, day: int) -> Iterator[Session]:
        """Yield the sessions of the ego's projection that start on a day, ordered by start and id, read on demand.

        If ``ego`` is None, the sessions of all agents, which only a diagnostic backend may see.
        """
        for session_id in self.corpus.day_session_ids(ego, day):
            yield self.corpus.session(session_id)

    def day_events(self, ego: str | None, day: int) -> tuple[Event, ...]:
        """Return the events of a day that the ego could see (None: all), ordered by time and id."""
        return self._events_by_day.get((ego, day), ())

    @cached_property
    def _events_by_day(self) -> Mapping[tuple[str | None, int], tuple[Event, ...]]:
        by_day: defaultdict[tuple[str | None, int], list[Event]] = defaultdict(list)
        for event in sorted(self.events, key=lambda event: (event.timestamp, event.event_id)):
            by_day[None, event.day].append(event)
            for agent_id in dict.fromkeys(event.visibility_mask):
                by_day[agent_id, event.day].append(event)
        return {key: tuple(events) for key, events in by_day.items()}

    def session(self, session_id: str) -> Session:
        """Return any session by id, for oracle and judge.

        Raises:
            DatasetError: there is no such session.
        """
        return self.corpus.session(session_id)

    def question_day(self, instance: Instance) -> int:
        """Return the day on which a question is asked: that of its timestamp, at most the last day (the default)."""
        last = max(self.day_count - 1, 0)
        if instance.query_timestamp is None:
            return last
        return min(int(instance.query_timestamp), last)

    # -------------------------------------------------------------- people and time

    def relationship(self, ego: str, other: str) -> str:
        """Return what ``other`` is to ``ego`` ("sister", "colleague"); "" if the data set does not state it."""
        relation = self._stated_relations.get((ego, other))
        if relation:
            return relation
        return self.neighbors(ego).get(other, "")

    @cached_property
    def _stated_relations(self) -> Mapping[tuple[str, str], str]:
        relations: dict[tuple[str, str], str] = {}
        for instance in self.instances:
            relation = instance.metadata.get("relationship")
            if instance.asker_agent_id is not None and isinstance(relation, str) and relation.strip():
                relations.setdefault((instance.ego_agent_id, instance.asker_agent_id), relation.strip())
        return relations

    def neighbors(self, agent_id: str) -> Mapping[str, str]:
        """Return the relation ("" if none is stated) of each agent id in an agent's ``social_neighbors``."""
        agent = self.agents.get(agent_id)
        return {} if agent is None else relations_of(agent.social_neighbors)

    def moment(self, t: float) -> datetime:
        """Return the calendar time of a time in simulated days: UTC, rounded to the second."""
        midnight = datetime(self.calendar_epoch.year, self.calendar_epoch.month, self.calendar_epoch.day, tzinfo=UTC)
        return midnight + timedelta(seconds=round(t * 86_400))


class _InstanceRow:
    """An instance with its file and line."""

    __slots__ = ("file", "instance", "line")

    def __init__(self, instance: Instance, file: str, line: int) -> None:
        self.instance = instance
        self.file = file
        self.line = line


class _Loader:
    """Reads the small files of a folder and collects their problems."""

    def __init__(self, folder: Folder, leave_out: Collection[str]) -> None:
        self.folder = folder
        self._leave_out = frozenset(leave_out)
        self.left_out: set[str] = set()
        """Ids of questions that were skipped because they are in ``leave_out``."""
        self.problems: list[RowProblem] = []
        self.epoch = DEFAULT_EPOCH
        self.day_count = 0
        self.agents: dict[str, Agent] = {}
        self.groups: dict[str, Group] = {}
        self.locations: dict[str, Location] = {}
        self.events: dict[str, Event] = {}
        self.instances: dict[str, _InstanceRow] = {}
        self.unknown_askers: frozenset[str] = frozenset()

    def load(self) -> None:
        """Load all files but the corpus."""
        self._load_report()
        self._load_rows(PERSONAS, agent_of, lambda agent: agent.agent_id, "agent_id", self.agents)
        self._check_neighbors()
        self._load_keyed(GROUPS, "group_id", "groups", group_of, self.groups)
        self._load_keyed(LOCATIONS, "location_id", "locations", location_of, self.locations)
        self._load_rows(EVENTS, event_of, lambda event: event.event_id, "event_id", self.events)
        names = {agent_id: agent.name for agent_id, agent in self.agents.items()}
        for file in self.folder.instance_files():
            self._load_instances(file, names)

    def _load_report(self) -> None:
        data = self.folder.read_bytes(REPORT)
        if data is None:
            return
        try:
            report = load_object(data)
            self.epoch = _epoch_of(report)
            self.day_count = _day_count_of(report)
            _check_versions(report)
            _check_pack(report)
        except FieldError as error:
            self._problem(REPORT, None, error)

    def _load_rows(
        self, file: str, parse: Callable[[Raw], T], id_of: Callable[[T], str], id_key: str, into: dict[str, T]
    ) -> None:
        for line in self.folder.lines(file):
            try:
                row = parse(load_object(line.data))
                if id_of(row) in into:
                    raise FieldError(id_key, f"{id_of(row)!r} occurs a second time")
                into[id_of(row)] = row
            except FieldError as error:
                self._problem(file, line.number, error)

    def _load_keyed(self, file: str, id_key: str, wrapper: str, parse: Callable[[Raw], T], into: dict[str, T]) -> None:
        """Load the objects of a JSON file into ``into`` by id; unusable ones are recorded as problems."""
        data = self.folder.read_bytes(file)
        if data is None:
            return
        try:
            for position, raw in keyed_objects(load_json(data), id_key, wrapper):
                try:
                    row = parse(raw)
                    row_id: str = getattr(row, id_key)
                    if row_id in into:
                        raise FieldError(id_key, f"{row_id!r} occurs a second time")
                    into[row_id] = row
                except FieldError as error:
                    self._problem(file, None, FieldError(f"{position}.{error.field}".rstrip("."), error.reason))
        except FieldError as error:
            self._problem(file, None, error)

    def _check_neighbors(self) -> None:
        for agent_id, agent in list(self.agents.items()):
            try:
                relations_of(agent.social_neighbors)
            except FieldError as error:
                self._problem(PERSONAS, None, FieldError(f"{agent_id}.{error.field}", error.reason))
                self.agents[agent_id] = agent.model_copy(update={"social_neighbors": None})

    def _load_instances(self, file: str, names: Mapping[str, str]) -> None:
        """Load a question file; unusable rows are recorded as problems."""
        stem = file.removeprefix(f"{INSTANCE_FOLDER}/").removesuffix(".jsonl")
        try:
            family = Family(stem)
        except ValueError:
            families = ", ".join(member.value for member in Family)
            self._problem(file, None, FieldError("", f"not named after a task family ({families})"))
            return
        for line in self.folder.lines(file):
            try:
                row = load_object(line.data)
                name = row.get("instance_id")
                if isinstance(name, str) and name in self._leave_out:
                    self.left_out.add(name)
                    continue
                instance = instance_of(row, family, names)
                earlier = self.instances.get(instance.instance_id)
                if earlier is not None:
                    raise FieldError(
                        "instance_id", f"{instance.instance_id!r} is also the instance of {earlier.file}:{earlier.line}"
                    )
                self.instances[instance.instance_id] = _InstanceRow(instance, file, line.number)
            except FieldError as error:
                self._problem(file, line.number, error)

    def add_agent(self, agent_id: str) -> None:
        """Add an agent without a persona; nothing if it is known."""
        if agent_id and agent_id not in self.agents:
            self.agents[agent_id] = Agent(agent_id=agent_id)

    def add_askers(self) -> None:
        """Add the askers; those in no persona and no session are recorded in ``unknown_askers``."""
        askers = {row.instance.asker_agent_id or "" for row in self.instances.values()} - {""}
        self.unknown_askers = frozenset(askers - self.agents.keys())
        for agent_id in sorted(askers):
            self.add_agent(agent_id)

    def drop_without_evidence(self, sessions: Corpus, turn_places: Mapping[str, set[str]]) -> None:
        """Drop instances whose evidence does not exist, and record each as a problem.

        ``turn_places``: ids of the sessions that hold a turn, by turn id.
        """
        for instance_id, row in list(self.instances.items()):
            reason = _missing_evidence(row.instance, sessions, turn_places)
            if reason is not None:
                self._problem(row.file, row.line, reason)
                del self.instances[instance_id]

    def _problem(self, file: str, line: int | None, error: FieldError) -> None:
        self.problems.append(RowProblem(file, error.reason, line, error.field))


def _missing_evidence(instance: Instance, sessions: Corpus, turn_places: Mapping[str, set[str]]) -> FieldError | None:
    for session_id in instance.evidence_session_ids:
        if session_id not in sessions:
            return FieldError("evidence_session_ids", f"session {session_id!r} does not exist in the corpus")
    cited = set(instance.evidence_session_ids)
    for turn_id in instance.evidence_turn_ids:
        places = turn_places.get(turn_id, set())
        if not places:
            return FieldError("evidence_turn_ids", f"turn {turn_id!r} does not exist in the corpus")
        if cited and not places & cited:
            return FieldError("evidence_turn_ids", f"turn {turn_id!r} is not in any of the evidence sessions")
    return None


def _find(report: Mapping[str, Any], key: str) -> tuple[str, Any]:
    """Return the path and value of a key of the report or of its configuration; the value is None if it is missing."""
    for table in ("", "config", "configuration"):
        part = report.get(table) if table else report
        if isinstance(part, Mapping) and part.get(key) is not None:
            return (f"{table}.{key}" if table else key), part[key]
    return key, None


def _epoch_of(report: Mapping[str, Any]) -> date:
    field, value = _find(report, "calendar_epoch")
    if value is None:
        return DEFAULT_EPOCH
    try:
        epoch = datetime.fromisoformat(value).date()
    except (TypeError, ValueError):
        raise FieldError(field, f"{value!r}; a date YYYY-MM-DD is expected") from None
    if not EARLIEST_EPOCH <= epoch <= LATEST_EPOCH:
        raise FieldError(field, f"{value}; a date between {EARLIEST_EPOCH} and {LATEST_EPOCH} is expected")
    return epoch


def _day_count_of(report: Mapping[str, Any]) -> int:
    field, value = _find(report, "day_count")
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_DAYS:
        raise FieldError(field, f"{value!r}; a number of days, 1 to {MAX_DAYS:,}, is expected")
    return value


def _check_versions(report: Mapping[str, Any]) -> None:
    """Refuse groups of sufficient turns in a form that this version does not read."""
    field, value = _find(report, "sufficient_turns_version")
    if value is not None and value != SUFFICIENT_TURNS_VERSION:
        raise FieldError(field, f"{value!r}; {SUFFICIENT_TURNS_VERSION} is expected")


def _check_pack(report: Mapping[str, Any]) -> None:
    """Check that a generated data set's pack has all keys, and that its hash is that of the files in ``banks``."""
    field, pack = _find(report, "pack")
    if pack is None:
        return
    if not isinstance(pack, Mapping) or not all(isinstance(pack.get(key), str) for key in _PACK_KEYS):
        raise FieldError(field, f"an object with the texts {', '.join(_PACK_KEYS)} is expected")
    hashes = report.get("banks")
    if not isinstance(hashes, Mapping) or not all(isinstance(sha256, str) for sha256 in hashes.values()):
        raise FieldError("banks", "the SHA-256 of each file of the pack is expected")
    if pack_hash(hashes) != pack["sha256"]:
        raise FieldError(f"{field}.sha256", f"{pack['sha256']} is not the hash of the files listed in banks")


_PACK_KEYS = ("name", "version", "sha256")


def open_dataset(path: Path, *, strict: bool = True, leave_out: Collection[str] = ()) -> Dataset:
    """Open a data set folder.

    Args:
        path: the folder.
        strict: raise if a row cannot be used. Otherwise such rows are left out and reported in ``problems``.
        leave_out: ids of questions whose rows are skipped, for example because they cannot be used.

    Raises:
        DatasetError: the folder or its corpus is missing or unreadable, no question has an id of ``leave_out``, or
            (strict) a row cannot be used or an instance cites evidence that does not exist. The message names file,
            line, field and reason.
    """
    folder = Folder(path)
    loader = _Loader(folder, leave_out)
    if folder.find(CORPUS) is None:
        raise DatasetError(f"{path}: {CORPUS} is missing; {CORPUS} or {CORPUS}.gz is expected")
    loader.load()
    if unknown := sorted(set(leave_out) - loader.left_out):
        raise DatasetError(f"{path}: --leave-out {unknown[0]}: no question has this id")
    evidence_turns = {turn_id for row in loader.instances.values() for turn_id in row.instance.evidence_turn_ids}
    turn_places: dict[str, set[str]] = {}

    def look(session: Session, line: int) -> None:
        for agent_id in session.participants:
            loader.add_agent(agent_id)
        for turn in session.turns:
            loader.add_agent(turn.speaker_id)
            if turn.turn_id in evidence_turns:
                turn_places.setdefault(turn.turn_id, set()).add(session.session_id)

    corpus = Corpus.scan(folder, on_problem=loader.problems.append, on_session=look)
    try:
        if len(corpus) == 0 and not loader.problems:
            raise DatasetError(f"{CORPUS}: holds no session")
        loader.drop_without_evidence(corpus, turn_places)
        for row in loader.instances.values():
            loader.add_agent(row.instance.ego_agent_id)
        loader.add_askers()
        if strict and loader.problems:
            more = len(loader.problems) - 1
            others = f" (and {more} more; memarena dataset validate {path} lists them)" if more else ""
            raise DatasetError(f"{loader.problems[0]}{others}")
        return Dataset(folder, loader, corpus)
    except BaseException:
        corpus.close()
        raise
