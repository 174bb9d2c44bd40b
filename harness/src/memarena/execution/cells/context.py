"""Defines what stays the same for all questions of a cell, and helpers that asking and reading share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena_answering import ReaderClient
from memarena_proto import memory_backend_pb2 as pb

from memarena.execution.backends.session import StyleName
from memarena.gateway import CallContext, Gateway, Upstream
from memarena.gateway.types import Role
from memarena.log.records import Cell, GatewayCall, Question, ReaderRef

GENERATING_ROUTES = ("/v1/chat/completions", "/v1/completions")

_ROLES_THAT_GENERATE = ("reader", "extractor")
_ROLES: Mapping[Role, pb.ModelRole.ValueType] = {
    "reader": pb.MODEL_ROLE_READER,
    "extractor": pb.MODEL_ROLE_EXTRACTOR,
    "embedder": pb.MODEL_ROLE_EMBEDDER,
    "reranker": pb.MODEL_ROLE_RERANKER,
}


@dataclass(frozen=True)
class AskContext:
    """What the questions of a cell share: its gateway and reader, and what its backend can do."""

    cell: Cell
    gateway: Gateway
    reader: ReaderRef
    model: str
    """Name by which the gateway offers the reader."""
    reader_client: ReaderClient
    answers_itself: bool
    """Whether the backend is asked for answers; False: the harness reads Search's items (central reading)."""
    counts_bytes: bool
    """Whether the backend counts tokens as UTF-8 bytes / 4, so that its bounds can be checked."""
    prompt_style: StyleName
    answer_timeout_s: float
    forgets: bool = False
    """Whether the backend has Forget."""
    own_model: bool = False
    """Whether the backend calls generating models that are not behind the gateway."""
    helpers: tuple[Upstream, ...] = ()
    """Models of the run other than the reader: an embedder, an extractor, a reranker."""
    cell_token: str | None = None
    """The token of a backend whose own server is configured once (SPEC.md MOD-8)."""

    def begin(self, call: CallContext) -> str:
        """Return a token for an RPC that begins now; the gateway's ``revoke`` ends it."""
        if self.cell_token is None:
            return self.gateway.grant(call)
        self.gateway.begin(self.cell_token, call)
        return self.cell_token

    def access(self, token: str, role: Literal["reader", "extractor"]) -> pb.ModelAccess:
        """Return access to models through the gateway for one call: one that generates, in ``role``, and the helpers.

        The reader extracts if no extractor is configured. With a token of the cell every call has the same access.
        """
        extraction = next((helper for helper in self.helpers if helper.role == "extractor"), None)
        extractor = None if extraction is None else _model(extraction, extraction.context_window_tokens, "extractor")
        if self.cell_token is not None:
            generating = [self._reader("reader"), extractor or self._reader("extractor")]
        elif role == "extractor":
            generating = [extractor or self._reader("extractor")]
        else:
            generating = [self._reader("reader")]
        helper_models = [
            _model(helper, 0, helper.role) for helper in self.helpers if helper.role not in _ROLES_THAT_GENERATE
        ]
        return pb.ModelAccess(base_url=self.gateway.advertised_url, token=token, models=[*generating, *helper_models])

    def _reader(self, role: Literal["reader", "extractor"]) -> pb.Model:
        reader = self.reader
        return pb.Model(
            name=self.model,
            role=_ROLES[role],
            context_window_tokens=reader.context_window_tokens,
            no_system_role=reader.no_system_role,
            counts_tokens=reader.counts_tokens,
        )

    def call_context(self, phase: Literal["search", "answer", "central"], question: Question) -> CallContext:
        """Return what the gateway records with the calls that one question causes."""
        return CallContext(
            phase=phase,
            cell_id=self.cell.cell_id,
            instance_id=question.instance.instance_id,
            ego=question.instance.ego_agent_id,
            day=question.day,
        )


def _model(helper: Upstream, window_tokens: int, role: Role) -> pb.Model:
    return pb.Model(
        name=helper.model,
        role=_ROLES[role],
        context_window_tokens=window_tokens,
        no_system_role=helper.no_system_role,
        counts_tokens=helper.counts_tokens,
    )


def fixed_names(reader_model: str, helpers: Sequence[Upstream]) -> dict[str, str]:
    """Return the model behind each role, by role; without an extractor, the reader extracts.

    A server that is configured once, not for each run, names a model by its role.
    """
    names = {"extractor": reader_model, "reader": reader_model}
    names.update((helper.role, helper.model) for helper in helpers)
    return names


def generating(calls: Sequence[GatewayCall]) -> list[GatewayCall]:
    """Return the calls that generate text."""
    return [call for call in calls if call.route in GENERATING_ROUTES]


def hung(calls: Sequence[GatewayCall], began_ns: int, ended_ns: int) -> GatewayCall | None:
    """Return the model call that used up an RPC's deadline: not finished, and under way for at least half of the time.

    ``began_ns`` and ``ended_ns`` are monotonic readings around the RPC. None if there is no such call; otherwise the
    model's server is to blame, not the backend.
    """
    for call in calls:
        is_waiting = call.received_to_forwarded_ns is not None and call.done_ns is None
        if is_waiting and 2 * (ended_ns - call.started_mono_ns) >= ended_ns - began_ns:
            return call
    return None


def spoke_at_ns(call: GatewayCall) -> int | None:
    """Return the monotonic time at which a call's first text reached the gateway, thinking included; None without text.

    The text of a reply that is not a stream arrives at its end. A reply from the cache has no times.
    """
    if call.received_to_forwarded_ns is None or call.from_cache:
        return None
    first = [ns for ns in (call.first_content_ns, call.first_reasoning_ns) if ns is not None]
    if not first and not call.stream and call.status == 200 and call.done_ns is not None:
        first = [call.done_ns]
    return call.started_mono_ns + call.received_to_forwarded_ns + call.waited_ns + min(first) if first else None


def first_call(calls: Sequence[GatewayCall], until_mono_ns: int | None) -> GatewayCall | None:
    """Return the model call that led to the first TextDelta: the last generating call whose text had begun by then.

    ``until_mono_ns`` is the moment of the first TextDelta; None if there was none (then the last call counts).
    """
    for call in reversed(generating(calls)):
        spoke = (call.first_content_ns, call.first_reasoning_ns) != (None, None)
        if spoke and (until_mono_ns is None or (spoke_at_ns(call) or 0) <= until_mono_ns):
            return call
    return None


def waited_ns(calls: Sequence[GatewayCall], since_mono_ns: int, until_mono_ns: int | None = None) -> int:
    """Return how long calls waited for a busy server or a limit, in ns; waits at the same time count once.

    Args:
        calls: model calls of one RPC.
        since_mono_ns: monotonic reading from which waits count.
        until_mono_ns: monotonic reading up to which they count; None: to their end.
    """
    waiting = [(call.started_mono_ns + (call.received_to_forwarded_ns or 0), call.waited_ns) for call in calls]
    waits = sorted((began, began + waited) for began, waited in waiting if waited)
    # ``last`` is the end of what is counted so far, so that overlapping waits are not counted twice.
    total, last = 0, since_mono_ns
    for began, ended in waits:
        end = ended if until_mono_ns is None else min(ended, until_mono_ns)
        total += max(0, end - max(began, last))
        last = max(last, end)
    return total
