r"""Expands a search pattern that lists wordings, such as ``(?:old )?visit (?:on|at) noon``, into these wordings.

It knows groups, ``|``, ``?`` after a letter or group, a class of single letters and an escaped mark. A wording that
needs more (``.*``, ``\s``, a look around) has no finite list and is dropped. GateMem states leak targets as such
patterns, while our gold needs each wording as text.
"""

from __future__ import annotations

import re
from itertools import product

MOST = 64
"""Wordings of one pattern, beyond which they are not listed."""
_PATTERN = re.compile(r"[\\|\[\]*+?{}]")


def wordings(pattern: str) -> tuple[str, ...]:
    """Return every wording that the pattern lists and that can be written down; empty if there is none.

    A text without any mark of a pattern is its only wording.
    """
    if not _PATTERN.search(pattern):
        return (pattern.strip(),)
    reader = _Reader(pattern)
    wordings = reader.alternatives()
    if reader.rest:
        return ()
    tidy = (" ".join(text.split()) for text in wordings)
    return tuple(dict.fromkeys(text for text in tidy if text))


class _Reader:
    """Reads a pattern from left to right. A part that cannot be written down gives an empty list."""

    def __init__(self, pattern: str) -> None:
        self.rest = pattern

    def alternatives(self) -> list[str]:
        """Return the wordings up to the end of the group that can be written down."""
        wordings = self._sequence()
        while self.rest.startswith("|"):
            self.rest = self.rest[1:]
            wordings += self._sequence()
        return wordings[:MOST]

    def _sequence(self) -> list[str]:
        parts: list[list[str]] = []
        while self.rest and self.rest[0] not in "|)":
            part = self._part()
            if self.rest.startswith("?"):
                self.rest = self.rest[1:]
                part = [*part, ""]
            elif self.rest[:1] in ("*", "+", "{"):
                self.rest = self.rest[1:]
                part = []
            parts.append(part)
        return ["".join(chosen) for chosen, _ in zip(product(*parts), range(MOST), strict=False)]

    def _part(self) -> list[str]:
        mark, self.rest = self.rest[0], self.rest[1:]
        if mark == "(":
            return self._group()
        if mark == "[":
            letters, _, self.rest = self.rest.partition("]")
            return [] if letters.startswith("^") or re.search(r"\w-\w|\\", letters) else list(letters)
        if mark == "\\":
            mark, self.rest = self.rest[:1], self.rest[1:]
            return [mark] if mark and not mark.isalnum() else []
        return [mark]

    def _group(self) -> list[str]:
        looks_around = re.match(r"\?<?[=!]", self.rest)
        self.rest = re.sub(r"^\?(?::|<?[=!])", "", self.rest)
        wordings = self.alternatives()
        self.rest = self.rest.removeprefix(")")
        return [] if looks_around else wordings
