"""A site of 200 runs of 1,579 questions each: time, memory, sizes (fewer runs: ``make bench ARGS='site --runs=20'``).

One log of one cell is written; it is read, scored and made an entry once for each run, under another name and run id.
The bars: two minutes for the whole site, 300 kB for its first page. Verifying and packing bundles is not in it.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from _scoring_log import write_grid
from memarena.cli.scores import views_of
from memarena.evaluation import evaluate, load_facts
from memarena.site.building import Loaded, Shown, build
from rich.table import Table

RUNS = 200
SITE_BAR_S, FIRST_PAGE_BAR_KB = 120.0, 300.0


def tables(runs: str = f"--runs={RUNS}") -> list[Table]:
    """Write the log, make the site, look at its files. ``runs``: ``--runs=N``."""
    count = int(runs.removeprefix("--runs="))
    with tempfile.TemporaryDirectory(prefix="memarena-bench-site-") as folder:
        log, site = Path(folder) / "run", Path(folder) / "site"
        cells, questions = write_grid(log, only=1)
        assert cells == 1
        read_s: list[float] = []
        began, began_cpu = time.perf_counter(), time.process_time()
        build(_loaded(log, count, read_s), site, Shown(views_of))
        whole_s, whole_cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
        sizes = {path.relative_to(site): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    largest, largest_bytes = max(sizes.items(), key=lambda item: item[1])
    first_kb = sizes[Path("index.html")] / 1e3
    table = Table("", "value", "bar", title=f"A site of {count:,} runs of {questions:,} questions")
    table.add_row("made in", f"{whole_s:.0f} s", f"{SITE_BAR_S:.0f} s for {RUNS}")
    table.add_row("processor time", f"{whole_cpu_s:.0f} s")
    table.add_row("reading and scoring a run, median", f"{sorted(read_s)[len(read_s) // 2]:.2f} s of processor time")
    table.add_row("pages and entries, all runs", f"{whole_cpu_s - sum(read_s):.0f} s of processor time")
    table.add_row("memory, highest", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
    table.add_row("files", f"{len(sizes):,}, {sum(sizes.values()) / 1e6:.0f} MB")
    table.add_row("first page", f"{first_kb:.0f} kB", f"{FIRST_PAGE_BAR_KB:.0f} kB")
    table.add_row(f"largest file, {largest}", f"{largest_bytes / 1e3:,.0f} kB")
    return [table]


def _loaded(log: Path, count: int, read_s: list[float]) -> Iterator[Loaded]:
    """The run again and again, as so many runs of memories with other names; ``read_s`` takes what each took."""
    for number in range(count):
        began = time.process_time()
        facts = load_facts(log)
        scored = evaluate(facts)
        rows = tuple(row.model_copy(update={"backend": f"memory-{number:03}"}) for row in scored.scores.rows)
        scores = scored.scores.model_copy(update={"run_id": f"bench-{number}", "rows": rows})
        read_s.append(time.process_time() - began)
        cells = {cell.cell_id: log for cell in facts.manifest.cells}
        yield Loaded(log, f"run {number:03}", facts, replace(scored, scores=scores), cells)
