"""Runs one cell on its node: gets its world, executes the run as a child process, seals it, and stores it.

All files are below a scratch folder of the node: ``worlds/<key>`` and ``cells/<name>``. If a cell is sent again to the
same node, the run continues with the log of the earlier attempt. A lock on each folder, held by the guard of
the child, makes a second attempt wait until nothing of the first is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.safe_files import acquire_lock, write_whole

from memarena.execution.models.shared_readers import VARIABLE, may_be_shared
from memarena.execution.planning.model_config import ReaderConfig
from memarena.log.store import LOG_NAME
from memarena.processes import GuardedProcess, ProcessError, python_module
from memarena.sweep.cells import Cell, World
from memarena.sweep.errors import StorageError, SweepError
from memarena.sweep.sealing import SEAL, Seal, fault_of, read_seal, seal
from memarena.sweep.storage import Storage

GRACE_S = 20.0
"""Seconds that a run has to end in order; containers are removed in that time."""
LOCK_WAIT_S = 3 * GRACE_S
POLL_S = 0.05
MIN_FREE_BYTES = 256 << 20
_COMPLETE, _INCOMPLETE = 0, 3
"""Exit codes of ``memarena run`` and ``judge``; 2 is bad input."""

How = Literal["sealed", "open", "refused", "lost", "disk_full", "storage", "stopped"]
"""``open``: the run ended with questions left; ``lost``: its process was killed; ``refused``: bad input; ``storage``:
it is sealed but could not be stored; ``stopped``: the driver or the loss of the node ended it."""
Alive = Callable[[], bool]
GiveWorld = Callable[[World, Path], None]
"""Copies the files of a data set that has a path into a folder of the node."""
GiveReader = Callable[[ReaderConfig], None]
"""Starts a reader that the cells of the node share, if it does not run, and records it in :func:`readers_folder`."""


@dataclass(frozen=True)
class Job:
    """The instructions for one attempt at a cell."""

    cell: Cell
    scratch: Path
    """Folder of this sweep on the node."""
    machine: str
    """Kind of the node."""
    last_attempt: bool = False
    """Whether the run is sealed even if questions are left open."""


@dataclass(frozen=True)
class End:
    """How an attempt ended. ``seal`` is not None if ``how`` is ``sealed`` or ``storage``."""

    how: How
    line: str
    seal: Seal | None = None
    world_sha256: str = ""


class _StoppedError(Exception):
    """The driver stopped the cell, or its node is gone."""


def carry_out(
    job: Job,
    storage: Storage | None,
    give_world: GiveWorld,
    give_reader: GiveReader,
    stop: threading.Event,
    alive: Alive,
) -> End:
    """Run a cell. Never raises; the death of the calling process ends everything that was started.

    Args:
        job: the cell.
        storage: where the sealed files go; None: they stay in :func:`run_folder` until the driver fetches them.
        give_world: copies a data set that is not generated from a seed to this node.
        give_reader: starts a reader that may be shared, unless it runs.
        stop: when it is set, the run ends in order, and its log stays.
        alive: returns False if the node is gone although this process is not.
    """
    folder, message = cell_folder(job), ""
    try:
        _check_space(job.scratch)
        with _hold_lock(folder, stop) as lock:
            world, message = _world(job, give_world, stop, alive)
            sealed = _sealed_before(job)
            if sealed is None:
                for reader in shared_readers_of(job.cell):
                    give_reader(reader)
                end = _run(job, world, lock, stop, alive)
                if end.how != "sealed":
                    return End(end.how, end.line, None, message)
                sealed = end.seal
            assert sealed is not None
            if storage is not None:
                try:
                    storage.bring(run_folder(job), sealed)
                except StorageError as error:
                    return End("storage", str(error), sealed, message)
            return End("sealed", sealed.message, sealed, message)
    except _StoppedError:
        return End("stopped", "stopped", None, message)
    except (SweepError, DatasetError) as error:
        return End("disk_full" if _full(job.scratch) else "refused", str(error), None, message)
    except (OSError, ProcessError) as error:
        return End("disk_full" if _full(job.scratch) else "lost", f"{type(error).__name__}: {error}", None, message)


def cell_folder(job: Job) -> Path:
    """Return the folder of a cell on its node."""
    return job.scratch / "cells" / job.cell.name


def run_folder(job: Job) -> Path:
    """Return the folder of the cell's run."""
    return cell_folder(job) / "run"


def readers_folder(scratch: Path) -> Path:
    """Return the folder of a node, in its scratch folder, in which the readers that cells share are recorded."""
    return scratch / "readers"


def shared_readers_of(cell: Cell) -> list[ReaderConfig]:
    """Return the readers of a cell that are started once for all cells of a node."""
    readers = (ReaderConfig.model_validate(reader) for reader in cell.config["readers"])
    return [reader for reader in readers if may_be_shared(reader, timed=cell.timed)]


def forget(job: Job) -> None:
    """Remove a cell's files from its node, after they have been stored."""
    shutil.rmtree(cell_folder(job), ignore_errors=True)


# ------------------------------------------------------------------ the run


