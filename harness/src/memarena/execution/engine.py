"""Executes a run: from a configuration to a log, or on from an incomplete log.

Order matters here. All input is checked before the log is created. After that, each fact is written to the log as it
happens, so that however the process ends, ``--resume`` can continue from the log.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from memarena_dataset.io.reading import Dataset, open_dataset
from memarena_dataset.text_golds import text_gold_warning
from memarena_dataset.validate import refuse_invalid

from memarena.execution.audit.life_audit import LifeAudits
from memarena.execution.backends.containers import ContainerHost, ContainerLimits, docker_client, image_facts
from memarena.execution.backends.isolation import ProcessIsolation, process_isolation
from memarena.execution.backends.manifests import BackendChoice, ContainerBackend, choose_backend
from memarena.execution.backends.overhead_baseline import measure_floor
from memarena.execution.backends.session import BackendSession
from memarena.execution.cells.cell import CellRun
from memarena.execution.cells.context import fixed_names
from memarena.execution.cells.setup import CellModels, CellSetup
from memarena.execution.display import Display, SilentDisplay
from memarena.execution.errors import CellError, InfraError, RunError
from memarena.execution.metering import CellPhases, RunMetering
from memarena.execution.models.model_pool import HelperPool, ReaderPool
from memarena.execution.models.reader_failures import ReaderFailures
from memarena.execution.models.services import ModelServices
from memarena.execution.outside_servers import outside_servers
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.plan import RunPlan, plan_run, versions
from memarena.execution.planning.preflight import (
    check_backends,
    check_loopback,
    check_out,
    check_space,
    check_windows,
    deadlines,
    effective_config,
    lock_out,
    logged_plan,
    make_environments,
    previous_progress,
)
from memarena.execution.planning.progress import CellProgress, RunProgress
from memarena.execution.planning.questions import evidence_texts
from memarena.execution.planning.request import EndReason, RunOutcome, RunRequest
from memarena.execution.stop_signals import StopSignals, remembered_signals
from memarena.gateway import Budget, Gateway, GatewayError
from memarena.gateway.tokens import random_token
from memarena.log.records import AnyRecord, Cell, GatewayCall, Problem, ReaderRef, RunEnded, RunResumed, RunStarted
from memarena.log.store import LogWriter, read_records


class _Sink:
    """Passes the gateway's records to the log; until the log exists, it stores them."""

    def __init__(self) -> None:
        self._log: LogWriter | None = None
        self._early: list[GatewayCall] = []
        self._mutex = threading.Lock()

    def __call__(self, call: GatewayCall) -> None:
        """Record a call, or store it until ``join``: before the log exists, another process may call and be refused."""
        with self._mutex:
            if self._log is None:
                self._early.append(call)
            else:
                self._log.append(call)

    def join(self, log: LogWriter) -> None:
        """Write to this log from now on, beginning with earlier calls."""
        with self._mutex:
            log.append(*self._early)
            self._log = log


def _hidden(config: RunConfig, out: Path) -> list[Path]:
    """Return the folders with gold or with answers, which are hidden from backends."""
    return [config.dataset, out, *([config.cache] if config.cache else [])]


def execute(request: RunRequest, display: Display | None = None) -> RunOutcome:
    """Execute or resume a run until it is complete, interrupted or aborted.

    Raises :class:`RunError`, DatasetError, LogError, ReaderError or GatewayError for bad input, each with one line.
    A KeyboardInterrupt stops the run with the outcome ``interrupted``.
    """
    display = display or SilentDisplay()
    with ExitStack() as stack:
        stop = stack.enter_context(remembered_signals())
        run_input = _read_input(stack, request)
        config, backends = run_input.config, run_input.backends
        check_space(request.out)
        check_loopback()
        # Before anything is metered, and before a model takes up memory.
        make_environments(backends, config, display.note)
        isolation = process_isolation(config.isolation, backends, _hidden(config, request.out))
        containers = _container_host(stack, config, backends)
        readers = stack.enter_context(
            ReaderPool(config.readers, request.out / "readers", request.reader_api_key, display.note)
        )
        helpers = stack.enter_context(HelperPool(config, request.out / "readers", readers.models()))
        metering = _begin_metering(stack, config, request.out)
        sink = _Sink()
        models = ModelServices(
            readers, helpers, _start_gateway(stack, run_input, request, (readers, helpers), sink, containers)
        )
        plan = _plan(run_input, request, models, containers)
        check_windows(plan)
        check_backends(plan, config, request, containers, isolation, display.note)
        metering.wait_ready()
        log = stack.enter_context(LogWriter(request.out, run_input.lock))
        # The gateway stops before the log closes, which its last records still go to.
        stack.callback(models.gateway.stop)
        work = _Work(request, config, run_input.dataset, plan, containers, isolation)
        return _Run(work, models, _Output(log, metering, display, stop)).execute(run_input.previous, sink)


