"""Finds out which items were in a reader's prompt, from the prompt that went through the gateway.

A backend that answers itself reports what it retrieved (ANS-2), not what fitted the reader's window (ANS-6). The prompt
shows that for any backend, without relying on what the backend declares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memarena_answering import Message, split_prompt

from memarena.log.records import GatewayCall, RetrievedItem


def shown_items(items: Sequence[RetrievedItem], calls: Sequence[GatewayCall]) -> tuple[int, ...] | None:
    """Return the indices of the items whose text is in a prompt of the calls, in their order.

    None if that is unknown: no prompt was logged, or it has no item unchanged, so that its layout is not recognised. An
    item whose end was cut to fit counts as shown.
    """
    prompts = [call.prompt for call in calls if call.prompt]
    if not prompts or not items:
        return None
    messages = [message for prompt in prompts for message in _messages(prompt)]
    if messages and (parts := split_prompt(messages)) is not None:
        return _match_indices([item.text for item in parts.items], items)
    context = prompt_text(calls)
    indices = tuple(index for index, item in enumerate(items) if plain(item.text) and plain(item.text) in context)
    return indices or None


def prompt_text(calls: Sequence[GatewayCall]) -> str:
    """Return the text of all prompts of the calls, as :func:`plain` text; "" if no prompt was logged."""
    prompts = [call.prompt for call in calls if call.prompt]
    messages = [message for prompt in prompts for message in _messages(prompt)]
    return plain("\n".join(message.content for message in messages) or "\n".join(prompts))


def _messages(prompt: str) -> list[Message]:
    """Return the messages of a logged prompt; empty if it is not a list of messages."""
    try:
        content = json.loads(prompt)
    except json.JSONDecodeError:
        return []
    if not isinstance(content, list) or not all(isinstance(m, dict) for m in content):
        return []
    return [
        Message("system" if m.get("role") == "system" else "user", m["content"])
        for m in content
        if isinstance(m.get("content"), str)
    ]


def _match_indices(shown: Sequence[str], items: Sequence[RetrievedItem]) -> tuple[int, ...] | None:
    """Return the indices of the shown texts among the items; None if a text is not an item's, or is out of order."""
    positions: list[int] = []
    start = 0
    for text in shown:
        text_shown = plain(text)
        index = next((n for n in range(start, len(items)) if _is_shown(text_shown, plain(items[n].text))), None)
        if index is None:
            return None
        positions.append(index)
        start = index + 1
    return tuple(positions)


def _is_shown(shown: str, item: str) -> bool:
    # The beginning suffices: an item may be cut at its end to fit.
    return bool(shown) and item.startswith(shown)


def plain(text: str) -> str:
    """Return the text with single spaces and without JSON's escapes of quotes and line ends, which layouts may add."""
    return " ".join(text.replace('\\"', '"').replace("\\n", " ").split())