def _run(job: Job, world: Path, held: int, stop: threading.Event, alive: Alive) -> End:
    """Run a cell and its judges, and seal it if it is complete or may not be sent again."""
    folder, run = cell_folder(job), run_folder(job)
    config = folder / "run.yaml"  # JSON is YAML
    config.write_text(json.dumps({**job.cell.config, "dataset": str(world)}, indent=1), encoding="utf-8")
    output = folder / "output.txt"
    arguments = ["run", str(config), "--out", str(run), *(["--resume"] if (run / LOG_NAME).exists() else [])]
    began = time.monotonic()
    shared = {VARIABLE: str(readers_folder(job.scratch)) if shared_readers_of(job.cell) else ""}
    code = _child(python_module("memarena", *arguments), output, held, stop, alive, shared)
    wall_s, line = time.monotonic() - began, "" if code == _COMPLETE else _last_line(output)
    if code in (_COMPLETE, _INCOMPLETE):
        for judge in job.cell.judges:
            more = [*(["--model", judge.model] if judge.model else [])]
            more += ["--api-key-env", judge.api_key_env] if judge.api_key_env else []
            judging = ["judge", str(run), "--judge", judge.name, "--endpoint", judge.endpoint, *more]
            judged = _child(python_module("memarena", *judging), output, held, stop, alive)
            if judged != _COMPLETE:
                return End("open" if judged == _INCOMPLETE else "refused", f"judge {judge.name}: {_last_line(output)}")
    if code == _COMPLETE or (code == _INCOMPLETE and job.last_attempt):
        outcome: Literal["complete", "incomplete"] = "complete" if code == _COMPLETE else "incomplete"
        sealed = seal(job.cell.name, run, outcome, line, wall_s, job.machine)
        (folder / SEAL).write_text(sealed.model_dump_json(), encoding="utf-8")
        return End("sealed", line, sealed)
    if _full(job.scratch):
        return End("disk_full", line)
    if code == _INCOMPLETE:
        return End("open", line)
    return End("refused" if code == 2 else "lost", line or f"the run ended with exit code {code}")


def _sealed_before(job: Job) -> Seal | None:
    """Return the seal of a complete attempt whose driver or node ended before it was stored; None if there is none."""
    seal = read_seal(cell_folder(job))
    return seal if seal is not None and fault_of(run_folder(job), seal) is None else None


def _child(
    argv: list[str],
    output: Path,
    lock: int,
    stop: threading.Event,
    alive: Alive,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a command to its end and return its exit code. Raises _StoppedError after a wish to stop."""
    with GuardedProcess.start(argv, log_path=output, env=env, cwd=output.parent, grace_s=GRACE_S, held=lock) as child:
        while (code := child.poll()) is None:
            if stop.wait(POLL_S) or not alive():
                child.stop(GRACE_S)
                raise _StoppedError
        return code


def _last_line(output: Path) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines() if output.exists() else []
    messages = [line.strip().removeprefix("error: ") for line in lines if line.strip()]
    return messages[-1][:500] if messages else ""


# ------------------------------------------------------------------ its world


def _world(job: Job, give: GiveWorld, stop: threading.Event, alive: Alive) -> tuple[Path, str]:
    """Return the folder of the data set on this node and its hash; it is stored already, or generated, or fetched."""
    world = job.cell.world
    folder = job.scratch / "worlds" / world.key
    with _hold_lock(folder, stop) as lock:
        hash_file, files = folder / "sha256", folder / "files"
        if hash_file.exists():
            return files, hash_file.read_text(encoding="utf-8")
        if world.arguments:
            output = folder / "output.txt"
            # The simulator continues from the files of an earlier attempt.
            argv = python_module("memarena_masim", "generate", *world.arguments, "--out", str(files))
            code = _child([*argv, "--quiet", "--workers", "1"], output, lock, stop, alive)
            if code:
                raise SweepError(f"world {world.name}: {_last_line(output) or f'masim ended with {code}'}")
        else:
            shutil.rmtree(files, ignore_errors=True)
            give(world, files)
        with open_dataset(files) as dataset:
            sha256 = dataset.sha256
        if not world.arguments and sha256 != world.key:
            raise SweepError(f"world {world.name}: has changed since the sweep was planned ({world.dataset})")
        write_whole(hash_file, sha256)
        return files, sha256


# ------------------------------------------------------------------ locks and space


@contextmanager
def _hold_lock(folder: Path, stop: threading.Event) -> Iterator[int]:
    """Yield the descriptor of a lock on a folder; waits until the guard of an earlier attempt has released it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            lock = acquire_lock(folder.with_name(f"{folder.name}.lock"))
            break
        except BlockingIOError:
            if stop.wait(POLL_S):
                raise _StoppedError from None
            if time.monotonic() > deadline:
                raise OSError(f"{folder}: an earlier attempt still works there after {LOCK_WAIT_S:.0f} s") from None
    try:
        folder.mkdir(exist_ok=True)
        yield lock
    finally:
        os.close(lock)


def _check_space(scratch: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    if _full(scratch):
        raise OSError(28, "No space left on device", str(scratch))


def _full(scratch: Path) -> bool:
    with contextlib.suppress(OSError):
        return shutil.disk_usage(scratch).free < MIN_FREE_BYTES
    return False