@dataclass(frozen=True)
class _Input:
    """The input of a run, read and checked."""

    config: RunConfig
    previous: RunProgress | None
    """Progress of the run to be resumed, from its log; None for a new run."""
    dataset: Dataset
    backends: Sequence[BackendChoice]
    lock: int
    """File descriptor of the folder's lock."""


def _read_input(stack: ExitStack, request: RunRequest) -> _Input:
    """Read and check all input that can be refused before anything is started."""
    check_out(request)
    lock = _lock(stack, request.out) if request.resume else None
    previous = previous_progress(request)
    config = effective_config(request, previous)
    dataset = stack.enter_context(open_dataset(config.dataset, leave_out=config.leave_out))
    refuse_invalid(dataset)
    backends = [choose_backend(text) for text in config.backends]
    if lock is None:
        lock = _lock(stack, request.out)
        # Another run may have used the folder meanwhile.
        check_out(request)
    return _Input(config, previous, dataset, backends, lock)


def _begin_metering(stack: ExitStack, config: RunConfig, out: Path) -> RunMetering:
    metering = RunMetering(
        config.meters,
        out,
        system_channel=config.system_rail,
        idle_s=config.idle_s,
        not_because="a cache answers model calls" if config.cache else "",
    )
    stack.callback(metering.close)
    metering.begin()
    return metering


def _plan(run_input: _Input, request: RunRequest, models: ModelServices, containers: ContainerHost | None) -> RunPlan:
    """Return the plan of the run; that of the log for a resumed run."""
    refs: dict[str, ReaderRef] = {role: helper.ref for role, helper in models.helpers.items()}
    plan = plan_run(
        run_input.config,
        run_input.dataset,
        run_input.backends,
        models.readers.refs(),
        request.scoring_files,
        refs,
        request.configuration,
        {} if containers is None else containers.image_ids,
    )
    return plan if run_input.previous is None else logged_plan(run_input.previous, plan)


@dataclass(frozen=True)
class _Work:
    """The work of a run: its configuration and plan, and where its backends run."""

    request: RunRequest
    config: RunConfig
    dataset: Dataset
    plan: RunPlan
    containers: ContainerHost | None
    isolation: ProcessIsolation


@dataclass(frozen=True)
class _Output:
    """The outputs of a run: log, meters, display; and the signals that stop it."""

    log: LogWriter
    metering: RunMetering
    display: Display
    stop: StopSignals


