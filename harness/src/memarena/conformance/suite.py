"""Runs the checks against one backend, each with its timeouts, and returns the result of every check."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import Security
from memarena.conformance.backend_under_test import BackendUnderTest, Patience
from memarena.conformance.check import Check, CheckResult, Status
from memarena.conformance.checks import all_checks, digest
from memarena.conformance.drawn_words import Words
from memarena.conformance.errors import BrokenError, ConformanceError, SkippedError
from memarena.conformance.life_size import THOROUGH, LifeSize
from memarena.conformance.scripted_models import RealModel, ScriptedModels
from memarena.conformance.wire import SERVICE, Connection, RefusedError

NO_SECURITY = Security()
_POLL_S = 0.05
_PROBE_S = 3.0  # deadline of a health check
_GONE_S = 1.0  # how long nothing may listen before the backend counts as dead
_LOG_LINES = 3
_STACK_LINES = 300  # of the log's end, in which the line with the cause of a crash is looked for
_CAUSE = re.compile(r"\bpanic\b|fatal|exception|error\b|abort|terminate|assertion|out of memory|SIG[A-Z]{3}", re.I)
_RESTARTS = 5
"""Maximum of restarts in a run; after them a backend that dies ends the run."""
_RESTART_COMMAND_TIMEOUT_S = 120.0
_LIFE_S = 4.0
"""Seconds for asking for the contents of the life, each of two times; a slow backend gets fewer questions."""
_WITHOUT_DAYS = ("dsc", "hlt", "sec")  # chapters that are run without dig.gate


@dataclass(frozen=True)
class Settings:
    """Settings of a run of the suite. Seconds are wall-clock time."""

    timeout_s: float = 30.0
    """Timeout of a single call."""
    start_s: float = 30.0
    """Timeout for the backend to become SERVING."""
    total_s: float = 600.0
    """Time after which no further check is started."""
    patience: Patience = field(default_factory=Patience)
    log: Path | None = None
    """The backend's log file; its last lines are shown if the backend dies."""
    seed: int | None = None
    """Seed of the words and the life; None: drawn for the run."""
    thorough: bool = False
    """Whether the life is longer, and asked for without the usual time limit."""
    life_size: LifeSize | None = None


@dataclass(frozen=True)
class SuiteResult:
    """Result of a run. ``described`` is the backend's response to Describe, empty without one."""

    target: str
    described: pb.DescribeResponse
    results: tuple[CheckResult, ...]
    duration_s: float
    seed: int

    @property
    def passed(self) -> bool:
        """Whether every check that applies was run and passed, and at least one did."""
        statuses = [result.status for result in self.results]
        return "failed" not in statuses and "passed" in statuses and not self.ended_early

    @property
    def ended_early(self) -> bool:
        """Whether checks were not run, as the time was over or the backend had stopped answering."""
        return any(result.not_run for result in self.results)

    def ids(self, status: Status) -> list[str]:
        """Return the ids of the checks with this status."""
        return [result.check.check_id for result in self.results if result.status == status]


