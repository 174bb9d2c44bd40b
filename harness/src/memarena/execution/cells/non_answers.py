"""Recognises answers without content or with a part of it: empty, cut off, filtered, spent on reasoning.

Such an answer still counts, but a run and its report warn of many: the settings, such as the limit of tokens, may be at
fault, and not the memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memarena_answering import ParsedAnswer

from memarena.execution.cells.context import generating
from memarena.log.records import GatewayCall, NonAnswer

# Finish reasons of several servers for a reply that a content filter held back.
_FILTERED = frozenset({"content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist"})
_END_CHARS = 24
"""How much of an answer's end tells whether its string was closed."""


def non_answer(parsed: ParsedAnswer, raw: str, calls: Sequence[GatewayCall], finish: str) -> NonAnswer:
    """Return why an answer has no content or was cut; empty if it is complete. ``finish``: as the backend states it.

    The last call for text decides. An answer whose own words are whole counts as whole, whatever was cut after it.
    """
    last = next((call for call in reversed(generating(calls)) if call.status == 200), None)
    reason = last.finish_reason.lower() if last is not None and last.finish_reason else finish
    if reason in _FILTERED:
        return "filtered"
    if parsed.parse == "empty" or not parsed.answer.strip():
        if raw.strip() or (last is not None and last.first_reasoning_ns is not None):
            return "reasoning"
        return "cut" if reason == "length" else "empty"
    if reason in {"length", "max_tokens"} and not _closed(parsed, raw):
        return "cut"
    return ""


def _closed(parsed: ParsedAnswer, raw: str) -> bool:
    """Whether the answer's string in a JSON object ends before the reply does."""
    end = json.dumps(parsed.answer, ensure_ascii=False)[1:-1][-_END_CHARS:]
    return parsed.parse == "json" or (parsed.parse == "lenient_json" and f'{end}"' in raw)
