"""``memarena sweep``: carries out the cells of a sweep, here or on a cluster, or with --plan estimates their times."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import echo, note
from memarena_dataset.programs import EXIT_INCOMPLETE, EXIT_INTERRUPTED

from memarena.cli.completion import configurations, one_of
from memarena.cli.records import command_of
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.cli.setting_flags import FlagValues, SettingsOf
from memarena.configs import read_named
from memarena.execution.backends.isolation import hide_arguments
from memarena.sweep.cells import Cell, cells_of
from memarena.sweep.configured import sweep_of
from memarena.sweep.driver import Driver, SweepOutcome, begin
from memarena.sweep.errors import SweepError
from memarena.sweep.estimates import Estimator, simulate
from memarena.sweep.executors.base import Executor
from memarena.sweep.executors.local import LocalExecutor
from memarena.sweep.executors.ray import RayExecutor
from memarena.sweep.manifest import ManifestWriter, is_sweep, read_manifest
from memarena.sweep.placement import Node, fits
from memarena.sweep.plan import SweepFile, check_memories, read_sweep
from memarena.sweep.storage import Storage, storage_of

EXECUTORS = ("local", "ray")


@dataclass(frozen=True, kw_only=True)
class SweepFlags:
    """The flags of ``memarena sweep``. ``settings`` override fields of a named configuration."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="TOML: worlds, memories, readers, seeds. Or a named configuration (memarena run --list), whose cells "
            "the flags of a run complete: --dataset, --reader, …",
            autocompletion=configurations,
        ),
    ]
    out: Annotated[
        Path | None, typer.Option(help="Folder of the sweep: its manifest, and the sealed cells without --storage.")
    ] = None
    executor: Annotated[
        str, typer.Option(help="local: processes of this machine; ray: a cluster.", autocompletion=one_of(EXECUTORS))
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(help="ray: HOST:PORT of the cluster's head, or auto. Default: a separate Ray on this machine."),
    ] = None
    storage: Annotated[
        str | None, typer.Option(help="URL that sealed cells are brought to: s3://…, gs://…, file:///shared/folder.")
    ] = None
    cores: Annotated[int | None, typer.Option(min=1, help="Cores that cells may take here. Default: all.")] = None
    gpus: Annotated[float, typer.Option(min=0, help="GPUs that cells may take here.")] = 0.0
    scratch: Annotated[
        Path | None,
        typer.Option(
            help="Folder on each node for worlds and unfinished cells. Default: OUT/scratch, ray: the node's own."
        ),
    ] = None
    timed: Annotated[
        bool, typer.Option("--timed", help="With NAME: times count, so that a cell has its node to itself.")
    ] = False
    plan: Annotated[bool, typer.Option("--plan", help="Print the cells and what they would take, do nothing.")] = False
    simulated: Annotated[
        list[int] | None,
        typer.Option("--simulate", min=1, metavar="NODES", help="With --plan: the time on so many nodes; repeatable."),
    ] = None
    times: Annotated[
        list[Path] | None,
        typer.Option(metavar="SWEEP", help="With --plan: folder of a sweep whose cells tell times; repeatable."),
    ] = None
    settings: Annotated[FlagValues, SettingsOf("run", panels=True)] = field(default_factory=dict)


def _sweep(flags: SweepFlags) -> None:
    """Carry out many runs of one cell each, here or on several machines; the same command continues a sweep.

    Ctrl-C and kills leave everything resumable. Exit code 3: some cells are not sealed, or have open questions.

    Examples:
      memarena sweep grid.toml --out grid
      memarena sweep main-grid --dataset DIR --reader sglang:A,sglang:B
      --embedder embedded --out grid
    """
    sweep_file = _chosen(flags)
    try:
        cells = cells_of(sweep_file)
    except SweepError as error:
        raise SweepError(f"{flags.name}: {error}") from error
    if flags.plan:
        if flags.executor != "ray":  # whose nodes may know other memories
            check_memories(sweep_file, flags.name)
        _print_plan(cells, _estimator(flags.times or [], flags.out), flags.simulated or [], flags.cores)
        if flags.executor == "local":
            _print_unfit(cells, Node("local", flags.cores or os.cpu_count() or 1, flags.gpus))
        return
    out = _checked_out(flags)
    if sys.platform == "linux":  # as in a run: worlds with their gold lie in these folders
        dataset = flags.settings.get("dataset")
        storage = Path(flags.storage) if flags.storage else None
        hide_arguments([Path(flags.name), out, flags.scratch, storage, dataset if isinstance(dataset, Path) else None])
    with ManifestWriter(out) as manifest:
        sweep_id = begin(manifest, sweep_file, cells, flags.storage)
        target = storage_of(out, flags.storage)
        where: Executor
        if flags.executor == "ray":
            scratch = flags.scratch and flags.scratch.absolute()
            where = RayExecutor(flags.address, target, sweep_id, note, scratch, flags.cores, flags.gpus)
        else:
            cores = flags.cores or os.cpu_count() or 1
            where = LocalExecutor(flags.scratch or out / "scratch", target, cores, flags.gpus)
        with where:
            outcome = _drive(manifest, sweep_file, cells, target, where)
    _finish(outcome, len(cells), out)


