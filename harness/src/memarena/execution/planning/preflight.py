"""Checks the conditions of a run before it begins or goes on: folder, configuration, plan, backends, disk.

A run may take days, so that the engine refuses here, with one line, what would otherwise fail in the middle of it.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memarena_answering import Asker, PromptTooLongError, ReadingPlan, build_prompt, count_by_bytes
from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import Deadlines, Security
from memarena.execution.backends.containers import ContainerHost
from memarena.execution.backends.environment_making import make_environment
from memarena.execution.backends.isolation import ProcessIsolation
from memarena.execution.backends.manifests import (
    AddressedBackend,
    BackendChoice,
    LaunchableBackend,
    backends_by_name,
)
from memarena.execution.backends.session import BackendSession, check_description, described
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS, RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.plan import RunPlan
from memarena.execution.planning.progress import RunProgress, read_progress
from memarena.execution.planning.request import RunRequest
from memarena.log.records import Cell, ReaderRef
from memarena.log.store import is_blank, lock_log, log_path, read_records

MIN_FREE_BYTES = 16 << 20
"""A run does not begin, and does not go on, with less free space than this for its log and the backends' data."""

_LEFT_BY_A_FALSE_START = {"readers", "meters", "writer.lock"}
"""What a run makes in its folder before its log exists."""


def check_out(request: RunRequest) -> None:
    """Raise :class:`RunError` for a folder in which the run can neither begin nor go on."""
    out = request.out
    try:
        exists = log_path(out).exists()
        if request.resume and not (exists or _false_start(out)):
            raise RunError(f"--resume: {out} holds no run log")
        if exists and not request.resume:
            raise RunError(f"--out {out}: holds a run already; go on with --resume or choose another folder")
        if not exists and out.exists() and not _false_start(out) and not (out.is_dir() and not any(out.iterdir())):
            raise RunError(f"--out {out}: expected a new or empty folder")
    except OSError as error:
        raise RunError(f"--out {out}: cannot be looked at: {error.strerror}") from error


def _false_start(out: Path) -> bool:
    """Whether a run began in the folder and ended before it had a log."""
    return out.is_dir() and bool(names := {p.name for p in out.iterdir()}) and names <= _LEFT_BY_A_FALSE_START


def previous_progress(request: RunRequest) -> RunProgress | None:
    """Return the progress of the run to resume.

    None for a fresh run, and for a run that was killed before it had logged its configuration.
    """
    if not request.resume:
        return None
    if not is_blank(log_path(request.out)) and any(read_records(request.out, "run_started")):
        return read_progress(request.out)
    if request.config is None:
        raise RunError(
            f"--resume: {request.out}: this run ended before it began; give its --dataset, --backend and --reader again"
        )
    return None


def effective_config(request: RunRequest, previous: RunProgress | None) -> RunConfig:
    """Return the configuration to use. Raises :class:`RunError` if it differs from the log of a resumed run."""
    if previous is None:
        if request.config is None:
            raise RunError("expected a data set, backends and a reader, or --resume")
        # Absolute, so that the run can be resumed from another working directory.
        return request.config.model_copy(update={"dataset": request.config.dataset.absolute()})
    logged_config = parse_config(json.loads(previous.manifest.config_json), str(log_path(request.out)))
    if request.config is None:
        return logged_config
    config = request.config
    # Settings that a resumed run may not change. Those of models have a role; logged_plan compares the models.
    for name in sorted(flag.name for flag in SETTINGS if flag.setting.fixed and not flag.role):
        if getattr(config, name) != getattr(logged_config, name):
            raise RunError(
                f"--resume: {name} is {_short(getattr(config, name))}, the log in {request.out} was begun with "
                f"{_short(getattr(logged_config, name))}"
            )
    return config


