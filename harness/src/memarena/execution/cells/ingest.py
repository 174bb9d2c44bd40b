"""Sends days: one Ingest per day, retried if the contract allows it, with a record for each.

After a crash a memory may lack days that it had confirmed, and its answers would be wrong through no fault in recall.
So a backend must prove that it still has its days (it calls a day that is sent again a replay), or gets all of them
again in a new namespace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Literal, Protocol, TypeVar

from memarena_dataset.io.reading import Dataset
from memarena_proto import memory_backend_pb2 as pb
from tenacity import RetryCallState, Retrying, stop_after_attempt

from memarena.client.errors import BackendCallError
from memarena.execution.backends.session import BackendGoneError, BackendSession
from memarena.execution.cells.asking import notices_of
from memarena.execution.cells.context import AskContext, hung, waited_ns
from memarena.execution.cells.messages import DayBatch, check_day, day_batch
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.execution.errors import InfraError
from memarena.gateway import CallContext
from memarena.log.records import GatewayCall, IngestDone

T = TypeVar("T")

_TRIES = 5
"""Most attempts at one call, the first included."""
_ONCE_MORE = frozenset({"DEADLINE_EXCEEDED", "DATA_LOSS"})
"""Codes after which the same call is retried once (SPEC.md ING)."""
_BACKOFF_S = 1.0
"""Delay before a retry if the backend names none; doubled with each try (SPEC.md ERR-3)."""
_LONGEST_WAIT_S = 30.0


class _ReaderFailedError(Exception):
    """A day was not ingested, and a model's server had failed meanwhile: an infrastructure failure in any case."""


class NamespaceLostError(Exception):
    """A namespace no longer has the content of its days, and must be rebuilt.

    ``cause`` says whose fault that is; the message is one line for the log.
    """

    def __init__(self, message: str, cause: Literal["backend", "infra"]) -> None:
        super().__init__(message)
        self.cause: Literal["backend", "infra"] = cause


class ProblemSink(Protocol):
    """Writes a line on a failure to the log, with whose fault it is."""

    def __call__(self, message: str, cause: Literal["backend", "infra"] = "backend") -> None: ...