sweep = command_of(SweepFlags, _sweep)


def _chosen(flags: SweepFlags) -> SweepFile:
    """Return the sweep of a file, or of a named configuration and flags. Raises SweepError or RunError."""
    path = Path(flags.name)
    if path.suffix == ".toml" or "/" in flags.name or path.is_file():
        if flags.settings or flags.timed:
            used = "timed" if flags.timed else min(flags.settings).replace("_", "-")
            raise SweepError(f"--{used}: goes with a named configuration; {flags.name} is a file, which says it itself")
        return read_sweep(path)
    config, configuration = run_settings(RunFlags(name=flags.name, settings=flags.settings))
    assert config is not None and configuration is not None
    return sweep_of(config, read_named(configuration.name).title, timed=flags.timed)


def _checked_out(flags: SweepFlags) -> Path:
    """Return the folder of the sweep. Raises SweepError for flags that exclude each other."""
    if flags.simulated or flags.times:
        raise SweepError(f"{'--simulate' if flags.simulated else '--times'}: goes with --plan")
    if flags.out is None:
        raise SweepError("--out: expected a folder for the sweep")
    if flags.executor not in EXECUTORS:
        raise SweepError(f"--executor {flags.executor}: expected one of {', '.join(EXECUTORS)}")
    if flags.executor != "ray" and flags.address is not None:
        raise SweepError("--address: goes with --executor ray")
    if flags.address is not None and (flags.cores or flags.gpus):
        raise SweepError("--cores, --gpus: a cluster's nodes say what they have")
    return flags.out


def _drive(
    manifest: ManifestWriter, file: SweepFile, cells: tuple[Cell, ...], target: Storage, where: Executor
) -> SweepOutcome:
    """Carry out the cells; signals stop it between steps."""
    with noted_signals() as stop:
        driver = Driver(
            manifest,
            where,
            target,
            cells,
            attempts=file.attempts,
            node_faults=file.node_faults,
            say=note,
            wants_stop=stop.is_set,
            seconds_of=Estimator([manifest.state]).seconds,
        )
        return driver.run()


def _finish(outcome: SweepOutcome, cells: int, out: Path) -> None:
    """Print how the sweep ended, and exit with its code unless it is complete."""
    for word, names in (
        ("questions left open", outcome.incomplete),
        ("refused", outcome.refused),
        ("given up", outcome.given_up),
    ):
        for name, reason in names.items():
            note(f"{word}: {name}: {reason}")
    note(f"{outcome.sealed} of {cells} cells sealed; memarena report {out}")
    if outcome.stopped:
        note("stopped; the same command goes on")
        sys.exit(EXIT_INTERRUPTED)
    if not outcome.complete:
        sys.exit(EXIT_INCOMPLETE)


# ------------------------------------------------------------------ --plan


def _estimator(times: Sequence[Path], out: Path | None) -> Estimator:
    for folder in times:
        if not is_sweep(folder):
            reason = "holds no sweep" if folder.is_dir() else "no such folder"
            raise SweepError(f"--times {folder}: {reason}; the folder of a sweep is expected")
    folders = [*times, *([out] if out is not None and is_sweep(out) else [])]
    return Estimator(read_manifest(folder) for folder in folders)


def _print_unfit(cells: Sequence[Cell], here: Node) -> None:
    """Print how many cells need more than this machine has; the sweep may be for a larger one."""
    if unfit := sum(not fits(cell, here, ()) for cell in cells):
        echo(f"{unfit} cells need more than this machine gives ({here.cores} cores, {here.gpus:g} GPUs)")


def _print_plan(cells: Sequence[Cell], estimator: Estimator, simulated: Sequence[int], cores: int | None) -> None:
    """Print expected times of cells, and for each number of nodes the simulated duration of the sweep."""
    seconds = {cell.name: estimator.seconds(cell) for cell in cells}
    for cell in cells:
        cell_seconds = seconds[cell.name]
        echo(f"{cell.name}\t{'-' if cell_seconds is None else f'{cell_seconds:.1f} s'}")
    known_seconds = [value for value in seconds.values() if value is not None]
    timed = sum(cell.timed for cell in cells)
    echo(f"{len(cells)} cells, {timed} of them timed")
    if len(known_seconds) < len(cells):
        echo(f"time: not known of {len(cells) - len(known_seconds)} cells; --times SWEEP names one that has such cells")
        if simulated:
            raise SweepError("--simulate: needs a time of every cell")
        return
    echo(f"time: {_hours(sum(known_seconds))} of cells, one after the other")
    for nodes in simulated:
        cluster = [Node(f"node-{number}", cores or os.cpu_count() or 1) for number in range(1, nodes + 1)]
        try:
            schedule = simulate(cells, lambda cell: seconds[cell.name] or 0.0, cluster)
        except ValueError as error:
            raise SweepError(f"--simulate {nodes}: {error}") from error
        echo(
            f"{nodes} nodes of {cluster[0].cores} cores: {_hours(schedule.wall_s)}, "
            f"{schedule.core_share:.0%} of the cores taken"
        )


def _hours(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# ------------------------------------------------------------------ signals


@contextmanager
def noted_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set instead of interrupting; the driver checks it between steps."""
    stop = threading.Event()
    previous = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
