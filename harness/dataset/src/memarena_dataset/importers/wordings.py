r"""A search pattern that lists wordings, such as ``(?:old )?visit (?:on|at) noon``, as the wordings themselves.

Read are groups, ``|``, ``?`` behind one letter or group, a class of single letters and an escaped mark. A wording that
needs more (``.*``, ``\s``, a look around) is not one that could be written down.
"""

from __future__ import annotations

import re
from itertools import product

MOST = 64
"""Wordings of one pattern, beyond which they are not listed."""
_PATTERN = re.compile(r"[\\|\[\]*+?{}]")


def wordings(pattern: str) -> tuple[str, ...]:
    """Every wording that the pattern lists and that can be written down; empty if there is none.

    A text without any mark of a pattern is its own one wording.
    """
    if not _PATTERN.search(pattern):
        return (pattern.strip(),)
    reader = _Reader(pattern)
    wordings = reader.alternatives()
    if reader.left:
        return ()
    tidy = (" ".join(text.split()) for text in wordings)
    return tuple(dict.fromkeys(text for text in tidy if text))


class _Reader:
    """Reads a pattern from left to right. An empty list stands for what cannot be written down."""

    def __init__(self, pattern: str) -> None:
        self.left = pattern

    def alternatives(self) -> list[str]:
        """Wordings up to the end of the group, those that can be written down."""
        wordings = self._sequence()
        while self.left.startswith("|"):
            self.left = self.left[1:]
            wordings += self._sequence()
        return wordings[:MOST]

    def _sequence(self) -> list[str]:
        parts: list[list[str]] = []
        while self.left and self.left[0] not in "|)":
            part = self._part()
            if self.left.startswith("?"):
                self.left = self.left[1:]
                part = [*part, ""]
            elif self.left[:1] in ("*", "+", "{"):
                self.left = self.left[1:]
                part = []
            parts.append(part)
        return ["".join(chosen) for chosen, _ in zip(product(*parts), range(MOST), strict=False)]

    def _part(self) -> list[str]:
        mark, self.left = self.left[0], self.left[1:]
        if mark == "(":
            return self._group()
        if mark == "[":
            letters, _, self.left = self.left.partition("]")
            return [] if letters.startswith("^") or re.search(r"\w-\w|\\", letters) else list(letters)
        if mark == "\\":
            mark, self.left = self.left[:1], self.left[1:]
            return [mark] if mark and not mark.isalnum() else []
        return [mark]

    def _group(self) -> list[str]:
        looks_around = re.match(r"\?<?[=!]", self.left)
        self.left = re.sub(r"^\?(?::|<?[=!])", "", self.left)
        wordings = self.alternatives()
        self.left = self.left.removeprefix(")")
        return [] if looks_around else wordings
