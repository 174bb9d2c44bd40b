"""Fits context into a reader's window: chooses the items, cuts one if needed, and builds the prompt."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from memarena_answering.layout import join_items, render_item, render_messages
from memarena_answering.model import (
    AnsweringError,
    Asker,
    ContextItem,
    Message,
    Prompt,
    PromptTooLongError,
    ReadingPlan,
    TokenCounter,
)

TEMPLATE_MARGIN_TOKENS = 48
"""Tokens reserved for those that a chat template adds around two messages (role marks, a date line)."""

ESTIMATE_SHARE = 0.75
"""Share of the window that is used if tokens are only estimated, as digits and rare words cost more than bytes/4."""

_PIECE = re.compile(r"\s*\S{1,24}")
"""A word with the space before it, which is how tokenizers see words; scripts without spaces in runs of 24."""


def count_by_bytes(texts: Sequence[str]) -> list[int]:
    """Estimate the tokens of each text: UTF-8 bytes divided by 4, rounded up."""
    return [math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4) for text in texts]


@dataclass(frozen=True, slots=True)
class _Request:
    """The parts of a prompt, and its limits in tokens (``inf``: none)."""

    items: tuple[ContextItem, ...]
    question: str
    asked_at: str
    asker: Asker | None
    plan: ReadingPlan
    prompt_limit: float
    context_limit: float

    def messages(self, body: str) -> tuple[Message, ...]:
        return render_messages(
            body,
            self.question,
            self.asked_at,
            self.asker,
            no_system_role=self.plan.no_system_role,
            policy_header=self.plan.policy_header,
            d6_rules=self.plan.d6_rules,
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A finished prompt and its counts."""

    messages: tuple[Message, ...]
    context_tokens: int
    prompt_tokens: int

    def excess(self, request: _Request) -> float:
        """Return the tokens above the limits; the prompt fits if it is 0 or less."""
        return max(self.prompt_tokens - request.prompt_limit, self.context_tokens - request.context_limit)


def _counted(count: TokenCounter, texts: Sequence[str]) -> list[int]:
    counts = list(count(texts))
    if len(counts) != len(texts) or any(text_tokens < 0 for text_tokens in counts):
        raise AnsweringError(f"token counter: expected {len(texts)} counts of at least 0, got {counts[:5]}")
    return counts


def _texts(request: _Request, rendered: Sequence[str]) -> tuple[tuple[Message, ...], list[str]]:
    body = join_items(rendered, request.plan.style)
    messages = request.messages(body)
    return messages, [body, *(message.content for message in messages)]


def _attempt(request: _Request, rendered: Sequence[str], count: TokenCounter) -> _Attempt:
    messages, texts = _texts(request, rendered)
    context, *parts = _counted(count, texts)
    return _Attempt(messages, context if rendered else 0, sum(parts))


def prompt_limit(plan: ReadingPlan) -> float:
    """Return the maximum of tokens of all messages together; infinity if the window is unknown."""
    if plan.context_window_tokens <= 0:
        return math.inf
    share = 1.0 if plan.counts_tokens else ESTIMATE_SHARE
    return math.floor(plan.context_window_tokens * share) - plan.max_tokens - TEMPLATE_MARGIN_TOKENS


def _survivors(items: Sequence[ContextItem], costs: Sequence[int], budget: float) -> list[int]:
    """Return the sorted indices of the best items within the budget, at least one; of equal scores the earlier wins."""
    by_rank = _by_rank(items)
    total, count = 0, 0
    for index in by_rank:
        total += costs[index]
        if total > budget:
            break
        count += 1
    return sorted(by_rank[: max(count, 1)])


def _by_rank(items: Sequence[ContextItem]) -> list[int]:
    return sorted(range(len(items)), key=lambda i: (-_score(items[i]), i))


def _score(item: ContextItem) -> float:
    return -math.inf if math.isnan(item.score) else item.score


def _whole(text: str, end: int) -> int:
    """Return the cut offset, moved left so that it splits no combined character."""
    while 0 < end < len(text) and (
        unicodedata.combining(text[end]) or text[end] in "\u200d\ufe0e\ufe0f" or text[end - 1] == "\u200d"
    ):
        end -= 1
    return end


def _cut(item: ContextItem, request: _Request, count: TokenCounter, budget: float) -> ContextItem | None:
    """Cut an item to its longest prefix, ending at a line or word, that should fit the budget; None if nothing does.

    Lines are counted in one call; the words of the first line that is too long in another.
    """
    lines = item.text.splitlines(keepends=True)
    head, *costs = _counted(count, [render_item(replace(item, text=""), request.plan.style), *lines])
    room = budget - head
    fitting = sum(1 for total in accumulate(costs) if total <= room)
    end = sum(len(line) for line in lines[:fitting])
    room -= sum(costs[:fitting])
    # Words are counted in a second call only if they can fill a tenth of the budget or more.
    if fitting < len(lines) and room > 0.1 * budget:
        pieces = _PIECE.findall(lines[fitting])
        words = sum(1 for total in accumulate(_counted(count, pieces)) if total <= room)
        end = _whole(item.text, end + sum(len(piece) for piece in pieces[:words]))
    text = item.text[:end].rstrip()
    return replace(item, text=text) if text else None


