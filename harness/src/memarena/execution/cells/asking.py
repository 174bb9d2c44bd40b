"""Asks one question: the timed Search, then the Answer, then a single record of both.

The record says whose failure an attempt was: the backend's, which counts as wrong, or that of the harness and its
models, which does not. Backends are compared fairly only if the two are never confused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memarena_answering import count_by_bytes, parse_answer
from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import AnswerTrace, BackendClient
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.audit.life_audit import LifeAudit
from memarena.execution.audit.prompt_attribution import shown_items
from memarena.execution.cells.context import AskContext, first_call, generating, hung, spoke_at_ns, waited_ns
from memarena.execution.cells.harness_reader import read_centrally
from memarena.execution.cells.messages import answer_request, retrieved_items
from memarena.execution.cells.non_answers import non_answer
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.execution.errors import CellError
from memarena.gateway.budgets import PROMPT_ABOVE_BUDGET
from memarena.log.base import PROMPT_NOT_UNDERSTOOD
from memarena.log.records import (
    AnswerSpan,
    GatewayCall,
    Notice,
    Question,
    QuestionAsked,
    SearchSpan,
)

_TOKEN_BYTES = 4
"""Bytes per token of a backend that counts as the contract proposes: UTF-8 bytes divided by 4."""
_OWN_TOKEN_BYTES = 8
"""Bytes per token assumed for a tokenizer that only the backend knows: more than any text of people has."""
_SCAFFOLD_BYTES = 8192
"""Bytes of a prompt that are neither context nor question, instructions above all: a generous bound."""
_ITEM_LAYOUT_BYTES = 256
"""Bytes that laying out an item may add, such as its date and number."""
_MOST_NOTICES = 64
_NOTICE_CODE_CHARS = 100
_NOTICE_CHARS = 1_000

Status = Literal["answered", "backend_failed", "infra_failed", "reader_not_applicable"]
Calls = tuple[GatewayCall, ...]

_FINISH: dict[int, Literal["stop", "length"]] = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}


@dataclass(frozen=True)
class Replies:
    """The results of one question. Times are readings of the monotonic clock."""

    search: SearchSpan
    answer: AnswerSpan | None
    """None if Search failed, so that no answer was requested."""
    calls: Calls
    started_mono_ns: int
    answer_started_mono_ns: int
    ended_mono_ns: int


def ask(
    context: AskContext, client: BackendClient, question: Question, request: pb.SearchRequest, ids: NamespaceIds
) -> Replies:
    """Search, then Answer; failures of backend and reader are part of the replies.

    Raises :class:`CellError` if the backend refuses the run's options: the configuration is at fault, and no question
    of the cell could be answered.
    """
    started = time.monotonic_ns()
    search, calls = _search(context, client, question, request, ids)
    answer: AnswerSpan | None = None
    began = started
    if search.code == "OK":
        began = time.monotonic_ns()
        if context.answers_itself:
            answer, more = _answer(context, client, question, request, ids, search)
        else:
            answer, more = read_centrally(context, question, search.items)
        calls += more
    return Replies(search, answer, calls, started, began, time.monotonic_ns())


def record_of(
    context: AskContext,
    question: Question,
    namespace: str,
    attempt: int,
    replies: Replies,
    audit: LifeAudit | None,
) -> QuestionAsked:
    """Return the record of the attempt. ``audit`` is the audit of the ingested life; None: nothing is audited."""
    # The audit comes first, since its findings decide the status.
    calls = replies.calls
    search, answer = replies.search, replies.answer
    if audit is not None:
        search, answer = audited(context, audit, question, replies)
    code = answer.code if answer is not None else search.code
    stalled = None
    if code == "DEADLINE_EXCEEDED":
        stalled = hung(calls, replies.answer_started_mono_ns, replies.ended_mono_ns)
    status, cause = status_and_cause(search, answer, calls, stalled)
    if status == "answered" and context.cell.timing and (warm := warm_call(context, calls)):
        status, cause = "infra_failed", warm
    return QuestionAsked(
        cell_id=context.cell.cell_id,
        instance_id=question.instance.instance_id,
        ego=question.instance.ego_agent_id,
        namespace=namespace,
        day=question.day,
        attempt=attempt,
        status=status,
        cause=cause,
        asked_mono_ns=replies.started_mono_ns,
        search=search,
        answer=answer,
        gateway_call_ids=tuple(c.call_id for c in calls),
    )


def audited(
    context: AskContext, audit: LifeAudit, question: Question, replies: Replies
) -> tuple[SearchSpan, AnswerSpan | None]:
    """Return both spans with their items audited; failed if items or prompt have forbidden text (SPEC.md SRC, ANS).

    A diagnostic may be sent more than its ego's life (SPEC.md EVD), so that no text fails it.
    """
    search, answer, question_text, day = replies.search, replies.answer, question.question_text, question.day
    search = search.model_copy(update={"items": audit.items(search.items, day)})
    if answer is not None:
        answer = answer.model_copy(update={"items": audit.items(answer.items, day)})
    if context.cell.diagnostic:
        return search, answer
    if search.code == "OK" and (broken := audit.never_ingested((i.text for i in search.items), question_text, day)):
        contract_failure = {"code": "CONTRACT", "message": f"an item {broken}", "t_search_ns": None}
        search = search.model_copy(update=contract_failure)
    if answer is None or answer.code != "OK" or answer.route != "backend":
        return search, answer
    broken = audit.never_ingested((i.text for i in answer.items), question_text, day)
    broken = f"an item of Retrieved {broken}" if broken else ""
    reading = context.cell.reading
    if not broken and (reading.max_context_tokens or reading.max_items):
        items = search.items if answer.searched_items else answer.items
        broken = audit.beyond(items, question_text, generating(replies.calls), day)
    if broken:
        answer = answer.model_copy(update={"code": "CONTRACT", "message": broken})
    return search, answer


def warm_call(context: AskContext, calls: Sequence[GatewayCall]) -> str:
    """Return why a call of a ``cold_prefill`` reader does not count: it used a cached prefix. Empty if none did."""
    if context.reader.result_class != "cold_prefill":
        return ""
    for call in generating(calls):
        if call.model == context.model and call.cached_tokens:
            return (
                f"reader {call.model}: {call.cached_tokens} prompt tokens came from a cache, in a class that has none"
            )
    return ""


def status_and_cause(
    search: SearchSpan, answer: AnswerSpan | None, calls: Sequence[GatewayCall], stalled: GatewayCall | None = None
) -> tuple[Status, str]:
    """Return the status of an attempt and, unless it was answered, its cause in a line.

    The order decides. First the model servers: their failure is ours, whatever the backend made of it. Then a prompt
    that the reader does not understand, which is no fault of the backend's unless it broke the contract. What remains
    is the backend's, except for a failed answer of central reading. ``stalled`` is the model call that used up the
    deadline; None if there is none.
    """
    if (of_servers := _of_servers(calls, stalled)) is not None:
        return of_servers
    within_contract = "CONTRACT" not in (search.code, answer.code if answer is not None else "")
    if within_contract and (unread := _not_understood(calls)) is not None:
        return "reader_not_applicable", f"reader {unread.model}: {unread.error}"
    if search.code != "OK":
        return "backend_failed", f"Search: {search.code}: {search.message}"
    if answer is None:
        return "infra_failed", "no answer was asked for"
    if answer.code != "OK":
        status: Status = "backend_failed" if answer.route == "backend" else "infra_failed"
        return status, f"Answer: {answer.code}: {answer.message}"
    return "answered", ""


def _of_servers(calls: Sequence[GatewayCall], stalled: GatewayCall | None) -> tuple[Status, str] | None:
    """Return status and cause if a model's server decides how the question ends, else None."""
    for number, call in enumerate(calls):
        if call.upstream_failed and not _made_good(call, calls[number + 1 :]):
            return "infra_failed", f"reader {call.model}: {call.error}"
    cut = next((call for call in calls if call.cut_prompt), None)
    if cut is not None:
        return "infra_failed", (
            f"reader {cut.model}: the server read {cut.prompt_tokens} tokens of a prompt of {cut.prompt_words} words: "
            "it cuts what is too long; state its window with --reader-window"
        )
    if stalled is not None:
        return "infra_failed", f"reader {stalled.model}: had not finished when the deadline passed"
    return None


