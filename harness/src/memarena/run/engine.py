"""Running it all: from a configuration to a log, and on with a log that was left half-way.

Order matters here. Everything that can be wrong with the input is looked at before the log is made; after that, every
fact goes to the log as it happens, and whatever ends the process leaves a log that ``--resume`` goes on with.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from memarena_answering import ReaderClient

from memarena.client.backend import Deadlines, Security
from memarena.dataset.reading import Dataset, open_dataset
from memarena.gateway import Gateway, GatewayError
from memarena.gateway.tokens import random_token
from memarena.log.records import GatewayCall, Problem, RunEnded, RunResumed, RunStarted
from memarena.log.store import LogWriter, log_path
from memarena.readers import ReaderError, RunningReader, probe
from memarena.run.cell import CellRun, CellTools
from memarena.run.config import RunConfig, parse_config
from memarena.run.errors import InfraError, RunError
from memarena.run.floor import measure_floor
from memarena.run.link import BackendLink
from memarena.run.manifests import choose_backend
from memarena.run.plan import DataFiles, RunPlan, plan_run, versions
from memarena.run.pool import ReaderPool
from memarena.run.questions import evidence_texts
from memarena.run.state import CellProgress, RunProgress, read_progress

MIN_FREE_BYTES = 16 << 20
"""A run does not begin, and does not go on, with less free space than this for its log and the backends' data."""

EndReason = Literal["completed", "incomplete", "interrupted", "aborted"]


class Display(Protocol):
    """What a run shows while it goes on. The CLI draws it; tests and scripts use :class:`SilentDisplay`."""

    def begin(self, total_questions: int, done_questions: int) -> None:
        """The run is about to ask its first question."""

    def cell(self, name: str, days: int) -> None:
        """A cell begins; it will take in ``days`` days."""

    def advance(self, what: str) -> None:
        """A ``question`` was settled or a ``day`` taken in."""

    def note(self, message: str) -> None:
        """One line for the user."""

    def end(self) -> None:
        """Nothing more will be shown."""


class SilentDisplay:
    """Shows nothing."""

    def begin(self, total_questions: int, done_questions: int) -> None: ...
    def cell(self, name: str, days: int) -> None: ...
    def advance(self, what: str) -> None: ...
    def note(self, message: str) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. ``left`` counts the questions of all cells that are not settled."""

    reason: EndReason
    left: int
    message: str = ""


@dataclass(frozen=True)
class RunRequest:
    """A run to do: ``config`` None means that ``out`` is resumed with the configuration in its log."""

    out: Path
    config: RunConfig | None = None
    resume: bool = False
    security: Security = field(default_factory=Security)
    reader_api_key: str | None = None
    scoring_files: tuple[DataFiles, ...] = ()


class _Sink:
    """Where the gateway's records go. The gateway starts before the log is made, so the way is joined up later."""

    def __init__(self) -> None:
        self.log: LogWriter | None = None

    def __call__(self, call: GatewayCall) -> None:
        """Record a call; before the log exists only the readers' own start could cause one, and nobody does."""
        if self.log is None:
            raise RuntimeError("a model was called before the run's log was opened")
        self.log.append(call)


def execute(request: RunRequest, display: Display | None = None) -> RunOutcome:
    """Do a run, or go on with one, until it is complete, interrupted or broken.

    Raises :class:`RunError`, DatasetError, LogError, ReaderError or GatewayError for bad input, each with one line.
    KeyboardInterrupt is taken as the wish to stop: the outcome then says ``interrupted``.
    """
    display = display or SilentDisplay()
    with ExitStack() as stack:
        previous = _previous(request)
        config = _config(request, previous)
        _check_space(request.out)
        dataset = stack.enter_context(open_dataset(config.dataset))
        backends = [choose_backend(text) for text in config.backends]
        readers = stack.enter_context(ReaderPool(config.readers, request.out / "readers", request.reader_api_key))
        sink = _Sink()
        gateway = _start_gateway(stack, config, readers.readers(), sink)
        plan = plan_run(config, dataset, backends, [r.ref for r in readers.readers()], request.scoring_files)
        if previous is not None:
            plan = _same_plan(previous, plan)
        sink.log = log = stack.enter_context(LogWriter(request.out))
        # The gateway stops before the log closes: its last records still have a place to go.
        stack.callback(gateway.stop)
        return _Run(request, config, dataset, plan, readers, gateway, log, display).execute(previous)


