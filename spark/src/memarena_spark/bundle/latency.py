"""Checks the latency study in a bundle: makes its files again from those logs that the bundle has.

A latency study (``memarena latency report``) is an optional part of a bundle, and may cover other runs too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.latency.errors import LatencyError
from memarena.latency.pipeline import read_samples_of, study_runs
from memarena.latency.report.files import study_files, to_csv
from memarena.latency.report.tables import study_document
from memarena.latency.results import Sample, StudiedRun, Study
from pydantic import JsonValue, ValidationError

from memarena_spark.bundle import layout
from memarena_spark.bundle.phases import alike

NAME = "study.json"
STUDY = f"{layout.LATENCY}{NAME}"
SAMPLES = f"{layout.LATENCY}samples.csv"
_TOLERANCE = 1e-6
"""Relative tolerance: least squares by another machine's linear algebra differ in the last digits."""

_OVER_ALL_RUNS = {"break_even_queries_j", "break_even_queries_net_j", "break_even_queries_s", "why_no_break_even"}
"""Fields of a cell's rows that are computed from cells of other runs."""

FileFault = tuple[str, str]
"""A file of the bundle, and what is wrong with it."""


@dataclass(frozen=True)
class StudyChecked:
    """The result of the check of a study."""

    faults: tuple[FileFault, ...] = ()
    unchecked: str = ""
    """One line on the parts that rest on logs outside the bundle; empty if there are none."""


def check_study(bundle: Path, run_id: str) -> StudyChecked:
    """Compare the files below ``latency/`` with the bundle's log; an empty result if there are none.

    A study of only the bundle's run is made again completely. Of a study of several runs, the entries of this run are
    made again from the log, and tables and figures from the study's data; the figures of the other runs cannot be
    checked, and are reported. Fits over other memories than the default ones do not follow from a log either: such a
    study belongs next to a bundle, not into it.
    """
    study_names = [name for name in layout.files_of(bundle) if name.startswith(layout.LATENCY)]
    if not study_names:
        return StudyChecked()
    study = _read(bundle / STUDY)
    if isinstance(study, str):
        return StudyChecked(((STUDY, study),))
    run = next((run for run in study.runs if run.run_id == run_id), None)
    if run is None:
        other_runs = ", ".join(other.run_id for other in study.runs) or "none"
        return StudyChecked(((STUDY, f"is of other runs ({other_runs}), expected the bundle's among them ({run_id})"),))
    log = bundle / layout.LOG_FOLDER
    try:
        from_log = study_runs([log])
        samples = [sample.model_copy(update={"run": run.path}) for sample in read_samples_of([log])]
    except LatencyError as error:
        return StudyChecked(((STUDY, f"cannot be made again from {layout.LOG}: {error}"),))
    alone = len(study.runs) == 1
    differs = _whole(study, from_log) if alone else _part(study, run, from_log)
    if differs:
        return StudyChecked(((STUDY, differs),))
    faults = [*_files(bundle, study_names, study, samples if alone else None)]
    if not alone and SAMPLES in study_names and not _holds(bundle / SAMPLES, run.path, samples):
        faults.append((SAMPLES, f"does not hold, of run {run_id}, what {layout.LOG} gives"))
    other_runs = ", ".join(other.run_id for other in study.runs if other is not run)
    what = f"{STUDY} and {SAMPLES}: what they say of {other_runs}, and fits over all runs"
    more = f"{what}: those logs are not in the bundle"
    return StudyChecked(tuple(faults), "" if alone else more)


def _read(path: Path) -> Study | str:
    """Return the study, or what is wrong with its file."""
    if not path.is_file():
        return "is missing"
    content = path.read_bytes()
    try:
        study = Study.model_validate_json(content)
    except ValidationError as error:
        return f"is no latency study: {error.errors()[0]['msg']}"
    if (study.model_dump_json(indent=2) + "\n").encode() != content:
        return "is not as memarena latency report writes it"
    return study


def _whole(study: Study, from_log: Study) -> str:
    """Return how a study of the bundle's run differs from that of its log; empty if it does not."""
    bare = from_log.model_copy(update={"runs": _elsewhere(from_log.runs, study.runs)})
    agrees = alike(study.model_dump(mode="json"), bare.model_dump(mode="json"), _TOLERANCE)
    return "" if agrees else f"is not what follows from {layout.LOG}"


def _elsewhere(log_runs: Sequence[StudiedRun], stated_runs: Sequence[StudiedRun]) -> tuple[StudiedRun, ...]:
    """Return the log's runs with the paths of the stated runs, since paths do not matter in the comparison."""
    return tuple(run.model_copy(update={"path": was.path}) for run, was in zip(log_runs, stated_runs, strict=True))


def _part(study: Study, run: StudiedRun, from_log: Study) -> str:
    """Return how the entry and rows of this run in a study over several runs differ from those of its log."""
    (entry_from_log,) = _elsewhere(from_log.runs, [run])
    agrees = alike(run.model_dump(mode="json"), entry_from_log.model_dump(mode="json"), _TOLERANCE)
    for was, now in ((study.efficiency, from_log.efficiency), (study.ingest, from_log.ingest)):
        cells = {row.cell_id for row in now}
        rows: list[JsonValue] = [
            row.model_dump(mode="json", exclude=_OVER_ALL_RUNS) for row in was if row.cell_id in cells
        ]
        again: list[JsonValue] = [row.model_dump(mode="json", exclude=_OVER_ALL_RUNS) for row in now]
        agrees = agrees and alike(rows, again, _TOLERANCE)
    return "" if agrees else f"does not say of run {run.run_id} what follows from {layout.LOG}"


def _files(bundle: Path, there: Sequence[str], study: Study, samples: Sequence[Sample] | None) -> Iterator[FileFault]:
    """Compare the study's other files with those made again; samples only if all are known."""
    contents = study_files(study, samples or (), study_document(study))
    expected = {f"{layout.LATENCY}{name}": text.encode() for name, text in contents.items()}
    for name in sorted({*there, *expected}):
        if name not in there:
            yield name, "is missing"
        elif name not in expected:
            yield name, "is not of a latency study"
        elif (samples is not None or name != SAMPLES) and (bundle / name).read_bytes() != expected[name]:
            yield name, f"is not what follows from {STUDY if name != SAMPLES else layout.LOG}"


def _holds(path: Path, run: str, samples: Sequence[Sample]) -> bool:
    """Whether the samples of a run in a file equal ``samples``."""
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if row and row[0] == run]
    except (UnicodeDecodeError, csv.Error):
        return False
    return rows == [row for row in csv.reader(to_csv(samples).splitlines()) if row and row[0] == run]