def _made_good(call: GatewayCall, later: Sequence[GatewayCall]) -> bool:
    """Whether a refused request was followed by an accepted one, with a shorter prompt for example."""
    return call.turned_down and any(
        later_call.model == call.model and later_call.status == 200 for later_call in generating(later)
    )


def _not_understood(calls: Sequence[GatewayCall]) -> GatewayCall | None:
    """Return the last generating call if its reader recognised no context or question in the prompt; else None."""
    last = next(reversed(generating(calls)), None)
    return last if last is not None and last.upstream_code == PROMPT_NOT_UNDERSTOOD else None


def _search(
    context: AskContext, client: BackendClient, question: Question, request: pb.SearchRequest, ids: NamespaceIds
) -> tuple[SearchSpan, Calls]:
    """Search for a question; return its span, without time spent waiting for models, and the model calls."""
    token = context.begin(context.call_context("search", question))
    request.model_access.CopyFrom(context.access(token, "reader"))
    started = time.monotonic_ns()
    try:
        reply = client.search(request)
    except BackendCallError as error:
        _refuse_options(context, error)
        span = SearchSpan(t_search_ns=None, code=error.code, message=error.message)
    except BackendContractError as error:
        span = SearchSpan(t_search_ns=None, code="CONTRACT", message=str(error))
    else:
        response = reply.response
        broken = _broken_bound(context, request, response)
        span = SearchSpan(
            t_search_ns=None if broken else reply.duration_ns,
            code="CONTRACT" if broken else "OK",
            message=broken,
            items=retrieved_items(response.items, ids),
            visible_through_day=response.visible_through_day,
            backend_reported_us=response.search_time_us or None,
            notices=notices_of(response.notices),
        )
    calls = context.gateway.revoke(token)
    if span.t_search_ns is not None and (waited := waited_ns(calls, started)):
        span = span.model_copy(update={"t_search_ns": max(0, span.t_search_ns - waited)})
    return span, calls


