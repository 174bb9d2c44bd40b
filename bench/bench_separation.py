"""Measures whether worlds of MaSim separate memories: vanilla, bm25 and oracle on several worlds, by question.

``make bench ARGS='separation --preset s --seed 301 --worlds 8'``. Worlds and runs are made by the commands that users
have, worlds of consecutive seeds; the reader is the extractive one, which needs no model. Oracle has to be above bm25
and bm25 above vanilla on D2, D3 and D4, each by more than 10 points at the lower end of the paired 95% interval over
the egos of all worlds, drawn as ``memarena compare`` draws those of one. Points of each world are shown too, and from
eight worlds up Student's interval over worlds, since egos of one world share its events. Policies that need no memory
have to score 0 in F1_PU (D6).
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from _commands import run as run_command
from memarena.evaluation import evaluate
from memarena.scoring.compare import across_worlds, choose, compare
from memarena.scoring.results import Baseline
from memarena.scoring.run import ScoredRun
from memarena.scoring.uncertainty_records import AcrossWorlds, Comparison, Interval
from rich.table import Table

ORDER = ("oracle", "bm25", "vanilla")
"""Backends from the expected best to the expected worst."""
BARRED = ("D2", "D3", "D4")
PRINTED = ("D1", "D2", "D3", "D4", "D5", "D6")
LEAST_POINTS = 10.0
TRIVIAL = ("always refuse", "always don't know")
"""Policies that answer without a memory. One that always discloses has P = 0, and so F1_PU 0, by its definition."""
CHOSEN = "best constant"
"""Also shown, without a bar: the single answer to all questions that fits the golds best, chosen by the golds."""
SEED = 301
WORLDS = 8
"""As many as it takes for an interval over worlds."""


@dataclass(frozen=True)
class Gap:
    """The gap between two backends on one dimension: percent of both, points between them.

    ``low`` and ``high`` are the ends of the paired 95% interval over the egos of all worlds, None if there is none;
    ``by_world`` the points in each world, ``over_worlds`` the ends of Student's interval over these.
    """

    dimension: str
    better: str
    worse: str
    a: float
    b: float
    low: float | None
    high: float | None
    questions: int
    by_world: tuple[float, ...] = ()
    over_worlds: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """Whether the bar is met; nothing for a dimension without a bar. Without an interval it is not."""
        if self.dimension not in BARRED:
            return ""
        return "pass" if self.low is not None and self.low > LEAST_POINTS else "MISSED"


def pooled(runs: Sequence[ScoredRun]) -> ScoredRun:
    """Return the runs of several worlds as one run; ids of egos and questions begin with the world's index."""
    questions = tuple(
        question.model_copy(update={"ego": f"{index}/{question.ego}", "instance_id": f"{index}/{question.instance_id}"})
        for index, run in enumerate(runs)
        for question in run.questions
    )
    return replace(runs[0], questions=questions)


def gaps_of(
    comparison: Comparison, better: str, worse: str, across: Mapping[str, AcrossWorlds] | None = None
) -> list[Gap]:
    """Return gaps by dimension, from one comparison; ``across`` compares the same worlds one by one, by figure.

    RuntimeError if a dimension that has a bar was not compared.
    """
    by_name = {
        difference.metric: difference for difference in comparison.differences if difference.difference is not None
    }
    absent = [name for name in BARRED if name not in by_name]
    if absent:
        raise RuntimeError(f"compare: {better} and {worse}: no question of {absent[0]} was answered by both")
    gaps = []
    for name in PRINTED:
        difference = by_name.get(name)
        if difference is None or difference.a is None or difference.b is None:
            continue
        low, high = _ends(difference.interval) or (None, None)
        worlds_apart = (across or {}).get(name)
        by_world = tuple(100 * world.difference for world in worlds_apart.worlds) if worlds_apart else ()
        over_worlds = _ends(worlds_apart.interval) if worlds_apart else None
        gaps.append(
            Gap(
                name,
                better,
                worse,
                100 * difference.a,
                100 * difference.b,
                low,
                high,
                difference.questions,
                by_world,
                over_worlds,
            )
        )
    return gaps


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return (100 * interval.low, 100 * interval.high) if interval else None


def trivial_of(baselines: Sequence[Baseline]) -> dict[str, float]:
    """Return F1_PU in percent by policy. RuntimeError if a policy is missing."""
    by_policy: dict[str, float | None] = {baseline.name: baseline.scores.get("D6") for baseline in baselines}
    result: dict[str, float] = {}
    for name in (*TRIVIAL, CHOSEN):
        value = by_policy.get(name)
        if value is None:
            raise RuntimeError(f"score: no F1_PU of the policy {name!r}")
        result[name] = 100 * value
    return result


