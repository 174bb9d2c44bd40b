"""Renders the HTML report from its template, with a content security policy that allows only its style and script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from memarena.report.layout import Document
from memarena.report.render.html.chapters import page_of, part_of
from memarena.report.render.html.environment import TEMPLATES, environment
from memarena.report.report_input import ReportInput
from memarena.report.tables.calibration import Calibration

_FOLDER = files("memarena.report.render.html")


def to_html(
    runs: Sequence[ReportInput],
    *,
    published: bool = False,
    calibrations: Sequence[Calibration] = (),
    least_questions: int = 0,
) -> str:
    """Return the report as one HTML file; the same log gives the same bytes.

    Tables omit shares of fewer than ``least_questions`` questions.

    The file loads nothing and executes no text of a run: the policy in its head allows only its style and script, by
    their hashes, and the template escapes every text of a run.
    """
    style = (_FOLDER / "style.css").read_text(encoding="utf-8")
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    sources = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    page = page_of(runs, published=published, calibrations=calibrations, least_questions=least_questions)
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(page=page, style=_trusted(style), script=_trusted(script), policy=policy)
    )


def document_to_html(document: Document) -> str:
    """Return a document of lines and tables as one HTML file, with the same policy but no script."""
    style = (_FOLDER / "style.css").read_text(encoding="utf-8")
    sources = f"style-src '{_digest(style)}'"
    return (
        _environment()
        .get_template("document.html.jinja")
        .render(
            title=document.title,
            parts_of=[part_of(section) for section in document.sections],
            style=_trusted(style),
            policy=f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    return environment(lambda name: (TEMPLATES / name).read_text(encoding="utf-8"))


def _trusted(markup: str) -> Markup:
    """Mark this package's style or script as safe; only these and drawings bypass escaping."""
    return Markup(markup)  # noqa: S704
