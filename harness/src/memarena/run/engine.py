"""Running it all: from a configuration to a log, and on with a log that was left half-way.

Order matters here. Everything that can be wrong with the input is looked at before the log is made; after that, every
fact goes to the log as it happens, and whatever ends the process leaves a log that ``--resume`` goes on with.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial

from memarena_answering import ReaderClient

from memarena.dataset.reading import Dataset, open_dataset
from memarena.gateway import Budget, Gateway, GatewayError, Upstream
from memarena.gateway.tokens import random_token
from memarena.log.records import Cell, GatewayCall, Problem, ReaderRef, RunEnded, RunResumed, RunStarted
from memarena.log.store import LogWriter, read_records
from memarena.readers import ReaderError, probe
from memarena.run.cell import CellRun, CellTools
from memarena.run.config import RunConfig
from memarena.run.containers import ContainerHost, docker_client, image_facts
from memarena.run.context import fixed_names
from memarena.run.display import Display, SilentDisplay
from memarena.run.errors import InfraError, RunError
from memarena.run.floor import measure_floor
from memarena.run.link import BackendLink
from memarena.run.manifests import BackendChoice, ContainerBackend, choose_backend
from memarena.run.metering import CellPhases, RunMetering
from memarena.run.plan import RunPlan, plan_run, versions
from memarena.run.pool import HelperPool, ReaderPool
from memarena.run.preflight import (
    check_backends,
    check_space,
    check_windows,
    check_writable,
    deadlines,
    logged_plan,
    previous_progress,
    settled_config,
)
from memarena.run.preparing import prepare_reader
from memarena.run.questions import evidence_texts
from memarena.run.request import EndReason, RunOutcome, RunRequest
from memarena.run.state import CellProgress, RunProgress


class _Sink:
    """Where the gateway's records go. The gateway starts before the log is made, so the way is joined up later."""

    def __init__(self) -> None:
        self._log: LogWriter | None = None
        self._early: list[GatewayCall] = []
        self._mutex = threading.Lock()

    def __call__(self, call: GatewayCall) -> None:
        """Record a call. One that comes before the log exists (somebody else's, and refused) waits for it."""
        with self._mutex:
            if self._log is None:
                self._early.append(call)
            else:
                self._log.append(call)

    def join(self, log: LogWriter) -> None:
        """Write to this log from now on, beginning with what has been waiting."""
        with self._mutex:
            log.append(*self._early)
            self._log = log


def execute(request: RunRequest, display: Display | None = None) -> RunOutcome:
    """Do a run, or go on with one, until it is complete, interrupted or broken.

    Raises :class:`RunError`, DatasetError, LogError, ReaderError or GatewayError for bad input, each with one line.
    KeyboardInterrupt is taken as the wish to stop: the outcome then says ``interrupted``.
    """
    display = display or SilentDisplay()
    with ExitStack() as stack:
        previous = previous_progress(request)
        config = settled_config(request, previous)
        dataset = stack.enter_context(open_dataset(config.dataset))
        backends = [choose_backend(text) for text in config.backends]
        check_writable(request.out)
        check_space(request.out)
        containers = _container_host(stack, config, backends)
        readers = stack.enter_context(ReaderPool(config.readers, request.out / "readers", request.reader_api_key))
        helpers = stack.enter_context(HelperPool(config, request.out / "readers", readers.readers()))
        metering = RunMetering(
            config.meters,
            request.out,
            system_channel=config.system_rail,
            idle_s=config.idle_s,
            not_because="a cache answers model calls" if config.cache else "",
        )
        stack.callback(metering.close)
        metering.begin()
        sink = _Sink()
        upstreams = [*(r.upstream for r in readers.readers()), *helpers.upstreams()]
        gateway = _start_gateway(stack, config, upstreams, sink, containers)
        if request.cell_token is not None:
            # Before any backend is asked for: a server that tries its model when it starts cannot start without.
            names = fixed_names(readers.readers()[0].upstream.model, helpers.upstreams())
            gateway.open_cell(request.cell_token, None, names)
        refs: dict[str, ReaderRef] = {role: helper.ref for role, helper in helpers.items()}
        plan = plan_run(
            config,
            dataset,
            backends,
            [r.ref for r in readers.readers()],
            request.scoring_files,
            refs,
            request.configuration,
            {} if containers is None else containers.image_ids,
        )
        if previous is not None:
            plan = logged_plan(previous, plan)
        check_windows(plan)
        check_backends(plan, config, request, containers)
        metering.wait_ready()
        log = stack.enter_context(LogWriter(request.out))
        # The gateway stops before the log closes: its last records still have a place to go.
        stack.callback(gateway.stop)
        run = _Run(request, config, dataset, plan, readers, helpers, gateway, metering, log, display, containers)
        return run.execute(previous, sink)


