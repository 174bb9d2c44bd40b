"""The latency study in a bundle: each of its files made again, from the log as far as the bundle holds one."""

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
"""Relative: least squares of another machine's linear algebra differ in the last digits."""

_OVER_ALL_RUNS = {"break_even_queries_j", "break_even_queries_net_j", "break_even_queries_s", "why_no_break_even"}
"""Of a cell's rows, what is reckoned against cells of other runs."""

FileFault = tuple[str, str]
"""A file of the bundle, and what is wrong with it."""


@dataclass(frozen=True)
class StudyChecked:
    """What was found of a study."""

    faults: tuple[FileFault, ...] = ()
    unchecked: str = ""
    """What of it rests on logs that are not in the bundle, in a line; empty: nothing does."""


def check_study(bundle: Path, run_id: str) -> StudyChecked:
    """Hold the files below ``latency/`` to the bundle's log; nothing to say where there is none.

    A study of the bundle's run alone is made again whole. Of one that rests on further runs, what it says of this run
    is; its tables and figures are made again from its data; the further runs' figures cannot be, and are named. Fits
    over other memories than the default ones do not follow either: such a study belongs beside a bundle.
    """
    there = [name for name in layout.files_of(bundle) if name.startswith(layout.LATENCY)]
    if not there:
        return StudyChecked()
    told = _read(bundle / STUDY)
    if isinstance(told, str):
        return StudyChecked(((STUDY, told),))
    run = next((run for run in told.runs if run.run_id == run_id), None)
    if run is None:
        others = ", ".join(each.run_id for each in told.runs) or "none"
        return StudyChecked(((STUDY, f"is of other runs ({others}), expected the bundle's among them ({run_id})"),))
    log = bundle / layout.LOG_FOLDER
    try:
        found = study_runs([log])
        samples = [sample.model_copy(update={"run": run.path}) for sample in read_samples_of([log])]
    except LatencyError as error:
        return StudyChecked(((STUDY, f"cannot be made again from {layout.LOG}: {error}"),))
    alone = len(told.runs) == 1
    differs = _whole(told, found) if alone else _part(told, run, found)
    if differs:
        return StudyChecked(((STUDY, differs),))
    faults = [*_files(bundle, there, told, samples if alone else None)]
    if not alone and SAMPLES in there and not _holds(bundle / SAMPLES, run.path, samples):
        faults.append((SAMPLES, f"does not hold, of run {run_id}, what {layout.LOG} gives"))
    others = ", ".join(each.run_id for each in told.runs if each is not run)
    more = f"{STUDY} and {SAMPLES}: what they say of {others}, and fits over all runs: those logs are not in the bundle"
    return StudyChecked(tuple(faults), "" if alone else more)


def _read(path: Path) -> Study | str:
    """The study, or what is wrong with its file."""
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


def _whole(told: Study, found: Study) -> str:
    """How a study of the bundle's own run differs from what its log gives; empty: it does not."""
    bare = found.model_copy(update={"runs": _elsewhere(found.runs, told.runs)})
    same = alike(told.model_dump(mode="json"), bare.model_dump(mode="json"), _TOLERANCE)
    return "" if same else f"is not what follows from {layout.LOG}"


def _elsewhere(found: Sequence[StudiedRun], told: Sequence[StudiedRun]) -> tuple[StudiedRun, ...]:
    """Where a run lay when it was studied says nothing."""
    return tuple(run.model_copy(update={"path": was.path}) for run, was in zip(found, told, strict=True))


def _part(told: Study, run: StudiedRun, found: Study) -> str:
    """The same for what a study over several runs says of this one: its entry, and the rows of its cells."""
    (own,) = _elsewhere(found.runs, [run])
    same = alike(run.model_dump(mode="json"), own.model_dump(mode="json"), _TOLERANCE)
    for was, now in ((told.efficiency, found.efficiency), (told.ingest, found.ingest)):
        cells = {row.cell_id for row in now}
        rows: list[JsonValue] = [
            row.model_dump(mode="json", exclude=_OVER_ALL_RUNS) for row in was if row.cell_id in cells
        ]
        again: list[JsonValue] = [row.model_dump(mode="json", exclude=_OVER_ALL_RUNS) for row in now]
        same = same and alike(rows, again, _TOLERANCE)
    return "" if same else f"does not say of run {run.run_id} what follows from {layout.LOG}"


def _files(bundle: Path, there: Sequence[str], told: Study, samples: Sequence[Sample] | None) -> Iterator[FileFault]:
    """The study's other files against those made again; the samples only where they are all known."""
    made = study_files(told, samples or (), study_document(told))
    expected = {f"{layout.LATENCY}{name}": text.encode() for name, text in made.items()}
    for name in sorted({*there, *expected}):
        if name not in there:
            yield name, "is missing"
        elif name not in expected:
            yield name, "is not of a latency study"
        elif (samples is not None or name != SAMPLES) and (bundle / name).read_bytes() != expected[name]:
            yield name, f"is not what follows from {STUDY if name != SAMPLES else layout.LOG}"


def _holds(path: Path, run: str, samples: Sequence[Sample]) -> bool:
    """Whether the samples of one run in a file are these."""
    try:
        told = [row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if row and row[0] == run]
    except (UnicodeDecodeError, csv.Error):
        return False
    return told == [row for row in csv.reader(to_csv(samples).splitlines()) if row and row[0] == run]
