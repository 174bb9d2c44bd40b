"""Meters a run: starts a sampler, logs the phases as they happen, and their energy at the end.

The sampler is a process that reads meters ten times a second; it writes a file, not the log. Energy is computed when
it has stopped, or by the next segment of the run if this process dies before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from memarena.execution.errors import RunError
from memarena.log.measuring import PhaseName
from memarena.log.records import AnyRecord, MeterChannel, MeteringStarted, PhaseEnded, PhaseMeasured
from memarena.meters.choice import NONE, chosen_meters
from memarena.meters.cpu_load import CpuLoadSpan
from memarena.meters.energy import GPU_POWER, SYSTEM_POWER, IdleWindows
from memarena.meters.integrals import Window
from memarena.meters.phases import channels_of, measure_phase, unmetered_phase
from memarena.meters.readings import MeterError
from memarena.meters.samples import Samples, read_samples
from memarena.meters.sampling import Sampling
from memarena.processes import ProcessError

FOLDER = "meters"
"""Folder of samples within the run's folder."""
NOT_METERED = "no meter was asked for"

CellPhase = Literal["ingest", "answer"]


class CellPhases:
    """The time spans of a cell's days and questions; consecutive spans of one kind are merged into a piece."""

    def __init__(self, load: CpuLoadSpan) -> None:
        self._load = load
        self._spans: list[tuple[CellPhase, int, int]] = []
        self._queries = 0
        self._begun_ns = time.monotonic_ns()

    def add(self, kind: CellPhase, start_ns: int, end_ns: int) -> None:
        """Add the span of an ingested day or an answered question."""
        self._queries += kind == "answer"
        if self._spans and self._spans[-1][0] == kind:
            start_ns = self._spans.pop()[1]
        self._spans.append((kind, start_ns, end_ns))

    def ended(self, cell_id: str, samples_file: str) -> list[PhaseEnded]:
        """Return the phases of the cell: the whole, its days, its questions; phases that did not happen are omitted."""
        cell_span = (self._begun_ns, time.monotonic_ns())
        records = [
            PhaseEnded(
                phase="cell",
                cell_id=cell_id,
                samples_file=samples_file,
                pieces=(cell_span,),
                queries=self._queries or None,
                load=self._load.ended(),
            )
        ]
        kinds: tuple[CellPhase, ...] = ("ingest", "answer")
        for kind in kinds:
            pieces = tuple((start, end) for span_kind, start, end in self._spans if span_kind == kind)
            queries = self._queries if kind == "answer" else None
            if pieces:
                records.append(
                    PhaseEnded(phase=kind, cell_id=cell_id, samples_file=samples_file, pieces=pieces, queries=queries)
                )
        return records


