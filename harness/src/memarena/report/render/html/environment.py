"""Creates the Jinja environment of report, viewer and site: escapes all text and makes invisible characters visible.

Texts of a run come from models and imported data, and may contain markup, ANSI codes or marks of text direction that
would make a page show something else than the log has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from memarena.report.charts.timing import timing_bar
from memarena.report.question_view.records import OUTCOMES

TEMPLATES = files("memarena.report.render.html") / "templates"
SHARED = "shared.html.jinja"
"""Template of macros that report, viewer and site use."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls (ANSI codes begin with one), marks of text direction, characters without width, surrogates."""


def environment(load: Callable[[str], str]) -> Environment:
    """Return an environment that gets templates by name from ``load``, and :data:`SHARED` from this package."""

    def source(name: str) -> str:
        return (TEMPLATES / SHARED).read_text(encoding="utf-8") if name == SHARED else load(name)

    templates = Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals["outcomes"] = OUTCOMES
    templates.filters["drawing"] = drawing
    templates.filters["excerpt"] = excerpt
    templates.filters["one_line"] = lambda text: " ".join(text.split())
    templates.filters["timing"] = lambda steps: drawing(timing_bar(steps))
    templates.filters["ms"] = lambda value: (
        "n/a" if value is None else f"{value:,.2f} ms" if value < 10 else f"{value:,.0f} ms"
    )
    templates.filters["count"] = lambda value: "" if value is None else f"{value:,}"
    templates.filters["percent"] = lambda value: "" if value is None else f"{100 * value:.0f}%"
    templates.filters["words"] = lambda value: str(value).replace("_", " ")
    return templates


@dataclass(frozen=True)
class Excerpt:
    """A truncated text: its start, the number of omitted characters, and its end."""

    text: str
    left_out: int = 0
    end: str = ""


def excerpt(text: str, most: int, ends: int = 0) -> Excerpt:
    """Truncate a text to ``most`` characters, ``ends`` of them from its end."""
    if len(text) <= most:
        return Excerpt(text)
    return Excerpt(text[: most - ends], len(text) - most, text[len(text) - ends :])


def visible(text: str) -> str:
    """Replace invisible characters by visible names, such as ``[U+200B]``; line feeds and tabs are kept."""
    return _HIDDEN.sub(_name, text.replace("\r\n", "\n")) if not text.isascii() or _HIDDEN.search(text) else text


def drawing(markup: str) -> Markup:
    """Mark an SVG drawing of this package as safe; it has escaped its texts. No other markup may bypass escaping."""
    return Markup(visible(markup))  # noqa: S704


def _spelled(value: Any) -> Any:
    """Make the value of a template expression visible, before it is escaped."""
    return visible(value) if type(value) is str else value


def _name(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:  # Unicode has a picture of each control, such as ␛ for U+001B
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"[U+{code:04X}]"
