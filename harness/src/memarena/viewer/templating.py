"""The templates: everything that a page shows is escaped, and what would hide in a text is spelled out."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from memarena.viewer.shown_text import visible

_TEMPLATES = files("memarena.viewer") / "templates"
OUTCOMES = {
    "correct": ("✓", "right"),
    "wrong": ("✗", "wrong"),
    "backend_failed": ("▲", "memory failed"),
    "infra_failed": ("?", "failed on our side"),
    "reader_not_applicable": ("?", "reader could not read it"),
}
"""Sign and word of every outcome."""


def render(name: str, /, *, static: bool = False, **context: Any) -> str:
    """A page from its template; ``static``: for a file, without what needs the server."""
    return _environment().get_template(f"{name}.html.jinja").render(outcomes=OUTCOMES, static=static, **context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: (_TEMPLATES / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = _drawing
    environment.filters["ms"] = lambda value: (
        "" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
    )
    environment.filters["count"] = lambda value: "" if value is None else f"{value:,}"
    environment.filters["percent"] = lambda value: "" if value is None else f"{100 * value:.0f}%"
    environment.filters["words"] = lambda value: str(value).replace("_", " ")
    environment.filters["part"] = lambda value: quote(str(value), safe="")
    return environment


def _spelled(value: Any) -> Any:
    """What an expression gives, before it is escaped."""
    return visible(value) if type(value) is str else value


def _drawing(markup: str) -> Markup:
    """Our own drawings, which escape what they hold: nothing else goes onto a page as it is."""
    return Markup(visible(markup))  # noqa: S704
