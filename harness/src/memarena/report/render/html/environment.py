"""What templates of the report and of the viewer share: everything is escaped, and what would hide in a text is
spelled out.
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
"""The parts of pages that both are made of."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls (ANSI codes begin with one), marks that turn the direction of writing, what has no width, surrogates."""


def environment(load: Callable[[str], str]) -> Environment:
    """An environment whose templates come from ``load`` by their name; :data:`SHARED` is always there."""

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
    """A text cut: its start, how many characters are left out, and its end."""

    text: str
    left_out: int = 0
    end: str = ""


def excerpt(text: str, most: int, ends: int = 0) -> Excerpt:
    """At most ``most`` characters of a text, ``ends`` of them from its end."""
    if len(text) <= most:
        return Excerpt(text)
    return Excerpt(text[: most - ends], len(text) - most, text[len(text) - ends :])


def visible(text: str) -> str:
    """The text with every character that does not show as itself spelled out; line feeds and tabs stay."""
    return _HIDDEN.sub(_name, text.replace("\r\n", "\n")) if not text.isascii() or _HIDDEN.search(text) else text


def drawing(markup: str) -> Markup:
    """Our own drawings, which escape what they hold: nothing else goes onto a page as it is."""
    return Markup(visible(markup))  # noqa: S704


def _spelled(value: Any) -> Any:
    """What an expression gives, before it is escaped."""
    return visible(value) if type(value) is str else value


def _name(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"[U+{code:04X}]"
