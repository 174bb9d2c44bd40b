"""Enforces budgets: how many model calls and tokens one RPC of a kind may use."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import JsonValue

from memarena.gateway.calls import CALLER_GONE, OpenCall, RefusedError
from memarena.gateway.types import Budget
from memarena.log.records import GatewayCall

BUDGET_SPENT = "budget_spent"
"""Code of the refusal (429) of a call beyond the budget, also in the record of the call."""

PROMPT_ABOVE_BUDGET = "prompt_above_budget"
"""Code of the refusal (429) of a prompt that is longer than its question's budget."""

METERED_ROUTES = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank"})
"""Routes that count: calls of a model. Counting tokens and listing models are free."""

GENERATING_ROUTES = frozenset({"/v1/chat/completions", "/v1/completions"})


@dataclass(slots=True)
class Spent:
    """What one token (one RPC) has used so far."""

    calls: int = 0
    tokens: int = 0

    def begin(self, budget: Budget, what: str) -> None:
        """Count a call that begins. Raises :class:`RefusedError` (429) if the budget is used up.

        The call that exceeds the tokens is still served, as its tokens are known only afterwards.
        """
        if budget.calls is not None and self.calls >= budget.calls:
            raise RefusedError(429, BUDGET_SPENT, f"the budget of {budget.calls} model calls per {what} is spent")
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise RefusedError(
                429, BUDGET_SPENT, f"the budget of {budget.tokens} tokens per {what} is spent ({self.tokens} so far)"
            )
        self.calls += 1

    def end(self, call: OpenCall, record: GatewayCall) -> None:
        """Count the tokens of a call that has ended, those of prompt and reply.

        For tokens that are not reported (the caller hung up before the end, or the server reports none) the worst
        case counts, a token per byte; otherwise hanging up in time would evade any budget.
        """
        prompt, completion = record.prompt_tokens, record.completion_tokens
        if record.route in METERED_ROUTES and not _did_no_work(record):
            prompt = _bytes(json.dumps(call.prompt, ensure_ascii=False)) if prompt is None else prompt
            completion = _bytes(call.output + call.reasoning) if completion is None else completion
        self.tokens += (prompt or 0) + (completion or 0)


def check_prompt(call: OpenCall) -> None:
    """Raise :class:`RefusedError` (429) for a prompt above the limit of the call's RPC."""
    most = call.context.max_prompt_bytes if call.context is not None else None
    if most is not None and call.route in GENERATING_ROUTES and _bytes_of_text(call.prompt) > most:
        message = "the prompt is above the question's budget: context, question, scaffold and a margin"
        raise RefusedError(429, PROMPT_ABOVE_BUDGET, message)


def _bytes_of_text(prompt: JsonValue) -> int:
    """Return the bytes of all strings of a prompt, without the names of its fields."""
    if isinstance(prompt, str):
        return _bytes(prompt)
    parts = prompt.values() if isinstance(prompt, dict) else prompt if isinstance(prompt, list) else ()
    return sum(_bytes_of_text(part) for part in parts)


def _did_no_work(record: GatewayCall) -> bool:
    """Whether no model worked for the caller: its server failed (an infrastructure failure), or refused the request."""
    return record.upstream_failed or 400 <= record.status < CALLER_GONE


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
