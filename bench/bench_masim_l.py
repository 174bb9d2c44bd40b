"""Measures masim at preset l or year: wall time, memory, counts of the world, its validity, and whether bytes repeat.

``make bench ARGS='masim-l --seed 42'``, and with ``--preset year`` (hours, 5 GB of disk). Two workers first, for the
figures; then one worker, and two workers that are killed and go on, both of which have to write the same bytes.
``--preset s`` tries the benchmark itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from _validity import faults_of
from rich.table import Table

SEED = 42
WORKERS = 2
MOST_S, MOST_MIB = {"l": 90.0, "year": 1800.0}, 2048.0
"""The bars on two cores: wall seconds by preset, and MiB."""
POLL_S = 0.1
KILL_AFTER = 0.4
"""Share of the days that are there when the generation is killed."""


@dataclass(frozen=True)
class Usage:
    """A generation: wall seconds, the largest sum of resident sets over its processes and the largest single one."""

    wall_s: float
    sum_mib: float
    single_mib: float


def tables(*options: str) -> list[Table]:
    """Return one table of figures and verdicts."""
    parser = argparse.ArgumentParser(prog="bench masim-l", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--preset", default="l")
    parsed = parser.parse_args(options)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        usage = watched(_command(parsed.preset, parsed.seed, WORKERS, out / "two"))
        counts = counts_of(out / "two")
        faults = faults_of(out / "two").total()
        expected = digests(out / "two")
        watched(_command(parsed.preset, parsed.seed, 1, out / "one"))
        same = digests(out / "one") == expected
        killed = _killed(_command(parsed.preset, parsed.seed, WORKERS, out / "killed"), out / "killed", counts["days"])
        watched(_command(parsed.preset, parsed.seed, WORKERS, out / "killed"))
        resumed = digests(out / "killed") == expected
    table = Table("figure", "value", "verdict", title=f"masim generate --preset {parsed.preset} --seed {parsed.seed}")
    _costs(table, usage, MOST_S.get(parsed.preset))
    for name, count in counts.items():
        table.add_row(name, f"{count:,}", "")
    table.add_row("faults under validate, full profile", str(faults), _verdict(faults == 0))
    table.add_row(f"same bytes for 1 and {WORKERS} workers", _yes(same), _verdict(same))
    table.add_row(f"same bytes when killed after {killed} days and resumed", _yes(resumed), _verdict(resumed))
    return [table]


def _costs(table: Table, usage: Usage, most_s: float | None) -> None:
    wall, memory = f"wall time, {WORKERS} workers", "memory, sum over processes"
    if most_s is None:
        table.add_row(wall, f"{usage.wall_s:.1f} s", "")
        table.add_row(memory, f"{usage.sum_mib:.0f} MiB", "")
    else:
        table.add_row(f"{wall} (bar {most_s:.0f} s)", f"{usage.wall_s:.1f} s", _verdict(usage.wall_s <= most_s))
        low = _verdict(usage.sum_mib <= MOST_MIB)
        table.add_row(f"{memory} (bar {MOST_MIB:.0f} MiB)", f"{usage.sum_mib:.0f} MiB", low)
    table.add_row("memory, the largest process", f"{usage.single_mib:.0f} MiB", "")


def _command(preset: str, seed: int, workers: int, out: Path) -> list[str]:
    size = ["--preset", preset, "--seed", str(seed), "--workers", str(workers)]
    return [sys.executable, "-m", "memarena_masim", "generate", *size, "--quiet", "--out", str(out)]


def watched(command: list[str]) -> Usage:
    """Run a command to its end and look at its processes' resident sets every 0.1 s.

    Pages that processes share count once for each of them: the sum is rather too high than too low. RuntimeError if the
    command fails.
    """
    began, most, single = time.monotonic(), 0, 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            sizes = _resident(child.pid)
            most, single = max(most, sum(sizes)), max([single, *sizes])
            time.sleep(POLL_S)
        wall_s = time.monotonic() - began
        message = child.stderr.read().strip() if child.stderr else ""
    if child.returncode:
        raise RuntimeError(f"{' '.join(command[1:])}: {message.splitlines()[-1] if message else child.returncode}")
    return Usage(wall_s, most / 2**20, single / 2**20)


def _resident(pid: int) -> list[int]:
    """Return the resident bytes of a process and of each one below it; processes that end meanwhile are left out."""
    sizes = []
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    for process in family:
        try:
            sizes.append(int(process.memory_info().rss))
        except psutil.NoSuchProcess:
            continue
    return sizes


def _killed(command: list[str], out: Path, days: int) -> int:
    """Kill a generation when some of its days are finished; returns how many were. RuntimeError if it ends before."""
    days_done = max(1, round(KILL_AFTER * days))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        while len(list(out.glob(".days/day_????.jsonl"))) < days_done:
            if child.poll() is not None:
                raise RuntimeError(f"{' '.join(command[1:])}: ended before it could be killed")
            time.sleep(POLL_S / 10)
        child.kill()
    return len(list(out.glob(".days/day_????.jsonl")))


def digests(world: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that a seed decides, by path: all but ``run_info.json``."""
    hashes = {}
    for path in sorted(world.rglob("*")):
        if path.is_file() and path.name != "run_info.json":
            with path.open("rb") as file:
                hashes[str(path.relative_to(world))] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes


def counts_of(world: Path) -> dict[str, int]:
    """Return the counts of a world, from its report and its corpus; questions without the witness pairs."""
    report = json.loads((world / "pipeline_report.json").read_text(encoding="utf-8"))
    witness = report["instances"]["x1_witness"]
    words = 0
    with (world / "corpus_sessions.jsonl").open(encoding="utf-8") as sessions:
        for line in sessions:
            words += sum(len(turn["text"].split()) for turn in json.loads(line)["turns"])
    counts = {name: int(report["counts"][name]) for name in ("agents", "days", "sessions", "turns")}
    questions = sum(report["instances"].values()) - witness
    return {**counts, "words": words, "questions": questions, "questions of witness pairs": witness}


def _verdict(passes: bool) -> str:
    return "pass" if passes else "MISSED"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
