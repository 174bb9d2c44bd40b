"""Tracks what a judging may cost: tokens and money that are spent, reserved for calls in flight, and left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens."""

    prompt_usd_per_mtok: float
    completion_usd_per_mtok: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of these tokens in dollars."""
        return (prompt_tokens * self.prompt_usd_per_mtok + completion_tokens * self.completion_usd_per_mtok) / 1e6


@dataclass(frozen=True)
class Budget:
    """Limits of one judging; None is no limit. ``max_usd`` limits nothing without prices."""

    max_usd: float | None = None
    max_tokens: int | None = None
    prices: Prices | None = None


class BudgetSpentError(Exception):
    """The next call does not fit into the rest of the budget."""


class Ledger:
    """Spending of one judging. A call's worst case is reserved before it is made, so that no limit is overrun.

    For one event loop.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.prompt_tokens = 0
        self.completion_tokens = 0
        # Reserved for calls in flight.
        self._held_prompt = 0
        self._held_completion = 0
        self._calls_in_flight = 0
        self._changed = asyncio.Condition()

    @property
    def usd(self) -> float | None:
        """Dollars spent; None without prices."""
        return self.cost(self.prompt_tokens, self.completion_tokens)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the price of these tokens in dollars; None without prices."""
        prices = self._budget.prices
        return None if prices is None else prices.cost(prompt_tokens, completion_tokens)

    @contextlib.asynccontextmanager
    async def set_aside(self, prompt_tokens: int, completion_tokens: int) -> AsyncIterator[None]:
        """Reserve a call's worst case while the block runs; wait while only calls in flight keep it from fitting.

        Raises BudgetSpentError if it does not fit even with no call in flight.
        """
        async with self._changed:
            while not self._affords(prompt_tokens, completion_tokens):
                if not self._calls_in_flight:
                    raise BudgetSpentError
                await self._changed.wait()
            self._hold(prompt_tokens, completion_tokens, calls=1)
        try:
            yield
        finally:
            async with self._changed:
                self._hold(-prompt_tokens, -completion_tokens, calls=-1)
                self._changed.notify_all()

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count the tokens of a call."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens

    def _hold(self, prompt_tokens: int, completion_tokens: int, calls: int) -> None:
        self._held_prompt += prompt_tokens
        self._held_completion += completion_tokens
        self._calls_in_flight += calls

    def _affords(self, prompt_tokens: int, completion_tokens: int) -> bool:
        prompt = self.prompt_tokens + self._held_prompt + prompt_tokens
        completion = self.completion_tokens + self._held_completion + completion_tokens
        if self._budget.max_tokens is not None and prompt + completion > self._budget.max_tokens:
            return False
        usd = self.cost(prompt, completion)
        return self._budget.max_usd is None or usd is None or usd <= self._budget.max_usd
