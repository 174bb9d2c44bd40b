"""Times scoring of a whole published grid from its log: 75 cells of 1,579 questions, with 10,000 draws of egos.

The log is written first through the real writer; how long that takes and how large it becomes is a separate table.
Scoring is what ``memarena score`` does on a log that was judged: no verdict is missing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from _scoring_log import write_grid
from memarena.evaluation import evaluate, load_facts, missing_verdicts
from memarena.log.store import log_path
from rich.table import Table

T = TypeVar("T")


def tables() -> list[Table]:
    """Write the log, read it, score it without and with intervals."""
    with tempfile.TemporaryDirectory(prefix="memarena-bench-scoring-") as folder:
        run_dir = Path(folder) / "run"
        (cells, questions), written_s, _ = _measure(lambda: write_grid(run_dir))
        answers = cells * questions
        size = log_path(run_dir).stat().st_size
        facts, load_s, load_cpu_s = _measure(lambda: load_facts(run_dir))
        pending, judge_s, judge_cpu_s = _measure(lambda: list(missing_verdicts(facts)))
        _, score_s, score_cpu_s = _measure(lambda: evaluate(facts, resamples=0))
        _, whole_s, whole_cpu_s = _measure(lambda: evaluate(facts))
    log = Table("log", "value", title=f"The log of {cells} cells × {questions:,} questions")
    log.add_row("written in", f"{written_s:.0f} s")
    log.add_row("size", f"{size / 1e6:,.0f} MB, {size / answers:,.0f} bytes per question and cell")
    log.add_row("verdicts missing", str(len(pending)))
    spent = Table("part", "wall", "processor", title="Scoring it again")
    spent.caption = "processor: of this process; where a second one settles half of the questions, without it"
    spent.add_row("reading the log", f"{load_s:.1f} s", f"{load_cpu_s:.1f} s")
    spent.add_row("looking for missing verdicts", f"{judge_s:.1f} s", f"{judge_cpu_s:.1f} s")
    spent.add_row("scores, without intervals", f"{score_s:.1f} s", f"{score_cpu_s:.1f} s")
    total, cpu = load_s + judge_s + score_s, load_cpu_s + judge_cpu_s + score_cpu_s
    spent.add_row("sum", f"{total:.1f} s", f"{cpu:.1f} s")
    spent.add_row(
        "10,000 draws of egos, every cell and row", f"{whole_s - score_s:.1f} s", f"{whole_cpu_s - score_cpu_s:.1f} s"
    )
    return [log, spent]


def _measure(work: Callable[[], T]) -> tuple[T, float, float]:
    """Return the result of ``work``, its wall time and its processor time in seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor
