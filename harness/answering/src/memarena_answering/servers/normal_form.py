"""Normalizes replies of chat servers: content as text, reasoning in its own field, only valid token counts.

Servers write the same in several ways. A reply that can be understood is brought to the form that all callers know; any
other is the server's failure (:class:`UpstreamError`).
"""

from __future__ import annotations

import json
from typing import Any, Literal

from memarena_answering.servers.counts import count
from memarena_answering.servers.replies import UpstreamError

_BROKEN_OFF = frozenset({
    "error", "abort", "aborted", "cancelled", "canceled", "failed", "insufficient_system_resource", "unknown_error",
})  # fmt: skip
"""Finish reasons of a server that gave up: the text before is not a reply."""
_THOUGHTS = frozenset({"thinking", "reasoning"})
"""Types of the parts of a message that hold thinking."""
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class _NoNumberError(Exception):
    """NaN or an infinity, which are not JSON."""


def _no_number(name: str) -> None:
    raise _NoNumberError(name)


_STRICT = json.JSONDecoder(parse_constant=_no_number)
"""Built only once, since the parsing of a chunk delays its delivery."""


class Reading:
    """A parsed reply or chunk. ``changed``: whether it had to be changed; if not, callers can pass on the raw bytes."""

    def __init__(self, raw: bytes, what: str) -> None:
        """Parse ``raw``; messages call it ``what``. Raises :class:`UpstreamError` if it is not a JSON object."""
        self.changed = False
        try:
            body: Any = self._parsed(raw)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"the server sent {what} that is no JSON: {raw[:80]!r}") from error
        if not isinstance(body, dict):
            raise UpstreamError(f"the server sent {what} that is no JSON object: {raw[:80]!r}")
        self.body = body

    def _parsed(self, raw: bytes) -> Any:
        try:
            parsed: Any = _STRICT.decode(raw.decode())
        except _NoNumberError:
            self.changed = True
            parsed = json.loads(raw, parse_constant=lambda _: None)
        return parsed

    def choices(self, message_key: Literal["delta", "message"]) -> list[dict[str, Any]]:
        """Return the choices of the first answer, normalized.

        Choices of further answers (``index`` 1 and on) are dropped: in a stream their words would mix with the first's.

        Raises :class:`UpstreamError` if a choice is malformed or was broken off.
        """
        choices = self.body.get("choices") or []
        if not isinstance(choices, list):
            raise UpstreamError(f"the server sent choices that are no list: {str(choices)[:80]!r}")
        plain = []
        for choice in choices:
            if not isinstance(choice, dict):
                raise UpstreamError(f"the server sent a choice that is no JSON object: {str(choice)[:80]!r}")
            if error := choice.get("error"):
                raise UpstreamError(f"the server reported an error in its reply: {str(error)[:200]}")
            self._finish(choice)
            self._texts(choice, "text")
            if isinstance(message := choice.get(message_key), dict):
                self._parts(message)
                for key in ("content", "reasoning_content", "reasoning"):
                    self._texts(message, key)
            index = choice.get("index")
            if not isinstance(index, int) or index < 1:
                plain.append(choice)
        if len(plain) < len(choices):
            self.body["choices"] = plain
            self.changed = True
        return plain

    def usage(self) -> Any:
        """Return the ``usage`` object without impossible token counts; None if there is none."""
        usage = self.body.get("usage")
        if usage is None:
            return None
        if not isinstance(usage, dict):
            self._drop(self.body, "usage")
            return None
        for key in _COUNTS:
            if key in usage and usage[key] is not None and count(usage[key]) is None:
                self._drop(usage, key)
        # No prompt is empty: the server does not count.
        if usage.get("prompt_tokens") == 0:
            self._drop(usage, "prompt_tokens")
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        if isinstance(details, dict) and cached is not None and count(cached) is None:
            self._drop(details, "cached_tokens")
        return usage

    def dump(self) -> bytes:
        """Return the body as JSON."""
        return json.dumps(self.body, separators=(",", ":")).encode()

    def _drop(self, holder: dict[str, Any], key: str) -> None:
        del holder[key]
        self.changed = True

    def _finish(self, choice: dict[str, Any]) -> None:
        finish = choice.get("finish_reason")
        if isinstance(finish, dict):
            finish = choice["finish_reason"] = str(finish.get("type") or "unknown")
            self.changed = True
        elif finish is not None and not isinstance(finish, str):
            finish = choice["finish_reason"] = str(finish)
            self.changed = True
        if finish and finish.lower() in _BROKEN_OFF:
            raise UpstreamError(f"the server broke the reply off (finish_reason {finish})")

    def _parts(self, message: dict[str, Any]) -> None:
        """Replace content that is a list of parts by its text; thinking parts go to ``reasoning_content``."""
        content = message.get("content")
        if not isinstance(content, list):
            return
        texts: list[str] = []
        thoughts: list[str] = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            (thoughts if isinstance(kind, str) and kind in _THOUGHTS else texts).append(_text_of(part))
        message["content"] = "".join(texts)
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        self.changed = True

    def _texts(self, holder: dict[str, Any], key: str) -> None:
        """Check that the value is a text, and replace half surrogates, which UTF-8 cannot encode."""
        text = holder.get(key)
        if text is None:
            return
        if not isinstance(text, str):
            raise UpstreamError(f"the server sent a {key} that is no text: {str(text)[:80]!r}")
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            holder[key] = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self.changed = True


def _text_of(part: Any) -> str:
    """Return the text of a part of a message, which may hold parts itself. Raises :class:`UpstreamError`."""
    if part is None or isinstance(part, str):
        return part or ""
    if isinstance(part, list):
        return "".join(map(_text_of, part))
    if isinstance(part, dict):
        for key in ("text", "thinking", "reasoning", "content"):
            if key in part:
                return _text_of(part[key])
    raise UpstreamError(f"the server sent a part of a message that is no text: {str(part)[:80]!r}")
