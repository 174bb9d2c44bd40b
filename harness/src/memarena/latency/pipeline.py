"""Computes a study from the logs of its runs: fits, the composed table, costs of questions and of days.

``memarena latency report`` prints it, and certification computes it again from the logs of a bundle. Runs of different
machines, data sets or questions are refused, since their times cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.evaluation import load_facts
from memarena.latency.composition import compose, search_times
from memarena.latency.cost_model import efficiency_row, ingest_row
from memarena.latency.errors import LatencyError
from memarena.latency.fit import LEAST_SAMPLES, fit_reader
from memarena.latency.results import Sample, StudiedRun, Study
from memarena.latency.samples import CellSamples, cell_samples
from memarena.latency.stopwatch_check import server_check
from memarena.log.records import MeteringStarted
from memarena.log.store import read_records
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.timing import floor

FIT_BACKENDS = ("vanilla", "oracle", "bm25")
"""Memories of phase 1: they call no model in Search or Ingest, so that the fit covers the reader alone."""


@dataclass(frozen=True)
class _Run:
    """A run of a study as read from its log."""

    path: Path
    facts: RunFacts
    cells: list[CellSamples]


def study_runs(run_dirs: Sequence[Path], *, fit_backends: Sequence[str] = FIT_BACKENDS) -> Study:
    """Compute the study of these runs. Raises :class:`LatencyError` if they do not match, LogError for a bad log."""
    runs = [_read(path) for path in run_dirs]
    if not runs:
        raise LatencyError("expected at least one run")
    _check(runs)
    samples = [sample for run in runs for cell in run.cells for sample in cell.samples]
    real = {r.name for run in runs for r in run.facts.manifest.readers if r.is_real_reader}
    readers = list(dict.fromkeys(r.name for run in runs for r in run.facts.manifest.readers if r.name in real))
    if not readers:
        raise LatencyError("no language model was timed: a study needs a reader that is a language model")
    timed = [sample for sample in samples if sample.reader in real]
    fits = {}
    unfitted = {}
    for reader in readers:
        phase_1 = [s for s in timed if s.backend.partition("[")[0] in fit_backends]
        fit = fit_reader(reader, phase_1)
        if fit is None:
            count = sum(s.reader == reader for s in phase_1)
            unfitted[reader] = f"{count} timed questions of {', '.join(fit_backends)}, {LEAST_SAMPLES} or more needed"
        else:
            fits[reader] = fit
    backends = list(dict.fromkeys(s.backend for s in timed))
    rows = [efficiency_row(cell, run.facts) for run in runs for cell in run.cells if cell.samples]
    ingest = [ingest_row(cell.cell, run.facts, rows) for run in runs for cell in run.cells]
    cells = [cell for run in runs for cell in run.cells]
    return Study(
        runs=tuple(_describe_run(run) for run in runs),
        fits=tuple(fits.values()),
        unfitted=unfitted,
        search_ms=search_times(timed),
        server_checks=tuple(server_check(reader, timed) for reader in readers),
        totals=tuple(compose(readers, backends, timed, fits)),
        efficiency=tuple(row for row in rows if row.reader in real),
        ingest=tuple(row for row in ingest if row is not None and row.reader in real),
        left_out={cell.cell.cell_id: cell.left_out for cell in cells if cell.left_out},
        failed={cell.cell.cell_id: cell.failed for cell in cells if cell.failed},
    )


def read_samples_of(run_dirs: Sequence[Path]) -> list[Sample]:
    """Return all samples of the runs that a study would use."""
    return [sample for path in run_dirs for cell in _read(path).cells for sample in cell.samples]


def _read(path: Path) -> _Run:
    facts = load_facts(path)
    return _Run(path, facts, cell_samples(str(path), facts))


def _check(runs: Sequence[_Run]) -> None:
    """Raise :class:`LatencyError` for runs that do not make a study together.

    These are a run that occurs twice, runs of different machines, data sets or questions, readers of the same name
    that differ, and cells that are in two runs.
    """
    by_cell: dict[str, Path] = {}
    models: dict[str, tuple[str, str, str]] = {}
    ids: dict[str, Path] = {}
    for run in runs:
        manifest = run.facts.manifest
        run_id = run.facts.started.run_id
        if run_id in ids:
            raise LatencyError(f"{run.path}: run {run_id} is given twice, first as {ids[run_id]}")
        ids[run_id] = run.path
        _check_machine(run, runs[0])
        if manifest.dataset.sha256 != runs[0].facts.manifest.dataset.sha256:
            raise LatencyError(f"{run.path}: another data set than that of {runs[0].path}")
        if run.facts.questions.keys() != runs[0].facts.questions.keys():
            raise LatencyError(
                f"{run.path}: other questions than {runs[0].path}; a study asks one list everywhere "
                "(memarena latency run --queries)"
            )
        for reader in manifest.readers:
            identity = (reader.model, reader.details.get("weights_sha256", ""), reader.result_class)
            if (earlier := models.setdefault(reader.name, identity)) != identity:
                differ = next(
                    f"{old} there, {new} here" for old, new in zip(earlier, identity, strict=True) if old != new
                )
                raise LatencyError(f"{run.path}: reader {reader.name} is not that of an earlier run: {differ}")
        for cell in run.cells:
            if cell.samples and (first_path := by_cell.setdefault(cell.cell.cell_id, run.path)) != run.path:
                raise LatencyError(f"{run.path}: cell {cell.cell.cell_id} is in {first_path}, too")


def _check_machine(run: _Run, first: _Run) -> None:
    """Raise :class:`LatencyError` if two runs were made on different processors."""
    versions, first_versions = run.facts.manifest.versions, first.facts.manifest.versions
    machine, first_machine = versions.platform.rpartition(" ")[2], first_versions.platform.rpartition(" ")[2]
    if machine != first_machine or (versions.cpu and first_versions.cpu and versions.cpu != first_versions.cpu):
        raise LatencyError(
            f"{run.path}: another machine ({versions.cpu or machine}) than that of {first.path} "
            f"({first_versions.cpu or first_machine}); times of two machines make no study"
        )


def _describe_run(run: _Run) -> StudiedRun:
    """Return the description of a run for the study's results."""
    manifest = run.facts.manifest
    unavailable: dict[str, str] = {}
    for record in read_records(run.path, "metering_started"):
        if isinstance(record, MeteringStarted):
            unavailable |= {channel.name: channel.reason for channel in record.channels if channel.reason}
    return StudiedRun(
        path=str(run.path),
        run_id=run.facts.started.run_id,
        started_at=run.facts.started.started_at,
        dataset=manifest.dataset,
        readers=manifest.readers,
        versions=manifest.versions,
        floor=floor(run.facts),
        meters_unavailable=unavailable,
    )