class _Run:
    """A run whose input is known to be good."""

    def __init__(
        self,
        request: RunRequest,
        config: RunConfig,
        dataset: Dataset,
        plan: RunPlan,
        readers: ReaderPool,
        helpers: HelperPool,
        gateway: Gateway,
        metering: RunMetering,
        log: LogWriter,
        display: Display,
        containers: ContainerHost | None,
    ) -> None:
        self._containers = containers
        self._request = request
        self._config = config
        self._dataset = dataset
        self._plan = plan
        self._readers = readers
        self._helpers = helpers
        self._gateway = gateway
        self._metering = metering
        self._log = log
        self._display = display

    def execute(self, previous: RunProgress | None, sink: _Sink) -> RunOutcome:
        """Begin or go on, go through the cells, say how it ended."""
        log = self._log
        progress = previous or self._begin()
        if previous is not None:
            log.append(RunResumed(resumed_at=_now(), versions=versions()))
        sink.join(log)
        self._metering.log_start(log.append)
        if previous is not None:
            kinds = ("metering_started", "phase", "phase_measured")
            self._metering.settle_earlier(read_records(self._request.out, *kinds))
        reason: EndReason = "aborted"
        message = ""
        try:
            self._measure(progress)
            reason = "completed" if progress.left() == 0 else "incomplete"
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
        return RunOutcome(reason, progress.left(), message)

    def _begin(self) -> RunProgress:
        manifest, questions = self._plan.manifest, self._plan.questions
        self._log.append(
            RunStarted(run_id=secrets.token_hex(8), started_at=_now(), manifest=manifest),
            *evidence_texts(self._dataset, questions),
            *questions,
        )
        return RunProgress(manifest, questions, {c.cell_id: CellProgress() for c in manifest.cells})

    def _measure(self, progress: RunProgress) -> None:
        """Everything that is metered: the preparation, the cells, and the machine at rest before and after them."""
        began = time.monotonic_ns()
        self._prepare()
        self._metering.ended("prepare", began)
        if self._unfinished(progress):
            self._metering.idle("idle_before")
            self._go_through_cells(progress)
            self._metering.idle("idle_after")

    def _unfinished(self, progress: RunProgress) -> bool:
        return any(not self._is_done(progress.cells[cell.cell_id]) for cell in self._plan.manifest.cells)

    def _is_done(self, state: CellProgress) -> bool:
        settled = len(state.settled) == len(self._plan.questions)
        return settled and all(ego.horizon_reached or ego.gone for ego in state.egos.values())

    def _prepare(self) -> None:
        """Probe the readers and measure the floor, before anything is timed."""
        for reader in self._readers.readers():
            configured = self._readers.config(reader.ref.name)
            prepare_reader(reader, configured, self._config, self._gateway, self._log.append)
        if self._config.floor_samples and self._config.cache is None:
            self._log.append(measure_floor(self._request.out / "floor", self._config.floor_samples))

    def _go_through_cells(self, progress: RunProgress) -> None:
        total = len(self._plan.manifest.cells) * len(self._plan.questions)
        self._display.begin(total, total - progress.left())
        by_ego = sorted(self._plan.questions, key=lambda q: q.instance.ego_agent_id)
        egos = len({q.instance.ego_agent_id for q in by_ego})
        for cell in self._plan.manifest.cells:
            state = progress.cells[cell.cell_id]
            if self._is_done(state):
                continue
            check_space(self._request.out)
            reader = self._readers[cell.reader]
            tools = CellTools(
                dataset=self._dataset,
                gateway=self._gateway,
                reader=reader,
                helpers=self._helpers.upstreams(),
                reader_client=ReaderClient(self._gateway.base_url),
                append=self._log.append,
                heal_reader=partial(self._heal, cell.reader),
                opened=partial(self._display.cell, cell.cell_id, egos * self._dataset.day_count),
                advance=self._advance,
                answer_timeout_s=self._config.deadlines_s.answer,
                id_key=bytes.fromhex(self._plan.manifest.id_key_hex),
                infra_retries=self._config.infra_retries,
                central_reading=self._config.central_reading,
                search_days=self._config.search_days,
                searches=self._config.searches,
                all_days_first=self._config.protocol == "end_of_horizon",
                after_crash=self._config.after_crash,
                lost_retries=self._config.lost_retries,
                cell_token=self._request.cell_token,
            )
            try:
                reader.begin_cell()
            except ReaderError as error:
                raise InfraError(str(error)) from error
            phases = CellPhases()
            cell_dir = self._request.out / "cells" / cell.cell_id.replace("/", "-")
            link = BackendLink(
                self._plan.backends[cell.backend],
                cell_dir,
                deadlines(self._config),
                self._request.security,
                settings=cell.backend_settings,
                restarts=self._config.backend_restarts,
                containers=self._containers,
            )
            try:
                CellRun(cell, link, tools, phases).run(by_ego, state)
            finally:
                # First the process: what follows writes to the log, which may be why we are here.
                link.close()
                self._end_cell(cell, phases)

    def _end_cell(self, cell: Cell, phases: CellPhases) -> None:
        """Log a cell's phases, also where it broke off, and a sampler that has ended meanwhile."""
        self._metering.add(*phases.ended(cell.cell_id, self._metering.samples_file))
        if (failure := self._metering.failure()) is not None:
            self._log.append(Problem(at=_now(), where="meters", cause="infra", message=failure, cell_id=cell.cell_id))

    def _advance(self, what: str) -> None:
        if what == "day":
            check_space(self._request.out)
        self._display.advance(what)

    def _heal(self, name: str) -> None:
        """After a failure of ours: the reader must be alive and sane again, else the run stops here."""
        check_space(self._request.out)
        self._heal_helpers()
        reader = self._readers[name]
        if not reader.alive():
            ended = f"the reader's process ended and is started again: {reader.last_words()}"
            self._log.append(Problem(at=_now(), where=f"reader {name}", cause="infra", message=ended))
            try:
                reader = self._readers.restart(name)
            except ReaderError as error:
                raise InfraError(f"the reader did not come back: {error}") from error
            self._gateway.replace_upstream(reader.upstream)
        result = probe(reader, self._gateway)
        if not result.ok:
            self._log.append(result)
            raise InfraError(f"reader {name}: {result.message}")

    def _heal_helpers(self) -> None:
        for role, helper in self._helpers.items():
            if helper.alive():
                continue
            ended = f"its process ended and is started again: {helper.last_words()}"
            self._log.append(Problem(at=_now(), where=f"{role} {helper.ref.name}", cause="infra", message=ended))
            try:
                self._gateway.replace_upstream(self._helpers.restart(role).upstream)
            except ReaderError as error:
                raise InfraError(f"the {role} did not come back: {error}") from error


