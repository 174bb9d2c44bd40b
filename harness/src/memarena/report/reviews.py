"""Counts reviews of answers by row: how often people dispute a verdict of the judge.

A review is a star, a note or a label that a person gives an answer in the viewer, with its verdict in sight.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from memarena.log.records import Outcome, Record
from memarena.log.reviews import AnswerKey, Review
from memarena.scoring.results import QuestionScore
from memarena.scoring.run import ScoredRun

RIGHT, WRONG = "correct", "wrong"
"""Labels of a review for answers outside of D6; those of D6 are labels of behaviour."""


class RowReviews(Record):
    """Answers of a row that people reviewed. Counts and no rates: the answers are no random sample."""

    label: str
    """The row."""
    reviewers: int
    reviewed: int
    """Answers with a star, a note or a label, over all seeds."""
    starred: int
    labelled: int
    """Answers to which a person gave a label."""
    disputed: int
    """Labelled answers with at least one label other than that of the judge of this report."""
    right_called_wrong: int
    """Disputed answers that the judge calls wrong and the person right."""
    wrong_called_right: int
    """Disputed answers that the judge calls right and the person wrong."""
    other_behaviour: int
    """Disputed D6 answers: the person chose another label of behaviour."""
    earlier_attempts: int
    """Reviews of an answer that a later attempt replaced; they are in no other count."""


def verdict_of(score: QuestionScore) -> str | None:
    """Return the judge's verdict as a label of a review; None if the question was not answered."""
    if score.outcome not in (Outcome.CORRECT, Outcome.WRONG):
        return None
    if score.disclosure is not None:
        return score.disclosure.label
    return RIGHT if score.outcome is Outcome.CORRECT else WRONG


def row_reviews(scored: ScoredRun, reviews: Iterable[Review]) -> tuple[RowReviews, ...]:
    """Return the counts of each row that has reviews, in the order of the rows."""
    ordered_reviews = sorted(reviews, key=lambda review: (review.cell_id, review.instance_id))
    if not ordered_reviews:
        return ()
    rows = {cell.cell_id: row.label for row in scored.scores.rows for cell in row.cells}
    scores = {(score.cell_id, score.instance_id): score for score in scored.questions}
    by_row: dict[str, list[Review]] = {label: [] for label in rows.values()}
    for review in ordered_reviews:
        if (review.cell_id, review.instance_id) in scores:
            by_row[rows[review.cell_id]].append(review)
    return tuple(_counted(label, listed, scores) for label, listed in by_row.items() if listed)


def _counted(label: str, reviews: Sequence[Review], scores: dict[AnswerKey, QuestionScore]) -> RowReviews:
    """Count the reviews of a row; only reviews of the latest attempt count."""
    current = [
        review for review in reviews if review.attempt == scores[review.cell_id, review.instance_id].attempts - 1
    ]
    answers = [
        list(answer_reviews)
        for _, answer_reviews in groupby(current, key=lambda review: (review.cell_id, review.instance_id))
    ]
    changes = [change for answer_reviews in answers if (change := _change(answer_reviews, scores)) is not None]
    return RowReviews(
        label=label,
        reviewers=len({review.author for review in current}),
        reviewed=len(answers),
        starred=sum(any(review.starred for review in answer_reviews) for answer_reviews in answers),
        labelled=sum(any(review.label for review in answer_reviews) for answer_reviews in answers),
        disputed=len(changes),
        right_called_wrong=changes.count((WRONG, RIGHT)),
        wrong_called_right=changes.count((RIGHT, WRONG)),
        other_behaviour=sum(change not in ((WRONG, RIGHT), (RIGHT, WRONG)) for change in changes),
        earlier_attempts=len(reviews) - len(current),
    )


def _change(own: Sequence[Review], scores: dict[AnswerKey, QuestionScore]) -> tuple[str, str] | None:
    """Return (judge's label, first different label by a person) of an answer; None if no label differs."""
    verdict = verdict_of(scores[own[0].cell_id, own[0].instance_id])
    other_labels = [review.label for review in own if review.label is not None and review.label != verdict]
    return None if verdict is None or not other_labels else (verdict, other_labels[0])
