"""Computes the energy of a run's phases again from the samples, and compares it with the log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from memarena.execution.metering import NOT_METERED, measured
from memarena.log.measuring import PhaseEnded, PhaseMeasured
from memarena.log.store import read_records
from memarena.meters.energy import IdleWindows
from memarena.meters.integrals import Window
from memarena.meters.samples import Samples, read_samples
from pydantic import JsonValue

from memarena_spark.bundle.layout import LOG, files_of
from memarena_spark.errors import FileError

_TOLERANCE = 1e-9
"""Relative tolerance: machines may add the same numbers in another order."""


def samples_files(log_folder: Path) -> list[str]:
    """Return the names of the samples files in the log, relative to its folder."""
    starts = (r for r in read_records(log_folder, "metering_started") if r.kind == "metering_started")
    return sorted({record.samples_file for record in starts if record.samples_file})


def measured_again(log_folder: Path) -> tuple[PhaseMeasured, ...]:
    """Return the energy of every phase of a run with one segment, in the order of the log.

    Raises MeterError, naming the file, if samples are damaged, and FileError if there are none.
    """
    system, file = "", ""
    phases: list[PhaseEnded] = []
    for record in read_records(log_folder, "metering_started", "phase"):
        if record.kind == "metering_started":
            system, file = record.system_channel, record.samples_file
        elif record.kind == "phase":
            phases.append(record)
    if file and file not in files_of(log_folder):
        # Never opened: a log may name any file of this machine.
        raise FileError(LOG, f"names the samples file {file}, which is not next to it")
    samples: Samples | str = read_samples(log_folder / file) if file else NOT_METERED
    idle = {phase.phase: Window(*phase.pieces[0]) for phase in phases if phase.phase.startswith("idle_")}
    before, after = idle.get("idle_before"), idle.get("idle_after")
    windows = IdleWindows(before, after) if before and after else None
    return tuple(measured(phases, samples, system_channel=system, idle=windows))


def differences(log_folder: Path, again: tuple[PhaseMeasured, ...]) -> Iterator[str]:
    """Yield the phases whose energy in the log differs from that of the samples."""
    phases_logged = [r for r in read_records(log_folder, "phase_measured") if r.kind == "phase_measured"]
    if len(phases_logged) != len(again):
        yield f"{len(phases_logged)} phases are measured in the log, the samples give {len(again)}"
        return
    for was, now in zip(phases_logged, again, strict=True):
        if not alike(was.model_dump(mode="json"), now.model_dump(mode="json"), _TOLERANCE):
            yield f"phase {was.phase} {was.cell_id or ''}: its figures do not follow from the samples"


def alike(was: JsonValue, now: JsonValue, tolerance: float) -> bool:
    """Whether two values are equal, with numbers compared by ``tolerance``, relative, and absolute near 0."""
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=tolerance, abs_tol=min(tolerance, _TOLERANCE))
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(alike(a, b, tolerance) for a, b in zip(was, now, strict=True))
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(alike(was[name], now[name], tolerance) for name in was)
    return was == now
