"""Sending days: one Ingest per day, again where the contract allows it, a record for each."""

from __future__ import annotations

from collections.abc import Callable

from memarena_proto import memory_backend_pb2 as pb
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from memarena.client.errors import BackendCallError
from memarena.dataset.reading import Dataset
from memarena.gateway import CallContext
from memarena.log.records import IngestDone
from memarena.run.asking import notice_texts
from memarena.run.context import AskContext
from memarena.run.ids import NamespaceIds
from memarena.run.link import BackendGoneError, BackendLink
from memarena.run.wire import DayBatch, day_batch

_TRIES = 5
_BACKOFF_S = 0.2
_LONGEST_WAIT_S = 30.0


class DaySender:
    """Sends the days of one ego. ``problem`` writes one line about the backend to the log."""

    def __init__(
        self,
        ego: str,
        context: AskContext,
        link: BackendLink,
        dataset: Dataset,
        append: Callable[..., None],
        problem: Callable[[str], None],
    ) -> None:
        self._ego = ego
        self._context = context
        self._link = link
        self._dataset = dataset
        self._append = append
        self._problem = problem

    def ingest(self, day: int, ids: NamespaceIds) -> None:
        """Have a day taken in. Raises :class:`BackendGoneError` when it is not, after all allowed retries."""
        try:
            done = self._send(day, ids)
        except BackendCallError as error:
            self._problem(f"ego {self._ego}, day {day}: {error}")
            raise BackendGoneError(f"Ingest of day {day}: {error.code}: {error.message}") from error
        self._append(done)

    def is_replay(self, day: int, ids: NamespaceIds) -> bool:
        """Whether the backend still holds the namespace through ``day``: it must call the same day a replay."""
        try:
            done = self._send(day, ids)
        except BackendCallError:
            # The failed call is on the record; a fresh namespace is what follows.
            return False
        if done.replayed:
            self._append(done)
        return done.replayed

    def remember(self, day: int, ids: NamespaceIds) -> None:
        """Make a day's ids again without sending it, so that they can be translated back."""
        day_batch(self._dataset, self._ego, day, ids, None)

    def _send(self, day: int, ids: NamespaceIds) -> IngestDone:
        """Send a day, again where the contract allows it or the process had to be started again."""
        tries = 0

        def once() -> IngestDone:
            nonlocal tries
            death = self._link.revive()
            if death is not None:
                self._problem(f"the backend's process ended and was started again: {death}")
            tries += 1
            return self._send_once(day, ids, tries - 1)

        retrying = Retrying(
            retry=retry_if_exception(self._may_send_again), stop=stop_after_attempt(_TRIES), wait=_wait_s, reraise=True
        )
        return retrying(once)

    def _may_send_again(self, error: BaseException) -> bool:
        if not isinstance(error, BackendCallError):
            return False
        self._link.settle_death()
        return error.may_retry or self._link.died()

    def _send_once(self, day: int, ids: NamespaceIds, retries: int) -> IngestDone:
        context = self._context
        token = context.gateway.grant(CallContext(phase="ingest", cell_id=context.cell.cell_id, ego=self._ego, day=day))
        batch = day_batch(self._dataset, self._ego, day, ids, context.access(token, pb.MODEL_ROLE_EXTRACTOR))
        try:
            response, duration_ns = self._link.client.ingest(batch.frames)
        except BackendCallError as error:
            self._append(self._done(day, ids, batch, 0, retries, error, pb.IngestResponse()))
            raise
        finally:
            context.gateway.revoke(token)
        return self._done(day, ids, batch, duration_ns, retries, None, response)

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
            notices=notice_texts(response.notices),
            retries=retries,
        )


def _wait_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, BackendCallError) and error.retry_after_s is not None:
        return min(error.retry_after_s, _LONGEST_WAIT_S)
    return _BACKOFF_S * 2.0 ** (state.attempt_number - 1)