def logged_plan(previous: RunProgress, plan: RunPlan) -> RunPlan:
    """Return the logged plan. Raises :class:`RunError` if data set, readers or prompts have changed since."""
    logged_manifest, now = previous.manifest, plan.manifest
    if logged_manifest.dataset.sha256 != now.dataset.sha256:
        raise RunError(f"--resume: {now.dataset.path} has changed since the run was begun")
    for logged, current in itertools.zip_longest(logged_manifest.readers, now.readers):
        if logged is None or current is None or _identity(logged) != _identity(current):
            raise RunError("--resume: the readers are not those that the run was begun with")
    for role in logged_manifest.helpers.keys() | now.helpers.keys():
        was, is_now = logged_manifest.helpers.get(role), now.helpers.get(role)
        if was is None or is_now is None or _identity(was) != _identity(is_now):
            raise RunError(f"--resume: the {role} is not the one that the run was begun with")
    differences = sorted(
        name for name, sha in logged_manifest.data_files_sha256.items() if now.data_files_sha256.get(name, sha) != sha
    )
    prompts = [name for name in differences if name.startswith("answering/")]
    if prompts:
        raise RunError(f"--resume: {prompts[0]} has changed since the run was begun; begin a new run")
    return RunPlan(logged_manifest, previous.questions, plan.backends)


def check_windows(plan: RunPlan) -> None:
    """Raise :class:`RunError` if a reader's window does not even hold the shortest question and its answer.

    Every question would then fail, and backends that read for themselves would be blamed for it.
    """
    shortest = min(plan.questions, key=lambda q: len(q.question_text.encode()))
    for reader in plan.manifest.readers:
        reading = next(cell.reading for cell in plan.manifest.cells if cell.reader == reader.name)
        empty = ReadingPlan(
            model=reader.model,
            max_tokens=reading.max_reply_tokens,
            context_window_tokens=reader.context_window_tokens,
            no_system_role=reader.no_system_role,
            counts_tokens=reader.counts_tokens,
        )
        try:
            build_prompt(
                (), shortest.question_text, shortest.asked_at, Asker(shortest.requester_kind), empty, count_by_bytes
            )
        except PromptTooLongError as error:
            raise RunError(f"--reader-window, --max-answer-tokens: reader {reader.name}: {error}") from error


def _identity(reader: ReaderRef) -> tuple[str, str, str]:
    """Return the parts of a reader that must not change in a run, since all its answers are counted together."""
    return reader.name, reader.model, reader.details.get("weights_sha256", "")


def make_environments(backends: Sequence[BackendChoice], config: RunConfig, say: Callable[[str], None]) -> None:
    """Make the missing environments of backends, unless one of the backends will be refused anyway.

    Raises :class:`RunError` if an environment cannot be made.
    """
    launchable = [backend for backend in backends if isinstance(backend, LaunchableBackend)]
    if any(backend.unmet(config.settings.get(backend.name)) for backend in launchable):
        return
    for backend in launchable:
        if backend.environment is not None:
            make_environment(backend.environment, say)


def check_backends(
    plan: RunPlan,
    config: RunConfig,
    request: RunRequest,
    containers: ContainerHost | None,
    isolation: ProcessIsolation,
    say: Callable[[str], None],
) -> None:
    """Check, before there is a log, that all backends can be started and that none refuses the plan.

    Only a backend that could refuse is started or called for its Describe: one at an address, a container, and one that
    gets options or settings. All others are as their manifests say. A backend in the run under several names is called
    once for each way in which it is started. ``say`` gets a line on what answered at an address.

    Raises :class:`RunError` or CellError, also for a server at an address that goes by another known backend's name.
    """
    answers: list[tuple[BackendChoice, Mapping[str, str], pb.DescribeResponse]] = []
    # One cell of each backend: its cells differ only in reader and seed, which Describe does not depend on.
    cells = list({c.backend: c for c in plan.manifest.cells}.values())
    # First what costs nothing to check, for all backends, so that none is started in vain.
    for cell in cells:
        choice = plan.backends[cell.backend]
        if isinstance(choice, LaunchableBackend) and (missing := choice.missing(cell.backend_settings)) is not None:
            other_names = ",".join(other_cell.backend for other_cell in cells if other_cell.backend != cell.backend)
            without = f"; without it: --backend {other_names}" if other_names else ""
            raise RunError(f"--backend {cell.backend}: cannot be started: {missing}{without}")
    for cell in cells:
        choice = plan.backends[cell.backend]
        if isinstance(choice, AddressedBackend):
            check_network(cell.backend, choice.address, request.security)
        if isinstance(choice, LaunchableBackend) and not (cell.backend_options or cell.backend_settings):
            continue
        # How it is started, whatever its name in the run.
        key = choice.model_copy(update={"name": ""}), cell.backend_settings
        same_answer = next((description for *started, description in answers if tuple(started) == key), None)
        if same_answer is not None:
            check_description(cell, same_answer)
            if isinstance(choice, AddressedBackend):
                _who_answered(choice, cell, same_answer)  # for its check of the name
            continue
        with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
            link = BackendSession(
                choice,
                Path(folder),
                deadlines(config),
                request.security,
                settings=cell.backend_settings,
                containers=containers,
                isolation=isolation,
            )
            try:
                description = link.open(cell)
            finally:
                link.close()
        answers.append((*key, description))
        if isinstance(choice, AddressedBackend):
            say(_who_answered(choice, cell, description))


