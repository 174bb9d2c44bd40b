"""Measures memory and disk of sidecars, the servers that a backend uses (such as its database), as a history grows.

They are recorded apart from the backend's own, since a sidecar may serve several backends of a run: in JSON Lines, in
`beside.jsonl` next to the log.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from memarena.execution.display import Display
from memarena.latency.errors import LatencyError
from memarena.latency.results import SidecarFootprint
from memarena.log.measuring import MeterFigure
from memarena.meters.footprint import Footprint, disk_figure, footprint_of_cgroup, footprint_of_processes

BESIDE_FILE = "beside.jsonl"
_CGROUP_FILE = "memory.current"
"""The file that a folder of a control group with a memory controller has (cgroup v2)."""


@dataclass(frozen=True)
class Sidecar:
    """A server to measure."""

    name: str
    memory: int | Path | None
    """Its process id, or the folder of its control group; None: its memory is not measured."""
    data_dir: Path | None
    """Folder of its data; None: its disk is not measured."""

    def footprint(self) -> Footprint:
        """Return its present footprint in bytes; a figure that was not requested is unavailable and names its flag."""
        if isinstance(self.memory, Path):
            measured_footprint = footprint_of_cgroup(self.memory, self.data_dir)
        elif self.memory is not None:
            measured_footprint = footprint_of_processes(self.memory, self.data_dir, itself=True)
        else:
            unavailable = MeterFigure.unavailable(f"no --beside {self.name} names its process")
            measured_footprint = Footprint(unavailable, unavailable, disk_figure(self.data_dir))
        if self.data_dir is None:
            return Footprint(
                measured_footprint.memory,
                measured_footprint.memory_peak,
                MeterFigure.unavailable(f"no --beside-disk {self.name} names its folder"),
            )
        return measured_footprint


def sidecars(memory: Sequence[str], disk: Sequence[str]) -> tuple[Sidecar, ...]:
    """Parse the values of ``--beside`` and ``--beside-disk``; return the sidecars in the order of first mention.

    ``memory`` has ``NAME=PID``, or ``NAME=FOLDER`` of a control group; ``disk`` has ``NAME=FOLDER`` of data. Raises
    :class:`LatencyError` for another form, a name that occurs twice, a process or folder that does not exist.
    """
    processes = _pairs("beside", memory, "NAME=PID or NAME=FOLDER of a control group")
    folders = _pairs("beside-disk", disk, "NAME=FOLDER")
    result = []
    for name in dict.fromkeys([*processes, *folders]):
        data_dir = Path(folders[name]) if name in folders else None
        if data_dir is not None and not data_dir.is_dir():
            raise LatencyError(f"--beside-disk {name}={data_dir}: no such folder")
        result.append(Sidecar(name, _memory(name, processes[name]) if name in processes else None, data_dir))
    return tuple(result)


def _pairs(flag: str, texts: Sequence[str], form: str) -> dict[str, str]:
    """Return a flag's values by name. Raises :class:`LatencyError` for a value of another form, or a repeated name."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise LatencyError(f"--{flag} {text}: expected {form}")
        if name in pairs:
            raise LatencyError(f"--{flag} {text}: {name} is given twice")
        pairs[name] = value
    return pairs


def _memory(name: str, text: str) -> int | Path:
    """Return a process id, or the folder of a control group. Raises :class:`LatencyError` if it does not exist."""
    if text.isdecimal():
        if not Path(f"/proc/{int(text)}").is_dir():
            raise LatencyError(f"--beside {name}={text}: no such process")
        return int(text)
    folder = Path(text)
    if not (folder / _CGROUP_FILE).is_file():
        raise LatencyError(f"--beside {name}={text}: neither a process id nor the folder of a control group")
    return folder


class MeasuringDisplay:
    """A display that passes every call on to another, and measures the sidecars after certain days.

    It is a display because a run reports to nothing else that a day was ingested. It relies on one ego per cell, as the
    growth measurement has it: after n days the history is n days long.
    """

    def __init__(
        self, inner: Display, sidecars: Sequence[Sidecar], measure_after_days: Collection[int], run_dir: Path
    ) -> None:
        self._inner = inner
        self._sidecars = sidecars
        self._measure_after_days = measure_after_days
        self._run_dir = run_dir
        self._cell = ""
        self._days = 0

    def begin(self, total_questions: int, done_questions: int) -> None:
        """Pass on that the run begins."""
        self._inner.begin(total_questions, done_questions)

    def cell(self, name: str, days: int) -> None:
        """Begin to count the days of a cell."""
        self._cell, self._days = name, 0
        self._inner.cell(name, days)

    def advance(self, what: str) -> None:
        """Pass on a question or a day; after certain days measure the sidecars."""
        if what == "day":
            self._days += 1
            if self._sidecars and self._days in self._measure_after_days:
                self._write_footprints()
        self._inner.advance(what)

    def note(self, message: str) -> None:
        """Pass on a line for the user."""
        self._inner.note(message)

    def end(self) -> None:
        """Pass on that the run has ended."""
        self._inner.end()

    def _write_footprints(self) -> None:
        """Measure every sidecar and append the records to the file."""
        with (self._run_dir / BESIDE_FILE).open("a", encoding="utf-8") as file:
            for sidecar in self._sidecars:
                footprint = sidecar.footprint()
                record = SidecarFootprint(
                    cell_id=self._cell,
                    days=self._days,
                    name=sidecar.name,
                    memory=footprint.memory,
                    memory_peak=footprint.memory_peak,
                    disk=footprint.disk,
                )
                file.write(record.model_dump_json() + "\n")


def read_sidecars(run_dir: Path) -> tuple[SidecarFootprint, ...]:
    """Return the footprints of a run's sidecars; none if the run had no sidecars.

    Raises :class:`LatencyError` naming file and line.
    """
    path = run_dir / BESIDE_FILE
    if not path.exists():
        return ()
    records = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LatencyError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            records.append(SidecarFootprint.model_validate_json(line))
        except ValidationError as error:
            raise LatencyError(f"{path}, line {number}: {error.errors()[0]['msg']}") from error
    return tuple(records)
