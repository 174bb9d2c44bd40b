"""Measures on an NVIDIA GPU: NVML next to the GPU's own energy counter, and a study of a reader on it.

A study of the latency protocol over a randomly initialised model of Qwen3-0.6B's shape (``--shape qwen3-8b`` for that
one's): fits, time to the first token next to the server's own prompt time, joules of a question, and of every phase of
60 s or more the integral of the power samples next to the counter (expected within 3%). About a quarter of an hour.
``gpu --out DIR`` keeps the study; ``gpu --device cpu --shape tiny --idle-s 0`` runs the same without a GPU, where
joules are unavailable.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import _commands
from memarena.latency.pipeline import study_runs
from memarena.latency.report.tables import study_document
from memarena.latency.study import run_dirs
from memarena.log.measuring import MeterFigure, PhaseMeasured
from memarena.log.records import MeteringStarted
from memarena.log.store import read_records
from memarena.meters.energy import COUNTER_TOLERANCE_PERCENT
from memarena.meters.nvml import NvmlSource, load_nvml
from memarena.meters.readings import Reading
from memarena.processes import GuardedProcess
from memarena.report.render.terminal import print_document
from rich.table import Table

SEED = 142
START_S = 300.0


def tables(*options: str) -> list[Table]:
    """Run the study and print its report; the tables of the GPU and of its energy by phase.

    Args:
        options: of the command line: ``--device``, ``--shape``, ``--idle-s`` (seconds), ``--per-family``, ``--out``.
    """
    parser = argparse.ArgumentParser(prog="gpu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", default="qwen3-0.6b")
    parser.add_argument("--idle-s", type=float, default=120.0)
    parser.add_argument("--per-family", type=int, default=10)
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args(options)
    with tempfile.TemporaryDirectory() as scratch:
        out: Path = settings.out or Path(scratch) / "study"
        world = Path(scratch) / "world"
        _commands.run("memarena_masim", "generate", "--preset", "s", "--seed", str(SEED), "--out", str(world))
        with _reader(settings.shape, settings.device, Path(scratch)) as url:
            _commands.run(
                "memarena", "latency", "run", "--dataset", str(world), "--reader", url, "--phase2", "none",
                "--idle-s", f"{settings.idle_s:g}", "--per-family", str(settings.per_family),
                "--max-context-tokens", "4096", "--max-answer-tokens", "64", "--out", str(out),
            )  # fmt: skip
        folders = run_dirs(out)
        print_document(study_document(study_runs(folders)))
        return [_gpu(), _phases(folders)]


@contextmanager
def _reader(shape: str, device: str, folder: Path) -> Iterator[str]:
    """Yield the URL of the model's server. Ends the program, with the server's last line, if it does not start."""
    address = folder / "reader.address"
    program = Path(__file__).with_name("_random_reader.py")
    command = [sys.executable, str(program), "--address-file", str(address), "--shape", shape, "--device", device]
    process = GuardedProcess.start(command, log_path=folder / "reader.log")
    try:
        until = time.monotonic() + START_S
        while not address.exists():
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"error: the reader did not come up: {process.log_tail(1)}")
            time.sleep(0.1)
        yield f"http://{address.read_text().strip()}/v1"
    finally:
        process.stop()


def _gpu() -> Table:
    """Return a table of the device, and of what its driver reports about it now."""
    table = Table(title=f"GPU, {datetime.now(UTC):%Y-%m-%d}")
    for column in ("quantity", "value"):
        table.add_column(column)
    nvml = load_nvml()
    source = NvmlSource(nvml)
    try:
        if nvml is not None and source.channels:
            device = nvml.nvmlDeviceGetHandleByIndex(0)
            for name in ("nvmlDeviceGetName", "nvmlSystemGetDriverVersion"):
                table.add_row(name, str(getattr(nvml, name)(*([device] if "Device" in name else []))))
        for entry in source.read():
            reading = f"{entry.value:g} {entry.channel.unit}" if isinstance(entry, Reading) else entry.reason
            table.add_row(entry.channel.name, reading)
        for missing in source.unavailable:
            table.add_row(missing.channel.name, f"unavailable: {missing.reason}")
    finally:
        source.close()
    return table


def _phases(folders: Sequence[Path]) -> Table:
    """Return the energy of each phase on the GPU's rail, and its difference to the GPU's counter."""
    limit = f"{COUNTER_TOLERANCE_PERCENT:g}%"
    table = Table(title=f"Energy of the GPU's rail; integral next to counter, expected within {limit}")
    for column in ("phase", "cell", "s", "gross J", "mean W", "integral less counter"):
        table.add_column(column, justify="left" if column in ("phase", "cell") else "right")
    unavailable: dict[str, str] = {}
    for folder in folders:
        for record in read_records(folder, "phase_measured", "metering_started"):
            if isinstance(record, MeteringStarted):
                unavailable |= {channel.name: channel.reason for channel in record.channels if channel.reason}
            elif isinstance(record, PhaseMeasured):
                rail = next(rail for rail in record.rails if rail.name == "gpu_rail_j")
                table.add_row(
                    record.phase, record.cell_id or "", f"{record.duration_s:.0f}", _value(rail.gross_j),
                    _value(rail.mean_power_w), _value(rail.counter_difference_percent, "+.2f", "%"),
                )  # fmt: skip
    table.caption = "; ".join(dict.fromkeys(unavailable.values()))
    return table


def _value(figure: MeterFigure, form: str = ".1f", unit: str = "") -> str:
    return figure.status if figure.value is None else f"{figure.value:{form}}{unit}"