def check_network(backend: str, address: str, security: Security) -> None:
    """Raise RunError for a backend beyond private networks that is not reached by TLS with a token (SPEC.md SEC-5)."""
    if security.tls_ca is not None and security.bearer_token is not None:
        return
    host = address.rpartition(":")[0].strip("[]")
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return  # an unknown host is reported when it is connected to
    if public := sorted(
        public_address for public_address in addresses if ipaddress.ip_address(public_address).is_global
    ):
        raise RunError(
            f"--backend {backend}: {public[0]} lies beyond private networks, and a life is sent there: "
            "--tls-ca and --bearer-token-file are needed"
        )


def _who_answered(choice: AddressedBackend, cell: Cell, description: pb.DescribeResponse) -> str:
    """Return a line on the server at an address. Raises RunError if the cell has the name of another known backend."""
    record = described(cell.cell_id, description)
    server = f"{record.name} {record.version} ({record.backend_kind}, contract {record.contract_version})"
    if cell.backend != record.name and cell.backend in backends_by_name():
        raise RunError(
            f"--backend {cell.backend}={choice.address}: {server} answered there; "
            f"write {record.name}={choice.address}, or a name that no other backend has"
        )
    return f"backend at {choice.address}: {server}"


def deadlines(config: RunConfig) -> Deadlines:
    """Return the configured deadlines in the client's form."""
    d = config.deadlines_s
    return Deadlines(
        describe_s=d.describe,
        ingest_s=d.ingest,
        search_s=d.search,
        answer_s=d.answer,
        reset_s=d.reset,
        health_s=d.health,
    )


def lock_out(out: Path) -> int:
    """Make the folder if it does not exist, and lock it against other runs until the descriptor is closed.

    The lock is taken before there is a log, since two runs that start in one folder would disturb each other.

    Raises :class:`RunError` if nothing can be written there, LogError if another run is there already.
    """
    lock = None
    try:
        lock = lock_log(out)
        with tempfile.TemporaryFile(dir=out):
            return lock
    except OSError as error:
        if lock is not None:
            os.close(lock)
        raise RunError(f"--out {out}: cannot be written to: {error.strerror}") from error


def check_loopback() -> None:
    """Raise :class:`RunError` if there is no IPv4 loopback, on which gateway, readers and backends listen."""
    try:
        socket.create_server(("127.0.0.1", 0)).close()
    except OSError as error:
        raise RunError(
            f"127.0.0.1: {error.strerror}; expected an IPv4 loopback, on which gateway, readers and backends listen "
            "(ip addr add 127.0.0.1/8 dev lo)"
        ) from error


def check_space(out: Path) -> None:
    """Raise :class:`RunError` if the disk is (nearly) full, so that no backend is blamed for it."""
    folder = out
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise RunError(f"--out {out}: disk full: {free >> 20} MiB free, expected at least {MIN_FREE_BYTES >> 20} MiB")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "…"