def _container_host(stack: ExitStack, config: RunConfig, backends: Sequence[BackendChoice]) -> ContainerHost | None:
    """Docker for the run's containers, None where it has none; every image is looked at before anything is started."""
    images = [backend for backend in backends if isinstance(backend, ContainerBackend)]
    if not images:
        return None
    client = docker_client()
    image_ids = {backend.name: image_facts(client, backend).image_id for backend in images}
    return stack.enter_context(ContainerHost(client, image_ids, config.backend_memory))


def _start_gateway(
    stack: ExitStack,
    config: RunConfig,
    upstreams: Sequence[Upstream],
    sink: _Sink,
    containers: ContainerHost | None,
) -> Gateway:
    # Containers reach this machine on their network's address; nobody else can reach that one.
    on_network = containers is not None and config.gateway_host == RunConfig.model_fields["gateway_host"].default
    host = containers.gateway_host if containers is not None and on_network else config.gateway_host
    gateway = Gateway(
        upstreams,
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
    return gateway


def _token_factory(key_hex: str) -> Callable[[], str]:
    """Tokens that follow from the key, for runs whose requests must be the same bytes each time."""
    counter = itertools.count()
    key = bytes.fromhex(key_hex)
    return lambda: hmac.new(key, f"token {next(counter)}".encode(), hashlib.sha256).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
