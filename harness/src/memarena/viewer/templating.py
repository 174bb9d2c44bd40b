"""The viewer's own templates, in the environment that they share with the report; evidence marked in prompts."""

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
    """A page from its template; ``static``: for a file, without what needs the server."""
    return _environment().get_template(f"{name}.html.jinja").render(static=static, **context)


@cache
def _environment() -> Environment:
    made = environment(lambda name: (_TEMPLATES / name).read_text(encoding="utf-8"))
    made.filters["part"] = lambda value: quote(str(value), safe="")
    made.filters["marked"] = marked_pieces
    return made


@dataclass(frozen=True)
class Piece:
    """A part of a text that is marked or not."""

    text: str
    marked: bool


def marked_pieces(text: str, wanted: Sequence[str]) -> list[Piece]:
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
