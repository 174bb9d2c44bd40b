"""Renders the viewer's templates, in the Jinja environment of the HTML report, and highlights evidence in prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from memarena.report.render.html.environment import environment

_TEMPLATES = files("memarena.viewer") / "templates"


def render(name: str, /, *, static: bool = False, **context: Any) -> str:
    """Render the template ``name``; ``static``: for a file, without the parts that need a server."""
    return _environment().get_template(f"{name}.html.jinja").render(static=static, **context)


@cache
def _environment() -> Environment:
    jinja = environment(lambda name: (_TEMPLATES / name).read_text(encoding="utf-8"))
    jinja.filters["part"] = lambda value: quote(str(value), safe="")
    jinja.filters["marked"] = marked_pieces
    return jinja


@dataclass(frozen=True)
class Piece:
    """A part of a text, highlighted (``marked``) or not."""

    text: str
    marked: bool


def marked_pieces(text: str, wanted: Sequence[str]) -> list[Piece]:
    """Split a text into pieces; occurrences of the wanted passages, verbatim or JSON-escaped, are marked."""
    spans: list[tuple[int, int]] = []
    for passage in {
        variant
        for passage_text in wanted
        for variant in (passage_text.strip(), _as_json(passage_text.strip()))
        if variant
    }:
        start = text.find(passage)
        while start >= 0:
            spans.append((start, start + len(passage)))
            start = text.find(passage, start + len(passage))
    pieces: list[Piece] = []
    position = 0
    for start, end in sorted(spans):
        if end <= position:
            continue
        start = max(start, position)  # noqa: PLW2901 (passages may overlap)
        pieces += [Piece(text[position:start], False)] if start > position else []
        pieces.append(Piece(text[start:end], True))
        position = end
    return [*pieces, *([Piece(text[position:], False)] if position < len(text) or not pieces else [])]


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
