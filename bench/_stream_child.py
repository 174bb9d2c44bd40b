"""Stream a whole data set into a backend and print the figures as JSON. Runs in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from memarena.client.backend import BackendClient, Deadlines
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.backends.overhead_baseline import NULL_BACKEND
from memarena.execution.backends.process import launch
from memarena.execution.cells.messages import day_batch
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena_dataset.io.reading import open_dataset


def main() -> None:
    """``_stream_child.py DATASET BACKEND WORK_DIR``."""
    dataset_path, name, work_dir = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    choice = NULL_BACKEND if name == "null" else choose_backend(name)
    assert isinstance(choice, LaunchableBackend)
    process = launch(choice, work_dir)
    sessions = payload = ingest_ns = 0
    began = time.monotonic()
    with BackendClient(process.address, Deadlines()) as client, open_dataset(dataset_path) as dataset:
        client.wait_until_serving(process.alive)
        began = time.monotonic()
        for ego in dataset.egos:
            ids = NamespaceIds(bytes(32), "bench", ego, 0)
            for day in range(dataset.day_count):
                batch = day_batch(dataset, ego, day, ids, None)
                _response, duration_ns = client.ingest(batch.frames)
                sessions += batch.sessions
                payload += batch.payload_bytes
                ingest_ns += duration_ns
        seconds = time.monotonic() - began
    process.stop()
    print(
        json.dumps(
            {
                "sessions": sessions,
                "megabytes": payload / 1e6,
                "seconds": seconds,
                "harness_peak_mib": _peak_mib(),
            }
        )
    )


def _peak_mib() -> float:
    """Peak resident memory of this process. ``ru_maxrss`` would carry over the peak of whoever started it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status states no VmHWM")


if __name__ == "__main__":
    main()
