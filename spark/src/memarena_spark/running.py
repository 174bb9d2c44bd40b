"""Does a certification run: lock, preflight, conformance, thermal gate, the run itself, canary, and a record of all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from memarena import judging
from memarena.evaluation import judge_run
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.engine import execute
from memarena.execution.errors import InfraError
from memarena.execution.planning.plan import choose_questions
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.log.base import Record
from memarena_dataset.io.reading import open_dataset

from memarena_spark.announcing import NAME as ANNOUNCED
from memarena_spark.announcing import end, open_announcement, start
from memarena_spark.backends import BackendCode, ConformanceReport, code_of, hold_to_contract
from memarena_spark.code import own_code
from memarena_spark.errors import Refusal, RefusedError, SparkError
from memarena_spark.facts import CanaryResult, Unknown
from memarena_spark.files import canonical_json, write_whole
from memarena_spark.fresh.commitment import BEACON, COMMITMENT
from memarena_spark.fresh.world import check_world
from memarena_spark.locking import Holder, left_note, lock_path, node_lock, now
from memarena_spark.node import Node
from memarena_spark.plans import LoadedPlan, effective_run
from memarena_spark.preflight import Preflight, preflight, still_well
from memarena_spark.thermal import ThermalGate, check_thermal, wait_until_stable
from memarena_spark.watching.records import ReaderWatch
from memarena_spark.watching.watch import Watch

RECORD = "record.json"
PLAN = "plan.yaml"
PROFILE = "profile.toml"
RUN = "run"
FRESH = "fresh"

Say = Callable[[str], None]


class Span(Record):
    """A span of the machine's monotonic clock, in ns."""

    start_ns: int
    end_ns: int


class RunRecord(Record):
    """The facts around a run: checks, times, readers. Written once, when it is over; a run that was killed has none."""

    record_version: Literal[2] = 2
    spark_version: str
    code_sha256: dict[str, str]
    """SHA-256 of our own packages by name, as they were when the run was over."""
    started_at: str
    ended_at: str
    left_by: Holder | None
    """A holder of the node's lock that died before this run began."""
    preflight: Preflight
    conformance: tuple[ConformanceReport, ...]
    thermal: ThermalGate
    span: Span
    """The whole run, from before its first process to after its last; its log holds the phases within."""
    readers: tuple[ReaderWatch, ...] | Unknown
    """Observations of the processes behind the readers, by :mod:`memarena_spark.watching`."""
    outcome: Literal["completed", "incomplete", "interrupted", "aborted"]
    left: int
    """Number of questions without an outcome."""
    message: str
    code_after: dict[str, BackendCode]
    changed: tuple[Refusal, ...]
    """Conditions of preflight that did not hold when the run was over."""
    canary_after: CanaryResult | Unknown


def run_certification(
    node: Node,
    plan: LoadedPlan,
    out: Path,
    say: Say,
    reader_api_key: str | None = None,
    announcements: Path | None = None,
    fresh: Path | None = None,
) -> RunRecord:
    """Do a certification run into the new folder ``out``.

    ``announcements``: the file in which it was announced; None: it was not. ``fresh``: the folder of the commitment to
    the data set's world; None: there is no commitment.

    Raises :class:`~memarena_spark.errors.RefusedError` with every reason why it is refused,
    :class:`~memarena_spark.errors.SparkError` for bad input, and what :func:`memarena.execution.engine.execute` raises.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SparkError(f"--out {out}: expected a new or empty folder")
    _check_input(plan)
    if fresh is not None:
        check_world(fresh, plan.plan.run.dataset)
    with node_lock(lock_path(), node.identity().boot_id, out) as left_by:
        if left_by is not None:
            say(left_note(left_by))
        announcement = open_announcement(announcements, plan) if announcements is not None else None
        started_at = now()
        gates = _pass_gates(node, plan, fresh, out, say)
        if announcements is not None and announcement is not None:
            start(announcements, announcement)
        say("run")
        watched = _execute_watched(plan, out, reader_api_key)
        if watched.outcome.reason == "completed":
            judge_run(out / RUN)
        say("canary after the run")
        record = RunRecord(
            spark_version=version("memarena-spark"),
            code_sha256=own_code(),
            started_at=started_at,
            ended_at=now(),
            left_by=left_by,
            preflight=gates.preflight,
            conformance=gates.contracts,
            thermal=gates.thermal,
            span=watched.span,
            readers=watched.readers,
            outcome=watched.outcome.reason,
            left=watched.outcome.left,
            message=watched.outcome.message,
            code_after={b.name: code_of(b, node) for b in map(choose_backend, plan.plan.run.backends)},
            changed=still_well(node, plan),
            canary_after=node.canary(plan.profile.canary),
        )
        if announcements is not None and announcement is not None:
            end(announcements, announcement, record.outcome, started_at)
            write_whole(out / ANNOUNCED, announcements.read_bytes())
        write_whole(out / RECORD, canonical_json(record))
        return record


@dataclass(frozen=True)
class _Gates:
    """The results of the checks before the run, all of which passed."""

    preflight: Preflight
    contracts: tuple[ConformanceReport, ...]
    thermal: ThermalGate


def _pass_gates(node: Node, plan: LoadedPlan, fresh: Path | None, out: Path, say: Say) -> _Gates:
    """Run preflight, then conformance and thermal gate. The run's input is written between; a refusal removes it."""
    say(f"preflight for {plan.profile.name}")
    result = preflight(node, plan, out)
    if not result.passed:
        raise RefusedError("preflight", result.refusals)
    _write_input(plan, fresh, out)
    try:
        contracts, thermal = _last_gates(node, plan, out, say)
    except RefusedError:
        _discard(out)
        raise
    return _Gates(result, contracts, thermal)


