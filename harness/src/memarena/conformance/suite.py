"""Runs the checks against one backend, each within its time, and says how every one of them ended."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import Security
from memarena.conformance import ans, dig, dsc, err, evd, gen, hlt, idn, ing, lim, mod, rst, sec, src, txt, ver
from memarena.conformance.check import Check, CheckResult, Status, checks_of
from memarena.conformance.errors import BrokenError, ConformanceError, SkippedError
from memarena.conformance.models import RealModel, ScriptedModels
from memarena.conformance.subject import Patience, Subject
from memarena.conformance.wire import SERVICE, Connection, RefusedError

NO_SECURITY = Security()
NOT_RUN = "not run"
_POLL_S = 0.05
_PROBE_S = 3.0
_RESTART_COMMAND_TIMEOUT_S = 120.0

_CHAPTERS = (gen, idn, txt, dsc, ing, dig, src, ans, rst, evd, lim, err, hlt, sec, ver, mod)


def all_checks() -> tuple[Check, ...]:
    """Every check in the order of a run: the first Ingest first, what looks back on the whole run last."""
    checks = [each for chapter in _CHAPTERS for each in checks_of(chapter)]
    first, last = hlt.first_ingest, hlt.after_errors
    return (first, *(each for each in checks if each not in (first, last)), last)


@dataclass(frozen=True)
class Settings:
    """How a run is made. Seconds are wall-clock."""

    timeout_s: float = 30.0
    """For a single call."""
    start_s: float = 30.0
    """For the backend to become SERVING."""
    total_s: float = 600.0
    """After it no further check is begun."""
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class SuiteResult:
    """How a run ended. ``described`` is what the backend said of itself, empty if it said nothing."""

    target: str
    described: pb.DescribeResponse
    results: tuple[CheckResult, ...]
    duration_s: float

    @property
    def passed(self) -> bool:
        """Whether every check that applies was run and passed, one at least."""
        statuses = [result.status for result in self.results]
        return "failed" not in statuses and "passed" in statuses and not self.ended_early

    @property
    def ended_early(self) -> bool:
        """Whether checks were left out because time was over or the backend had stopped answering."""
        return any(result.message.startswith(NOT_RUN) for result in self.results)

    def ids(self, status: Status) -> list[str]:
        """Ids of the checks that ended so."""
        return [result.check.check_id for result in self.results if result.status == status]


def select(only: Sequence[str]) -> tuple[Check, ...]:
    """The checks of these ids or chapters (``src``), all if there are none. Raises ConformanceError for others."""
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
    """Hold the backend at ``target`` (HOST:PORT) to SPEC.md.

    ``advertise`` is the host by which the backend reaches this process. ``restart`` kills and starts the backend.
    ``on_result`` is told of every check as it ends. Raises ConformanceError if the target cannot be reached.
    """
    checks = select(only)
    settings = settings or Settings()
    began = time.monotonic()
    with _models(advertise, real_model) as models, Connection(target, security, settings.timeout_s) as wire:
        _await_start(wire, settings.start_s)
        subject = Subject(wire, models, _describe(wire), settings.patience, restart)
        if subject.has(pb.CAPABILITY_CELL_MODEL_ACCESS):
            subject.cell_access = models.grant("cell")
        results: list[CheckResult] = []
        for check in checks:
            result = _run(check, subject, _give_up(results, wire, began, settings))
            results.append(result)
            on_result(result)
        return SuiteResult(target, subject.described, tuple(results), time.monotonic() - began)


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
            # What is no gRPC server, or not there, cannot be told from one that is still starting.
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
    """What the backend says of itself; nothing if it says nothing, which dsc.complete will report."""
    try:
        return wire.describe()
    except RefusedError as error:
        if error.code == "UNAUTHENTICATED":
            raise ConformanceError(f"--target {wire.target}: demands a token (--token-env): {error}") from error
        return pb.DescribeResponse()


def _give_up(results: Sequence[CheckResult], wire: Connection, began: float, settings: Settings) -> str | None:
    """Why no further check is begun, None to go on."""
    if time.monotonic() - began > settings.total_s:
        return f"{NOT_RUN}: {settings.total_s:g} s have passed"
    if results and results[-1].message.startswith(NOT_RUN):
        return results[-1].message
    if wire.hung:
        # A call hung. One more that hangs means that all of them would.
        wire.hung = 0
        try:
            wire.health(SERVICE, deadline_s=_PROBE_S)
        except RefusedError as error:
            if error.code in ("DEADLINE_EXCEEDED", "UNAVAILABLE"):
                return f"{NOT_RUN}: the backend has stopped answering since {results[-1].check.check_id}"
    return None


def _run(check: Check, subject: Subject, not_run: str | None) -> CheckResult:
    began = time.monotonic()
    if not_run is not None:
        return CheckResult(check, "skipped", not_run, 0.0)
    status: Status = "passed"
    message = ""
    try:
        reason = check.applies(subject)
        if reason is not None:
            return CheckResult(check, "skipped", reason, 0.0)
        check.run(subject)
    except BrokenError as error:
        status, message = "failed", str(error)
    except RefusedError as error:
        status, message = "failed", f"a call that had to work was refused: {error}"
    except SkippedError as error:
        status, message = "skipped", str(error)
    except ConformanceError:
        raise
    except Exception as error:  # noqa: BLE001
        # What a backend sends may have a shape that nobody thought of: that ends one check, not the run and its report.
        status, message = "failed", f"the suite could not read the response: {_where(error)}"
    finally:
        subject.forget_lives()
    return CheckResult(check, status, message, time.monotonic() - began)


def _where(error: Exception) -> str:
    """The error with the line of the suite that it came from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def restart_by(command: str) -> Callable[[], None]:
    """A restart that runs an operator's command, without a shell. Raises ConformanceError if it names no program."""
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
