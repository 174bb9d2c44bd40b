"""Parses the query string of the page of questions: which answers it lists, by which filters, in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from memarena.report.answer_list import WORDS


@dataclass(frozen=True)
class Choice:
    """A filter by the values of a column of the cache: ``key`` in the address, ``name`` on the page."""

    key: str
    name: str
    column: str


QUESTION_CHOICES = (
    Choice("family", "family", "family"),
    Choice("dimension", "dimension", "dimension"),
    Choice("ego", "ego", "ego"),
    Choice("day", "day asked", "day"),
    Choice("lag", "days since the evidence", "lag"),
    Choice("interference", "interfering facts", "interference"),
    Choice("difficulty", "difficulty", "difficulty"),
    Choice("tier", "context tier", "tier"),
    Choice("action", "action (D6)", "action"),
)
"""Filters by properties of the question."""
ANSWER_CHOICES = (
    Choice("outcome", "outcome", "outcome"),
    Choice("stage", "went wrong", "stage"),
    Choice("label", "behaviour (D6)", "label"),
    Choice("ground", "withheld because (D6)", "ground"),
)
"""Filters by properties of the answer."""
REVIEW_WORDS = {
    "any": "reviewed",
    "starred": "with a star",
    "noted": "with a note",
    "labelled": "with a label",
    "disputed": "verdict disputed",
}
"""Values of the filter on reviews, with their texts on the page."""
AGREEMENTS = {"same": "all the same outcome", "differ": "outcomes differ", "first": "only the first right"}
"""Filters on the outcomes of cells shown side by side, with their texts on the page."""
SORTS: dict[str, tuple[str, str]] = {
    "question": ("question", "q.instance_id"),
    "day": ("day", "q.day"),
    "lag": ("days since the evidence", "q.lag_days"),
    "found": ("evidence found", "a.found"),
    "search": ("Search+floor", "a.search_ms"),
    "ttft": ("TTFT", "a.ttft_ms"),
    "tokens": ("tokens", "a.tokens"),
}
"""Sort key: (text on the page, SQL column). Prefix ``-`` sorts descending."""
# Questions without an answer, by the side that failed.
FAILED = ("backend_failed", "infra_failed", "reader_not_applicable")
SOME_OF: dict[tuple[str, str], str] = {
    ("outcome", "failed"): f"a.outcome IN ({', '.join(repr(each) for each in FAILED)})",
    ("stage", "any"): "a.stage IS NOT NULL",
    ("label", "kept"): "a.label IS NOT NULL AND a.label <> 'disclosed'",
}
"""SQL conditions of the (filter, value) pairs that cover several values of a column."""


@dataclass(frozen=True)
class Selection:
    """The settings in the address of the page of questions."""

    cells: tuple[str, ...] = ()
    """Cells (``bm25@embedded/s1``) or rows (``bm25@embedded``: its headline seeds); empty means all."""
    side: bool = False
    """Whether the cells are shown side by side."""
    filters: tuple[tuple[str, str], ...] = ()
    """(key, value); a key of :data:`QUESTION_CHOICES`, :data:`ANSWER_CHOICES`, or ``review``."""
    text: str = ""
    """Text to search in questions and answers."""
    agreement: str = ""
    """A key of :data:`AGREEMENTS`, or empty."""
    sort: str = ""
    """A key of :data:`SORTS`, perhaps with prefix ``-``; empty: by cell and question."""
    page: int = 1
    gold: bool = False
    """Whether the page shows reasons, which may contain the right answer."""
    unknown: tuple[str, ...] = field(default=(), compare=False)
    """A message for each parameter of the address that is invalid and therefore ignored."""

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> Selection:
        """Parse the (key, value) pairs of a query string; report invalid ones in ``unknown`` and ignore them."""
        pairs = [(key, value.strip()) for key, value in query if value.strip()]
        single = dict(pairs)
        keys = {"review", *(choice.key for choice in (*QUESTION_CHOICES, *ANSWER_CHOICES))}
        unknown = [f"{key}: no such filter" for key, _ in pairs if key not in keys | _OTHER_KEYS]
        sort = single.get("sort", "")
        if sort.removeprefix("-") not in {*SORTS, ""}:
            unknown.append(f"sort={sort}: expected one of {', '.join(SORTS)}")
            sort = ""
        agreement = single.get("agreement", "")
        if agreement not in {*AGREEMENTS, ""}:
            unknown.append(f"agreement={agreement}: expected one of {', '.join(AGREEMENTS)}")
            agreement = ""
        if single.get("review", "any") not in REVIEW_WORDS:
            unknown.append(f"review={single.pop('review')[:_QUOTED_CHARS]}: expected one of {', '.join(REVIEW_WORDS)}")
        page = single.get("page", "1")
        if not (page.isascii() and page.isdigit() and len(page) <= _PAGE_DIGITS and int(page)):
            unknown.append(f"page={page[:_QUOTED_CHARS]}: expected a number from 1 of at most {_PAGE_DIGITS} digits")
            page = "1"
        return cls(
            cells=tuple(dict.fromkeys(value for key, value in pairs if key == "cell")),
            side=single.get("view") == "side",
            filters=tuple((key, value) for key, value in single.items() if key in keys),
            text=single.get("q", ""),
            agreement=agreement,
            sort=sort,
            page=int(page),
            gold=single.get("gold") == "1",
            unknown=tuple(unknown),
        )

    def query(self, **changed: Any) -> str:
        """Return the query string of this selection with changes by key; None removes a parameter.

        Any change but of ``page`` leads to the first page, unless ``page`` is given too.
        """
        pairs: list[tuple[str, str]] = [("cell", cell) for cell in self.cells]
        single: dict[str, Any] = {
            "view": "side" if self.side else None,
            **dict(self.filters),
            "q": self.text or None,
            "agreement": self.agreement or None,
            "sort": self.sort or None,
            "page": self.page if self.page > 1 else None,
            "gold": "1" if self.gold else None,
        }
        if changed.keys() - {"page"} and "page" not in changed:
            single["page"] = None
        single |= changed
        return urlencode([*pairs, *((key, str(value)) for key, value in single.items() if value is not None)])


_PAGE_DIGITS = 7
_QUOTED_CHARS = 40
_OTHER_KEYS = {"cell", "view", "q", "agreement", "sort", "page", "gold"}


def words_of(key: str) -> tuple[str, ...]:
    """Return the values of a filter that cover several values of its column, such as ``failed``."""
    return tuple(value for name, value in SOME_OF if name == key and value in WORDS.get(key, ()))
