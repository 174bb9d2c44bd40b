"""Kills processes at random moments: harness (with its gateway), backend, reader, their guards, workers of a sweep.

``make bench ARGS='kills --kills 200 --seed 1'``. A run, and each third time a sweep of the same cells (whose harness is
its driver), is struck up to four times, resumed until it is complete, and compared with a run that nothing disturbed.
What must not happen is listed, and makes the exit code 1: a question lost, answered twice, answered otherwise, or
booked as another party's failure; a process that outlives its run; a signal that the harness does not end at in time.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import uuid4

import psutil
from memarena.log.records import QuestionAsked
from memarena.log.store import LOG_NAME, LogError, LogReader, read_records
from memarena.sweep.work import GRACE_S
from rich.table import Table

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "data" / "example"
MARK = "MEMARENA_BENCH_KILLS"
"""Environment variable that every process of a run inherits, with the run's own value."""
PER_RUN = 4
MOST_STARTS = 20
HANGS_S = 180.0
"""A harness that is still running after so long has hung."""
GONE_S = {"run": 10.0, "sweep": GRACE_S + 10.0}
"""Within which every process below a harness that ended must be gone. The cells of a sweep end in order first."""
ROWS = ("ingest", "asked")
"""Records that tell how far a run is."""
VICTIMS = ("harness", "SIGINT", "SIGTERM", "backend", "reader", "guard", "worker")
"""What is struck: all by SIGKILL, but the harness also by the two signals that ask it to end."""
WEIGHTS = {"run": (4, 1, 1, 4, 3, 1, 0), "sweep": (2, 1, 1, 2, 2, 1, 6)}
SWEEP_EVERY = 3
"""Every SWEEP_EVERY-th seed starts a sweep, the others a run."""
_ENDED_BY = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}
_ORDERLY = {130, -signal.SIGINT, -signal.SIGTERM}
"""Exit codes after a request to end; the signal itself if it came before there was a run."""


@dataclass
class Ended:
    """Result of one run that was killed."""

    seed: int
    kind: str
    """``run`` or ``sweep``."""
    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    lost_attempts: int = 0
    slowest_end_s: float = 0.0
    """Longest time from a signal to the harness's end."""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Setup:
    """Settings that all runs share."""

    folder: Path
    backends: str
    limit: int | None
    """Questions of each backend; None: all."""
    end_within_s: float

    def arguments(self, out: Path, kind: str) -> list[str]:
        """Return the command line of a run, or of a sweep of its cells; for an existing one, that to continue it."""
        if kind == "sweep":
            file = out.with_suffix(".toml")
            memories = "".join(f'[[memories]]\nname = "{name}"\n' for name in self.backends.split(","))
            limit = f"limit = {self.limit}\n" if self.limit else ""
            file.write_text(
                f'[[worlds]]\ndataset = "{EXAMPLE}"\n{memories}[[readers]]\nspec = "extractive"\n'
                f'[run]\nfloor_samples = 0\nmeters = ["none"]\n{limit}'
            )
            return ["sweep", str(file), "--out", str(out), "--cores", "2"]
        return [
            "run", "--dataset", str(EXAMPLE), "--backend", self.backends, "--reader", "extractive",
            "--floor-samples", "0", "--meter", "none", "--out", str(out),
            *(["--limit", str(self.limit)] if self.limit else []), *(["--resume"] if out.exists() else []),
        ]  # fmt: skip


