"""Computes how large a data set is: the paper's data-set summary (table "dataset-summary"), in words and bytes.

Sizes are those of the turns' texts. Words are separated by white space; a token is four bytes of UTF-8, as in budgets,
since tokens of readers depend on their tokenizers. "Ego" figures count each session once for every person in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.io.reading import Dataset, open_dataset
from memarena_dataset.model import DIMENSION_OF, Dimension, Family, Instance

LAG_BUCKETS: tuple[tuple[str, int, int | None], ...] = (
    ("0", 0, 0),
    ("1-3", 1, 3),
    ("4-7", 4, 7),
    ("8-14", 8, 14),
    ("more", 15, None),
)
"""Days between the last evidence and the question: name, first, last."""
NO_EVIDENCE = "no evidence"
TOKEN_BYTES = 4
_TOKENS = f"Tokens (UTF-8 bytes / {TOKEN_BYTES}) per agent and day"


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, smallest and largest of some counts."""

    mean: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class Size:
    """Sessions, turns, words and bytes of a history."""

    sessions: int = 0
    turns: int = 0
    words: int = 0
    bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.sessions + other.sessions,
            self.turns + other.turns,
            self.words + other.words,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """Summary of a data set. Spreads are None if there is nothing to count."""

    name: str
    sha256: str
    calendar_epoch: str
    agents: int
    days: int
    sessions: int
    turns: int
    words: int
    bytes: int
    events: int
    groups: int
    locations: int
    turns_per_session: Spread | None
    words_per_session: Spread | None
    bytes_per_session: Spread | None
    words_per_turn: Spread | None
    ego_sessions_per_agent: Spread | None
    ego_turns_per_agent: Spread | None
    ego_words_per_agent: Spread | None
    ego_bytes_per_agent: Spread | None
    ego_words_per_agent_day: Spread | None
    """Mean over all days of the world for each agent; the spread is over agents."""
    ego_bytes_per_agent_day: Spread | None
    pp_tokens_per_agent_day: Spread | None
    """The part of ``ego_bytes_per_agent_day`` in sessions among people alone (pp), in tokens of four UTF-8 bytes."""
    pa_tokens_per_agent_day: Spread | None
    """The part in sessions in which an assistant takes part (pa: person and assistant), in the same tokens."""
    egos: int
    """Number of agents whose memory is asked about."""
    instances: int
    instances_per_family: Mapping[str, int]
    instances_per_dimension: Mapping[str, int]
    evidence_sessions_per_instance: Spread | None
    lag_days: Mapping[str, int]
    """Number of questions by days between their last evidence session and their own day."""


def stats(path: Path) -> Stats:
    """Count a data set folder in one pass over its corpus.

    Raises:
        DatasetError: a row cannot be used; figures over half a data set would mislead.
    """
    with open_dataset(path) as dataset:
        return stats_of(dataset)


def stats_of(dataset: Dataset) -> Stats:
    """Count a data set that is open."""
    session_sizes: list[Size] = []
    turn_words: list[int] = []
    people = [agent_id for agent_id, agent in dataset.agents.items() if not agent.is_assistant]
    ego_sizes = dict.fromkeys(people, Size())
    with_assistant = dict.fromkeys(people, Size())
    assistants = dataset.agents.keys() - set(people)
    for session in dataset.corpus.sessions():
        words = [len(turn.text.split()) for turn in session.turns]
        size = Size(1, len(words), sum(words), sum(len(turn.text.encode()) for turn in session.turns))
        session_sizes.append(size)
        turn_words += words
        for agent_id in set(session.participants) & ego_sizes.keys():
            ego_sizes[agent_id] += size
            if not assistants.isdisjoint(session.participants):
                with_assistant[agent_id] += size
    total = sum(session_sizes, Size())
    sizes_of_egos = list(ego_sizes.values())
    days = max(dataset.day_count, 1)
    families = Counter(instance.family for instance in dataset.instances)
    return Stats(
        name=dataset.name,
        sha256=dataset.sha256,
        calendar_epoch=dataset.calendar_epoch.isoformat(),
        agents=len(people),
        days=dataset.day_count,
        sessions=total.sessions,
        turns=total.turns,
        words=total.words,
        bytes=total.bytes,
        events=len(dataset.events),
        groups=len(dataset.groups),
        locations=len(dataset.locations),
        turns_per_session=_spread(size.turns for size in session_sizes),
        words_per_session=_spread(size.words for size in session_sizes),
        bytes_per_session=_spread(size.bytes for size in session_sizes),
        words_per_turn=_spread(turn_words),
        ego_sessions_per_agent=_spread(size.sessions for size in sizes_of_egos),
        ego_turns_per_agent=_spread(size.turns for size in sizes_of_egos),
        ego_words_per_agent=_spread(size.words for size in sizes_of_egos),
        ego_bytes_per_agent=_spread(size.bytes for size in sizes_of_egos),
        ego_words_per_agent_day=_spread(size.words / days for size in sizes_of_egos),
        ego_bytes_per_agent_day=_spread(size.bytes / days for size in sizes_of_egos),
        pp_tokens_per_agent_day=_spread(
            (ego_sizes[person].bytes - with_assistant[person].bytes) / TOKEN_BYTES / days for person in people
        ),
        pa_tokens_per_agent_day=_spread(with_assistant[person].bytes / TOKEN_BYTES / days for person in people),
        egos=len(dataset.egos),
        instances=len(dataset.instances),
        instances_per_family={family.value: families[family] for family in Family if families[family]},
        instances_per_dimension=_per_dimension(families),
        evidence_sessions_per_instance=_spread(len(row.evidence_session_ids) for row in dataset.instances),
        lag_days=_lags(dataset),
    )


