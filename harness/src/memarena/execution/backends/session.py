"""Holds the connection to one cell's backend: starts it, checks its Describe, and restores it after a crash.

A process, a container and a server at an address look the same from here on. Whether a failed call was the backend's
crash is decided here too: a broken connection must not count against a backend, and no call may go to a dying process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_VERSION

from memarena.client.backend import BackendClient, Deadlines, Security
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.backends.containers import ContainerHost, LaunchedContainer
from memarena.execution.backends.isolation import ProcessIsolation, grade_of
from memarena.execution.backends.manifests import AddressedBackend, BackendChoice, ContainerBackend, LaunchableBackend
from memarena.execution.backends.process import UNCONFINED, LaunchedBackend, LaunchError, launch
from memarena.execution.errors import CellError
from memarena.log.measuring import MeterFigure
from memarena.log.records import BackendDescribed, Cell, IsolationGrade
from memarena.meters.footprint import Footprint
from memarena.processes import STARTS_AFTER_KILL

_DEATH_GRACE_S = 1.0
"""Time to wait for the end of a process after its connection broke: a crash shows on the socket first."""
_END_GRACE_S = 15.0
"""Time in which a process that serves no more must end. Docker's own grace after ``docker stop`` is 10 s."""
_PROBE_S = 0.05
"""Time between two looks at a process that may be ending."""
_DROP_GRACE_S = 0.2
"""Time to wait for the thread that notices a broken connection, before anything connects again."""
_ENDINGS = frozenset({"UNAVAILABLE", "CANCELLED", "UNKNOWN"})
"""Codes with which a call may fail because the backend is ending; which of them depends on its gRPC library."""

_CAPABILITIES: Mapping[int, str] = {number: name for name, number in pb.Capability.items()}
_TOKEN_COUNTINGS: Mapping[int, str] = {number: name for name, number in pb.TokenCounting.items()}
_RETENTIONS: Mapping[int, str] = {number: name for name, number in pb.Retention.items()}

StyleName = Literal["text_sessions", "json_context"]
_STYLES: Mapping[int, StyleName] = {
    pb.PROMPT_STYLE_TEXT_SESSIONS: "text_sessions",
    pb.PROMPT_STYLE_JSON_CONTEXT: "json_context",
}


def preferred_style(description: pb.DescribeResponse) -> StyleName:
    """Return the layout that a backend prefers; text sessions if it names none, or one of a later contract."""
    return _STYLES.get(description.preferred_prompt_style, "text_sessions")


class BackendGoneError(Exception):
    """The backend cannot take part any more, for an ego or for the cell; the message is the cause for the log."""


class BackendAwayError(CellError):
    """An address has no server any more, or another one. Whose fault that is cannot be known from here."""