class _Run:
    """A run whose input has been checked."""

    def __init__(self, work: _Work, models: ModelServices, output: _Output) -> None:
        self._work = work
        self._audits = LifeAudits(work.dataset)
        self._models = models
        self._log = output.log
        self._metering = output.metering
        self._display = output.display
        self._stop = output.stop
        self._reader_failures = ReaderFailures()

    def execute(self, previous: RunProgress | None, sink: _Sink) -> RunOutcome:
        """Begin or resume the run, execute its cells, and return how it ended."""
        log = self._log
        progress = previous or self._begin()
        if previous is not None:
            log.append(RunResumed(resumed_at=_now(), versions=versions()))
        sink.join(log)
        self._metering.log_start(log.append)
        if previous is not None:
            kinds = ("metering_started", "phase", "phase_measured")
            self._metering.settle_earlier(read_records(self._work.request.out, *kinds))
        reason: EndReason = "aborted"
        message = ""
        try:
            self._measure(progress)
            reason = "completed" if progress.open_questions() == 0 else "incomplete"
        except KeyboardInterrupt:
            reason, message = "interrupted", "stopped by the user"
        except (InfraError, RunError) as error:
            message = str(error)
            self._metering.finish()
            log.append(RunEnded(ended_at=_now(), reason=reason, message=message))
            raise
        finally:
            self._display.end()
        self._metering.finish()
        log.append(RunEnded(ended_at=_now(), reason=reason, message=message))
        failed_cells, unread_cells = progress.wholly_failed(), progress.unread()
        return RunOutcome(
            reason,
            progress.open_questions(),
            message,
            failed_cells,
            unread_cells,
            len(progress.cells),
            progress.saying_nothing(),
        )

    def _begin(self) -> RunProgress:
        manifest, questions = self._work.plan.manifest, self._work.plan.questions
        self._log.append(
            RunStarted(run_id=secrets.token_hex(8), started_at=_now(), manifest=manifest),
            *evidence_texts(self._work.dataset, questions),
            *questions,
        )
        return RunProgress(manifest, questions, {c.cell_id: CellProgress() for c in manifest.cells})

    def _measure(self, progress: RunProgress) -> None:
        """Execute the metered part: the preparation, and the cells with the machine at rest before and after them."""
        began = time.monotonic_ns()
        self._prepare(progress)
        self._metering.ended("prepare", began)
        if self._unfinished(progress):
            self._metering.idle("idle_before")
            self._go_through_cells(progress)
            self._metering.idle("idle_after")

    def _unfinished(self, progress: RunProgress) -> bool:
        return any(not self._is_done(progress.cells[cell.cell_id]) for cell in self._work.plan.manifest.cells)

    def _is_done(self, state: CellProgress) -> bool:
        """Whether a cell needs no more work: all questions have an outcome, and all days, measured too, came in."""
        all_have_outcome = len(state.finished) == len(self._work.plan.questions)
        return all_have_outcome and all(ego.horizon_reached or ego.gone for ego in state.egos.values())

    def _prepare(self, progress: RunProgress) -> None:
        """Probe the readers and measure the floor, before anything is timed."""
        self._models.prepare(self._work.config, self._log.append)
        first = next((c for c in self._work.plan.manifest.cells if not self._is_done(progress.cells[c.cell_id])), None)
        if first is not None:  # before the machine at rest is measured: a model at rest takes power too
            self._models.start(first.reader, self._work.config, self._log.append)
        if self._work.config.floor_samples and self._work.config.cache is None:
            self._log.append(measure_floor(self._work.request.out / "floor", self._work.config.floor_samples))

    def _go_through_cells(self, progress: RunProgress) -> None:
        """Run every cell that is not done; a cell that fails does not stop the others.

        Raises the first CellError if no cell has asked a question.
        """
        total = len(self._work.plan.manifest.cells) * len(self._work.plan.questions)
        self._display.begin(total, total - progress.open_questions())
        by_ego = sorted(self._work.plan.questions, key=lambda q: q.instance.ego_agent_id)
        egos = len({q.instance.ego_agent_id for q in by_ego})
        errors: list[CellError] = []
        deferred_note: str | None = None
        asked_any = False
        for cell in self._work.plan.manifest.cells:
            state = progress.cells[cell.cell_id]
            if self._is_done(state):
                continue
            check_space(self._work.request.out)
            self._start_reader(cell.reader)
            setup = self._setup(cell)
            host = _CellHost(self, cell, egos * self._work.dataset.day_count)
            backend = self._work.plan.backends[cell.backend]
            reader = self._models.readers.config(cell.reader)
            phases = self._metering.begin_cell(outside_servers(backend, reader, self._work.config))
            cell_dir = self._work.request.out / "cells" / cell.cell_id.replace("/", "-")
            session = BackendSession(
                backend,
                cell_dir,
                deadlines(self._work.config),
                self._work.request.security,
                settings=cell.backend_settings,
                restarts=self._work.config.backend_restarts,
                containers=self._work.containers,
                isolation=self._work.isolation,
            )
            try:
                CellRun(cell, session, setup, host, phases).run(by_ego, state)
                asked_any = True
            except CellError as error:
                message = f"the cell is interrupted: {error}"
                self._log.append(
                    Problem(at=_now(), where=cell.cell_id, cause="infra", message=message, cell_id=cell.cell_id)
                )
                if errors or asked_any:
                    self._display.note(f"{cell.cell_id}: {message}")
                else:
                    # Not shown yet: if this error ends the run, it would be printed twice.
                    deferred_note = f"{cell.cell_id}: {message}"
                errors.append(error)
            finally:
                # First the process: the next steps write to the log, whose failure may be why we are here.
                session.close()
                setup.models.reader_client.close()
                self._end_cell(cell, phases)
        # If no cell asked a question, in this process or an earlier one, the input is at fault.
        if errors and not asked_any and not any(cell.attempts for cell in progress.cells.values()):
            raise errors[0]
        if deferred_note is not None:
            self._display.note(deferred_note)
        # Last, since a fault of the input is shown as a single line, without these.
        if self._work.isolation.note:
            self._display.note(self._work.isolation.note)
        if warning := text_gold_warning(question.instance.gold for question in self._work.plan.questions):
            self._display.note(f"warning: {warning}")

    def _end_cell(self, cell: Cell, phases: CellPhases) -> None:
        """Log a cell's phases, even of a cell that failed, and note a sampler that has ended meanwhile."""
        self._metering.add(*phases.ended(cell.cell_id, self._metering.samples_file))
        if (failure := self._metering.failure()) is not None:
            self._log.append(Problem(at=_now(), where="meters", cause="infra", message=failure, cell_id=cell.cell_id))

    def _start_reader(self, name: str) -> None:
        """Start a cell's reader unless it runs; cells are ordered by reader, so that each starts once in a process."""
        running, began = self._models.readers.is_running(name), time.monotonic_ns()
        self._models.start(name, self._work.config, self._log.append)
        if not running:
            self._metering.ended("prepare", began)

    def _setup(self, cell: Cell) -> CellSetup:
        """Return the input of a cell."""
        work, models = self._work, self._models
        return CellSetup(
            dataset=work.dataset,
            audits=self._audits,
            models=CellModels(
                gateway=models.gateway,
                reader=models.begin_cell(cell.reader),
                helpers=models.helpers.upstreams(),
                reader_client=models.client(),
            ),
            config=work.config,
            id_key=bytes.fromhex(work.plan.manifest.id_key_hex),
            cell_token=work.request.cell_token,
        )

    def append(self, *records: AnyRecord) -> None:
        """Write records to the log. Raises KeyboardInterrupt after a signal that asked the run to stop."""
        self._log.append(*records)
        self._stop.check()

    def note_attempts(self, cell: Cell, records: Sequence[AnyRecord]) -> None:
        """Raise InfraError if a cell's reader fails too many questions in a row."""
        for record in records:
            if record.kind == "asked":
                self._reader_failures.note(cell.reader, record)

    def heal_reader(self, name: str) -> None:
        """After an infrastructure failure, restart and probe the reader if need be; raise InfraError if that fails."""
        check_space(self._work.request.out)
        self._models.heal(name, self._log.append)

    def cell_opened(self, cell: Cell, days: int) -> None:
        """Note that a cell's backend runs and has been checked; it will ingest ``days`` days."""
        self._display.cell(cell.cell_id, days)

    def advance(self, what: Literal["question", "day"]) -> None:
        """Note that a question has an outcome, or a day was ingested."""
        if what == "day":
            check_space(self._work.request.out)
        self._display.advance(what)