@dataclass(frozen=True)
class _Watched:
    """The run itself: its outcome, its time, and the observations of its readers' processes."""

    outcome: RunOutcome
    span: Span
    readers: tuple[ReaderWatch, ...] | Unknown


def _execute_watched(plan: LoadedPlan, out: Path, reader_api_key: str | None) -> _Watched:
    start_ns = time.monotonic_ns()
    with Watch(out, RUN) as watch:
        outcome = _execute(plan, out, reader_api_key)
        span = Span(start_ns=start_ns, end_ns=time.monotonic_ns())
        return _Watched(outcome, span, watch.result())


def _check_input(plan: LoadedPlan) -> None:
    """Raise for wrong settings of the run at once, not only after the checks of the node."""
    for name in plan.plan.run.backends:
        backend = choose_backend(name)
        environment = backend.environment if isinstance(backend, LaunchableBackend) else None
        if environment is not None and (missing := environment.missing()) is not None:
            # A backend's environment must exist before: nothing is installed between preflight and run.
            raise SparkError(f"--backend {name}: cannot be started: {missing}")
    with open_dataset(plan.plan.run.dataset) as dataset:
        choose_questions(plan.plan.run, dataset)


def _write_input(plan: LoadedPlan, fresh: Path | None, out: Path) -> None:
    """Copy plan and profile, and for a fresh world commitment and beacon, as they are when the run begins."""
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / PLAN, plan.plan_text.encode())
    write_whole(out / PROFILE, plan.profile_text.encode())
    if fresh is not None:
        for name in (COMMITMENT, BEACON):
            write_whole(out / FRESH / name, (fresh / name).read_bytes())


def _last_gates(node: Node, plan: LoadedPlan, out: Path, say: Say) -> tuple[tuple[ConformanceReport, ...], ThermalGate]:
    """Run the conformance suite for every backend, then wait until the machine, which that warms, is stable again."""
    contracts = []
    for name in plan.plan.run.backends:
        say(f"conformance of {name}")
        contracts.append(hold_to_contract(name, node, out, plan.plan))
    say("waiting for a stable temperature")
    thermal = wait_until_stable(node, plan.profile.thermal)
    if refusals := tuple(check_thermal(thermal, plan.profile.thermal)):
        raise RefusedError("thermal gate", refusals)
    return tuple(contracts), thermal


def _execute(plan: LoadedPlan, out: Path, reader_api_key: str | None) -> RunOutcome:
    request = RunRequest(
        out=out / RUN,
        config=effective_run(plan.plan, plan.profile),
        reader_api_key=reader_api_key,
        scoring_files=(judging.data_files,),
    )
    try:
        return execute(request)
    except InfraError as error:
        return RunOutcome("aborted", 0, str(error))


def _discard(out: Path) -> None:
    """Remove the files of a refused run."""
    for name in (PLAN, PROFILE):
        (out / name).unlink(missing_ok=True)
    for folder in ("conformance", FRESH):
        shutil.rmtree(out / folder, ignore_errors=True)
