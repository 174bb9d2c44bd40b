"""What streaming costs: ingest throughput into null backend and bm25, and memory while a corpus grows tenfold."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _corpus import enlarge

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
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(_CHILD), str(dataset), backend, str(Path(folder) / "cell")],
            check=True,
            capture_output=True,
            text=True,
        )
        if time.monotonic() - begin <= 0:
            raise RuntimeError("the clock did not move")
        return StreamFigures(backend=backend, factor=factor, **json.loads(done.stdout))


def figures() -> list[StreamFigures]:
    """Null backend and bm25, the example once, ten and a hundred times over."""
    return [stream(backend, factor) for backend in ("null", "bm25") for factor in (1, 10, 100)]