def build_prompt(
    items: Sequence[ContextItem],
    question: str,
    asked_at: str,
    asker: Asker | None,
    plan: ReadingPlan,
    count: TokenCounter,
) -> Prompt:
    """Build the prompt for a question over as many of the items as fit, in their order.

    The budget of the context is ``plan.max_context_tokens`` (if set), and at most the window less the reply, the
    scaffold, the question and a margin for the chat template. If the items exceed it, whole items with the lowest score
    are dropped first (ties: the later one); an item that is too long alone is cut at its end. The finished prompt is
    counted as a whole, so that it never exceeds the window by the counter. ``asker`` None: the prompt says nothing of
    who asks.

    Raises :class:`PromptTooLongError` if the prompt exceeds the window even without any item.
    """
    limit = float(plan.max_context_tokens) if plan.max_context_tokens > 0 else math.inf
    request = _Request(tuple(items), question, asked_at, asker, plan, prompt_limit(plan), limit)
    rendered = [render_item(item, plan.style) for item in request.items]
    _, empty_texts = _texts(request, [])
    # If all items may fit by a rough estimate, they are counted with the scaffold, in a single call.
    likely = sum(count_by_bytes(rendered)) <= 1.25 * min(request.prompt_limit, request.context_limit)
    whole_messages, whole_texts = _texts(request, rendered) if likely else ((), [])
    counts = _counted(count, [*empty_texts, *whole_texts])
    scaffold = sum(counts[1 : len(empty_texts)])
    if scaffold > request.prompt_limit:
        raise PromptTooLongError(
            f"the question and the scaffold take {scaffold} tokens, and {plan.max_tokens} are kept for the reply: "
            f"more than the window of {plan.context_window_tokens} tokens of {plan.model!r} holds"
        )
    if likely:
        context, *parts = counts[len(empty_texts) :]
        attempt = _Attempt(whole_messages, context if rendered else 0, sum(parts))
        if attempt.excess(request) <= 0:
            indices = tuple(range(len(rendered)))
            return Prompt(attempt.messages, len(indices), 0, 0, attempt.context_tokens, attempt.prompt_tokens, indices)
    return _shrunk(request, rendered, scaffold, count)


def _shrunk(request: _Request, rendered: Sequence[str], scaffold: int, count: TokenCounter) -> Prompt:
    """Return the prompt over fewer items, with trials until the counted prompt fits; without items if none fits."""
    costs = _counted(count, [f"{item_text}\n" for item_text in rendered])
    budget = min(request.prompt_limit - scaffold, request.context_limit)
    fitting: Prompt | None = None
    while budget > 0 and rendered:
        trial = _trial(request, rendered, costs, budget, count)
        if trial is None:
            break
        prompt, excess = trial
        if excess > 0 and fitting is not None:
            return fitting
        if excess > 0:
            # The parts' sum misjudged the whole: ask for less, in steps that grow so that few are needed.
            budget = min(budget - excess, budget * 0.98)
        elif fitting is None and _room_for_more(request, costs, prompt, -excess):
            # It misjudged the other way, as with counts that are rounded up part by part: ask once for more.
            fitting, budget = prompt, budget - excess
        else:
            return prompt
    attempt = _attempt(request, [], count)
    return fitting or Prompt(attempt.messages, 0, len(rendered), 0, 0, attempt.prompt_tokens)


def _room_for_more(request: _Request, costs: Sequence[int], prompt: Prompt, slack: float) -> bool:
    """Whether the best dropped item fits into the tokens that are left."""
    if prompt.cut_items or not prompt.dropped_items:
        return False
    return costs[_by_rank(request.items)[prompt.kept_items]] <= slack


def _trial(
    request: _Request, rendered: Sequence[str], costs: Sequence[int], budget: float, count: TokenCounter
) -> tuple[Prompt, float] | None:
    """Return the prompt with items within the budget by their costs, and by how many tokens it exceeds the limits.

    None if not even a part of the best item fits.
    """
    indices = _survivors(request.items, costs, budget)
    texts, cut = [rendered[i] for i in indices], 0
    if len(indices) == 1 and costs[indices[0]] > budget:
        shorter = _cut(request.items[indices[0]], request, count, budget)
        if shorter is None:
            return None
        texts = [render_item(shorter, request.plan.style)]
        cut = int(texts[0] != rendered[indices[0]])
    attempt = _attempt(request, texts, count)
    dropped = len(rendered) - len(indices)
    prompt = Prompt(
        attempt.messages, len(indices), dropped, cut, attempt.context_tokens, attempt.prompt_tokens, tuple(indices)
    )
    return prompt, attempt.excess(request)
