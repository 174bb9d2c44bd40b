"""Parses JSON objects leniently, as small models write them: with single quotes, bare words, or cut off anywhere.

Without it, an answer that a person can read would count as wrong only for its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

MAX_DEPTH = 40
"""Maximum nesting; deeper text is not parsed as JSON."""

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=\s*(?:[,}\]]|\Z))")
_BARE = re.compile(r"[^,:{}\[\]\n]+")
_KEY = re.compile(r"[^\s,:{}\[\]\"']+(?:[ -][^\s,:{}\[\]\"']+)*")
# The closing quote by the opening quote; models also write typographic quotes.
_CLOSES = {'"': '"', "'": "'", "“": "”"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}


class JsonNumber(str):
    """A number as text, so that 2.50 stays 2.50."""


JsonValue: TypeAlias = "bool | str | list[JsonValue] | dict[str, JsonValue] | None"


class _NotJsonError(Exception):
    """The text at this position cannot be parsed, not even leniently."""


class _Reader:
    """Reads one value from a position on. Everything may end early."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def _skip(self) -> str:
        """Skip white space and return the next character, "" at the end."""
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> JsonValue:
        if depth > MAX_DEPTH:
            raise _NotJsonError
        head = self._skip()
        if head == "{":
            return self.object(depth)
        if head == "[":
            return self._array(depth)
        if head in _CLOSES:
            return self._string()
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return JsonNumber(number.group())
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            return ""
        self.at = bare.end()
        word = bare.group().strip()
        return _WORDS.get(word.lower(), word)

    def object(self, depth: int) -> dict[str, JsonValue]:
        self.at += 1
        result: dict[str, JsonValue] = {}
        while True:
            head = self._skip()
            if head == ",":
                self.at += 1
            elif head == "}":
                self.at += 1
                return result
            elif head == "":
                return result
            else:
                key = self._key(head)
                if self._skip() != ":":
                    if self.at >= len(self.text):
                        return result
                    raise _NotJsonError
                self.at += 1
                value = self.value(depth + 1)
                # The first of equal keys wins, unlike in json.loads.
                result.setdefault(key, value)

    def _key(self, head: str) -> str:
        if head in _CLOSES:
            return self._string()
        bare = _KEY.match(self.text, self.at)
        if bare is None:
            raise _NotJsonError
        self.at = bare.end()
        return bare.group()

    def _array(self, depth: int) -> list[JsonValue]:
        self.at += 1
        values: list[JsonValue] = []
        while True:
            head = self._skip()
            if head == ",":
                self.at += 1
            elif head in {"]", ""}:
                self.at += len(head)
                return values
            elif head in {"}", ":"}:  # the list was not closed: what follows belongs to its object
                return values
            else:
                values.append(self.value(depth + 1))

    def _string(self) -> str:
        """Parse a quoted string. A quote that no structural character follows belongs to the text."""
        close = _CLOSES[self.text[self.at]]
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                out.append(self._escape())
            elif char == close and self._ends_string():
                self.at += 1
                return "".join(out)
            else:
                out.append(char)
                self.at += 1
        return "".join(out)

    def _ends_string(self) -> bool:
        """Whether the quote at this position ends its string: by what follows it, which may also be a code fence."""
        match = _SPACE.match(self.text, self.at + 1)
        assert match is not None
        next_char = self.text[match.end() : match.end() + 1]
        return next_char == "" or next_char in ",:}]" or "\n" in match.group() or next_char == "`"

    def _escape(self) -> str:
        """Parse an escape sequence; half of a surrogate pair alone becomes U+FFFD, an unknown escape its letter."""
        kind = self.text[self.at + 1 : self.at + 2]
        if kind == "u":
            digits = self.text[self.at + 2 : self.at + 6]
            if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                self.at += 6
                code = int(digits, 16)
                # A high surrogate, followed by a low one (DC00 to DFFF): together one character.
                if 0xD800 <= code < 0xDC00 and (low := re.match(r"\\u([dD][c-fC-F]..)", self.text[self.at :][:6])):
                    self.at += 6
                    return chr(0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00))
                return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"
        self.at += 2
        return _ESCAPES.get(kind, kind)


def lenient_objects(text: str) -> Iterator[dict[str, JsonValue]]:
    """Yield the objects in the text from left to right; objects within another are not yielded."""
    at = text.find("{")
    while at >= 0:
        reader = _Reader(text, at)
        try:
            yield reader.object(0)
        except _NotJsonError:
            reader.at = at + 1
        at = text.find("{", max(reader.at, at + 1))
