"""Sweeps on Ray: kills at random moments, and what a second node saves.

``make bench ARGS='sweep-faults --faults 20 --seed 1'`` starts two raylets on loopback, each bound to a core of its own
(Linux). First a sweep of 12 equal cells on one of them and on both, in turn: wall time, and what the driver adds to
each cell. Then sweeps of two cells, each struck once, at a random moment: the driver by SIGKILL or SIGINT, or a raylet
by SIGKILL. What must not happen makes the exit code 1: a cell that is not sealed exactly once, other scores than a
plain run's, a process or a file that stays.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memarena.sweep.manifest import Sealed, records

from tests.e2e.harnessing import EXAMPLE, kill, memarena, start, survivors
from tests.sweep.cluster import RayCluster, ray_cluster
from tests.sweep.sweeping import MEMORIES, Settled, of_run, of_sweep, sent, state, sweep_file, working_in

CELLS = 12
SEEDS = ("s1", "s2", "s3", "s4")
MOST_STARTS = 5
VICTIMS = ("driver, SIGKILL", "driver, SIGINT", "raylet, SIGKILL")


def tables(*options: str) -> list[Table]:
    """Both tables. SystemExit(1) after a fault."""
    parser = argparse.ArgumentParser(prog="bench sweep-faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=20, help="how many sweeps are struck")
    parser.add_argument("--repeats", type=int, default=3, help="of the comparison of one node with two; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parsed = parser.parse_args(options)
    result: list[Table] = []
    with tempfile.TemporaryDirectory(prefix="memarena-bench-sweep-") as name, ray_cluster(1, bound=True) as cluster:
        folder = Path(name)
        if parsed.repeats:
            result.append(_nodes(folder, cluster, parsed.repeats))
        if len(cluster.nodes) == 1:
            cluster.add()
        faults: list[str] = []
        if parsed.faults:
            result.append(_struck(folder, cluster, parsed.faults, Random(parsed.seed), faults))
    if faults:
        for table in result:
            Console().print(table)
        for fault in faults:
            sys.stderr.write(f"fault: {fault}\n")
        raise SystemExit(1)
    return result


def _arguments(file: Path, folder: Path, cluster: RayCluster) -> tuple[str | Path, ...]:
    where = (
        "--out",
        folder / "out",
        "--scratch",
        folder / "scratch",
        "--executor",
        "ray",
        "--address",
        cluster.address,
    )
    return (file, *where)


# ------------------------------------------------------------------ one node and two


def _nodes(folder: Path, cluster: RayCluster, repeats: int) -> Table:
    """One node first, for a node that is there cannot be taken away without a fault."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    added: list[float] = []
    for nodes in (1, 2):
        if nodes == 2:
            cluster.add()
        for repeat in range(repeats):
            here = folder / f"equal-{nodes}-{repeat}"
            here.mkdir()
            file = here / "equal.toml"
            memories = "".join(f'[[memories]]\nname = "m{n}"\nbackend = "bm25"\n' for n in range(CELLS // len(SEEDS)))
            file.write_text(
                f'seeds = [{", ".join(map(repr, SEEDS))}]\n[[worlds]]\npreset = "tiny"\nseeds = [7]\n{memories}'
                '[[readers]]\nspec = "extractive"\n'
            )
            began = time.monotonic()
            process = memarena("sweep", *_arguments(file, here, cluster), timeout_s=1200)
            walls[nodes].append(time.monotonic() - began)
            if process.returncode != 0:
                raise RuntimeError(process.stderr)
            if nodes == 1:
                took = sum(each.seal.wall_s for each in state(here / "out").sealed.values())
                added.append((walls[1][-1] - took) / CELLS)
    table = Table("", "one node", "two nodes", "ratio", title=f"{CELLS} equal cells, nodes of one core")
    wall_of_one, two = (statistics.median(walls[nodes]) for nodes in (1, 2))
    table.add_row("wall time, s", f"{wall_of_one:.1f}", f"{two:.1f}", f"{two / wall_of_one:.2f}")
    table.add_row("added to each cell, s", f"{statistics.median(added):.2f}", "", "")
    table.caption = (
        f"medians of {repeats}; added: Ray, driver, sealing and fetching, beside the time of the runs themselves"
    )
    return table


# ------------------------------------------------------------------ faults


def _struck(folder: Path, cluster: RayCluster, count: int, random: Random, faults: list[str]) -> Table:
    plain = folder / "plain"
    process = memarena(
        *("run", "--dataset", EXAMPLE, "--backend", ",".join(MEMORIES), "--reader", "extractive", "--limit", "30"),
        *("--floor-samples", "0", "--meter", "none", "--out", plain),
    )
    if process.returncode != 0:
        raise RuntimeError(process.stderr)
    right, victims, starts = of_run(plain), Counter[str](), 0
    for number in range(count):
        here = folder / f"struck-{number}"
        here.mkdir()
        victim = VICTIMS[number % len(VICTIMS)]
        victims[victim] += 1
        starts += _strike(here, cluster, victim, random.uniform(2.0, 14.0), right, faults)
    table = Table("", "count", title="Sweeps struck at random moments")
    table.columns[1].justify = "right"
    for victim in VICTIMS:
        table.add_row(victim, str(victims[victim]))
    table.add_row("starts of the driver", str(starts))
    table.add_row("faults", str(len(faults)), style="bold")
    return table


def _strike(here: Path, cluster: RayCluster, victim: str, after_s: float, right: Settled, faults: list[str]) -> int:
    out, scratch = here / "out", here / "scratch"
    arguments = _arguments(sweep_file(here, MEMORIES, limit=30), here, cluster)
    driver = start("sweep", *arguments)
    time.sleep(after_s)
    name = f"{victim} after {after_s:.1f} s"
    starts = 1
    if victim.startswith("driver"):
        family = kill(driver, signal.SIGKILL if victim.endswith("SIGKILL") else signal.SIGINT)
        if surviving := survivors(family, 60.0):
            faults.append(f"{name}: {len(surviving)} processes of the driver are left")
    else:
        cluster.nodes[-1].kill_raylet()
        driver.wait(600)
        cluster.nodes.pop().stop()
        cluster.add()
    while starts < MOST_STARTS:
        starts += 1
        process = memarena("sweep", *arguments, timeout_s=600)
        if process.returncode == 0:
            break
    else:
        faults.append(f"{name}: not complete after {starts} starts: {process.stderr.splitlines()[-1:]}")
        return starts
    times = Counter(record.cell for record in records(out) if isinstance(record, Sealed))
    if set(times) != set(sent(out)) or set(times.values()) != {1}:
        faults.append(f"{name}: sealed {dict(times)}")
    if of_sweep(out) != [right]:
        faults.append(f"{name}: other scores than a plain run's")
    if working := working_in(scratch):
        faults.append(f"{name}: still at work: {working[0]}")
    if scratch.exists() and (stays := list(scratch.iterdir())):
        faults.append(f"{name}: stays: {stays[0].name}")
    return starts
