"""What streaming costs: ingest throughput into null backend and bm25, and memory while a corpus grows tenfold."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from _corpus import enlarge
from rich.table import Table

_CHILD = Path(__file__).with_name("_stream_child.py")


@dataclass(frozen=True)
class StreamFigures:
    """One stream of a whole data set, all egos and days, into one backend."""

    backend: str
    factor: int
    sessions: int
    megabytes: float
    seconds: float
    harness_peak_mib: float


def stream(backend: str, factor: int) -> StreamFigures:
    """Stream the example ``factor`` times over, in a process of its own so that its peak memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = enlarge(Path(folder) / "data", factor)
        done = subprocess.run(
            [sys.executable, str(_CHILD), str(dataset), backend, str(Path(folder) / "cell")],
            check=True,
            capture_output=True,
            text=True,
        )
        return StreamFigures(backend=backend, factor=factor, **json.loads(done.stdout))


def tables() -> list[Table]:
    """Null backend and bm25, the example once, ten and a hundred times over."""
    table = Table(title="Streaming a data set: ingest throughput, and the harness's peak memory while it grows")
    for column in ("backend", "example ×", "sessions", "MB", "sessions/s", "MB/s", "harness peak MiB"):
        table.add_column(column, justify="left" if column == "backend" else "right")
    for backend in ("null", "bm25"):
        for factor in (1, 10, 100):
            f = stream(backend, factor)
            table.add_row(
                backend,
                str(factor),
                str(f.sessions),
                f"{f.megabytes:.2f}",
                f"{f.sessions / f.seconds:.0f}",
                f"{f.megabytes / f.seconds:.2f}",
                f"{f.harness_peak_mib:.1f}",
            )
    return [table]
