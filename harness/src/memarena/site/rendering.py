"""Renders all files of a site but its bundles from its entries; the same entries give the same bytes.

Building a site writes these files, and checking it compares them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from jinja2 import Environment
from pydantic import TypeAdapter, ValidationError

from memarena.log.base import Record
from memarena.report.question_view.records import QuestionView
from memarena.report.render.html.environment import TEMPLATES, environment
from memarena.site.boards import boards_of
from memarena.site.entries import Entry
from memarena.site.errors import SiteError
from memarena.site.pages import SitePage, pages_of, questions_page

SITE_VERSION = 1
INDEX = "site.json"
_REPORT, _SITE = files("memarena.report.render.html"), files("memarena.site")


class SiteIndex(Record):
    """``site.json``: the ids of a site's entries."""

    site_version: int = SITE_VERSION
    entries: tuple[str, ...]


def site_files(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Yield path and content of every file that depends only on the entries; entries are in the order of their ids."""
    by_id = sorted(entries, key=lambda entry: entry.entry_id)
    yield INDEX, SiteIndex(entries=tuple(entry.entry_id for entry in by_id)).model_dump_json(indent=1) + "\n"
    yield "style.css", _text(_REPORT, "style.css") + _text(_SITE, "site.css")
    yield "page.js", _text(_REPORT, "page.js")
    for entry in by_id:
        yield f"data/{entry.entry_id}.json", entry.as_json()
    for page in pages_of(by_id, boards_of(by_id)):
        yield page.path, rendered(page)


def questions_file(entry: Entry, traces: Sequence[QuestionView]) -> tuple[str, str]:
    """Return path and content of the page of an entry's questions."""
    page = questions_page(entry, traces)
    return page.path, rendered(page)


def rendered(page: SitePage) -> str:
    """Return a page as HTML, with all text escaped and no resources from other hosts."""
    return _environment().get_template("page.html.jinja").render(page=page)


def read_index(content: bytes, name: str) -> SiteIndex:
    """Parse ``site.json``. Raises SiteError if it is invalid or of another version."""
    try:
        index = TypeAdapter(SiteIndex).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise SiteError(f"{name}: {'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}") from error
    if index.site_version != SITE_VERSION:
        raise SiteError(f"{name}: site_version: is {index.site_version}; expected {SITE_VERSION}")
    return index


def entry_differences(stated: Entry, expected: Entry) -> Iterator[tuple[str, str, str]]:
    """Yield (path, stated value, expected value) of each field in which two entries differ."""
    a, b = (dict(_leaves("", json.loads(entry.model_dump_json()))) for entry in (stated, expected))
    for path in dict.fromkeys([*a, *b]):
        if a.get(path, "nothing") != b.get(path, "nothing"):
            yield path, a.get(path, "nothing"), b.get(path, "nothing")


def _leaves(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _leaves(f"{path}.{position}", item)
    else:
        yield path, json.dumps(value, ensure_ascii=False)


@cache
def _environment() -> Environment:
    templates = _SITE / "templates"
    return environment(
        lambda name: ((templates if name == "page.html.jinja" else TEMPLATES) / name).read_text(encoding="utf-8")
    )


def _text(folder: Traversable, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")
