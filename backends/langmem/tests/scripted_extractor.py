"""Replies to LangMem's extraction prompt by rules instead of a model, with the tool calls that the prompt asks for.

A memory is stored by the tool Memory, or by PatchDoc if the prompt has a memory of the same thing and it is to be
rewritten. For a session without memories the reply is a sentence without tool calls. test_days.py checks that the
parsed parts of the prompt are those that LangMem 0.0.30 sends.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.backends.extraction_rules import Keep, memories_of, statements
from tests.support.model_script import Body, Message, UnknownPromptError, text_of

_SESSION = re.compile(r"<session_[0-9a-f-]+>\n(.*)\n</session_", re.DOTALL)
_OPENING = re.compile(
    # The first message opens with the date; messages of one role in a row arrive as one.
    r"^(?:=+ (?:Human|Ai) Message =+\n\n(?:[^\n]*\n)??)?\d\d:\d\d (?P<name>[^:\n]*): ",
    re.MULTILINE,
)
_INSTANCE = re.compile(r'<instance id=(\S+) schema_type="Memory">\n(.*?)\n</instance>', re.DOTALL)
_CONTENT = re.compile(r"^\{'content': ['\"](.*)['\"]\}$", re.DOTALL)


def tool_call(name: str, args: object, number: int = 0) -> dict[str, Any]:
    """Return a tool call in the form of the OpenAI API; ``args`` is used unchanged if it is a string, else as JSON."""
    text = args if isinstance(args, str) else json.dumps(args)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}


def session_of(body: Body) -> str:
    """Return the session's messages in a prompt of LangMem. Raises UnknownPromptError for another prompt."""
    session = _SESSION.search(text_of(body, "user"))
    if session is None or not any(tool["function"]["name"] == "Memory" for tool in body.get("tools") or ()):
        raise UnknownPromptError("the prompt is not the one of LangMem 0.0.30")
    return session[1]


def reply_of(body: Body, keep: Keep = "named", *, rewrites: bool = True) -> Message:
    """Return the reply that stores the memories of a session. Raises UnknownPromptError."""
    memories = [
        memory
        for opening, statement in statements(session_of(body), _OPENING)
        for memory in memories_of(opening["name"], statement, keep)
    ]
    keys = {_subject(text): key for key, text in _existing(text_of(body, "system"))} if rewrites else {}
    calls = [_call(keys.get(_subject(fact.text)), fact.text, number) for number, fact in enumerate(memories)]
    return {"role": "assistant", "content": None if calls else "Nothing to keep.", "tool_calls": calls or None}


def _subject(text: str) -> str:
    """Return the subject of a memory: its text before "is called"."""
    return text.partition(" is called ")[0]


def _existing(system: str) -> list[tuple[str, str]]:
    """Return key and text of the memories in a prompt."""
    return [(key, _CONTENT.sub(r"\1", value)) for key, value in _INSTANCE.findall(system)]


def _call(key: str | None, content: str, number: int) -> dict[str, Any]:
    if key is None:
        return tool_call("Memory", {"content": content}, number)
    patch = {"op": "replace", "path": "/content", "value": content}
    return tool_call("PatchDoc", {"json_doc_id": key, "planned_edits": "the new value", "patches": [patch]}, number)