def _per_dimension(families: Mapping[Family, int]) -> dict[str, int]:
    counts = {
        dimension: sum(count for family, count in families.items() if DIMENSION_OF[family] is dimension)
        for dimension in Dimension
    }
    return {dimension.value: count for dimension, count in counts.items() if count}


def lag_days(dataset: Dataset, instance: Instance) -> int | None:
    """Return the days between the last evidence session and the question; None without evidence."""
    start_of = dataset.corpus.start_of
    evidence_days = [int(start_of(session_id)) for session_id in instance.evidence_session_ids]
    return dataset.question_day(instance) - max(evidence_days) if evidence_days else None


def _lags(dataset: Dataset) -> dict[str, int]:
    counts = dict.fromkeys([name for name, _, _ in LAG_BUCKETS] + [NO_EVIDENCE], 0)
    for instance in dataset.instances:
        counts[lag_bucket(lag_days(dataset, instance))] += 1
    return counts


def lag_bucket(days: int | None) -> str:
    """Return the name of the bucket of a lag; evidence later than its question counts as a lag of 0 days."""
    if days is None:
        return NO_EVIDENCE
    return next(name for name, _, last in LAG_BUCKETS if last is None or days <= last)


def _spread(counts: Iterable[float]) -> Spread | None:
    values = list(counts)
    return Spread(sum(values) / len(values), min(values), max(values)) if values else None


# ------------------------------------------------------------------ for people


def table(summary: Stats) -> list[tuple[str, str]]:
    """Return the summary as rows of statistic and value, in the order of the paper."""
    rows = [
        ("Agents / simulated days", f"{summary.agents:,} / {summary.days:,}"),
        ("Sessions / turns", f"{summary.sessions:,} / {summary.turns:,}"),
        ("Words / bytes", f"{summary.words:,} / {summary.bytes:,}"),
        ("Turns per session, mean [min, max]", _shown(summary.turns_per_session, 2)),
        ("Words per session, mean [min, max]", _shown(summary.words_per_session, 1)),
        ("Bytes per session, mean [min, max]", _shown(summary.bytes_per_session, 1)),
        ("Words per turn, mean [min, max]", _shown(summary.words_per_turn, 1)),
        ("Ego sessions per agent, mean [min, max]", _shown(summary.ego_sessions_per_agent, 1)),
        ("Ego turns per agent, mean [min, max]", _shown(summary.ego_turns_per_agent, 1)),
        ("Ego words per agent, mean [min, max]", _shown(summary.ego_words_per_agent, 0)),
        ("Ego bytes per agent, mean [min, max]", _shown(summary.ego_bytes_per_agent, 0)),
        ("Ego words per agent and day, mean [min, max]", _shown(summary.ego_words_per_agent_day, 0)),
        ("Ego bytes per agent and day, mean [min, max]", _shown(summary.ego_bytes_per_agent_day, 0)),
        (f"{_TOKENS}, between people, mean [min, max]", _shown(summary.pp_tokens_per_agent_day, 0)),
        (f"{_TOKENS}, with an assistant, mean [min, max]", _shown(summary.pa_tokens_per_agent_day, 0)),
        ("Events / groups / locations", f"{summary.events:,} / {summary.groups:,} / {summary.locations:,}"),
        ("Questions / agents asked about", f"{summary.instances:,} / {summary.egos:,}"),
        ("Evidence sessions per question, mean [min, max]", _shown(summary.evidence_sessions_per_instance, 2)),
    ]
    rows += [
        (f"Questions, {dimension} {_families_of(dimension, summary)}", f"{count:,}")
        for dimension, count in summary.instances_per_dimension.items()
    ]
    rows += [
        ("Questions by lag in days: " + name, f"{count:,}")
        for name, count in summary.lag_days.items()
        if summary.instances
    ]
    return rows


def _families_of(dimension: str, summary: Stats) -> str:
    counts = [
        f"{family} {count:,}"
        for family, count in summary.instances_per_family.items()
        if DIMENSION_OF[Family(family)].value == dimension
    ]
    return f"({', '.join(counts)})"


def _shown(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "n/a"

    return f"{spread.mean:,.{digits}f} [{spread.min:,.0f}, {spread.max:,.0f}]"


def markdown(summary: Stats) -> str:
    """Return the summary as a Markdown table."""
    rows = [f"| {statistic} | {value} |" for statistic, value in table(summary)]
    return "\n".join([f"| {summary.name} | |", "| --- | ---: |", *rows])
