"""Memory and disk of servers beside a backend (its database, its own server), while growth is measured.

They are not the backend's, and a server may serve several backends of a run, so that they are told apart from its own.
They stand in a file of their own beside the log, a line each.
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
"""What makes a folder one of a control group with a memory controller (cgroup v2)."""


@dataclass(frozen=True)
class Server:
    """A server to measure: by its process, or the folder of its control group; None: its memory is not wanted."""

    name: str
    memory: int | Path | None
    data_dir: Path | None

    def footprint(self) -> Footprint:
        """Its footprint now; figures that were not requested say so."""
        if isinstance(self.memory, Path):
            measured_footprint = footprint_of_cgroup(self.memory, self.data_dir)
        elif self.memory is not None:
            measured_footprint = footprint_of_processes(self.memory, self.data_dir, itself=True)
        else:
            unavailable = MeterFigure.unavailable(f"no --beside {self.name} says which process it is")
            measured_footprint = Footprint(unavailable, unavailable, disk_figure(self.data_dir))
        if self.data_dir is None:
            return Footprint(
                measured_footprint.memory,
                measured_footprint.memory_peak,
                MeterFigure.unavailable(f"no --beside-disk {self.name} says where"),
            )
        return measured_footprint


def servers(memory: Sequence[str], disk: Sequence[str]) -> tuple[Server, ...]:
    """From ``NAME=PID``, ``NAME=FOLDER`` of a control group, and ``NAME=FOLDER`` of data; in the order of their names'
    first mention.

    Raises :class:`LatencyError` for another form, a name given twice, a process or folder that is not there.
    """
    processes = _pairs("beside", memory, "NAME=PID or NAME=FOLDER of a control group")
    folders = _pairs("beside-disk", disk, "NAME=FOLDER")
    result = []
    for name in dict.fromkeys([*processes, *folders]):
        data_dir = Path(folders[name]) if name in folders else None
        if data_dir is not None and not data_dir.is_dir():
            raise LatencyError(f"--beside-disk {name}={data_dir}: no such folder")
        result.append(Server(name, _memory(name, processes[name]) if name in processes else None, data_dir))
    return tuple(result)


def _pairs(flag: str, given: Sequence[str], form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not name or not value:
            raise LatencyError(f"--{flag} {text}: expected {form}")
        if name in pairs:
            raise LatencyError(f"--{flag} {text}: {name} is given twice")
        pairs[name] = value
    return pairs


def _memory(name: str, text: str) -> int | Path:
    if text.isdecimal():
        if not Path(f"/proc/{int(text)}").is_dir():
            raise LatencyError(f"--beside {name}={text}: no such process")
        return int(text)
    folder = Path(text)
    if not (folder / _CGROUP_FILE).is_file():
        raise LatencyError(f"--beside {name}={text}: neither a process id nor the folder of a control group")
    return folder


class WatchingDisplay:
    """A display that passes everything on, and measures the servers after each requested number of days.

    It relies on one ego per cell, as growth has it: the n-th day that comes in makes n days of history.
    """

    def __init__(self, shown: Display, watched: Sequence[Server], wanted: Collection[int], run_dir: Path) -> None:
        self._shown = shown
        self._watched = watched
        self._wanted = wanted
        self._run_dir = run_dir
        self._cell = ""
        self._days = 0

    def begin(self, total_questions: int, done_questions: int) -> None:
        """The run is about to ask its first question."""
        self._shown.begin(total_questions, done_questions)

    def cell(self, name: str, days: int) -> None:
        """A cell begins."""
        self._cell, self._days = name, 0
        self._shown.cell(name, days)

    def advance(self, what: str) -> None:
        """A question was settled or a day taken in; after a requested day, the servers are measured."""
        if what == "day":
            self._days += 1
            if self._watched and self._days in self._wanted:
                self._take()
        self._shown.advance(what)

    def note(self, message: str) -> None:
        """One line for the user."""
        self._shown.note(message)

    def end(self) -> None:
        """Nothing more will be shown."""
        self._shown.end()

    def _take(self) -> None:
        with (self._run_dir / BESIDE_FILE).open("a", encoding="utf-8") as file:
            for server in self._watched:
                footprint = server.footprint()
                record = SidecarFootprint(
                    cell_id=self._cell,
                    days=self._days,
                    name=server.name,
                    memory=footprint.memory,
                    memory_peak=footprint.memory_peak,
                    disk=footprint.disk,
                )
                file.write(record.model_dump_json() + "\n")


def read_sidecars(run_dir: Path) -> tuple[SidecarFootprint, ...]:
    """The footprints taken beside a run; empty where no server was named.

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
