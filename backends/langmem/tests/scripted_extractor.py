"""What LangMem's extractor answers by rules: it makes the tool calls that LangMem's prompt asks for.

A memory is kept by the tool Memory, or by PatchDoc where the prompt holds a memory of the same thing and it is to
rewrite. Of any other session it says, without a tool call, that there is nothing to keep. test_days.py holds what it
reads to what LangMem 0.0.30 sends.
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
    """A tool call of the OpenAI API's form; ``args`` as text is taken as it is."""
    text = args if isinstance(args, str) else json.dumps(args)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}


def session_of(body: Body) -> str:
    """The messages of the session in a prompt of LangMem. Raises UnknownPromptError for another prompt."""
    session = _SESSION.search(text_of(body, "user"))
    if session is None or not any(tool["function"]["name"] == "Memory" for tool in body.get("tools") or ()):
        raise UnknownPromptError("the prompt is not the one of LangMem 0.0.30")
    return session[1]


def reply_of(body: Body, keep: Keep = "named", *, rewrites: bool = True) -> Message:
    """The message with what is kept of a session. Raises UnknownPromptError."""
    memories = [
        memory
        for opening, said in statements(session_of(body), _OPENING)
        for memory in memories_of(opening["name"], said, keep)
    ]
    known = {_subject(text): key for key, text in _existing(text_of(body, "system"))} if rewrites else {}
    calls = [_kept(known.get(_subject(each.text)), each.text, number) for number, each in enumerate(memories)]
    return {"role": "assistant", "content": None if calls else "Nothing to keep.", "tool_calls": calls or None}


def _subject(text: str) -> str:
    """What a memory is about."""
    return text.partition(" is called ")[0]


def _existing(system: str) -> list[tuple[str, str]]:
    """Key and text of the memories that a prompt holds."""
    return [(key, _CONTENT.sub(r"\1", held)) for key, held in _INSTANCE.findall(system)]


def _kept(key: str | None, content: str, number: int) -> dict[str, Any]:
    if key is None:
        return tool_call("Memory", {"content": content}, number)
    patch = {"op": "replace", "path": "/content", "value": content}
    return tool_call("PatchDoc", {"json_doc_id": key, "planned_edits": "the new value", "patches": [patch]}, number)