class _Run:
    """A run whose input is known to be good."""

    def __init__(
        self,
        request: RunRequest,
        config: RunConfig,
        dataset: Dataset,
        plan: RunPlan,
        readers: ReaderPool,
        gateway: Gateway,
        log: LogWriter,
        display: Display,
    ) -> None:
        self._request = request
        self._config = config
        self._dataset = dataset
        self._plan = plan
        self._readers = readers
        self._gateway = gateway
        self._log = log
        self._display = display

    def execute(self, previous: RunProgress | None) -> RunOutcome:
        """Begin or go on, go through the cells, say how it ended."""
        log = self._log
        progress = previous or self._begin()
        if previous is not None:
            log.append(RunResumed(resumed_at=_now(), versions=versions()))
        reason: EndReason = "aborted"
        message = ""
        try:
            self._prepare()
            self._go_through_cells(progress)
            reason = "completed" if progress.left() == 0 else "incomplete"
        except KeyboardInterrupt:
            reason, message = "interrupted", "stopped by the user"
        except (InfraError, RunError) as error:
            message = str(error)
            log.append(RunEnded(ended_at=_now(), reason=reason, message=message))
            raise
        finally:
            self._display.end()
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

    def _prepare(self) -> None:
        """Probe the readers and measure the floor, before anything is timed."""
        for reader in self._readers.readers():
            result = probe(reader, self._gateway)
            self._log.append(result)
            if not result.ok:
                raise InfraError(f"reader {reader.ref.name}: the sanity probe failed: {result.message}")
        if self._config.floor_samples:
            self._log.append(measure_floor(self._request.out / "floor", self._config.floor_samples))

    def _go_through_cells(self, progress: RunProgress) -> None:
        total = len(self._plan.manifest.cells) * len(self._plan.questions)
        self._display.begin(total, total - progress.left())
        by_ego = sorted(self._plan.questions, key=lambda q: q.instance.ego_agent_id)
        egos = len({q.instance.ego_agent_id for q in by_ego})
        for cell in self._plan.manifest.cells:
            state = progress.cells[cell.cell_id]
            if len(state.settled) == len(by_ego) and all(e.horizon_reached for e in state.egos.values()):
                continue
            self._display.cell(cell.cell_id, egos * self._dataset.day_count)
            _check_space(self._request.out)
            reader = self._readers[cell.reader]
            tools = CellTools(
                dataset=self._dataset,
                gateway=self._gateway,
                reader=reader,
                reader_client=ReaderClient(self._gateway.base_url),
                append=self._log.append,
                heal_reader=partial(self._heal, cell.reader),
                advance=self._advance,
                answer_timeout_s=self._config.deadlines_s.answer,
                id_key=bytes.fromhex(self._plan.manifest.id_key_hex),
                infra_retries=self._config.infra_retries,
                central_reading=self._config.central_reading,
            )
            cell_dir = self._request.out / "cells" / cell.cell_id.replace("/", "-")
            link = BackendLink(
                self._plan.backends[cell.backend], cell_dir, deadlines(self._config), self._request.security
            )
            try:
                CellRun(cell, link, tools).run(by_ego, state)
            finally:
                link.close()

    def _advance(self, what: str) -> None:
        if what == "day":
            _check_space(self._request.out)
        self._display.advance(what)

    def _heal(self, name: str) -> None:
        """After a failure of ours: the reader must be alive and sane again, else the run stops here."""
        _check_space(self._request.out)
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