class Harness:
    """``memarena`` in a separate process, forked from this one, which has its modules loaded: a start costs less."""

    def __init__(self, arguments: Sequence[str], mark: str, output: Path) -> None:
        self.pid = os.fork()
        self.code: int | None = None
        if self.pid == 0:
            _become(arguments, mark, output)

    def running(self) -> bool:
        """Whether the process still runs; collects its exit code if it ended."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is None

    def wait(self, timeout_s: float) -> bool:
        """Whether the process ended in time."""
        deadline = time.monotonic() + timeout_s
        while self.running():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True


def _become(arguments: Sequence[str], mark: str, output: Path) -> None:
    """Run ``memarena`` with these arguments in this (forked) process, and never return."""
    code = 70
    try:
        os.setsid()
        os.environ[MARK] = mark
        # A shell has its background jobs ignore SIGINT, and so would this one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with output.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(ROOT)
        sys.argv = ["memarena", *arguments]
        from memarena.cli.main import main  # noqa: PLC0415

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except KeyboardInterrupt:
        code = 130
    except Exception:  # noqa: BLE001  (the process ends here, after printing the error)
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def preload() -> None:
    """Import the modules of a run, so that forked processes have them; none of them starts a thread."""
    import memarena.cli.run  # noqa: PLC0415
    import memarena.cli.sweep  # noqa: PLC0415
    import memarena.execution.engine  # noqa: F401, PLC0415


# ------------------------------------------------------------------ processes of a run


def marked(mark: str) -> list[psutil.Process]:
    """Return every process that was started by a run with this mark, whatever its parent."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                processes.append(process)
    return processes


def role_of(process: psutil.Process) -> str:
    """Return the role of a run's process; "" for processes that are not killed."""
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        if "memarena.processes" in words:
            return "guard"
        if any(word.startswith("memarena_backend_") for word in words):
            return "backend"
        if "memarena.readers.extractive_server" in words:
            return "reader"
        if "-m memarena run " in " ".join(words):
            return "worker"
    return ""


def outliving(mark: str, timeout_s: float) -> list[str]:
    """Return the processes of a run that still live after ``timeout_s``, and kill them."""
    deadline = time.monotonic() + timeout_s
    while survivors := marked(mark):
        if time.monotonic() > deadline:
            names = [f"{process.pid} {role_of(process) or 'process'}" for process in survivors]
            for process in survivors:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            return names
        time.sleep(0.02)
    return []


def logs(out: Path) -> list[Path]:
    """Return the folders of the logs of a run, or of a sweep's cells."""
    return [out] if (out / LOG_NAME).exists() else [log.parent for log in out.rglob(LOG_NAME)]


def progress(out: Path) -> int:
    """Count the days and questions in the logs so far."""
    count = 0
    for folder in logs(out):
        with contextlib.suppress(LogError), LogReader(folder) as log:
            count += sum(1 for _ in log.rows(*ROWS))
    return count


# ------------------------------------------------------------------ one run


def struck(setup: Setup, seed: int, whole: int, kills: int) -> Ended:
    """Start a run, strike it up to ``kills`` times, and resume it until it is complete.

    ``whole``: number of records of an undisturbed run.
    """
    draw, mark = Random(f"kills {seed}"), uuid4().hex
    ended = Ended(seed, "run" if seed % SWEEP_EVERY else "sweep")
    out, output = setup.folder / f"run-{seed}", setup.folder / f"run-{seed}.txt"
    for _ in range(MOST_STARTS):
        ended.starts += 1
        harness = Harness(setup.arguments(out, ended.kind), mark, output)
        try:
            while ended.kills.total() < kills and _strike(setup, harness, ended, draw, out, whole, mark):
                pass
            if not harness.wait(HANGS_S):
                ended.faults.append(f"the harness hung for {HANGS_S:.0f} s")
        finally:
            if harness.running():
                os.kill(harness.pid, signal.SIGKILL)
                harness.wait(GONE_S[ended.kind])
        ended.faults += [f"{name} outlived its {ended.kind}" for name in outliving(mark, GONE_S[ended.kind])]
        if harness.code == 0 or ended.faults:
            break
        if harness.code not in (3, -signal.SIGKILL, *_ORDERLY):
            ended.faults.append(f"the harness ended with {harness.code}: {_last_line(output)}")
            break
    else:
        ended.faults.append(f"not complete after {MOST_STARTS} starts: {_last_line(output)}")
    return ended


