"""Builds a site of 200 runs of 1,579 questions: time, memory, sizes (fewer runs: ``make bench ARGS='site --runs=20'``).

One log of one cell is written; it is read, scored and made an entry once for each run, under another name and run id.
The bars: two minutes for the whole site, 300 kB for its first page. Verifying and packing bundles is not in it.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from _scoring_log import write_grid
from memarena.cli.scores import views_of
from memarena.evaluation import evaluate, load_facts
from memarena.site.building import Loaded, Shown, build
from rich.table import Table

RUNS = 200
SITE_BAR_S, FIRST_PAGE_BAR_KB = 120.0, 300.0
_ALONE = 5
"""Runs that are read and scored in this process before the site is made; the median is reported."""


def tables(runs: str = f"--runs={RUNS}") -> list[Table]:
    """Write the log, make the site, look at its files. ``runs``: ``--runs=N``."""
    count = int(runs.removeprefix("--runs="))
    with tempfile.TemporaryDirectory(prefix="memarena-bench-site-") as folder:
        log, site = Path(folder) / "run", Path(folder) / "site"
        cells, questions = write_grid(log, only=1)
        assert cells == 1
        began, began_cpu_s = time.perf_counter(), _cpu_s()
        build([partial(_read, log, number) for number in range(count)], site, Shown(views_of))
        whole_s, whole_cpu_s = time.perf_counter() - began, _cpu_s() - began_cpu_s
        read_s = statistics.median(_read_s(log) for _ in range(_ALONE))
        sizes = {path.relative_to(site): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    largest, largest_bytes = max(sizes.items(), key=lambda item: item[1])
    table = Table("", "value", "bar", title=f"A site of {count:,} runs of {questions:,} questions")
    table.add_row("made in", f"{whole_s:.0f} s", f"{SITE_BAR_S:.0f} s for {RUNS}")
    table.add_row("processor time, all processes", f"{whole_cpu_s:.0f} s")
    table.add_row("reading and scoring a run, median", f"{read_s:.2f} s of processor time")
    for process, name in ((resource.RUSAGE_SELF, "this process"), (resource.RUSAGE_CHILDREN, "the largest worker")):
        table.add_row(f"memory of {name}, highest", f"{resource.getrusage(process).ru_maxrss / 1e3:,.0f} MB")
    table.add_row("files", f"{len(sizes):,}, {sum(sizes.values()) / 1e6:.0f} MB")
    table.add_row("first page", f"{sizes[Path('index.html')] / 1e3:.0f} kB", f"{FIRST_PAGE_BAR_KB:.0f} kB")
    table.add_row(f"largest file, {largest}", f"{largest_bytes / 1e3:,.0f} kB")
    return [table]


def _cpu_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _read_s(log: Path) -> float:
    began = time.process_time()
    evaluate(load_facts(log))
    return time.process_time() - began


def _read(log: Path, number: int) -> Loaded:
    """Return the run as that of a memory with another name."""
    facts = load_facts(log)
    scored = evaluate(facts)
    rows = tuple(row.model_copy(update={"backend": f"memory-{number:03}"}) for row in scored.scores.rows)
    scores = scored.scores.model_copy(update={"run_id": f"bench-{number}", "rows": rows})
    cells = {cell.cell_id: log for cell in facts.manifest.cells}
    return Loaded(log, f"run {number:03}", facts, replace(scored, scores=scores), cells)
