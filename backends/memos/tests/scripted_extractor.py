"""What MemOS's extractor answers by rules: MemOS's prompt is read, and replied to in the form that it asks for.

Read is the conversation at the end of the prompt. Where nothing is to be kept, the list of memories is empty.
"""

from __future__ import annotations

import json
import re

from tests.backends.extraction_rules import Keep, memories_of, statements
from tests.support.model_script import Body, UnknownPromptError, text_of

_CONVERSATION = re.compile(r".*\nConversation:\n(.*)\n\nYour Output:", re.DOTALL)
_OPENING = re.compile(r"^(?:user|assistant): \[[^\]\n]+\] (?P<name>[^:\n]*): (?:\[[^\]\n]*\] )?", re.MULTILINE)


def conversation_of(body: Body) -> str:
    """The conversation in a prompt of MemOS. Raises UnknownPromptError for another prompt."""
    prompt = text_of(body)
    found = _CONVERSATION.fullmatch(prompt)
    if found is None or '"memory list"' not in prompt or len(body["messages"]) != 1:
        raise UnknownPromptError("the prompt is not the one of MemOS 2.0.33")
    return found[1]


def reply_of(body: Body, keep: Keep = "named") -> str:
    """What is kept of a conversation, as JSON in a code block, which models like to write around it.

    Raises UnknownPromptError.
    """
    memories = [
        {"key": memory.name, "memory_type": "UserMemory", "value": memory.text, "tags": [memory.name]}
        for opening, said in statements(conversation_of(body), _OPENING)
        for memory in memories_of(opening["name"], said, keep)
    ]
    return f"```json\n{json.dumps({'memory list': memories, 'summary': 'As told.'}, indent=2)}\n```"
