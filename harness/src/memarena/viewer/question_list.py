"""Around the list of questions: filters with their values, links to orders and pages, what is listed in words."""

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
    """A filter of the page of questions: its values with their counts, and the one that is chosen."""

    key: str
    name: str
    values: tuple[tuple[str, str], ...]
    """Value, and as it is shown."""
    chosen: str


@dataclass(frozen=True)
class Link:
    """A link with its text."""

    text: str
    query: str
    current: bool = False


def filters_of(cache: Cache, chosen: Selection) -> list[Filter]:
    """The filters that the page offers, with the values that there are and their counts."""
    values = cache.values()
    selected = dict(chosen.filters)
    filters = []
    for choice in (*ANSWER_CHOICES, *QUESTION_CHOICES):
        known = [(value, f"{word_of(choice.key, value)} ({count:,})") for value, count in values[choice.key]]
        known += [(value, word_of(choice.key, value)) for value in words_of(choice.key)]
        own = selected.get(choice.key, "")
        if own and own not in dict(known):
            known.append((own, own))
        if len(known) > 1 or own:
            filters.append(Filter(choice.key, choice.name, tuple(known), own))
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
    return _WORDS.get(value, value.replace("_", " ")) if key not in ("ego", "day") else value


def sentence_of(listed: Listed, side: Sequence[str]) -> str:
    """What is listed, in a sentence."""
    if not listed.total:
        return "No answer is like that."
    counts = listed.outcomes
    right, wrong = counts.get("correct", 0), counts.get("wrong", 0)
    failed = listed.total - right - wrong
    what = "question" if side else "answer"
    noun = what if listed.total == 1 else f"{what}s"
    share = _share(right, listed.total)
    lost = f", {failed:,} without an answer" if failed else ""
    of = f" in {side[0]}" if side else ""
    apart = ""
    if listed.apart:
        apart = f" {listed.apart:,} of them are in no figure: the owner's own D6 items, controls, extensions"
        counted, among = listed.total - listed.apart, right - listed.right_apart
        apart += f"; of the other {counted:,}, {among:,} right{_share(among, counted)}." if counted else "."
    return f"{listed.total:,} {noun}: {right:,} right{share}, {wrong:,} wrong{lost}{of}.{apart}"


def _share(part: int, whole: int) -> str:
    """A share in percent; none of fewer than five, as in every report."""
    return f" ({100 * part / whole:.1f}%)" if whole >= FEWEST_QUESTIONS else ""


def set_filters(chosen: Selection) -> list[Link]:
    """What is set, each with the query that leaves it out."""
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
    """A link for each order: once the smallest first, then the largest."""
    heads = {}
    for key, (name, _) in SORTS.items():
        turned = f"-{key}" if chosen.sort == key else key
        sign = "" if chosen.sort.removeprefix("-") != key else " ↓" if chosen.sort.startswith("-") else " ↑"
        heads[key] = Link(f"{name}{sign}", chosen.query(sort=turned), bool(sign))
    return heads


def page_links(chosen: Selection, listed: Listed) -> list[Link]:
    last = ceil(listed.total / PAGE_ROWS)
    near = {1, last, *range(chosen.page - 2, chosen.page + 3)}
    return [
        Link(f"{page:,}", chosen.query(page=page), page == chosen.page) for page in sorted(near) if 1 <= page <= last
    ]


def cells_by_row(cache: Cache, chosen: Selection) -> list[tuple[str, bool, list[tuple[str, str, bool]]]]:
    """Rows and their cells, and which of them are chosen."""
    cells_by_row: dict[str, list[tuple[str, str, bool]]] = {}
    for cell in cache.cells():
        cells_by_row.setdefault(cell.row, []).append((cell.cell_id, cell.seed, cell.cell_id in chosen.cells))
    return [(row, row in chosen.cells, cells) for row, cells in cells_by_row.items()]
