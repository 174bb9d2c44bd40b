"""The viewer's own templates, in the environment that they share with the report."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from memarena.report.render.html.environment import environment
from memarena.viewer.shown_text import marked_pieces

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
