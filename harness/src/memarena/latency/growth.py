"""Search, memory and disk of backends by length of history, from a run that timed searches apart from its questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena.dataset.reading import open_dataset
from memarena.latency.errors import LatencyError
from memarena.latency.results import Growth, GrowthPoint
from memarena.latency.samples import backend_label
from memarena.log.records import Cell, FootprintTaken, IngestDone, SearchesTimed
from memarena.log.store import read_records
from memarena.run.config import HelperConfig, ReaderConfig, RunConfig
from memarena.scoring import load_facts
from memarena.scoring.timing import floor, percentiles

DAYS = (1, 5, 10, 15)


@dataclass
class _Point:
    """What a cell's records say of one number of days."""

    spans_ns: list[int] = field(default_factory=list)
    footprint: FootprintTaken | None = None


def growth_config(
    dataset: Path,
    backends: Sequence[str],
    *,
    days: Sequence[int] = DAYS,
    egos: int = 1,
    searches: int = 130,
    reader: ReaderConfig,
    embedder: HelperConfig | None,
    extractor: HelperConfig | None,
    meters: tuple[str, ...],
    gateway_port: int = 0,
) -> RunConfig:
    """A run that times Search after so many days of history; the egos' questions are asked at the end.

    Raises :class:`LatencyError` for days that the data set does not have.
    """
    with open_dataset(dataset) as opened:
        if not days or max(days) > opened.day_count:
            raise LatencyError(f"--days {','.join(map(str, days))}: {dataset} has {opened.day_count} days")
        asked = Counter(instance.ego_agent_id for instance in opened.instances)
        by_ego = sorted(opened.egos, key=lambda ego: (-asked[ego], ego))[:egos]
        if len(by_ego) < egos:
            raise LatencyError(f"--egos {egos}: {dataset} has only {len(by_ego)} egos with questions")
    return RunConfig(
        dataset=dataset,
        backends=tuple(backends),
        readers=(reader,),
        embedder=embedder,
        extractor=extractor,
        protocol="end_of_horizon",
        egos=tuple(by_ego),
        search_days=tuple(sorted(set(days))),
        searches=searches,
        max_context_tokens=2048,
        max_answer_tokens=16,
        meters=meters,
        gateway_port=gateway_port,
    )


def read_growth(run_dir: Path) -> Growth:
    """What a run says. Raises :class:`LatencyError` if it timed no searches apart from its questions."""
    facts = load_facts(run_dir)
    manifest = facts.manifest
    cells = {cell.cell_id: cell for cell in manifest.cells}
    points: dict[tuple[str, int], _Point] = {}
    ingested: dict[str, list[IngestDone]] = {}
    queries = 0
    egos: set[str] = set()
    timed: set[str] = set()
    for record in read_records(run_dir, "ingest", "footprint", "searches_timed"):
        if isinstance(record, IngestDone) and record.code == "OK" and not record.replayed:
            ingested.setdefault(record.cell_id, []).append(record)
        elif isinstance(record, FootprintTaken) and record.day is not None:
            points.setdefault((record.cell_id, record.day + 1), _Point()).footprint = record
        elif isinstance(record, SearchesTimed):
            points.setdefault((record.cell_id, record.day + 1), _Point()).spans_ns += record.search_ns
            queries = max(queries, record.queries)
            egos.add(record.ego)
            timed.add(record.cell_id)
    if not timed and RunConfig.model_validate_json(manifest.config_json).search_days:
        raise LatencyError(f"{run_dir}: every backend failed before a search was timed; memarena report says why")
    if not timed:
        raise LatencyError(
            f"{run_dir}: no search was timed by length of history; make one with memarena latency growth"
        )
    order = list(cells)
    made = [
        _point(cells[cell_id], days, point, ingested.get(cell_id, []))
        for (cell_id, days), point in sorted(points.items(), key=lambda entry: (order.index(entry[0][0]), entry[0][1]))
    ]
    return Growth(
        dataset=manifest.dataset,
        egos=tuple(sorted(egos)),
        queries=queries,
        versions=manifest.versions,
        floor=floor(facts),
        points=tuple(point for point in made if point is not None),
        failed={
            backend_label(cell): "no search was timed: see the problems in the run's report"
            for cell in manifest.cells
            if cell.cell_id not in timed
        },
    )


def _point(cell: Cell, days: int, point: _Point, ingested: Sequence[IngestDone]) -> GrowthPoint | None:
    """A point where searches were timed; None for the days between."""
    if not point.spans_ns or point.footprint is None:
        return None
    so_far = [done for done in ingested if done.day < days]
    return GrowthPoint(
        backend=backend_label(cell),
        days=days,
        turns=sum(done.turns for done in so_far),
        search=percentiles(ns / 1e6 for ns in point.spans_ns),
        search_min_ms=min(point.spans_ns) / 1e6,
        search_max_ms=max(point.spans_ns) / 1e6,
        ingest_s=sum(done.duration_ns for done in so_far) / 1e9,
        footprint=point.footprint,
    )
