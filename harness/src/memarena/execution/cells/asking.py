"""Asking one question: the timed Search, then the Answer, then the one record that says how it went."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from memarena_answering import count_by_bytes, parse_answer
from memarena_proto import memory_backend_pb2 as pb

from memarena.client.backend import AnswerTrace, BackendClient
from memarena.client.errors import BackendCallError, BackendContractError
from memarena.execution.cells.context import AskContext, generating, hung, ttft_ns
from memarena.execution.cells.harness_reader import read_centrally
from memarena.execution.cells.life_words import LifeWords, words_beyond
from memarena.execution.cells.messages import answer_request, retrieved_items
from memarena.execution.cells.opaque_ids import NamespaceIds
from memarena.execution.cells.prompt_attribution import shown_items
from memarena.execution.errors import CellError
from memarena.gateway.budgets import PROMPT_ABOVE_BUDGET
from memarena.log.records import AnswerSpan, GatewayCall, Question, QuestionAsked, SearchSpan
from memarena.readers.prompt_reading import PROMPT_NOT_UNDERSTOOD

_TOKEN_BYTES = 4
_OWN_TOKEN_BYTES = 8
"""Of a tokenizer that only the backend knows: more than any text takes that people write."""
_SCAFFOLD_BYTES = 8192
_ITEM_LAYOUT_BYTES = 256

_QUOTED_CHARS = 60
BEYOND = "under a bound the prompt holds words of the life that no item of Retrieved holds"

Status = Literal["answered", "backend_failed", "infra_failed", "reader_not_applicable"]
Calls = tuple[GatewayCall, ...]

_FINISH: dict[int, Literal["stop", "length"]] = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}


def ask(
    context: AskContext,
    client: BackendClient,
    question: Question,
    request: pb.SearchRequest,
    ids: NamespaceIds,
    attempt: int,
    life: LifeWords | None = None,
) -> QuestionAsked:
    """Ask once and say how it went, whatever a backend or a reader does. ``life``: to find what a prompt holds of it
    beside the items, where the run sets a bound.

    Raises :class:`CellError` where the backend refuses the options that the run set: what is wrong there is ours, and
    no question of the cell could be answered.
    """
    started = time.monotonic_ns()
    search, calls = _search(context, client, question, request, ids)
    answer: AnswerSpan | None = None
    began = started
    if search.code == "OK":
        began = time.monotonic_ns()
        if context.answers_itself:
            answer, more = _answer(context, client, question, request, ids, search, life)
        else:
            answer, more = read_centrally(context, question, search.items)
        calls += more
    code = answer.code if answer is not None else search.code
    stalled = hung(calls, began, time.monotonic_ns()) if code == "DEADLINE_EXCEEDED" else None
    status, cause = settle(search, answer, calls, stalled)
    if status == "answered" and context.cell.timing and (warm := warm_call(context, calls)):
        status, cause = "infra_failed", warm
    return QuestionAsked(
        cell_id=context.cell.cell_id,
        instance_id=question.instance.instance_id,
        ego=question.instance.ego_agent_id,
        namespace=ids.namespace,
        day=question.day,
        attempt=attempt,
        status=status,
        cause=cause,
        asked_mono_ns=started,
        search=search,
        answer=answer,
        gateway_call_ids=tuple(c.call_id for c in calls),
    )


def warm_call(context: AskContext, calls: Sequence[GatewayCall]) -> str:
    """Why a call of a ``cold_prefill`` reader does not count: it took a prefix from a cache. Empty if none did."""
    if context.reader.result_class != "cold_prefill":
        return ""
    for call in generating(calls):
        if call.model == context.model and call.cached_tokens:
            return (
                f"reader {call.model}: {call.cached_tokens} prompt tokens came from a cache, in a class that has none"
            )
    return ""


def settle(
    search: SearchSpan, answer: AnswerSpan | None, calls: Sequence[GatewayCall], stalled: GatewayCall | None = None
) -> tuple[Status, str]:
    """Status and cause. A model server that failed is ours, and a reader that cannot read the prompt is nobody's fault,
    whatever the backend made of it.

    ``stalled`` is the model call that used up the deadline, if one did.
    """
    if (settled := _of_servers(calls, stalled)) is not None:
        return settled
    kept = "CONTRACT" not in (search.code, answer.code if answer is not None else "")
    if kept and (unread := _not_understood(calls)) is not None:
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
    """Status and cause where a model's server settles the question, None where it does not."""
    for call in calls:
        if call.upstream_failed:
            return "infra_failed", f"reader {call.model}: {call.error}"
    if stalled is not None:
        return "infra_failed", f"reader {stalled.model}: had not finished when the deadline passed"
    return None


def _not_understood(calls: Sequence[GatewayCall]) -> GatewayCall | None:
    """The last call of a reader, if it could not tell context and question in the prompt; a later one may have."""
    last = next(reversed(generating(calls)), None)
    return last if last is not None and last.upstream_code == PROMPT_NOT_UNDERSTOOD else None


