"""All benchmarks, one table each: ``make bench`` (``ARGS='floor stream'`` for some of them).

Every comparison takes both sides in the same run on the same machine and prints their ratio or difference; nothing here
is asserted. Quote medians, and read the ratio before the absolute figure: machines differ, and have neighbours.
"""

from __future__ import annotations

import importlib
import sys
import time

from rich.console import Console
from rich.table import Table

BENCHMARKS = {
    "floor": "bench_floor",
    "bm25": "bench_bm25",
    "stream": "bench_stream",
    "ttft": "bench_ttft",
    "scoring": "bench_scoring",
    "masim-scale": "bench_masim_scale",
}


def main() -> int:
    """Run the benchmarks named on the command line, or all of them."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    console = Console()
    if unknown:
        sys.stderr.write(f"error: {unknown[0]}: expected one of {', '.join(BENCHMARKS)}\n")
        return 2
    for name in wanted:
        began = time.monotonic()
        tables: list[Table] = importlib.import_module(BENCHMARKS[name]).tables()
        for table in tables:
            console.print(table)
        console.print(f"[dim]{name}: {time.monotonic() - began:.0f} s[/dim]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
