"""Budgets: how many calls and tokens one RPC of a kind may spend on models."""

from __future__ import annotations

from dataclasses import dataclass

from memarena.gateway.calls import RefusedError
from memarena.gateway.types import Budget
from memarena.log.records import GatewayCall

BUDGET_SPENT = "budget_spent"
"""Code of the refusal (429), and how it is known on the record."""

METERED_ROUTES = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank"})
"""What counts: calls of a model. Counting tokens and listing models are free."""


@dataclass(slots=True)
class Spent:
    """What one token (one RPC) has spent so far."""

    calls: int = 0
    tokens: int = 0

    def begin(self, budget: Budget, what: str) -> None:
        """Count a call that begins. Raises :class:`RefusedError` (429) if nothing is left of the budget.

        The call that goes over the tokens is still served: how many it takes is known only afterwards.
        """
        if budget.calls is not None and self.calls >= budget.calls:
            raise RefusedError(429, BUDGET_SPENT, f"the budget of {budget.calls} model calls per {what} is spent")
        if budget.tokens is not None and self.tokens >= budget.tokens:
            raise RefusedError(
                429, BUDGET_SPENT, f"the budget of {budget.tokens} tokens per {what} is spent ({self.tokens} so far)"
            )
        self.calls += 1

    def end(self, record: GatewayCall) -> None:
        """Count the tokens of a call that is over, read and written; what a server does not report counts nothing."""
        self.tokens += (record.prompt_tokens or 0) + (record.completion_tokens or 0)