def select(only: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks of these ids or chapters (``src``), all without any. Raises ConformanceError for others."""
    checks = all_checks()
    if not only:
        return checks
    for name in only:
        if not any(name in (check.check_id, check.chapter) for check in checks):
            raise ConformanceError(f"--only {name}: no such check or chapter (--list names them)")
    return tuple(check for check in checks if check.check_id in only or check.chapter in only)


def run_suite(
    target: str,
    *,
    security: Security = NO_SECURITY,
    only: Sequence[str] = (),
    advertise: str | None = None,
    real_model: RealModel | None = None,
    restart: Callable[[], None] | None = None,
    settings: Settings | None = None,
    on_result: Callable[[CheckResult], None] = lambda _: None,
) -> SuiteResult:
    """Check the backend at ``target`` (HOST:PORT) against SPEC.md.

    ``advertise`` is the host at which the backend reaches this process. ``restart`` kills and starts the backend.
    ``on_result`` is called with every check as it ends. Raises ConformanceError if the target cannot be reached.
    """
    checks = select(only)
    settings = settings or Settings()
    began = time.monotonic()
    with _models(advertise, real_model) as models, Connection(target, security, settings.timeout_s) as wire:
        _await_start(wire, settings.start_s)
        seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
        backend = BackendUnderTest(wire, models, _describe(wire), settings.patience, restart, seed=seed)
        backend.words, backend.log = Words(seed), settings.log
        backend.life_size = settings.life_size or (THOROUGH if settings.thorough else LifeSize())
        backend.life_s = settings.total_s if settings.thorough else _LIFE_S
        if backend.has(pb.CAPABILITY_CELL_MODEL_ACCESS):
            backend.cell_access = models.grant("cell")
        backend.missing_rpcs = wire.missing = _missing_rpcs(wire)
        run = _Run(backend, settings, on_result)
        if digest.gate not in checks and any(check.chapter not in _WITHOUT_DAYS for check in checks):
            run.hold(digest.gate, quietly=True)
        for check in checks:
            run.hold(check)
        run.end()
        return SuiteResult(target, backend.described, tuple(run.results), time.monotonic() - began, seed)


@contextmanager
def _models(advertise: str | None, real: RealModel | None) -> Iterator[ScriptedModels]:
    models = ScriptedModels(advertise, real)
    try:
        yield models
    finally:
        models.close()


def _await_start(wire: Connection, start_s: float) -> None:
    """Return once health is SERVING, or after ``start_s`` if calls are answered at all.

    Raises ConformanceError if nothing answers by then.
    """
    deadline = time.monotonic() + start_s
    reached, last = False, ""
    while True:
        try:
            last = wire.health(SERVICE, deadline_s=_PROBE_S)
            reached = True
        except RefusedError as error:
            last = f"{error.code} {error.message}"
            # A server that is missing, or not gRPC, cannot be distinguished from one that is still starting.
            reached = reached or error.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
            if error.code == "UNIMPLEMENTED":
                return  # no health service: hlt.serving will say so
        if last == "SERVING":
            return
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    if not reached:
        raise ConformanceError(f"--target {wire.target}: no backend answers there: {last}")


def _describe(wire: Connection) -> pb.DescribeResponse:
    """Return the response to Describe; an empty one if the call fails, which dsc.complete will report."""
    try:
        return wire.describe()
    except RefusedError as error:
        if error.code == "UNAUTHENTICATED":
            raise ConformanceError(f"--target {wire.target}: demands a token (--token-env): {error}") from error
        return pb.DescribeResponse()


def _missing_rpcs(wire: Connection) -> frozenset[str]:
    """Return the RPCs that the backend does not implement: an empty request, otherwise refused, is UNIMPLEMENTED."""
    missing = set()
    for name, call in (
        ("Ingest", lambda: wire.ingest([])),
        ("Search", lambda: wire.search(pb.SearchRequest())),
        ("Reset", lambda: wire.reset("")),
    ):
        try:
            call()
        except RefusedError as error:
            if error.code == "UNIMPLEMENTED":
                missing.add(name)
    wire.hung = wire.lost = 0
    return frozenset(missing)


class _Run:
    """Runs one check after the other against a backend, and detects that it died or hangs."""

    def __init__(self, backend: BackendUnderTest, settings: Settings, on_result: Callable[[CheckResult], None]) -> None:
        self.results: list[CheckResult] = []
        self._backend = backend
        self._settings = settings
        self._on_result = on_result
        self._began = time.monotonic()
        self._given_up: str | None = None
        self._restarts_left = _RESTARTS

    def hold(self, check: Check, *, quietly: bool = False) -> None:
        """Run a check, or record why it is not run. ``quietly``: record only a failure."""
        if self._given_up is None and time.monotonic() - self._began > self._settings.total_s:
            self._given_up = f"{self._settings.total_s:g} s have passed"
        result = _run(check, self._backend, self._given_up)
        if self._given_up is None:
            result = self._seen_alive(result)
        if not quietly or result.status == "failed":
            self.results.append(result)
            self._on_result(result)

    def end(self) -> None:
        """Reset the namespaces that outlived their checks."""
        if self._given_up is None:
            self._backend.namespaces, self._backend.kept = self._backend.kept, []
            self._backend.reset_namespaces()

    def _seen_alive(self, result: CheckResult) -> CheckResult:
        """Return the result. If the backend died, it says so; a dead or hung backend may end the run."""
        wire = self._backend.wire
        gone = _gone(wire) if result.status == "failed" and wire.lost else None
        if gone is not None:
            message = f"the backend died during this check: {gone}{_last_words(self._settings.log)}"
            if (still_gone := self._start_again()) is not None:
                self._given_up = f"the backend died during {result.check.check_id}{still_gone}"
            result = replace(result, message=message)
        elif wire.hung:
            try:  # a call hung; if a health check hangs too, all other calls would
                wire.health(SERVICE, deadline_s=_PROBE_S)
            except RefusedError as error:
                if error.code in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
                    self._given_up = f"the backend has stopped answering since {result.check.check_id}"
        wire.hung = wire.lost = 0
        return result

    def _start_again(self) -> str | None:
        """Run the operator's command; return None if the backend serves again, else a suffix for the reason."""
        if self._backend.restart is None:
            return ""
        if not self._restarts_left:
            return f", after {_RESTARTS} restarts"
        self._restarts_left -= 1
        try:
            self._backend.restart()
            _await_start(self._backend.wire, self._settings.start_s)
        except (BrokenError, ConformanceError) as error:
            return f", and did not come back: {error}{_last_words(self._settings.log)}"
        return None


def _gone(wire: Connection) -> str | None:
    """Return why the backend does not answer any more; None if it does."""
    deadline = time.monotonic() + _GONE_S
    while True:
        try:
            wire.health(SERVICE, deadline_s=_PROBE_S)
        except RefusedError as error:
            if error.code != "UNAVAILABLE":
                return None
            if time.monotonic() > deadline:
                return "nothing listens at its address any more"
            time.sleep(_POLL_S)
        else:
            return None


def _last_words(log: Path | None) -> str:
    """Return the end of the backend's log for a message, or how to have it shown."""
    if log is None:
        return " (with --log FILE the last lines of its log would stand here)"
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"; its log {log} cannot be read: {error.strerror}"
    lines = [line.strip() for line in text.strip().splitlines()]
    # A long stack trace may follow the line with the cause.
    causes = [index for index, line in enumerate(lines) if _CAUSE.search(line) and index >= len(lines) - _STACK_LINES]
    shown = lines[-_LOG_LINES:]
    if causes and causes[-1] < len(lines) - _LOG_LINES:
        shown = [lines[causes[-1]], "…", *shown[-1:]]
    return f"; last in its log: {' | '.join(shown)}" if lines else "; its log is empty"


def _run(check: Check, backend: BackendUnderTest, not_run: str | None) -> CheckResult:
    began = time.monotonic()
    if not_run is not None:
        return CheckResult(check, "skipped", f"not run: {not_run}", 0.0, not_run=True)
    status: Status = "passed"
    message = ""
    try:
        reason = check.applies(backend)
        if reason is not None:
            return CheckResult(check, "skipped", reason, 0.0)
        check.run(backend)
    except BrokenError as error:
        status, message = "advice" if check.advisory else "failed", str(error)
    except RefusedError as error:
        status, message = "failed", f"a call that had to work was refused: {error}"
    except SkippedError as error:
        status, message = "skipped", str(error)
    except ConformanceError:
        raise
    except Exception as error:  # noqa: BLE001
        # A response of an unexpected shape ends one check, not the run and its report.
        status, message = "failed", f"the suite could not read the response: {_where(error)}"
    finally:
        backend.reset_namespaces()
    return CheckResult(check, status, message, time.monotonic() - began)


def _where(error: Exception) -> str:
    """Return the error with the line of the suite that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def restart_by(command: str) -> Callable[[], None]:
    """Return a function that runs the operator's command without a shell. Raises ConformanceError if it cannot run."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ConformanceError(f"--restart-command: {error}") from error
    if not argv or shutil.which(argv[0]) is None:
        raise ConformanceError(f"--restart-command {command}: no such program")

    def restart() -> None:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_RESTART_COMMAND_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BrokenError(f"the restart command failed: {error}") from error
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
            raise BrokenError(f"the restart command exited with {done.returncode}: {lines[-1]}")

    return restart