def _strike(setup: Setup, harness: Harness, ended: Ended, draw: Random, out: Path, whole: int, mark: str) -> bool:
    """Wait for a random moment and strike; return False if the harness has ended."""
    victim = draw.choices(VICTIMS, WEIGHTS[ended.kind])[0]
    _moment(harness, draw, out, whole)
    if not harness.running():
        return False
    if victim in ("backend", "reader", "guard", "worker"):
        while not (targets := [p for p in marked(mark) if role_of(p) == victim]):
            if not harness.running():
                return False
            time.sleep(0.03)
        with contextlib.suppress(psutil.NoSuchProcess):
            draw.choice(targets).kill()
            ended.kills[victim] += 1
        return True
    began = time.monotonic()
    os.kill(harness.pid, _ENDED_BY.get(victim, signal.SIGKILL))
    ended.kills[victim] += 1
    if not harness.wait(setup.end_within_s):
        ended.faults.append(f"{victim}: the harness did not end in {setup.end_within_s:.0f} s")
    elif victim in _ENDED_BY:
        ended.slowest_end_s = max(ended.slowest_end_s, time.monotonic() - began)
        # A run that was just complete ends as such.
        if harness.code not in (0, 3, *_ORDERLY):
            ended.faults.append(f"{victim}: the harness ended with {harness.code}")
    return False


def _moment(harness: Harness, draw: Random, out: Path, whole: int) -> None:
    """Wait until a random share of the open records is written, or for a random time of the start."""
    if draw.random() < 0.25:
        until = time.monotonic() + draw.uniform(0.0, 1.5)
        while time.monotonic() < until and harness.running():
            time.sleep(0.005)
        return
    start = progress(out)
    aim = start + draw.random() * max(1, whole - start)
    while harness.running() and progress(out) < aim:
        time.sleep(0.02)
    time.sleep(draw.uniform(0.0, 0.02))


def _last_line(output: Path) -> str:
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


# ------------------------------------------------------------------ what came of it


def attempts_of(out: Path) -> Iterator[QuestionAsked]:
    """Return every attempt at a question."""
    return (record for log in logs(out) for record in read_records(log, "asked") if isinstance(record, QuestionAsked))


def answers_of(out: Path) -> dict[tuple[str, str], str]:
    """Return the answer to each question of each cell, from its last attempt, by (cell id, instance id)."""
    return {
        (record.cell_id, record.instance_id): record.answer.answer
        if record.status == "answered" and record.answer is not None
        else f"{record.status}: {record.cause}"
        for record in attempts_of(out)
    }


def compare(out: Path, right: dict[tuple[str, str], str], ended: Ended) -> None:
    """Note what differs from a run that nothing disturbed."""
    try:
        answers, attempts = answers_of(out), list(attempts_of(out))
    except LogError as error:
        ended.faults.append(f"the log cannot be read: {error}")
        return
    ended.lost_attempts = sum(record.lost or record.status == "infra_failed" for record in attempts)
    answer_counts = Counter((r.cell_id, r.instance_id) for r in attempts if r.status == "answered" and not r.lost)
    lost = Counter((r.cell_id, r.instance_id) for r in attempts if r.lost)
    if missing := sorted(set(right) - set(answers)):
        ended.faults.append(f"{len(missing)} questions lost, the first {' '.join(missing[0])}")
    for key, answer in right.items():
        name = " ".join(key)
        if key in answers and answers[key] != answer:
            # Asked of a backend that was killed both times: by the rules that is the backend's failure.
            strikes = sum(ended.kills[name] for name in ("backend", "guard", "worker"))
            twice = lost[key] >= 1 and strikes > 1
            if not (twice and answers[key].startswith("backend_failed")):
                ended.faults.append(f"{name}: {answers[key]!r} where {answer!r} was expected")
        if answer_counts[key] > 1:
            ended.faults.append(f"{name}: answered {answer_counts[key]} times")
    ended.faults += [f"{' '.join(key)}: nobody asks this" for key in set(answers) - set(right)]


@dataclass(frozen=True)
class Task:
    """A run to strike, with the result of an undisturbed one."""

    setup: Setup
    seed: int
    kills: int
    records: int
    right: dict[tuple[str, str], str]


