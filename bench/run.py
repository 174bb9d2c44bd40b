"""Runs all benchmarks, one table each: ``make bench`` (``ARGS='floor bm25'`` for some; some only when named).

Every comparison takes both sides in the same run on the same machine and prints their ratio or difference; nothing here
is asserted. Quote medians, and read the ratio before the absolute figure: machines differ, and have neighbours.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

BENCHMARKS = {
    "floor": "bench_floor",
    "bm25": "bench_bm25",
    "scoring": "bench_scoring",
    "viewer": "bench_viewer",
    "site": "bench_site",
    "masim-scale": "bench_masim_scale",
    "masim-llm": "bench_masim_llm",
    "masim-l": "bench_masim_l",
    "gate": "bench_gate",
    "separation": "bench_separation",
    "kills": "bench_kills",
    "gpu": "bench_gpu",
}
WITH_OPTIONS = ("site", "gate", "separation", "masim-l", "kills", "gpu")
ONLY_BY_NAME = ("gate", "kills", "gpu")
"""What is mainly about faults, and what needs more than this project installs."""


sys.path.append(str(Path(__file__).resolve().parents[1]))  # logs are made as the tests make them (tests.support)


def main() -> int:
    """Run the benchmarks named on the command line, or all of them. Options behind a single name are its own."""
    words = sys.argv[1:]
    first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    names, options = words[:first] or [name for name in BENCHMARKS if name not in ONLY_BY_NAME], words[first:]
    if options and (len(names) != 1 or names[0] not in WITH_OPTIONS):
        sys.stderr.write(f"error: {options[0]}: expected behind one of {', '.join(WITH_OPTIONS)}\n")
        return 2
    unknown = [name for name in names if name not in BENCHMARKS]
    console = Console()
    if unknown:
        sys.stderr.write(f"error: {unknown[0]}: expected one of {', '.join(BENCHMARKS)}\n")
        return 2
    for name in names:
        began = time.monotonic()
        tables: list[Table] = importlib.import_module(BENCHMARKS[name]).tables(*options)
        for table in tables:
            console.print(table)
        console.print(f"[dim]{name}: {time.monotonic() - began:.0f} s[/dim]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
