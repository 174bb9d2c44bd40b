"""Builds what surrounds the list of questions: filters with their values, links that sort or turn pages, a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.question_view.records import OUTCOMES
from memarena.viewer.queries import PAGE_ROWS, Cache, Listed
from memarena.viewer.selection import (
    AGREEMENTS,
    ANSWER_CHOICES,
    QUESTION_CHOICES,
    REVIEW_WORDS,
    SORTS,
    Selection,
    words_of,
)


@dataclass(frozen=True)
class Filter:
    """A filter of the page of questions; ``chosen`` is the selected value, or empty."""

    key: str
    name: str
    values: tuple[tuple[str, str], ...]
    """(value in the address, text on the page with the count of answers or questions)."""
    chosen: str


@dataclass(frozen=True)
class Link:
    """A link to the page with another query; ``current``: it leads to the selection shown."""

    text: str
    query: str
    current: bool = False


def filters_of(cache: Cache, chosen: Selection) -> list[Filter]:
    """Return the filters that have a choice of values or are set, with the counts of their values."""
    values = cache.values()
    selected = dict(chosen.filters)
    filters = []
    for choice in (*ANSWER_CHOICES, *QUESTION_CHOICES):
        options = [(value, f"{word_of(choice.key, value)} ({count:,})") for value, count in values[choice.key]]
        options += [(value, word_of(choice.key, value)) for value in words_of(choice.key)]
        current = selected.get(choice.key, "")
        if current and current not in dict(options):
            options.append((current, current))
        if len(options) > 1 or current:
            filters.append(Filter(choice.key, choice.name, tuple(options), current))
    reviewed = [(key, f"{REVIEW_WORDS[key]} ({n:,})") for key, n in cache.review_counts().items()]
    filters.append(Filter("review", "review", tuple(reviewed), selected.get("review", "")))
    return filters


_WORDS = {
    **{outcome: word for outcome, (_, word) in OUTCOMES.items()},
    "failed": "failed, whoever failed",
    "any": "anywhere",
    "kept": "kept to itself",
    "deny": "must be withheld",
    "allow": "may be disclosed",
    "self": "the owner asks",
}


def word_of(key: str, value: str) -> str:
    """Return the text of a filter's value on the page."""
    return _WORDS.get(value, value.replace("_", " ")) if key not in ("ego", "day") else value


def sentence_of(listed: Listed, side: Sequence[str]) -> str:
    """Return a summary of the listed answers; ``side``: ids of the cells shown side by side, or empty."""
    if not listed.total:
        return "No answer is like that."
    counts = listed.outcomes
    right, wrong = counts.get("correct", 0), counts.get("wrong", 0)
    failed = listed.total - right - wrong
    counted_noun = "question" if side else "answer"
    noun = counted_noun if listed.total == 1 else f"{counted_noun}s"
    share = _share(right, listed.total)
    lost = f", {failed:,} without an answer" if failed else ""
    where = f" in {side[0]}" if side else ""
    apart = ""
    if listed.apart:
        apart = f" {listed.apart:,} of them are in no figure: the owner's own D6 items, controls, extensions"
        counted, right_counted = listed.total - listed.apart, right - listed.right_apart
        apart += (
            f"; of the other {counted:,}, {right_counted:,} right{_share(right_counted, counted)}." if counted else "."
        )
    return f"{listed.total:,} {noun}: {right:,} right{share}, {wrong:,} wrong{lost}{where}.{apart}"


def _share(part: int, whole: int) -> str:
    """Return a share in percent in parentheses; empty for fewer than five, as in every report."""
    return f" ({100 * part / whole:.1f}%)" if whole >= FEWEST_QUESTIONS else ""


def set_filters(chosen: Selection) -> list[Link]:
    """Return a link for each setting of the selection, which leads to the selection without it."""
    names = {choice.key: choice.name for choice in (*QUESTION_CHOICES, *ANSWER_CHOICES)}
    links = [
        Link(
            REVIEW_WORDS[value] if key == "review" else f"{names[key]}: {word_of(key, value)}",
            chosen.query(**{key: None}),
        )
        for key, value in chosen.filters
    ]
    if chosen.text:
        links.append(Link(f"text: {chosen.text}", chosen.query(q=None)))
    if chosen.agreement and chosen.side:
        links.append(Link(AGREEMENTS[chosen.agreement], chosen.query(agreement=None)))
    return links


def sort_links(chosen: Selection) -> dict[str, Link]:
    """Return by sort key a link: sorts ascending first, descending when it is already ascending."""
    heads = {}
    for key, (name, _) in SORTS.items():
        turned = f"-{key}" if chosen.sort == key else key
        sign = "" if chosen.sort.removeprefix("-") != key else " ↓" if chosen.sort.startswith("-") else " ↑"
        heads[key] = Link(f"{name}{sign}", chosen.query(sort=turned), bool(sign))
    return heads


def page_links(chosen: Selection, listed: Listed) -> list[Link]:
    """Return links to the first and last page and to two pages before and after this one."""
    last = ceil(listed.total / PAGE_ROWS)
    near = {1, last, *range(chosen.page - 2, chosen.page + 3)}
    return [
        Link(f"{page:,}", chosen.query(page=page), page == chosen.page) for page in sorted(near) if 1 <= page <= last
    ]


def cells_by_row(cache: Cache, chosen: Selection) -> list[tuple[str, bool, list[tuple[str, str, bool]]]]:
    """Return for each row (its label, whether it is selected, its cells as (id, seed, whether selected))."""
    cells_by_row: dict[str, list[tuple[str, str, bool]]] = {}
    for cell in cache.cells():
        cells_by_row.setdefault(cell.row, []).append((cell.cell_id, cell.seed, cell.cell_id in chosen.cells))
    return [(row, row in chosen.cells, cells) for row, cells in cells_by_row.items()]
