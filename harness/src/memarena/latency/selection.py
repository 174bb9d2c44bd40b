"""Selects the queries of a latency study: the latest of each family, within a few egos whose memory is timed.

The paper takes the 10 latest queries of each of nine families over all egos, and times only those in its caches.
Here the egos are chosen first, so that each query can be timed on all backends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.io.reading import Dataset
from memarena_dataset.model import Family, Instance

from memarena.execution.planning.questions import plan_questions
from memarena.latency.errors import LatencyError
from memarena.log.records import Question

PER_FAMILY = 10
"""Queries of each family, as in the paper."""
EGOS = 8
"""Egos whose memory is timed: an ego is the person whose device is simulated, with a history to ingest."""
FAMILIES = tuple(family for family in Family if family.value.startswith("d"))
"""The paper's nine families, whose names begin with d; other families are not part of a study."""


@dataclass(frozen=True)
class Selection:
    """The queries of a study, by family and then latest first, with their number by family."""

    dataset: str
    dataset_sha256: str
    egos: tuple[str, ...]
    instance_ids: tuple[str, ...]
    families: dict[str, int]
    per_family: int

    def short(self) -> dict[str, int]:
        """Return the number of queries of each family that has fewer than ``per_family``."""
        return {family: count for family, count in self.families.items() if count < self.per_family}

    def text(self) -> str:
        """Return the list in the format of ``--question-ids``, with comments on its source."""
        counts = ", ".join(f"{family} {count}" for family, count in self.families.items())
        head = [
            f"# queries of a latency study: the {self.per_family} latest of each family",
            f"# data set {self.dataset}, sha256 {self.dataset_sha256}",
            f"# egos {', '.join(self.egos)}",
            f"# {len(self.instance_ids)} queries: {counts}",
        ]
        return "\n".join([*head, *self.instance_ids]) + "\n"


def select_queries(dataset: Dataset, *, egos: int = EGOS, per_family: int = PER_FAMILY) -> Selection:
    """Choose egos and queries. The same data set always gives the same list.

    Egos are chosen greedily: each time the ego with most queries that families still lack (ties by id). A query's
    time is its ``query_timestamp`` or, if it has none, that of its latest evidence. Raises
    :class:`LatencyError` for a data set with fewer egos.
    """
    if egos < 1 or per_family < 1:
        raise LatencyError(f"{egos} egos, {per_family} queries per family: expected at least 1 of each")
    if len(dataset.egos) < egos:
        raise LatencyError(f"--egos {egos}: {dataset.path} has only {len(dataset.egos)} egos with questions")
    questions = plan_questions(dataset, dataset.instances, "interleaved", 0)
    chosen = choose_egos([q.instance for q in questions], egos, per_family)
    latest = sorted(
        (q for q in questions if q.instance.ego_agent_id in chosen),
        key=lambda q: (-query_time(dataset, q), q.instance.instance_id),
    )
    picked: list[str] = []
    families: dict[str, int] = {}
    for family in FAMILIES:
        family_ids = [q.instance.instance_id for q in latest if q.instance.family is family][:per_family]
        families[family.value] = len(family_ids)
        picked += family_ids
    return Selection(dataset.name, dataset.sha256, tuple(sorted(chosen)), tuple(picked), families, per_family)


def choose_egos(instances: Sequence[Instance], egos: int, per_family: int) -> set[str]:
    """Return egos that together come nearest to ``per_family`` questions of each family, chosen greedily."""
    counts: dict[str, Counter[Family]] = {}
    for instance in instances:
        if instance.family in FAMILIES:
            counts.setdefault(instance.ego_agent_id, Counter())[instance.family] += 1
    chosen: set[str] = set()
    have: Counter[Family] = Counter()
    for _ in range(egos):
        candidates = sorted(ego for ego in counts if ego not in chosen)
        if not candidates:
            break
        best = max(candidates, key=lambda ego: _gain(have, counts[ego], per_family))
        chosen.add(best)
        have += counts[best]
    return chosen


def _gain(have: Counter[Family], more: Counter[Family], per_family: int) -> int:
    # What this ego adds to families that are still below ``per_family``.
    return sum(min(per_family, have[f] + n) - min(per_family, have[f]) for f, n in more.items())


def query_time(dataset: Dataset, question: Question) -> float:
    """Return when a query is asked, in simulated days; the end of its latest evidence if the data set does not say."""
    instance = question.instance
    if instance.query_timestamp is not None:
        return instance.query_timestamp
    ends = [dataset.session(session).end_time for session in instance.evidence_session_ids]
    return max(ends, default=float(question.day))


def write_selection(selection: Selection, path: Path) -> None:
    """Write the list. Raises :class:`LatencyError` if the file exists or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(selection.text())
    except OSError as error:
        raise LatencyError(f"--out {path}: {error.strerror}") from error
