"""Decides whether Mem0 can use a reply of its extractor: Mem0 silently treats an unreadable one as without facts."""

from __future__ import annotations

import json
import re
from enum import Enum

MAX_REPLY_CHARS = 65_536
"""No real reply is longer: it would have more than 30 characters a token."""

# Patterns and their order are those of the library, so that both judge a reply alike.
_FENCED = re.compile(r"^```[a-zA-Z0-9]*\n([\s\S]*?)\n```$")
_FENCE_WITHIN = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_HALVES = re.compile(r"[\ud800-\udfff]")
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)


class Worth(Enum):
    """What Mem0 can use of a reply."""

    MEMORIES = "memories"
    NOTHING = "nothing"
    """An empty list of memories, in the requested form."""
    UNUSABLE = "unusable"
    """A reply that is empty, no JSON, cut off or of another form."""


def worth_of(reply: str) -> Worth:
    """Return what Mem0 2.2.1 can use of a reply, by the library's own rules of parsing."""
    if len(reply) > MAX_REPLY_CHARS:
        return Worth.UNUSABLE
    listed = _listed(reply)
    if not isinstance(listed, list):
        return Worth.UNUSABLE
    if not listed:
        return Worth.NOTHING
    if not all(isinstance(entry, dict) for entry in listed):
        return Worth.UNUSABLE  # with a single such entry the library uses none
    return Worth.MEMORIES if any(_is_text(entry.get("text")) for entry in listed) else Worth.UNUSABLE


def _listed(reply: str) -> object:
    """Return the value of ``memory`` in a reply; None if there is none."""
    text = reply.strip()
    if fenced := _FENCED.match(text):
        text = fenced.group(1).strip()
    text = _THOUGHTS.sub("", text).strip()
    for candidate in (text, _json_within(text)):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        return value.get("memory") if isinstance(value, dict) else None
    return None


def _json_within(text: str) -> str:
    if fence := _FENCE_WITHIN.search(text):
        return fence.group(1)
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if -1 < first < last else text


def _is_text(value: object) -> bool:
    """Whether a value is the text of a memory; a lone surrogate, which JSON can escape, cannot be encoded."""
    return isinstance(value, str) and bool(value.strip()) and not _HALVES.search(value)