def tables(*options: str) -> list[Table]:
    """Return the separation of the backends, by dimension and by world, and the trivial policies."""
    parser = argparse.ArgumentParser(prog="bench separation", description=__doc__)
    parser.add_argument("--preset", default="s")
    parser.add_argument("--seed", type=int, default=SEED, help="of the first world")
    parser.add_argument("--worlds", type=int, default=WORLDS, help="how many, of consecutive seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worlds that are run at the same time")
    parser.add_argument("--out", type=Path, default=None, help="keep worlds and runs in this folder; resumes there")
    parsed = parser.parse_args(options)
    if min(parsed.worlds, parsed.jobs) < 1:
        parser.error("--worlds and --jobs: 1 or more is expected")
    seeds = range(parsed.seed, parsed.seed + parsed.worlds)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(parsed.jobs) as pool:
        out = parsed.out or Path(folder)
        runs = list(pool.map(lambda seed: _run(out / f"{parsed.preset}_{seed}", parsed.preset, seed), seeds))
    gaps = [gap for better, worse in itertools.pairwise(ORDER) for gap in _gaps_between(runs, better, worse)]
    title = f"preset {parsed.preset}, seeds {seeds[0]} to {seeds[-1]}, extractive reader"
    policies = [trivial_of(run.scores.baselines) for run in runs]
    return [_separation(gaps, title), _by_world(gaps, seeds), _policies(policies, title)]


def _run(out: Path, preset: str, seed: int) -> ScoredRun:
    """Generate a world and run all backends on it, each unless it is already complete; return the scored run."""
    world, run = out / "world", out / "run"
    if not (world / "run_info.json").exists() or (world / ".days").exists():
        size = ["--preset", preset, "--seed", str(seed), "--workers", "1"]
        run_command("memarena_masim", "generate", *size, "--quiet", "--out", str(world))
    resumed = ["--resume"] if (run / "run.sqlite").exists() else []
    options = ["--dataset", str(world), "--backend", ",".join(ORDER), "--reader", "extractive"]
    run_command("memarena", "run", *options, "--floor-samples", "0", "--out", str(run), *resumed)
    return evaluate(run)


def _gaps_between(runs: Sequence[ScoredRun], better: str, worse: str) -> list[Gap]:
    """Return the gaps over all worlds, with each world's next to them. RuntimeError if worlds must not be compared."""
    names = [f"{better}@extractive", f"{worse}@extractive"]
    across: dict[str, AcrossWorlds] = {}
    if len(runs) > 1:
        worlds = across_worlds([(choose(run, names[0]), choose(run, names[1])) for run in runs])
        if worlds.incomparable:
            raise RuntimeError(f"compare: {'; '.join(worlds.incomparable)}")
        across = {difference.metric: difference for difference in worlds.differences}
    together = pooled(runs)
    return gaps_of(compare(choose(together, names[0]), choose(together, names[1])), better, worse, across)


def _separation(gaps: Sequence[Gap], title: str) -> Table:
    table = Table(title=f"Separation of backends: {title} (percent; paired by question, drawn by ego)")
    for column in ("dimension", "questions", "backends", "scores", "points", "95% interval", "verdict"):
        table.add_column(column, justify="right" if column in ("questions", "points") else "left")
    for gap in gaps:
        ends = None if gap.low is None or gap.high is None else (gap.low, gap.high)
        table.add_row(
            gap.dimension, str(gap.questions), f"{gap.better} − {gap.worse}", f"{gap.a:.1f} − {gap.b:.1f}",
            f"{gap.a - gap.b:+.1f}", _between(ends), gap.verdict,
        )  # fmt: skip
    table.caption = f"bar on {', '.join(BARRED)}: the lower end of the 95% interval is above {LEAST_POINTS:.0f} points"
    return table


def _by_world(gaps: Sequence[Gap], seeds: Sequence[int]) -> Table:
    """Return the points of each world separately, and the interval over worlds if there are enough of them."""
    table = Table(title="Points by world, each one observation")
    table.add_column("dimension")
    table.add_column("backends")
    for seed in seeds:
        table.add_column(str(seed), justify="right")
    table.add_column("95% over worlds")
    for gap in gaps:
        points = [f"{point:+.0f}" for point in gap.by_world]
        if len(points) == len(seeds):
            table.add_row(gap.dimension, f"{gap.better} − {gap.worse}", *points, _between(gap.over_worlds))
    return table


def _between(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:+.1f} to {ends[1]:+.1f}"


def _policies(worlds: Sequence[Mapping[str, float]], title: str) -> Table:
    """Return the largest figure that each policy has in any world."""
    table = Table("policy", "F1_PU, worst world", "verdict", title=f"Trivial policies: {title} (percent)")
    for name in worlds[0]:
        value = max(world[name] for world in worlds)
        verdict = "pass" if value == 0 else "MISSED"
        table.add_row(name, f"{value:.1f}", verdict if name in TRIVIAL else "")
    table.caption = f"bar on {' and '.join(TRIVIAL)}: 0"
    return table
