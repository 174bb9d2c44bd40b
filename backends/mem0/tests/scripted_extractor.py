"""Replies to Mem0's extraction prompt by rules instead of a model, in the form that the prompt asks for.

Memories come from the part ``## New Messages`` of the prompt (recorded_prompt.txt); their list may be empty.
"""

from __future__ import annotations

import json
import re

from tests.backends.extraction_rules import Keep, memories_of, statements
from tests.support.model_script import Body, UnknownPromptError, text_of

_NEW = re.compile(r"^## New Messages\n(.*?)^## Observation Date\n(\S+)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"^(?P<role>user|assistant): (?:\[[^\]\n]*\] )?(?P<name>[^:\n]*): ", re.MULTILINE)


def conversation_of(body: Body) -> str:
    """Return the new messages in a prompt of Mem0. Raises UnknownPromptError for another prompt."""
    parts = _NEW.search(text_of(body, "user"))
    if parts is None or '"memory"' not in text_of(body, "system"):
        raise UnknownPromptError("the prompt is not the one of Mem0 2.2")
    return parts[1]


def reply_of(body: Body, keep: Keep = "named") -> str:
    """Return the memories of a conversation as JSON. Raises UnknownPromptError."""
    memories = [
        {"text": memory.text, "attributed_to": opening["role"]}
        for opening, text in statements(conversation_of(body), _OPENING)
        for memory in memories_of(opening["name"], text, keep)
    ]
    return json.dumps({"memory": [{"id": str(number), **memory} for number, memory in enumerate(memories)]})
