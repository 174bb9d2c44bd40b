"""Are worlds valid, whatever the seed? ``validate`` in its full profile over many seeds of the small presets.

``make bench ARGS='masim-validate --tiny 20 --s 5 --first-seed 601'``; of preset l there is one world in ``masim-l``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _commands import run as run_command
from _validity import faults_of
from rich.table import Table

FIRST_SEED = 601
"""Seeds that nothing was tuned on."""


@dataclass(frozen=True)
class Looked:
    """What was found in one world: its questions, faults by check, and families that have no question at all."""

    seed: int
    questions: int
    faults: Counter[str]
    empty: tuple[str, ...]


def tables(*options: str) -> list[Table]:
    """A row per preset."""
    parser = argparse.ArgumentParser(prog="bench masim-validate", description=__doc__)
    parser.add_argument("--tiny", type=int, default=20, help="worlds of preset tiny")
    parser.add_argument("--s", type=int, default=5, help="worlds of preset s")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    given = parser.parse_args(options)
    if min(given.tiny, given.s) < 0:
        parser.error("--tiny and --s: 0 or more is expected")
    wanted = [("tiny", given.tiny), ("s", given.s)]
    found = [
        (preset, [_looked(preset, given.first_seed + number) for number in range(count)]) for preset, count in wanted
    ]
    return [_table([(preset, worlds) for preset, worlds in found if worlds])]


def _looked(preset: str, seed: int) -> Looked:
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "world"
        asked = ["--preset", preset, "--seed", str(seed), "--workers", "1"]  # so small that a second would not pay
        run_command("memarena_masim", "generate", *asked, "--quiet", "--out", str(world))
        counts: dict[str, int] = json.loads((world / "pipeline_report.json").read_text(encoding="utf-8"))["instances"]
        empty = tuple(family for family, count in counts.items() if not count)
        return Looked(seed, sum(counts.values()), faults_of(world), empty)


def _table(found: Sequence[tuple[str, Sequence[Looked]]]) -> Table:
    table = Table(title="Worlds under validate, full profile")
    for column in ("preset", "seeds", "questions", "faults", "worlds with faults", "families without a question"):
        table.add_column(column, justify="right" if column in ("questions", "faults") else "left")
    for preset, worlds in found:
        faults = sum((world.faults for world in worlds), Counter[str]())
        named = ", ".join(f"{check} {count}" for check, count in sorted(faults.items()))
        bad = ", ".join(str(world.seed) for world in worlds if world.faults) or "none"
        empty = ", ".join(f"{world.seed}: {', '.join(world.empty)}" for world in worlds if world.empty) or "none"
        total, seeds = sum(world.questions for world in worlds), f"{worlds[0].seed} to {worlds[-1].seed}"
        table.add_row(preset, seeds, f"{total:,}", f"{faults.total()}{f' ({named})' if named else ''}", bad, empty)
    met = not any(world.faults for _, worlds in found for world in worlds)
    table.caption = f"bar: no fault: {'pass' if met else 'MISSED'}"
    return table
