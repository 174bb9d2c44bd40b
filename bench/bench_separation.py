"""Does a world tell memories apart? vanilla, bm25 and oracle on one world of MaSim, question by question.

``make bench ARGS='separation --preset s --seed 151'``. Everything runs through the commands that users have; the reader
is the extractive one, which needs no model. Oracle has to be above bm25 and bm25 above vanilla on D2, D3 and D4, each
by more than 10 points at the lower end of the paired 95% interval of ``memarena compare``. Policies that need no memory
have to score 0 in F1_PU (D6).
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _commands import run as run_command
from rich.table import Table

ORDER = ("oracle", "bm25", "vanilla")
"""From the one that has to be best to the one that has to be worst."""
BARRED = ("D2", "D3", "D4")
SHOWN = ("D1", "D2", "D3", "D4", "D5", "D6")
LEAST_POINTS = 10.0
TRIVIAL = ("always refuse", "always don't know")
"""Policies that answer without a memory. One that always discloses has P = 0, and so F1_PU 0, by its definition."""
CHOSEN = "best constant"
"""Shown beside, without a bar: the one answer to everything that suits the gold best, chosen with the gold at hand."""
SEED = 151


@dataclass(frozen=True)
class Gap:
    """How far one backend is above the other on one dimension: percent of both, points between them.

    ``low`` and ``high`` are the ends of the paired 95% interval, None where there is none.
    """

    dimension: str
    better: str
    worse: str
    a: float
    b: float
    low: float | None
    high: float | None
    questions: int

    @property
    def verdict(self) -> str:
        """Whether the bar is met; nothing for a dimension without a bar. Without an interval it is not."""
        if self.dimension not in BARRED:
            return ""
        return "pass" if self.low is not None and self.low > LEAST_POINTS else "MISSED"


def gaps_of(comparison: Mapping[str, Any], better: str, worse: str) -> list[Gap]:
    """Gaps by dimension, from one comparison as ``memarena compare --format json`` writes it.

    RuntimeError if a dimension that has a bar was not compared.
    """
    by_name = {one["metric"]: one for one in comparison["differences"] if one["difference"] is not None}
    absent = [name for name in BARRED if name not in by_name]
    if absent:
        raise RuntimeError(f"compare: {better} and {worse}: no question of {absent[0]} was answered by both")
    found = []
    for name in SHOWN:
        if name in by_name:
            one = by_name[name]
            low, high = (100 * one["interval"][end] if one["interval"] else None for end in ("low", "high"))
            found.append(Gap(name, better, worse, 100 * one["a"], 100 * one["b"], low, high, one["questions"]))
    return found


def trivial_of(baselines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """F1_PU in percent by policy, from ``memarena score --format json``. RuntimeError if one is not there."""
    found = {one["name"]: one["scores"].get("D6") for one in baselines}
    shown = (*TRIVIAL, CHOSEN)
    absent = [name for name in shown if found.get(name) is None]
    if absent:
        raise RuntimeError(f"score: no F1_PU of the policy {absent[0]!r}")
    return {name: 100 * found[name] for name in shown}


def tables(*options: str) -> list[Table]:
    """The separation of backends, and the trivial policies."""
    parser = argparse.ArgumentParser(prog="bench separation", description=__doc__)
    parser.add_argument("--preset", default="s")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=None, help="keep world and run in this folder; resumes there")
    given = parser.parse_args(options)
    with tempfile.TemporaryDirectory() as folder:
        out = given.out or Path(folder)
        _make(out, given.preset, given.seed)
        gaps: list[Gap] = []
        for better, worse in itertools.pairwise(ORDER):
            cells = ["--cell", f"{better}@extractive", "--cell", f"{worse}@extractive"]
            compared = json.loads(run_command("memarena", "compare", str(out / "run"), *cells, "--format", "json"))
            gaps += gaps_of(compared["comparisons"][0], better, worse)
        scores = json.loads(run_command("memarena", "score", str(out / "run"), "--format", "json"))
    title = f"preset {given.preset}, seed {given.seed}, extractive reader"
    return [_separation(gaps, title), _policies(trivial_of(scores["runs"][0]["baselines"]), title)]


def _make(out: Path, preset: str, seed: int) -> None:
    """The world and the run, each unless it is there and whole."""
    world, run = out / "world", out / "run"
    if not (world / "run_info.json").exists() or (world / ".days").exists():
        run_command("masim", "generate", "--preset", preset, "--seed", str(seed), "--quiet", "--out", str(world))
    resumed = ["--resume"] if (run / "run.sqlite").exists() else []
    asked = ["--dataset", str(world), "--backend", ",".join(ORDER), "--reader", "extractive"]
    run_command("memarena", "run", *asked, "--floor-samples", "0", "--out", str(run), *resumed)


def _separation(gaps: Sequence[Gap], title: str) -> Table:
    table = Table(title=f"Separation of backends: {title} (percent; paired by question, drawn by ego)")
    for column in ("dimension", "questions", "backends", "scores", "points", "95% interval", "verdict"):
        table.add_column(column, justify="right" if column in ("questions", "points") else "left")
    for gap in gaps:
        between = "" if gap.low is None or gap.high is None else f"{gap.low:+.1f} to {gap.high:+.1f}"
        table.add_row(
            gap.dimension, str(gap.questions), f"{gap.better} − {gap.worse}", f"{gap.a:.1f} − {gap.b:.1f}",
            f"{gap.a - gap.b:+.1f}", between, gap.verdict,
        )  # fmt: skip
    table.caption = f"bar on {', '.join(BARRED)}: the lower end is above {LEAST_POINTS:.0f} points"
    return table


def _policies(found: Mapping[str, float], title: str) -> Table:
    table = Table("policy", "F1_PU", "verdict", title=f"Trivial policies: {title} (percent)")
    for name, value in found.items():
        verdict = "pass" if value == 0 else "MISSED"
        table.add_row(name, f"{value:.1f}", verdict if name in TRIVIAL else "")
    table.caption = f"bar on {' and '.join(TRIVIAL)}: 0"
    return table