def _search(
    context: AskContext, client: BackendClient, question: Question, request: pb.SearchRequest, ids: NamespaceIds
) -> tuple[SearchSpan, Calls]:
    token = context.begin(context.call_context("search", question))
    request.model_access.CopyFrom(context.access(token, "reader"))
    try:
        timed = client.search(request)
    except BackendCallError as error:
        _refuse_options(context, error)
        span = SearchSpan(t_search_ns=None, code=error.code, message=error.message)
    except BackendContractError as error:
        span = SearchSpan(t_search_ns=None, code="CONTRACT", message=str(error))
    else:
        response = timed.response
        broken = _broken_bound(context, request, response)
        span = SearchSpan(
            t_search_ns=None if broken else timed.duration_ns,
            code="CONTRACT" if broken else "OK",
            message=broken,
            items=retrieved_items(response.items, ids),
            visible_through_day=response.visible_through_day,
            backend_reported_us=response.search_time_us or None,
            notices=notice_texts(response.notices),
        )
    return span, context.gateway.revoke(token)


def _refuse_options(context: AskContext, error: BackendCallError) -> None:
    """Raise CellError for a value that the backend says its option does not take (SPEC.md SRC-8)."""
    cell = context.cell
    if error.code == "INVALID_ARGUMENT" and error.field == "options" and cell.backend_options:
        raise CellError(f"--option {cell.backend}: the backend refuses what was set: {error.message}") from error


def prompt_budget_bytes(context: AskContext, request: pb.SearchRequest, search: SearchSpan) -> int | None:
    """Bytes of text that a prompt of this question may have (SPEC.md ANS-10); None where no bound was set.

    The context as it is counted, the question, a scaffold, what laying out an item takes, and a margin of a quarter.
    """
    if not request.max_context_tokens:
        return None
    token_bytes = _TOKEN_BYTES if context.counts_bytes else _OWN_TOKEN_BYTES
    items = max(len(search.items), request.max_items)
    layout = _SCAFFOLD_BYTES + _ITEM_LAYOUT_BYTES * items + len(request.text.encode())
    return request.max_context_tokens * token_bytes * 5 // 4 + layout


def _broken_bound(context: AskContext, request: pb.SearchRequest, response: pb.SearchResponse | pb.Retrieved) -> str:
    """Which of the request's bounds the items break (SPEC.md, SRC); empty if none."""
    if response.visible_through_day > request.as_of_day:
        return f"visible_through_day {response.visible_through_day}, asked as of day {request.as_of_day}"
    if request.max_items and len(response.items) > request.max_items:
        return f"{len(response.items)} items where max_items is {request.max_items}"
    if request.max_context_tokens and context.counts_bytes:
        tokens = sum(count_by_bytes([item.text for item in response.items]))
        if tokens > request.max_context_tokens:
            return f"{tokens} tokens of items where max_context_tokens is {request.max_context_tokens}"
    return ""


def _answer(
    context: AskContext,
    client: BackendClient,
    question: Question,
    request: pb.SearchRequest,
    ids: NamespaceIds,
    search: SearchSpan,
    life: LifeWords | None,
) -> tuple[AnswerSpan, Calls]:
    bound = prompt_budget_bytes(context, request, search)
    token = context.begin(replace(context.call_context("answer", question), max_prompt_bytes=bound))
    request.model_access.CopyFrom(context.access(token, "reader"))
    message = answer_request(request, context.cell.reading, context.model, context.prompt_style)
    trace = AnswerTrace()
    code, text = "OK", ""
    started = time.monotonic_ns()
    try:
        client.answer(message, trace)
    except BackendCallError as error:
        _refuse_options(context, error)
        code, text = error.code, error.message
    except BackendContractError as error:
        code, text = "CONTRACT", str(error)
    calls = context.gateway.revoke(token)
    above = next((call for call in calls if call.refusal == PROMPT_ABOVE_BUDGET), None)
    if above is not None:
        code, text = "CONTRACT", above.error
    elif code == "OK" and trace.retrieved is not None and (broken := _broken_bound(context, request, trace.retrieved)):
        code, text = "CONTRACT", f"Retrieved: {broken}"
    raw = trace.completed.text if trace.completed is not None else "".join(trace.deltas)
    parsed = parse_answer(raw)
    items = retrieved_items(trace.retrieved.items, ids) if trace.retrieved is not None else ()
    if code == "OK" and life is not None and (request.max_context_tokens or request.max_items):
        made = generating(calls)
        if beyond := words_beyond(items, request.text, made, life.through(question.day)):
            code, text = "CONTRACT", f"{BEYOND}: “{beyond[:_QUOTED_CHARS]}…”"
    same = trace.retrieved is not None and items == search.items
    span = AnswerSpan(
        route="backend",
        code=code,
        message=text,
        retrieved_ns=trace.retrieved_ns,
        first_delta_ns=trace.first_delta_ns,
        completed_ns=trace.completed_ns,
        ttft_ns=ttft_ns(calls, None if trace.first_delta_ns is None else started + trace.first_delta_ns),
        model_calls=len(generating(calls)),
        raw=raw,
        answer=parsed.answer,
        reason=parsed.reason,
        parse=parsed.parse,
        finish_reason=_FINISH.get(trace.completed.finish_reason, "unknown") if trace.completed else "unknown",
        visible_through_day=trace.retrieved.visible_through_day if trace.retrieved is not None else None,
        searched_items=same,
        items=() if same else items,
        shown_items=shown_items(items, generating(calls)),
        prompt_style=context.prompt_style,
    )
    return span, calls


def notice_texts(notices: Sequence[pb.Notice]) -> tuple[str, ...]:
    """Notices as lines: code, count, message."""
    return tuple(f"{n.code} ×{max(1, n.count)}: {n.message}".rstrip(": ") for n in notices)