def carry_out(task: Task) -> Ended:
    """Kill processes of a run, and compare the completed run with an undisturbed one."""
    ended = struck(task.setup, task.seed, task.records, task.kills)
    compare(task.setup.folder / f"run-{ended.seed}", task.right, ended)
    return ended


def campaign(setup: Setup, kills: int, per_run: int, workers: int, first_seed: int) -> Iterator[Ended]:
    """Yield struck runs, ``workers`` at a time, until ``kills`` kills were made."""
    mark, whole, output = uuid4().hex, setup.folder / "whole", setup.folder / "whole.txt"
    undisturbed = Harness(setup.arguments(whole, "run"), mark, output)
    if not undisturbed.wait(HANGS_S) or undisturbed.code != 0:
        raise RuntimeError(f"the run that nothing disturbs did not complete: {_last_line(output)}")
    right, records = answers_of(whole), progress(whole)
    seed, kills_to_make = first_seed, kills
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        while kills_to_make > 0:
            # A run may be over before it was struck as often as it could be: then another one follows.
            tasks: list[Task] = []
            while (planned := sum(task.kills for task in tasks)) < kills_to_make:
                tasks.append(Task(setup, seed, min(per_run, kills_to_make - planned), records, right))
                seed += 1
            for run in pool.imap(carry_out, tasks):
                kills_to_make -= run.kills.total()
                yield run


def tables(*options: str) -> list[Table]:
    """Return one row: kills by victim, and their outcome. SystemExit(1) after a fault."""
    parser = argparse.ArgumentParser(prog="bench kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many in all")
    parser.add_argument("--per-run", type=int, default=PER_RUN, help="most of one run")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next one has the next")
    parser.add_argument("--backends", default="bm25,vanilla")
    parser.add_argument("--limit", type=int, help="questions of each backend; default: all 35")
    parser.add_argument("--end-within-s", type=float, default=10.0, help="for SIGINT and SIGTERM")
    parser.add_argument("--keep", type=Path, help="folder that the runs are left in")
    settings = parser.parse_args(options)
    preload()
    with contextlib.ExitStack() as stack:
        folder = settings.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memarena-kills-")))
        folder.mkdir(parents=True, exist_ok=True)
        setup = Setup(folder, settings.backends, settings.limit, settings.end_within_s)
        runs = []
        for run in campaign(setup, settings.kills, settings.per_run, settings.workers, settings.seed):
            runs.append(run)
            struck_by = ", ".join(f"{number} {name}" for name, number in run.kills.items())
            for fault in run.faults:
                sys.stderr.write(f"fault: {run.kind}, seed {run.seed} ({struck_by}): {fault}\n")
    table = _table(runs)
    if any(run.faults for run in runs):
        from rich.console import Console  # noqa: PLC0415

        Console().print(table)
        raise SystemExit(1)
    return [table]


def _table(runs: Sequence[Ended]) -> Table:
    """Return the table of kills, starts and faults over all runs."""
    kills: Counter[str] = sum((run.kills for run in runs), Counter())
    table = Table("", "count", title="Kills at random moments")
    table.columns[1].justify = "right"
    for victim in VICTIMS:
        table.add_row(
            f"SIGKILL of a {victim}" if victim not in _ENDED_BY else f"{victim} to the harness", str(kills[victim])
        )
    table.add_row("all of them", str(kills.total()), style="bold")
    for kind in WEIGHTS:
        table.add_row(f"{kind}s", str(sum(run.kind == kind for run in runs)))
    table.add_row("starts, first ones and resumed", str(sum(run.starts for run in runs)))
    table.add_row("questions asked again", str(sum(run.lost_attempts for run in runs)))
    slowest = max((run.slowest_end_s for run in runs), default=0.0)
    table.add_row("slowest end after SIGINT or SIGTERM, s", f"{slowest:.1f}")
    table.add_row("faults", str(sum(len(run.faults) for run in runs)), style="bold")
    return table
