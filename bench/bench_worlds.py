"""Spread between worlds: bm25 and oracle over several worlds of MaSim, each made from its own random streams.

``make bench ARGS='worlds --count 8 --preset s'``. Everything runs through the commands that users have; the reader is
the extractive one, which needs no model. The interval is Student's t over worlds, of the difference oracle − bm25
within each world, so that what is common to a world's questions cancels.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _commands import run as run_command
from rich.table import Table
from scipy import stats

BACKENDS = ("bm25", "oracle")
SEED = 900
"""Far from the seeds that phrase banks and presets were tuned on."""


@dataclass(frozen=True)
class Spread:
    """A figure over worlds, in percent: mean, standard deviation, ends of the 95% t-interval (None below two)."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


def spread(values: Sequence[float]) -> Spread:
    """Mean, SD and t-interval of some values."""
    n, mean = len(values), statistics.fmean(values)
    if n < 2:
        return Spread(n, mean, None, None, None)
    sd = statistics.stdev(values)
    half = float(stats.t.ppf(0.975, n - 1)) * sd / n**0.5
    return Spread(n, mean, sd, mean - half, mean + half)


def tables(*options: str) -> list[Table]:
    """One table: a row per dimension."""
    parser = argparse.ArgumentParser(prog="bench worlds", description=__doc__)
    parser.add_argument("--count", type=int, default=8, help="worlds, two or more")
    parser.add_argument("--preset", default="s")
    parser.add_argument("--density", default=None)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=None, help="keep worlds and runs in this folder; resumes there")
    given = parser.parse_args(options)
    if given.count < 2:
        parser.error(f"--count {given.count}: 2 or more is expected")
    with tempfile.TemporaryDirectory() as folder:
        out = given.out or Path(folder)
        size = ["--preset", given.preset, *(["--density", given.density] if given.density else [])]
        command = ["generate", *size, "--seed", str(given.seed), "--worlds", str(given.count), "--quiet"]
        run_command("memarena_masim", *command, "--out", str(out / "worlds"))
        found = [_scores(world, out / "runs" / world.name) for world in sorted((out / "worlds").iterdir())]
    return [_table(found, f"{given.count} worlds of {' '.join(size)}, seed {given.seed}")]


def _scores(world: Path, run: Path) -> Mapping[str, Mapping[str, float]]:
    """Percent by backend and metric, of one world."""
    if not (run / "score.json").exists():
        asked = ["--dataset", str(world), "--backend", ",".join(BACKENDS), "--reader", "extractive"]
        resumed = ["--resume"] if (run / "run.sqlite").exists() else []
        run_command("memarena", "run", *asked, "--floor-samples", "0", "--out", str(run), *resumed)
        (run / "score.json").write_text(
            run_command("memarena", "score", str(run), "--format", "json"), encoding="utf-8"
        )
    rows = json.loads((run / "score.json").read_text(encoding="utf-8"))["runs"][0]["rows"]
    return {
        row["backend"]: {
            name: 100 * score["value"] for name, score in row["metrics"].items() if score["value"] is not None
        }
        for row in rows
    }


def _table(found: Sequence[Mapping[str, Mapping[str, float]]], title: str) -> Table:
    table = Table(title=f"Spread between worlds: {title} (percent; mean ± SD over worlds)")
    for column in ("metric", "worlds", "bm25", "oracle", "oracle − bm25", "SD", "95% t-interval"):
        table.add_column(column, justify="left" if column == "metric" else "right")
    for metric in dict.fromkeys(name for world in found for name in world["oracle"]):
        both = [(w["bm25"][metric], w["oracle"][metric]) for w in found if all(metric in w[name] for name in BACKENDS)]
        if not both:
            continue
        low, high, gap = spread([b for b, _ in both]), spread([o for _, o in both]), spread([o - b for b, o in both])
        between = "" if gap.low is None or gap.high is None else f"{gap.low:.1f} to {gap.high:.1f}"
        gap_sd = "" if gap.sd is None else f"{gap.sd:.1f}"
        table.add_row(metric, str(gap.n), _shown(low), _shown(high), f"{gap.mean:+.1f}", gap_sd, between)
    return table


def _shown(figure: Spread) -> str:
    return f"{figure.mean:.1f}" if figure.sd is None else f"{figure.mean:.1f} ± {figure.sd:.1f}"
