"""Implements central reading: the harness asks the reader over Search's items, instead of the backend's Answer.

It is used for backends without Answer, and for all if ``central_reading`` is set. Prompts are built by the same engine
as in the kit (``memarena_answering``), and calls go through the same gateway, so that both kinds of answers and their
TTFT (time to the first token) can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from memarena_answering import (
    AnsweringError,
    Asker,
    Completion,
    ContextItem,
    PromptStyle,
    ReaderCallError,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
    parse_answer,
)

from memarena.execution.cells.context import AskContext, first_call, generating, waited_ns
from memarena.execution.cells.non_answers import non_answer
from memarena.log.records import AnswerSpan, GatewayCall, Question, RetrievedItem


@dataclass
class _Reply:
    """The result of asking the reader, complete or failed. Offsets are nanoseconds since the start."""

    in_prompt: tuple[int, ...] | None = None
    """Indices of the items in the prompt; None if no prompt was built."""
    deltas: list[str] = field(default_factory=list)
    first_delta_ns: int | None = None
    completion: Completion | None = None
    completed_ns: int | None = None
    code: str = "OK"
    message: str = ""


def read_centrally(
    context: AskContext, question: Question, items: Sequence[RetrievedItem]
) -> tuple[AnswerSpan, tuple[GatewayCall, ...]]:
    """Build the prompt, ask the reader, time it. Offsets count from the time at which the items were available."""
    token = context.gateway.grant(context.call_context("central", question))
    started = time.monotonic_ns()
    reply = _ask(context, question, items, token, started)
    first_delta_ns, completed_ns = reply.first_delta_ns, reply.completed_ns
    calls = context.gateway.revoke(token)
    text = reply.completion.text if reply.completion is not None else "".join(reply.deltas)
    reading = parse_answer(text)
    first = first_call(calls, None if first_delta_ns is None else started + first_delta_ns)
    waited = waited_ns(calls, started)
    finish = reply.completion.finish_reason if reply.completion is not None else "unknown"
    span = AnswerSpan(
        route="central",
        code=reply.code,
        message=reply.message,
        retrieved_ns=0,
        first_delta_ns=None if first_delta_ns is None else max(0, first_delta_ns - waited),
        completed_ns=None if completed_ns is None else max(0, completed_ns - waited),
        ttft_ns=first.first_content_ns if first is not None else None,
        reasoning_ttft_ns=first.first_reasoning_ns if first is not None else None,
        waited_ns=waited,
        model_calls=len(generating(calls)),
        raw=text,
        answer=reading.answer,
        reason=reading.reason,
        parse=reading.parse,
        finish_reason=finish,
        non_answer=non_answer(reading, text, calls, finish) if reply.code == "OK" else "",
        searched_items=True,
        shown_items=reply.in_prompt,
        prompt_style=context.prompt_style,
    )
    return span, calls


def _ask(context: AskContext, question: Question, items: Sequence[RetrievedItem], token: str, started: int) -> _Reply:
    """Ask with a prompt over the items; ``started`` on the monotonic clock, in nanoseconds."""
    plan, client, reply = reading_plan(context), context.reader_client, _Reply()
    try:
        counter = client.counter(token, plan.model) if plan.counts_tokens else count_by_bytes
        prompt = build_prompt(
            [ContextItem(text=i.text, time=i.time, score=i.score) for i in items],
            question.question_text,
            question.asked_at,
            Asker(kind=question.requester_kind, name=question.asker_name, relationship=question.relationship),
            plan,
            counter,
        )
        reply.in_prompt = prompt.kept
        for event in client.stream(prompt, plan, token, context.answer_timeout_s):
            if isinstance(event, Completion):
                reply.completion = event
            else:
                if reply.first_delta_ns is None:
                    reply.first_delta_ns = time.monotonic_ns() - started
                reply.deltas.append(event.text)
    except ReaderCallError as error:
        reply.code, reply.message = "READER", str(error)
    except AnsweringError as error:
        reply.code, reply.message = "PROMPT", str(error)
    if reply.completion is not None:
        reply.completed_ns = time.monotonic_ns() - started
    return reply


def reading_plan(context: AskContext) -> ReadingPlan:
    """Return the cell's reading parameters for the answering engine."""
    reading, reader = context.cell.reading, context.reader
    return ReadingPlan(
        model=context.model,
        max_tokens=reading.max_reply_tokens,
        temperature=reading.temperature,
        seed=reading.seed,
        style=PromptStyle(context.prompt_style),
        thinking=reading.thinking,
        context_window_tokens=reader.context_window_tokens,
        max_context_tokens=reading.max_context_tokens,
        no_system_role=reader.no_system_role,
        d6_rules=reading.d6_rules,
        counts_tokens=reader.counts_tokens,
    )
