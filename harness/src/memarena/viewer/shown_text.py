"""Long texts cut, and passages marked in them."""

from __future__ import annotations

import json
from dataclasses import dataclass

CUT_CHARACTERS = 12_000
"""Characters of a long text that a page shows; the whole text is one link away."""


@dataclass(frozen=True)
class CutText:
    """The start of a text, and how many characters follow."""

    text: str
    left_out: int


@dataclass(frozen=True)
class Piece:
    """A part of a text that is marked or not."""

    text: str
    marked: bool


def cut(text: str, most: int = CUT_CHARACTERS) -> CutText:
    """The first characters of a text."""
    return CutText(text, 0) if len(text) <= most else CutText(text[:most], len(text) - most)


def marked_pieces(text: str, wanted: list[str]) -> list[Piece]:
    """The text in pieces, those marked that are one of the wanted passages, as they stand or as JSON writes them."""
    spans: list[tuple[int, int]] = []
    for passage in {form for each in wanted for form in (each.strip(), _as_json(each.strip())) if form}:
        start = text.find(passage)
        while start >= 0:
            spans.append((start, start + len(passage)))
            start = text.find(passage, start + len(passage))
    pieces: list[Piece] = []
    at = 0
    for start, end in sorted(spans):
        if end <= at:
            continue
        start = max(start, at)  # noqa: PLW2901 (passages may overlap)
        pieces += [Piece(text[at:start], False)] if start > at else []
        pieces.append(Piece(text[start:end], True))
        at = end
    return [*pieces, *([Piece(text[at:], False)] if at < len(text) or not pieces else [])]


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