class RunMetering:
    """The meters of one segment of a run, the stretch that one process executes.

    Call ``begin`` early, ``log_start`` once there is a log, ``finish`` at the end. ``system_channel`` is the rail that
    feeds the whole machine (None: a meter's ``sys_power``), ``idle_s`` the seconds of rest before the first cell and
    after the last, and ``not_because`` the reason why nothing is metered in spite of ``meters``, or "".
    """

    def __init__(
        self, meters: Sequence[str], out: Path, *, system_channel: str | None, idle_s: float, not_because: str = ""
    ) -> None:
        self._reason = not_because or NOT_METERED
        try:
            self._meters = NONE if not_because else chosen_meters(meters)
        except MeterError as error:
            raise RunError(f"--meter {error}") from error
        self._out = out
        self._system_channel = system_channel or SYSTEM_POWER
        self._idle_s = idle_s
        self._sampling: Sampling | None = None
        self._samples_file = ""
        self._append: Callable[..., None] = lambda *_: None
        self._phases: list[PhaseEnded] = []
        self._idle: dict[str, Window] = {}
        self._has_power = False

    def begin(self) -> None:
        """Start the sampler, if anything is metered. Raises :class:`RunError` if no process can be started."""
        if self._meters == NONE:
            return
        number = 0
        while (self._out / (name := f"{FOLDER}/segment-{number:03}.csv")).exists():
            number += 1
        try:
            self._sampling = Sampling.begin(self._meters, self._out / name)
        except (MeterError, ProcessError, OSError) as error:
            raise RunError(f"--meter {','.join(self._meters)}: {error}") from error
        self._samples_file = name

    def wait_ready(self) -> None:
        """Wait until the meters are open. Raises :class:`RunError` if one cannot be used."""
        if self._sampling is None:
            return
        try:
            self._sampling.wait_ready()
        except MeterError as error:
            raise RunError(f"--meter {','.join(self._meters)}: {error}") from error

    def log_start(self, append: Callable[..., None]) -> None:
        """Log the metered channels; records go to ``append`` from now on."""
        self._append = append
        samples = None if self._sampling is None else read_samples(self._sampling.path)
        channels = _nothing(self._reason) if samples is None else channels_of(samples)
        self._has_power = any(c.unit == "W" and not c.reason for c in channels)
        append(
            MeteringStarted(
                meters=self._meters,
                samples_file=self._samples_file,
                period_ns=0 if samples is None else samples.period_ns,
                system_channel=self._system_channel,
                channels=channels,
            )
        )

    def begin_cell(self, shared: str) -> CellPhases:
        """Begin a cell. ``shared`` names its servers that may be on this machine without being started by the run."""
        roots = [text for kind, _, text in (spec.partition(":") for spec in self._meters) if kind == "procfs"]
        no_meter = self._reason if self._meters == NONE else "the meter procfs was not asked for"
        return CellPhases(CpuLoadSpan(Path(roots[0] or "/proc") / "stat" if roots else no_meter, shared))

    @property
    def samples_file(self) -> str:
        """Return the path of this segment's samples within the run's folder; empty if nothing is sampled."""
        return self._samples_file

    def failure(self) -> str | None:
        """Return why the sampler ended early; None while it runs, or if none was started."""
        return None if self._sampling is None else self._sampling.failure()

    def add(self, *phases: PhaseEnded) -> None:
        """Log phases that have ended; their energy follows in :meth:`finish`."""
        self._phases += phases
        self._append(*phases)

    def ended(self, phase: PhaseName, start_ns: int) -> None:
        """Log a phase of the whole run that began at ``start_ns`` and ends now."""
        self.add(PhaseEnded(phase=phase, samples_file=self._samples_file, pieces=((start_ns, time.monotonic_ns()),)))

    def idle(self, which: Literal["idle_before", "idle_after"]) -> None:
        """Leave the machine at rest for ``idle_s``; not if no power is metered."""
        if not self._idle_s or not self._has_power:
            return
        start = time.monotonic_ns()
        time.sleep(self._idle_s)
        self._idle[which] = Window(start, time.monotonic_ns())
        self.ended(which, start)

    def finish(self) -> None:
        """Stop the sampler and log the energy of every phase. May be called twice."""
        phases, self._phases = self._phases, []
        samples = self._stopped(max((end for phase in phases for _, end in phase.pieces), default=0))
        idle_before, idle_after = self._idle.get("idle_before"), self._idle.get("idle_after")
        idle = IdleWindows(idle_before, idle_after) if idle_before and idle_after else None
        self._append(*measured(phases, samples, system_channel=self._system_channel, idle=idle))

    def close(self) -> None:
        """End the sampler in any case. May be called twice."""
        if self._sampling is not None:
            self._sampling.close()

    def _stopped(self, last_ns: int) -> Samples | str:
        if self._sampling is None:
            return self._reason
        self._sampling.wait_past(last_ns)
        try:
            return self._sampling.stop()
        except MeterError as error:
            return str(error)

    def settle_earlier(self, records: Iterable[AnyRecord]) -> None:
        """Log the energy of phases of earlier segments whose process died before it could.

        ``records`` are the run's phases, measured phases and metering starts, in the order of the log.
        """
        systems: dict[str, str] = {}
        waiting: dict[tuple[str, str, str | None, int], PhaseEnded] = {}
        for record in records:
            if record.kind == "metering_started":
                systems[record.samples_file] = record.system_channel
            elif record.kind == "phase":
                waiting[_key(record, record.pieces[0][0])] = record
            elif record.kind == "phase_measured":
                waiting.pop(_key(record, record.start_mono_ns), None)
        for file in dict.fromkeys(phase.samples_file for phase in waiting.values()):
            try:
                samples: Samples | str = read_samples(self._out / file) if file else NOT_METERED
            except MeterError as error:
                samples = str(error)
            phases = [phase for phase in waiting.values() if phase.samples_file == file]
            system = systems.get(file, SYSTEM_POWER)
            self._append(*measured(phases, samples, system_channel=system, idle=None))


def measured(
    phases: Iterable[PhaseEnded], samples: Samples | str, *, system_channel: str, idle: IdleWindows | None
) -> list[PhaseMeasured]:
    """Return the energy of phases; ``samples`` may be the reason why there are none."""
    results = []
    for phase in phases:
        if isinstance(samples, str):
            result = unmetered_phase(phase, samples, system_channel=system_channel)
        else:
            result = measure_phase(samples, phase, system_channel=system_channel, idle=idle)
        if result is not None:
            results.append(result)
    return results


def _key(record: PhaseEnded | PhaseMeasured, start_ns: int) -> tuple[str, str, str | None, int]:
    return record.samples_file, record.phase, record.cell_id, start_ns


def _nothing(reason: str) -> tuple[MeterChannel, ...]:
    return tuple(MeterChannel(name=name, unit="W", reason=reason) for name in (GPU_POWER, SYSTEM_POWER))
