"""Measures Search, memory and disk of backends by the length of history, in a run that times searches separately.

``memarena latency growth`` makes the run's configuration here, and its report reads the run's log with
:func:`read_growth`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from memarena_dataset.io.reading import open_dataset

from memarena.evaluation import load_facts
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.latency.errors import LatencyError
from memarena.latency.results import Growth, GrowthPoint, SidecarFootprint
from memarena.latency.samples import backend_label
from memarena.latency.sidecar_footprint import read_sidecars
from memarena.log.records import Cell, FootprintTaken, IngestDone, SearchesTimed
from memarena.log.store import read_records
from memarena.scoring.timing import floor, percentiles

DAYS = (1, 5, 10, 15)
"""Lengths of history, in days, after which searches are timed."""
SEARCHES = 130
"""Searches that are timed after each of ``DAYS``."""
_DEFAULTS: Mapping[str, object] = {
    "protocol": "end_of_horizon",
    "search_days": DAYS,
    "searches": SEARCHES,
    "max_context_tokens": 2048,
    "max_answer_tokens": 16,
}
"""Settings of a growth run. Answers are short, since only Search is timed."""


@dataclass
class _Point:
    """A cell's records for one length of history."""

    spans_ns: list[int] = field(default_factory=list)
    footprint: FootprintTaken | None = None


def growth_config(settings: Mapping[str, object], *, ego: str | None = None) -> RunConfig:
    """Return the configuration of a run that times Search by length of one ego's history, and asks its questions last.

    A single ego, since memory and disk are those of the whole backend: a second ego's would include the first history,
    too.

    Args:
        settings: fields of a run, with at least ``dataset``, ``backends`` and ``readers`` (a single reader).
        ego: id of the ego; None: the ego with most questions.

    Raises:
        LatencyError: days or an ego that the data set does not have, or several readers.
        RunError: any other value that cannot be.
    """
    config = parse_config({**_DEFAULTS, **settings}, "memarena latency growth")
    if len(config.readers) != 1:
        raise LatencyError(f"--reader {','.join(reader.spec for reader in config.readers)}: expected a single reader")
    dataset, days = config.dataset.absolute(), config.search_days
    with open_dataset(dataset) as opened:
        if max(days) > opened.day_count:
            raise LatencyError(f"--days {','.join(map(str, days))}: {dataset} has {opened.day_count} days")
        questions_by_ego = Counter(instance.ego_agent_id for instance in opened.instances)
    if not questions_by_ego:
        raise LatencyError(f"{dataset}: no ego has a question to search for")
    if ego is not None and ego not in questions_by_ego:
        raise LatencyError(f"--ego {ego}: no questions of this ego in {dataset}")
    ego_used = ego or min(questions_by_ego, key=lambda name: (-questions_by_ego[name], name))
    return config.model_copy(update={"dataset": dataset, "egos": (ego_used,)})


def read_growth(run_dir: Path) -> Growth:
    """Read the growth measured in a run. Raises :class:`LatencyError` if no search was timed, or for several egos."""
    facts = load_facts(run_dir)
    manifest = facts.manifest
    cells = {cell.cell_id: cell for cell in manifest.cells}
    points: dict[tuple[str, int], _Point] = {}
    ingested: dict[str, dict[int, IngestDone]] = {}
    failures: dict[str, Counter[str]] = {}
    queries = 0
    egos: set[str] = set()
    for record in read_records(run_dir, "ingest", "footprint", "searches_timed"):
        if isinstance(record, IngestDone) and record.code == "OK" and not record.replayed:
            # A day that was ingested again into a fresh namespace counts once.
            ingested.setdefault(record.cell_id, {})[record.day] = record
        elif isinstance(record, FootprintTaken) and record.day is not None:
            points.setdefault((record.cell_id, record.day + 1), _Point()).footprint = record
        elif isinstance(record, SearchesTimed):
            points.setdefault((record.cell_id, record.day + 1), _Point()).spans_ns += record.search_ns
            failures.setdefault(record.cell_id, Counter()).update(record.failures)
            queries = max(queries, record.queries)
            egos.add(record.ego)
    search_days = RunConfig.model_validate_json(manifest.config_json).search_days
    _check_timed(run_dir, egos, search_days)
    sidecars = read_sidecars(run_dir)
    order = list(cells)
    points_or_none = [
        _point(cells[cell_id], days, point, ingested.get(cell_id, {}), sidecars)
        for (cell_id, days), point in sorted(points.items(), key=lambda entry: (order.index(entry[0][0]), entry[0][1]))
    ]
    complete = tuple(point for point in points_or_none if point is not None)
    return Growth(
        dataset=manifest.dataset,
        egos=tuple(sorted(egos)),
        queries=queries,
        versions=manifest.versions,
        floor=floor(facts),
        points=complete,
        failed=_failed(manifest.cells, complete, search_days, failures),
        state=facts.ended.reason if facts.ended is not None else "running, or killed",
    )


def _check_timed(run_dir: Path, egos: Set[str], wanted: Sequence[int]) -> None:
    """Raise :class:`LatencyError` if there is no growth to report."""
    if not egos and wanted:
        raise LatencyError(f"{run_dir}: every backend failed before a search was timed; memarena report says why")
    if not egos:
        raise LatencyError(
            f"{run_dir}: no search was timed by length of history; make one with memarena latency growth"
        )
    if len(egos) > 1:
        raise LatencyError(
            f"{run_dir}: searches of {len(egos)} egos were timed ({', '.join(sorted(egos))}): memory and disk of a "
            "later one hold the earlier ones' history; make a run for each with memarena latency growth --ego"
        )


def _failed(
    cells: Sequence[Cell],
    points: Sequence[GrowthPoint],
    days_expected: Sequence[int],
    failures: Mapping[str, Counter[str]],
) -> dict[str, str]:
    """Return the backends without searches after some of the days, and how they failed."""
    causes = {}
    for cell in cells:
        label = backend_label(cell)
        have = {point.days for point in points if point.backend == label}
        counts = failures.get(cell.cell_id, Counter()).most_common()
        codes = ", ".join(f"{count} {code}" for code, count in counts) or "see the problems in the run's report"
        if not have:
            causes[label] = f"no search was timed: {codes}"
        elif missing := [days for days in days_expected if days not in have]:
            causes[label] = f"no search was timed after {', '.join(map(str, missing))} days: {codes}"
    return causes


def _point(
    cell: Cell, days: int, point: _Point, ingested: Mapping[int, IngestDone], sidecars: Sequence[SidecarFootprint]
) -> GrowthPoint | None:
    """Return the point of a length of history at which searches were timed; None for other days."""
    if not point.spans_ns or point.footprint is None:
        return None
    so_far = [day_ingest for day, day_ingest in ingested.items() if day < days]
    return GrowthPoint(
        backend=backend_label(cell),
        days=days,
        turns=sum(day_ingest.turns for day_ingest in so_far),
        search=percentiles(ns / 1e6 for ns in point.spans_ns),
        search_min_ms=min(point.spans_ns) / 1e6,
        search_max_ms=max(point.spans_ns) / 1e6,
        ingest_s=sum(day_ingest.duration_ns for day_ingest in so_far) / 1e9,
        footprint=point.footprint,
        beside=tuple(
            footprint for footprint in sidecars if (footprint.cell_id, footprint.days) == (cell.cell_id, days)
        ),
    )
