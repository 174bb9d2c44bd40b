"""Builds the form for reviews of an answer, parses what it sends, and formats reviews for download."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from memarena_dataset.printing import csv_cell

from memarena.judging.human.sampling import BEHAVIOUR_LABELS, BINARY_LABELS
from memarena.log.line_file import utc_now
from memarena.log.reviews import LONGEST_NOTE, Review, Reviews, checked_author
from memarena.report.reviews import verdict_of
from memarena.scoring.results import QuestionScore
from memarena.viewer.errors import ViewerError

REVIEWER_COOKIE = "memarena_reviewer"
LABEL_WORDS = {
    "correct": "right", "wrong": "wrong", "disclose_correct": "tells the fact",
    "disclose_wrong": "tells something else as the fact", "refuse": "refuses: you may not know",
    "dont_know": "says it does not know", "other": "anything else",
}  # fmt: skip
"""Label of an answer: its text on pages."""


@dataclass(frozen=True)
class ReviewForm:
    """The reviews of an answer, with the choices of the form for another."""

    attempt: int
    verdict: str | None
    choices: tuple[tuple[str, str], ...]
    """(label, text) of the labels that can be chosen; empty for an answer without a verdict."""
    own: Review | None
    """The present review by this browser's reviewer; None if there is none."""
    reviews: tuple[Review, ...]
    """The present review of each reviewer."""
    history: tuple[Review, ...]
    """All reviews of the answer, oldest first, those that were replaced included."""


def review_form(reviews: Reviews, score: QuestionScore, author: str) -> ReviewForm:
    """Return the form of an answer, filled with the earlier review of ``author``."""
    current = reviews.of(score.cell_id, score.instance_id)
    verdict = verdict_of(score)
    return ReviewForm(
        attempt=score.attempts - 1,
        verdict=verdict,
        choices=tuple((label, LABEL_WORDS[label]) for label in _labels(score, verdict)),
        own=next((review for review in current if review.author == author), None),
        reviews=current,
        history=reviews.history(score.cell_id, score.instance_id),
    )


def review_sent(sent: Mapping[str, str], score: QuestionScore, run_id: str, judge: str) -> Review:
    """Return the review in the fields of a form. Raises ViewerError or LogError for an unexpected value."""
    if sent.get("attempt") != str(score.attempts - 1):
        raise ViewerError("a later attempt replaced this answer meanwhile; load the page again and look at the new one")
    verdict, label, note = verdict_of(score), sent.get("label", ""), sent.get("note", "").replace("\r\n", "\n").strip()
    choices = _labels(score, verdict)
    if label and label not in choices:
        expected = ", ".join(choices) or "none, since no verdict was reached"
        raise ViewerError(f"label: {label[:80]!r}: expected one of {expected}")
    if len(note) > LONGEST_NOTE:
        raise ViewerError(f"note: {len(note):,} characters; expected at most {LONGEST_NOTE:,}")
    return Review(
        at=utc_now(),
        author=checked_author(sent.get("author", "")),
        run_id=run_id,
        cell_id=score.cell_id,
        instance_id=score.instance_id,
        attempt=score.attempts - 1,
        judge=judge,
        verdict=verdict,
        label=label or None,
        starred="starred" in sent,
        note=note,
    )


def reviews_csv(reviews: Sequence[Review]) -> str:
    """Format reviews as CSV with a header line; formulas are escaped for spreadsheets."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(Review.model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in review.model_dump().items()} for review in reviews)
    return file.getvalue()


def reviews_json(reviews: Sequence[Review]) -> str:
    """Format reviews as a JSON list of objects."""
    return json.dumps([review.model_dump() for review in reviews], indent=2, ensure_ascii=False) + "\n"


def cookie_of(author: str) -> str:
    """Encode a reviewer's name for a cookie."""
    return quote(author, safe="")


def author_of(cookie: str | None) -> str:
    """Decode the reviewer's name from a cookie, at most 60 characters; empty if there is no cookie."""
    return unquote(cookie or "")[:60]


def _labels(score: QuestionScore, verdict: str | None) -> tuple[str, ...]:
    if verdict is None:
        return ()
    return BINARY_LABELS if score.disclosure is None else BEHAVIOUR_LABELS