def _refuse_options(context: AskContext, error: BackendCallError) -> None:
    """Raise CellError for a value that the backend rejects for its option (SPEC.md SRC-8)."""
    cell = context.cell
    if error.code == "INVALID_ARGUMENT" and error.field == "options" and cell.backend_options:
        raise CellError(f"--option {cell.backend}: the backend refuses what was set: {error.message}") from error


def prompt_budget_bytes(context: AskContext, request: pb.SearchRequest, search: SearchSpan) -> int | None:
    """Return the bytes of text that a prompt of this question may have (SPEC.md ANS-10); None without a bound.

    The context as it is counted, the question, a scaffold, what laying out an item takes, and a margin of a quarter.
    """
    if not request.max_context_tokens:
        return None
    token_bytes = _TOKEN_BYTES if context.counts_bytes else _OWN_TOKEN_BYTES
    items = max(len(search.items), request.max_items)
    layout = _SCAFFOLD_BYTES + _ITEM_LAYOUT_BYTES * items + len(request.text.encode())
    return request.max_context_tokens * token_bytes * 5 // 4 + layout


def _broken_bound(context: AskContext, request: pb.SearchRequest, response: pb.SearchResponse | pb.Retrieved) -> str:
    """Return which of the request's bounds the items exceed (SPEC.md, SRC); empty if none."""
    if response.visible_through_day > request.as_of_day:
        return f"visible_through_day {response.visible_through_day}, asked as of day {request.as_of_day}"
    if request.max_items and len(response.items) > request.max_items:
        return f"{len(response.items)} items where max_items is {request.max_items}"
    if request.max_context_tokens and context.counts_bytes:
        tokens = sum(count_by_bytes([item.text for item in response.items]))
        if tokens > request.max_context_tokens:
            return f"{tokens} tokens of items where max_context_tokens is {request.max_context_tokens}"
    return ""


@dataclass(frozen=True)
class _Exchange:
    """One Answer: the events that the backend sent, the model calls that it caused, and how the RPC ended."""

    trace: AnswerTrace
    calls: Calls
    code: str
    """``OK``, the status of a failed RPC, or ``CONTRACT``."""
    message: str


def _answer(
    context: AskContext,
    client: BackendClient,
    question: Question,
    request: pb.SearchRequest,
    ids: NamespaceIds,
    search: SearchSpan,
) -> tuple[AnswerSpan, Calls]:
    exchange = _exchange(context, client, question, request, search)
    return _answer_span(context, exchange, ids, search), exchange.calls


def _exchange(
    context: AskContext, client: BackendClient, question: Question, request: pb.SearchRequest, search: SearchSpan
) -> _Exchange:
    """Call Answer, wait for its end, and check the events against the contract."""
    budget_bytes = prompt_budget_bytes(context, request, search)
    token = context.begin(replace(context.call_context("answer", question), max_prompt_bytes=budget_bytes))
    request.model_access.CopyFrom(context.access(token, "reader"))
    trace = AnswerTrace()
    code, message = "OK", ""
    try:
        client.answer(answer_request(request, context.cell.reading, context.model, context.prompt_style), trace)
    except BackendCallError as error:
        _refuse_options(context, error)
        code, message = error.code, error.message
    except BackendContractError as error:
        code, message = "CONTRACT", str(error)
    calls = context.gateway.revoke(token)
    above = next((call for call in calls if call.refusal == PROMPT_ABOVE_BUDGET), None)
    if above is not None:
        code, message = "CONTRACT", above.error
    elif code == "OK" and (fault := _contract_fault(context, request, trace, calls)):
        code, message = "CONTRACT", fault
    return _Exchange(trace, calls, code, message)