def deadlines(config: RunConfig) -> Deadlines:
    """The configured deadlines as the client takes them."""
    d = config.deadlines_s
    return Deadlines(
        describe_s=d.describe,
        ingest_s=d.ingest,
        search_s=d.search,
        answer_s=d.answer,
        reset_s=d.reset,
        health_s=d.health,
    )


# ------------------------------------------------------------------ what has to be right before a run begins


def _previous(request: RunRequest) -> RunProgress | None:
    exists = log_path(request.out).exists()
    if request.resume:
        if not exists:
            raise RunError(f"--resume: {request.out} holds no run log")
        return read_progress(request.out)
    if exists:
        raise RunError(f"--out {request.out}: holds a run already; go on with --resume or choose another folder")
    if request.out.exists() and (not request.out.is_dir() or any(request.out.iterdir())):
        raise RunError(f"--out {request.out}: expected a new or empty folder")
    return None


def _config(request: RunRequest, previous: RunProgress | None) -> RunConfig:
    if previous is None:
        if request.config is None:
            raise RunError("expected a data set, backends and a reader, or --resume")
        return request.config
    logged = parse_config(json.loads(previous.manifest.config_json), str(log_path(request.out)))
    if request.config is None:
        return logged
    ours = request.config
    for name in sorted(RunConfig.model_fields):
        if name in {"deadlines_s", "gateway_port", "floor_samples", "infra_retries", "id_key", "keep_texts"}:
            continue
        if getattr(ours, name) != getattr(logged, name):
            raise RunError(
                f"--resume: {name} is {_short(getattr(ours, name))}, the log in {request.out} was begun with "
                f"{_short(getattr(logged, name))}"
            )
    return ours


def _same_plan(previous: RunProgress, plan: RunPlan) -> RunPlan:
    """The logged plan, after making sure that the data set and the readers are still the same."""
    logged, now = previous.manifest, plan.manifest
    if logged.dataset.sha256 != now.dataset.sha256:
        raise RunError(f"--resume: {now.dataset.path} has changed since the run was begun")
    for before, after in itertools.zip_longest(logged.readers, now.readers):
        if before is None or after is None or (before.name, before.model) != (after.name, after.model):
            raise RunError("--resume: the readers are not those that the run was begun with")
    changed = sorted(
        name for name, sha in logged.data_files_sha256.items() if now.data_files_sha256.get(name, sha) != sha
    )
    prompts = [name for name in changed if name.startswith("answering/")]
    if prompts:
        raise RunError(f"--resume: {prompts[0]} has changed since the run was begun; begin a new run")
    return RunPlan(logged, previous.questions, plan.backends)


def _start_gateway(stack: ExitStack, config: RunConfig, readers: Sequence[RunningReader], sink: _Sink) -> Gateway:
    gateway = Gateway(
        [reader.upstream for reader in readers],
        sink,
        port=config.gateway_port,
        keep_texts=config.keep_texts,
        token_factory=_token_factory(config.id_key) if config.id_key else random_token,
    )
    try:
        gateway.start()
    except GatewayError as error:
        raise RunError(f"--gateway-port {config.gateway_port}: {error}") from error
    stack.callback(gateway.stop)
    return gateway


def _token_factory(key_hex: str) -> Callable[[], str]:
    """Tokens that follow from the key, for runs whose requests must be the same bytes each time."""
    counter = itertools.count()
    key = bytes.fromhex(key_hex)
    return lambda: hmac.new(key, f"token {next(counter)}".encode(), hashlib.sha256).hexdigest()


def _check_space(out: Path) -> None:
    """Raise :class:`RunError` where the disk is (nearly) full, so that no backend is blamed for it."""
    folder = out
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise RunError(f"--out {out}: disk full: {free >> 20} MiB free, expected at least {MIN_FREE_BYTES >> 20} MiB")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