@dataclass(frozen=True)
class _CellHost:
    """The interface of a run to one of its cells (:class:`~memarena.execution.cells.setup.CellHost`)."""

    run: _Run
    cell: Cell
    days: int

    def append(self, *records: AnyRecord) -> None:
        self.run.append(*records)
        self.run.note_attempts(self.cell, records)

    def heal_reader(self) -> None:
        self.run.heal_reader(self.cell.reader)

    def opened(self) -> None:
        self.run.cell_opened(self.cell, self.days)

    def advance(self, what: Literal["question", "day"]) -> None:
        self.run.advance(what)


def _lock(stack: ExitStack, out: Path) -> int:
    """Lock the run's folder until everything that was started has ended; return the descriptor."""
    lock = lock_out(out)
    stack.callback(os.close, lock)
    return lock


def _container_host(stack: ExitStack, config: RunConfig, backends: Sequence[BackendChoice]) -> ContainerHost | None:
    """Return Docker for the run's containers, None if it has none; images are checked before anything is started."""
    images = [backend for backend in backends if isinstance(backend, ContainerBackend)]
    if not images:
        return None
    client = docker_client()
    image_ids = {backend.name: image_facts(client, backend).image_id for backend in images}
    limits = ContainerLimits(config.backend_memory, config.backend_pids, config.backend_cpus)
    return stack.enter_context(ContainerHost(client, image_ids, limits))


def _start_gateway(
    stack: ExitStack,
    run_input: _Input,
    request: RunRequest,
    pools: tuple[ReaderPool, HelperPool],
    sink: _Sink,
    containers: ContainerHost | None,
) -> Gateway:
    """Start the gateway, and open a cell's token that is known in advance."""
    config, (readers, helpers) = run_input.config, pools
    # Containers reach this machine on their network's address; no other machine can reach that one.
    on_network = containers is not None and config.gateway_host == RunConfig.model_fields["gateway_host"].default
    host = containers.gateway_host if containers is not None and on_network else config.gateway_host
    gateway = Gateway(
        [*(reader.upstream for reader in readers.readers()), *helpers.upstreams()],
        sink,
        host=host,
        port=config.gateway_port,
        advertised_url=config.gateway_url,
        keep_texts=config.keep_texts,
        budgets={phase: Budget(budget.calls, budget.tokens) for phase, budget in config.budgets.items()},
        cache_dir=config.cache,
        token_factory=_token_factory(config.id_key) if config.id_key else random_token,
    )
    try:
        gateway.start()
    except GatewayError as error:
        raise RunError(f"--gateway-host {config.gateway_host} --gateway-port {config.gateway_port}: {error}") from error
    stack.callback(gateway.stop)
    if request.cell_token is not None:
        # Before any backend is called: a server that tries its model when it starts cannot start without.
        gateway.open_cell(request.cell_token, None, fixed_names(readers.models()[0], helpers.upstreams()))
    return gateway


def _token_factory(key_hex: str) -> Callable[[], str]:
    """Return a factory of tokens derived from the key, for runs whose requests must be the same bytes each time."""
    counter = itertools.count()
    key = bytes.fromhex(key_hex)
    return lambda: hmac.new(key, f"token {next(counter)}".encode(), hashlib.sha256).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
