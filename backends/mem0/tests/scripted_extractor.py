"""What Mem0's extractor answers by rules: Mem0's prompt is read, and replied to in the form that it asks for.

Read is the part ``## New Messages`` (recorded_prompt.txt). Where nothing is to be kept, the list of memories is empty.
"""

from __future__ import annotations

import json
import re

from tests.backends.extraction_rules import Keep, memories_of, statements
from tests.support.model_script import Body, UnknownPromptError, text_of

_NEW = re.compile(r"^## New Messages\n(.*?)^## Observation Date\n(\S+)", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"^(?P<role>user|assistant): (?:\[[^\]\n]*\] )?(?P<name>[^:\n]*): ", re.MULTILINE)


def conversation_of(body: Body) -> str:
    """The new messages in a prompt of Mem0. Raises UnknownPromptError for another prompt."""
    parts = _NEW.search(text_of(body, "user"))
    if parts is None or '"memory"' not in text_of(body, "system"):
        raise UnknownPromptError("the prompt is not the one of Mem0 2.2")
    return parts[1]


def reply_of(body: Body, keep: Keep = "named") -> str:
    """What is kept of a conversation, as JSON. Raises UnknownPromptError."""
    memories = [
        {"text": memory.text, "attributed_to": opening["role"]}
        for opening, said in statements(conversation_of(body), _OPENING)
        for memory in memories_of(opening["name"], said, keep)
    ]
    return json.dumps({"memory": [{"id": str(number), **memory} for number, memory in enumerate(memories)]})