def _answer_span(context: AskContext, exchange: _Exchange, ids: NamespaceIds, search: SearchSpan) -> AnswerSpan:
    """Return the record of an Answer. Times are from its start, less the waits of its model calls for a busy server."""
    trace, calls = exchange.trace, exchange.calls
    raw = trace.completed.text if trace.completed is not None else "".join(trace.deltas)
    reading = parse_answer(raw)
    items = retrieved_items(trace.retrieved.items, ids) if trace.retrieved is not None else ()
    reads_search_items = trace.retrieved is not None and items == search.items
    first = first_call(calls, None if trace.first_delta_ns is None else trace.started_mono_ns + trace.first_delta_ns)
    finish: Literal["stop", "length", "unknown"]
    finish = "unknown" if trace.completed is None else _FINISH.get(trace.completed.finish_reason, "unknown")

    def net(offset_ns: int | None) -> int | None:
        if offset_ns is None:
            return None
        return max(0, offset_ns - waited_ns(calls, trace.started_mono_ns, trace.started_mono_ns + offset_ns))

    return AnswerSpan(
        route="backend",
        code=exchange.code,
        message=exchange.message,
        retrieved_ns=net(trace.retrieved_ns),
        first_delta_ns=net(trace.first_delta_ns),
        completed_ns=net(trace.completed_ns),
        ttft_ns=first.first_content_ns if first is not None else None,
        reasoning_ttft_ns=first.first_reasoning_ns if first is not None else None,
        waited_ns=waited_ns(calls, trace.started_mono_ns),
        model_calls=len(generating(calls)),
        raw=raw,
        answer=reading.answer,
        reason=reading.reason,
        parse=reading.parse,
        finish_reason=finish,
        non_answer=non_answer(reading, raw, calls, finish) if exchange.code == "OK" else "",
        visible_through_day=trace.retrieved.visible_through_day if trace.retrieved is not None else None,
        searched_items=reads_search_items,
        items=() if reads_search_items else items,
        shown_items=shown_items(items, generating(calls)),
        prompt_style=context.prompt_style,
    )


def _contract_fault(
    context: AskContext, request: pb.SearchRequest, trace: AnswerTrace, calls: Sequence[GatewayCall]
) -> str:
    """Return how an answer that ended with OK breaks the contract; empty if it does not."""
    if trace.retrieved is not None and (broken := _broken_bound(context, request, trace.retrieved)):
        return f"Retrieved: {broken}"
    return "" if context.own_model else text_before_reader(trace, calls)


def text_before_reader(trace: AnswerTrace, calls: Sequence[GatewayCall]) -> str:
    """Return a message with both times if a backend wrote before the reader did (SPEC.md ANS); else empty.

    Empty too if the reader wrote nothing, or a reply of it came from a cache: scoring marks an answer without a reader.
    """
    if any(call.from_cache for call in calls):
        return ""
    wrote = trace.first_delta_ns
    if wrote is None and trace.completed is not None and trace.completed.text:
        wrote = trace.completed_ns
    spoke = [at for call in generating(calls) if (at := spoke_at_ns(call)) is not None]
    first = min(spoke, default=trace.started_mono_ns) - trace.started_mono_ns
    if wrote is None or wrote >= first:
        return ""
    return (
        f"text of the answer came {wrote / 1e6:.1f} ms after the request, before the reader's first text at the "
        f"gateway ({first / 1e6:.1f} ms)"
    )


def notices_of(notices: Sequence[pb.Notice]) -> tuple[Notice, ...]:
    """Return notices for the log. SPEC.md bounds neither their number nor their length, so both are cut."""
    shortened = [
        Notice(code=n.code[:_NOTICE_CODE_CHARS], count=max(1, n.count), message=n.message[:_NOTICE_CHARS])
        for n in notices[:_MOST_NOTICES]
    ]
    left_out = len(notices) - len(shortened)
    return (*shortened, Notice(code="notices.left_out", count=left_out)) if left_out else tuple(shortened)