class DaySender:
    """Sends the days of one ego.

    ``problem`` writes one line about the backend to the log; ``heal_reader`` restarts a failed reader and raises
    InfraError if that is not possible. ``again``: a namespace is given up after a restart, even if the backend still
    has its days.
    """

    def __init__(
        self,
        ego: str,
        context: AskContext,
        link: BackendSession,
        dataset: Dataset,
        append: Callable[..., None],
        problem: ProblemSink,
        heal_reader: Callable[[], None],
        *,
        again: bool = False,
    ) -> None:
        self._again = again
        self._ego = ego
        self._context = context
        self._link = link
        self._dataset = dataset
        self._append = append
        self._problem = problem
        self._heal_reader = heal_reader
        self._told_of_day = False

    def reset(self, ids: NamespaceIds) -> None:
        """Reset the namespace. Raises :class:`BackendGoneError` if that fails after all allowed retries."""
        try:
            self._persist(lambda: self._link.client.reset(ids.namespace))
        except BackendCallError as error:
            raise BackendGoneError(str(error)) from error

    def ingest(self, day: int, ids: NamespaceIds) -> None:
        """Ingest a day, after the day before it.

        Raises :class:`BackendGoneError` if it fails after all allowed retries, InfraError if a reader that the backend
        calls keeps failing, and :class:`NamespaceLostError` if a new namespace is needed: after a restart the backend
        has lost earlier days, or the day was committed although a model call had failed.
        """
        try:
            record = self._send(day, ids, confirmed=day - 1 if day else None)
        except BackendCallError as error:
            self._problem(f"ego {self._ego}, day {day}: {error}")
            raise BackendGoneError(f"Ingest of day {day}: {error.code}: {error.message}") from error
        self._append(record)
        self._compare_day(day, record)
        if day and self._bring_back():
            # It was restarted during the call: an empty memory accepts a later day as its first, so the day before
            # is checked too.
            for on_day in (day - 1, day):
                self._still_knows(on_day, ids, day)

    def _compare_day(self, day: int, record: IngestDone) -> None:
        """Log once that the backend names another day as its last than the one just ingested."""
        reported_day = record.visible_through_day
        if reported_day != day and not self._told_of_day:
            self._told_of_day = True
            self._problem(
                f"ego {self._ego}: Ingest of day {day} says visible_through_day {reported_day}; later days are not told"
            )

    def holds(self, day: int, ids: NamespaceIds, latest: int) -> bool:
        """Whether the backend still has the namespace through ``day``, and nothing after day ``latest``.

        The test is that it must call the same day a replay.
        """
        try:
            record = self._send(day, ids)
        except BackendCallError:
            # The failed call is logged; a new namespace follows.
            return False
        if not record.replayed:
            self._problem(f"ego {self._ego}: day {day} was confirmed, and taken in as a new one when it was sent again")
            return False
        self._append(record)
        return record.visible_through_day is None or record.visible_through_day <= latest

    def remember(self, day: int, ids: NamespaceIds) -> None:
        """Compute a day's opaque ids without sending it, so that they can be translated back."""
        day_batch(self._dataset, self._ego, day, ids, None, self._context.cell.projection)

    def _send(self, day: int, ids: NamespaceIds, confirmed: int | None = None) -> IngestDone:
        """Send a day, and retry if the contract allows it or the backend was restarted."""
        tries = count()
        return self._persist(
            lambda: self._send_once(day, ids, next(tries)), lambda: self._still_knows(confirmed, ids, day)
        )

    def _persist(self, call: Callable[[], T], after_revival: Callable[[], None] = lambda: None) -> T:
        """Call Ingest or Reset, with retries if allowed; a lost backend is restarted first.

        ``after_revival`` runs after such a restart, before the call.
        """

        def once() -> T:
            if self._bring_back():
                after_revival()
            return call()

        retrying = Retrying(retry=self._may_call_again, stop=stop_after_attempt(_TRIES), wait=_wait_s, reraise=True)
        try:
            return retrying(once)
        except _ReaderFailedError as error:
            raise InfraError(str(error)) from error

    def _bring_back(self) -> bool:
        """Restart the backend if it is lost; return whether it was."""
        failure = self._link.revive()
        if failure is not None:
            self._problem(failure)
        return failure is not None

    def _still_knows(self, confirmed: int | None, ids: NamespaceIds, latest: int) -> None:
        """Raise NamespaceLostError unless the backend still has day ``confirmed``; None: no day is confirmed yet."""
        if confirmed is not None and (self._again or not self.holds(confirmed, ids, latest)):
            raise NamespaceLostError(lost_after_crash(confirmed, again=self._again), "backend")

    def _may_call_again(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _ReaderFailedError):
            self._heal_reader()
            return True
        if not isinstance(error, BackendCallError):
            return False
        self._link.settle_failure(error.code)
        once_more = error.code in _ONCE_MORE and state.attempt_number == 1
        return error.may_retry or once_more or self._link.lost()

    def _send_once(self, day: int, ids: NamespaceIds, retries: int) -> IngestDone:
        """Send a day once, and return its record.

        If the call fails, the record is logged and the error raised: as _ReaderFailedError if a model is at fault.
        Raises NamespaceLostError if the day was committed although a model call had failed.
        """
        context = self._context
        token = context.begin(CallContext(phase="ingest", cell_id=context.cell.cell_id, ego=self._ego, day=day))
        access = context.access(token, "extractor")
        batch = day_batch(self._dataset, self._ego, day, ids, access, context.cell.projection)
        check_day(context.cell.backend, self._link.limits, day, self._ego, batch)
        failure: BackendCallError | None = None
        response, duration_ns = pb.IngestResponse(), 0
        began = time.monotonic_ns()
        try:
            response, duration_ns = self._link.client.ingest(batch.frames)
        except BackendCallError as error:
            failure, duration_ns = error, time.monotonic_ns() - began
        finally:
            calls = context.gateway.revoke(token)
        duration_ns = max(0, duration_ns - waited_ns(calls, began))
        record = self._done(day, ids, batch, duration_ns, retries, failure, response)
        if failure is None:
            if (unsettled_call := unsettled_failure(calls)) is not None:
                self._append(record)
                message = f"day {day} came in although model {unsettled_call.model} failed: {unsettled_call.error}"
                raise NamespaceLostError(message, "infra")
            return record
        self._append(record)
        failed_call = next((call for call in calls if call.upstream_failed), None)
        if failed_call is None and failure.code == "DEADLINE_EXCEEDED":
            failed_call = hung(calls, began, time.monotonic_ns())
        if failed_call is not None:
            raise _ReaderFailedError(
                f"reader {failed_call.model} failed while day {day} of {self._ego} came in: {failed_call.error}"
            ) from failure
        raise failure

    def _done(
        self,
        day: int,
        ids: NamespaceIds,
        batch: DayBatch,
        duration_ns: int,
        retries: int,
        failure: BackendCallError | None,
        response: pb.IngestResponse,
    ) -> IngestDone:
        """Return the record of one Ingest call."""
        return IngestDone(
            cell_id=self._context.cell.cell_id,
            ego=self._ego,
            namespace=ids.namespace,
            day=day,
            sessions=batch.sessions,
            turns=batch.turns,
            events=batch.events,
            payload_bytes=batch.payload_bytes,
            duration_ns=duration_ns,
            code=failure.code if failure else "OK",
            message=failure.message if failure else "",
            replayed=response.replayed,
            visible_through_day=None if failure else response.visible_through_day,
            notices=notices_of(response.notices),
            retries=retries,
        )


def unsettled_failure(calls: Sequence[GatewayCall]) -> GatewayCall | None:
    """Return the first model call whose server failed and that was not retried with success; None if there is none."""
    for index, call in enumerate(calls):
        made_again = any(
            later.status == 200 and (later.route, later.model, later.prompt_sha256) == _request_of(call)
            for later in calls[index + 1 :]
        )
        # A backend should shorten a refused prompt; if it did not, its Ingest fails.
        if call.upstream_failed and not call.turned_down and not made_again:
            return call
    return None


def lost_after_crash(day: int, *, again: bool) -> str:
    """Return why a namespace is rebuilt after a restart."""
    if again:
        return f"the backend was started again after day {day}; its days come in again, as the run asks for"
    return f"after a crash the backend no longer knew day {day}, which it had confirmed"


def _request_of(call: GatewayCall) -> tuple[str, str, str]:
    return call.route, call.model, call.prompt_sha256


def _wait_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, BackendCallError) and error.retry_after_s is not None:
        return min(error.retry_after_s, _LONGEST_WAIT_S)
    return _BACKOFF_S * 2.0 ** (state.attempt_number - 1)