class BackendSession:
    """A backend that was launched or is reached at an address. ``close`` ends a launched backend.

    ``settings`` are environment variables for a launched backend. ``restarts`` is how often a launched backend may be
    started again, and how often a backend at an address may lose its days. ``containers`` is needed for a backend that
    is a container, and ``isolation`` is for a backend that is a process.
    """

    def __init__(
        self,
        choice: BackendChoice,
        cell_dir: Path,
        deadlines: Deadlines,
        security: Security,
        *,
        settings: Mapping[str, str] | None = None,
        restarts: int = 10,
        containers: ContainerHost | None = None,
        isolation: ProcessIsolation = UNCONFINED,
    ) -> None:
        self._settings = settings or {}
        self._isolation = isolation
        self.isolation_grade = grade_of(choice, isolation)
        self._containers = containers
        self._restarts_left = self._restarts = restarts
        self._description: pb.DescribeResponse | None = None
        self._choice = choice
        self._cell_dir = cell_dir
        self._deadlines = deadlines
        self._security = security
        self._process: LaunchedBackend | LaunchedContainer | None = None
        self._client: BackendClient | None = None
        self._gone = ""
        self._overdue = ""
        self._away = False
        self._drops_known = 0
        """Number of broken connections that were dealt with; more of them mean that the backend may be another."""
        self.returns = 0
        """Number of times that the backend was restored; proofs about its memory from before no longer hold."""

    def open(self, cell: Cell) -> pb.DescribeResponse:
        """Start the backend and check it. Raises :class:`CellError` if it does not start or does not fit the run."""
        try:
            description = self._start()
        except (LaunchError, BackendCallError, BackendContractError) as error:
            raise CellError(f"--backend {self._choice.name}: {error}") from error
        check_description(cell, description)
        self._description = description
        return description

    @property
    def client(self) -> BackendClient:
        """The connection. Raises :class:`BackendGoneError` if there is none."""
        if self._client is None:
            raise BackendGoneError(self._gone or "the backend is not running")
        return self._client

    def lost(self) -> bool:
        """Whether the backend may no longer be the process of earlier calls, so that ``revive`` is due.

        For a launched backend: its process has ended. For one at an address: it was away, or the connection broke.
        """
        if self._process is not None:
            return not self._process.alive()
        return self._client is not None and (self._away or self._client.drops > self._drops_known)

    def settle_failure(self, code: str) -> None:
        """Find out, after a call that failed with ``code``, whether the backend is ending; if so, wait for its end.

        A process that was asked to end closes its port first. The next call must not go to it, and a call that failed
        meanwhile must not count against the backend before it is known whether its process ended.
        """
        if code not in _ENDINGS or self._client is None:
            return
        if self._process is None:
            # A backend that is started again at once serves already: its broken connection alone tells.
            broke = self._client.broke_since(self._drops_known, _DROP_GRACE_S)
            self._away = self._away or not (broke or self._client.serving())
            return
        began = time.monotonic()
        while self._process.alive():
            waited = time.monotonic() - began
            if waited >= _DEATH_GRACE_S and self._client.serving():
                return
            if waited >= _END_GRACE_S:
                self._overdue = f"it served no more, had not ended {_END_GRACE_S:.0f} s later, and was ended; "
                self._process.stop()
                return
            time.sleep(_PROBE_S)

    def note_days_lost(self) -> None:
        """Count that a backend at an address came back without its days.

        Raises :class:`BackendGoneError` once that has happened more often than it may: it would go on for ever. How
        often a launched backend comes back is limited as it is.
        """
        if not isinstance(self._choice, AddressedBackend):
            return
        if self._restarts_left == 0:
            raise BackendGoneError(
                f"the backend lost its days more than {self._restarts} times, as many as are allowed"
            )
        self._restarts_left -= 1

    def footprint(self) -> Footprint:
        """Return memory and disk use of the backend now, or why they are not known."""
        if self._process is not None:
            return self._process.footprint()
        reason = MeterFigure.unavailable("the backend is reached at an address: where it runs is not known")
        return Footprint(reason, reason, reason)

    def revive(self) -> str | None:
        """Restore a lost backend: start it again, or wait for it at its address. Return the event in one line, or None.

        Raises :class:`BackendGoneError` if it does not come back, :class:`BackendAwayError` if it was reached at an
        address: what ended it there may be the machine, the network or its operator.
        """
        if not self.lost():
            return None
        try:
            failure = self._reach_again() if self._process is None else self._start_again()
        except (BackendGoneError, BackendAwayError) as error:
            self._gone = str(error)
            self.close()
            raise
        self.returns += 1
        return failure

    def _reach_again(self) -> str:
        """Wait at the address. Raises :class:`BackendAwayError` if nothing, or another backend, serves there."""
        drops = self.client.drops
        try:
            self.client.wait_until_serving()
            description = self.client.describe()
        except (BackendCallError, BackendContractError) as error:
            raise BackendAwayError(f"the backend went away and did not come back: {error}") from error
        if (difference := self._different(description)) is not None:
            raise BackendAwayError(f"the backend went away and came back as another: Describe differs in {difference}")
        self._away, self._drops_known = False, drops
        return "the backend went away and came back: it may have been started again"

    def _start_again(self) -> str:
        """Start the backend again; return the reason as a line.

        Raises :class:`BackendGoneError` if no restart is left, if the start fails, or if another backend answers.
        """
        assert self._process is not None
        death = self._overdue + self._process.death()
        self._overdue = ""
        self.close()
        if self._restarts_left == 0:
            raise BackendGoneError(
                f"the backend ended ({death}) after {self._restarts} restarts, as many as are allowed"
            )
        self._restarts_left -= 1
        try:
            description = self._start()
        except (LaunchError, BackendCallError, BackendContractError) as error:
            raise BackendGoneError(f"the backend ended ({death}) and did not come back: {error}") from error
        if (difference := self._different(description)) is not None:
            raise BackendGoneError(
                f"the backend ended ({death}) and came back as another: Describe differs in {difference}"
            )
        return f"the backend's process ended and was started again: {death}"

    def _different(self, description: pb.DescribeResponse) -> str | None:
        """Return the fields in which ``description`` differs from the first; None if it does not, or is the first."""
        if self._description is None or description == self._description:
            return None
        return _changed_fields(self._description, description)

    @property
    def limits(self) -> pb.Limits:
        """The limits that the backend states (SPEC.md LIM-3); 0 if it states none."""
        return self._description.limits if self._description is not None else pb.Limits()

    def close(self) -> None:
        """Close the connection and end the process. Calling it twice is fine."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _start(self) -> pb.DescribeResponse:
        """Start or reach the backend; start it again if it is killed meanwhile, as its command is not at fault."""
        for starts_left in reversed(range(STARTS_AFTER_KILL + 1)):
            try:
                return self._start_once()
            except (LaunchError, BackendCallError, BackendContractError) as error:
                if not starts_left or not self._killed(error):
                    raise
                self.close()
        raise AssertionError("the last start returns or raises")

    def _killed(self, error: Exception) -> bool:
        if isinstance(error, LaunchError):
            return error.killed
        return isinstance(self._process, LaunchedBackend) and self._process.killed()

    def _start_once(self) -> pb.DescribeResponse:
        """Start or reach the backend, connect, and return its description."""
        if isinstance(self._choice, AddressedBackend):
            self._client = BackendClient(self._choice.address, self._deadlines, self._security, watched=True)
            self._client.wait_until_serving()
        else:
            self._process = self._launch(self._choice)
            # On loopback, by ourselves: TLS and the bearer token are for backends that run elsewhere.
            self._client = BackendClient(self._process.address, self._deadlines)
            try:
                self._client.wait_until_serving(self._process.alive)
            except BackendCallError as error:
                if self._process.alive():
                    raise
                # The fault is the end of its process, not its port, which no process serves any more.
                raise LaunchError(
                    f"backend {self._choice.name} did not start: {self._process.death()}", killed=self._killed(error)
                ) from error
        return self._client.describe()

    def _launch(self, choice: LaunchableBackend | ContainerBackend) -> LaunchedBackend | LaunchedContainer:
        if isinstance(choice, ContainerBackend):
            assert self._containers is not None, "the run has a host for its containers"
            return self._containers.launch(choice, self._cell_dir, self._settings)
        return launch(choice, self._cell_dir, settings=self._settings, isolation=self._isolation)


def _changed_fields(before: pb.DescribeResponse, after: pb.DescribeResponse) -> str:
    """Return the names of the fields that differ, separated by commas."""
    names = (field.name for field in pb.DescribeResponse.DESCRIPTOR.fields)
    return ", ".join(name for name in names if getattr(before, name) != getattr(after, name)) or "unknown fields"


def check_description(cell: Cell, description: pb.DescribeResponse) -> None:
    """Raise :class:`CellError` if a backend cannot take part in the cell as planned."""
    name = cell.backend
    if description.contract_version.partition(".")[0] != "1":
        raise CellError(
            f"--backend {name}: speaks contract version {description.contract_version}, this harness speaks 1.x"
        )
    if DIGEST_VERSION not in description.digest_versions:
        raise CellError(f"--backend {name}: Describe lists no digest version {DIGEST_VERSION}, which this harness uses")
    diagnostic = description.kind == pb.BACKEND_KIND_DIAGNOSTIC
    if cell.diagnostic and not diagnostic:
        raise CellError(f"--backend {name}: is run as diagnostic, but its Describe says competitor")
    if diagnostic and not cell.diagnostic:
        raise CellError(f"--backend {name}: its Describe says diagnostic; run it as one with --diagnostic {name}")
    most = description.limits.max_items
    if most and (cell.reading.max_items or 0) > most:
        raise CellError(f"--max-items {cell.reading.max_items}: the backend {name} returns at most {most} items")
    option_keys = {option.key for option in description.options}
    for key in cell.backend_options:
        if key not in option_keys:
            names = ", ".join(sorted(option_keys)) or "none"
            raise CellError(f"--option {name}.{key}: the backend declares no such option (declared: {names})")


def described(
    cell_id: str, description: pb.DescribeResponse, isolation: IsolationGrade | None = None
) -> BackendDescribed:
    """Return the log's record of a description."""

    def short(names: Mapping[int, str], number: int, prefix: str) -> str:
        # A backend of a later minor version may use values that this harness has no name for (SPEC.md VER-2).
        return names[number].removeprefix(prefix).lower() if number in names else f"unknown_{number}"

    return BackendDescribed(
        cell_id=cell_id,
        name=description.name,
        version=description.version,
        contract_version=description.contract_version,
        backend_kind="diagnostic" if description.kind == pb.BACKEND_KIND_DIAGNOSTIC else "competitor",
        capabilities=tuple(short(_CAPABILITIES, c, "CAPABILITY_") for c in description.capabilities),
        token_counting=short(_TOKEN_COUNTINGS, description.token_counting, "TOKEN_COUNTING_"),
        preferred_prompt_style=preferred_style(description),
        retention=short(_RETENTIONS, description.retention, "RETENTION_"),
        isolation=isolation,
    )
