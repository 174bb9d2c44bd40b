"""Parses the replies of Graphiti's extracting model: returns the JSON object, or says why a reply is unusable.

Graphiti itself would fail on such a reply with any exception; here it gets a cause, and only the episode is lost.
"""

from __future__ import annotations

import json
import re

from pydantic import BaseModel, JsonValue, ValidationError

_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of U+0000 in JSON: a backslash that is not itself escaped, so after an even number of backslashes."""
_SHOWN_CHARS = 80


class UnusableReplyError(Exception):
    """A reply that cannot be used; the message is one line."""


def parse_reply(text: str, finish_reason: str, form: type[BaseModel] | None) -> dict[str, JsonValue]:
    """Return the JSON object in a reply. Raises UnusableReplyError if there is none, or not of the ``form``."""
    if not text.strip():
        raise UnusableReplyError(f"an empty reply (finish_reason {finish_reason or 'not given'})")
    fenced = _FENCE.match(text)
    try:
        reply = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        cut = " and was cut off" if finish_reason == "length" else ""
        raise UnusableReplyError(f"a reply that is no JSON{cut}: {_excerpt(text)}") from error
    if not isinstance(reply, dict):
        raise UnusableReplyError(f"a reply that is no JSON object: {_excerpt(text)}")
    if form is not None:
        try:
            form.model_validate(reply)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise UnusableReplyError(
                f"a reply of another form than {form.__name__}: {field}: {first['msg']}"
            ) from error
    _expect_text(reply)
    return reply


def _expect_text(reply: JsonValue) -> None:
    """Raise UnusableReplyError for lone surrogates and U+0000, which neither database nor contract accepts."""
    try:
        written = json.dumps(reply, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UnusableReplyError("a reply with half a character in it") from error
    if _NUL.search(written):
        raise UnusableReplyError("a reply with U+0000 in it")


def _excerpt(text: str) -> str:
    return repr(" ".join(text[: 2 * _SHOWN_CHARS].split())[:_SHOWN_CHARS])
