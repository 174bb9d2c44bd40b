"""Describes the first difference of two versions of a page: a figure by row and column, or a text by its heading.

The check of a site reports it, since a line number of HTML would not tell a reader which figure was changed.
"""

from __future__ import annotations

from html.parser import HTMLParser

_HEADINGS = frozenset(("h1", "h2", "h3", "strong"))
_TEXTS = frozenset(("td", "th", "text", "title", "desc", "li", "p", "dd", "dt", "pre", "figcaption", *_HEADINGS))


def difference(stated: str, expected: str) -> str:
    """Return the first difference of two pages in a line: figure or heading, stated text, expected text."""
    stated_texts, expected_texts = _texts(stated), _texts(expected)
    for position in range(max(len(stated_texts), len(expected_texts))):
        (a_name, a), (b_name, b) = (
            texts[position] if position < len(texts) else ("the end", "") for texts in (stated_texts, expected_texts)
        )
        if a != b or a_name != b_name:
            return f"{b_name if position < len(expected_texts) else a_name}: states {_cut(a)}; expected {_cut(b)}"
    lines = zip(stated.splitlines(), expected.splitlines(), strict=False)
    for number, (stated_line, expected_line) in enumerate(lines, 1):
        if stated_line != expected_line:
            offset = next((i for i, (c, d) in enumerate(zip(stated_line, expected_line, strict=False)) if c != d), 0)
            start = max(offset - 30, 0)
            return f"line {number}: states {_cut(stated_line[start:])}; expected {_cut(expected_line[start:])}"
    return "is longer or shorter than what the bundles give"


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= 80 else plain[:79] + "…")


class _Page(HTMLParser):
    """Collects (name, text) of a page's texts; the name is the heading, in tables with row and column."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[tuple[str, str]] = []
        self._heading = ""
        self._columns: list[str] = []
        self._row: list[str] = []
        self._open: list[tuple[str, list[str]]] = []
        self._in_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "thead":
            self._in_head, self._columns = True, []
        elif tag == "tr":
            self._row = []
        if tag in _TEXTS:
            self._open.append((tag, []))

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1][1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "thead":
            self._in_head = False
        if not self._open or self._open[-1][0] != tag:
            return
        text = " ".join("".join(self._open.pop()[1]).split())
        name = self._heading
        if tag in ("td", "th"):
            if self._in_head:
                self._columns.append(text)
            else:
                column = self._columns[len(self._row)] if len(self._row) < len(self._columns) else ""
                name = ", ".join(part for part in (self._heading, " ".join(self._row[:2]), column) if part)
                self._row.append(text)
        elif tag in _HEADINGS:
            self._heading = text
        self.texts.append((name, text))


def _texts(content: str) -> list[tuple[str, str]]:
    page = _Page()
    page.feed(content)
    return page.texts
