"""Replies to MemOS's extraction prompt by rules instead of a model, in the form that the prompt asks for.

Memories come from the conversation at the end of the prompt; their list may be empty.
"""

from __future__ import annotations

import json
import re

from tests.backends.extraction_rules import Keep, memories_of, statements
from tests.support.model_script import Body, UnknownPromptError, text_of

_CONVERSATION = re.compile(r".*\nConversation:\n(.*)\n\nYour Output:", re.DOTALL)
_OPENING = re.compile(r"^(?:user|assistant): \[[^\]\n]+\] (?P<name>[^:\n]*): (?:\[[^\]\n]*\] )?", re.MULTILINE)


def conversation_of(body: Body) -> str:
    """Return the conversation in a prompt of MemOS. Raises UnknownPromptError for another prompt."""
    prompt = text_of(body)
    conversation = _CONVERSATION.fullmatch(prompt)
    if conversation is None or '"memory list"' not in prompt or len(body["messages"]) != 1:
        raise UnknownPromptError("the prompt is not the one of MemOS 2.0.33")
    return conversation[1]


def reply_of(body: Body, keep: Keep = "named") -> str:
    """Return the memories of a conversation as JSON in a code block, which models often add.

    Raises UnknownPromptError.
    """
    memories = [
        {"key": memory.name, "memory_type": "UserMemory", "value": memory.text, "tags": [memory.name]}
        for opening, text in statements(conversation_of(body), _OPENING)
        for memory in memories_of(opening["name"], text, keep)
    ]
    return f"```json\n{json.dumps({'memory list': memories, 'summary': 'As told.'}, indent=2)}\n```"
