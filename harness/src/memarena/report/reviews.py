"""Reviews of answers counted by row: how often people think a verdict of the judge wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from memarena.log.records import Outcome, Record
from memarena.log.reviews import AnswerKey, Review
from memarena.scoring.results import QuestionScore
from memarena.scoring.run import ScoredRun

RIGHT, WRONG = "correct", "wrong"


class RowReviews(Record):
    """Answers of a row that people reviewed. Counts and no rates: the answers are no random sample."""

    label: str
    """The row."""
    reviewers: int
    reviewed: int
    """Answers with a star, a note or a label, all seeds."""
    starred: int
    labelled: int
    """Answers of which a person states what is right."""
    disputed: int
    """Of those, answers of which at least one person states something else than the judge of this report."""
    right_called_wrong: int
    """Of the disputed ones: the judge says wrong, the person right."""
    wrong_called_right: int
    """The judge says right, the person wrong."""
    other_behaviour: int
    """D6: another behaviour than the judge's."""
    earlier_attempts: int
    """Reviews of an answer that a later attempt replaced; they count nowhere else."""


def verdict_of(score: QuestionScore) -> str | None:
    """What the judge decided, in the words of a review's label; None where there was no answer to judge."""
    if score.outcome not in (Outcome.CORRECT, Outcome.WRONG):
        return None
    if score.disclosure is not None:
        return score.disclosure.label
    return RIGHT if score.outcome is Outcome.CORRECT else WRONG


def row_reviews(scored: ScoredRun, reviews: Iterable[Review]) -> tuple[RowReviews, ...]:
    """Counts for each row with reviews, in the order of the rows."""
    ordered_reviews = sorted(reviews, key=lambda review: (review.cell_id, review.instance_id))
    if not ordered_reviews:
        return ()
    rows = {cell.cell_id: row.label for row in scored.scores.rows for cell in row.cells}
    scores = {(score.cell_id, score.instance_id): score for score in scored.questions}
    by_row: dict[str, list[Review]] = {label: [] for label in rows.values()}
    for review in ordered_reviews:
        if (review.cell_id, review.instance_id) in scores:
            by_row[rows[review.cell_id]].append(review)
    return tuple(_counted(label, own, scores) for label, own in by_row.items() if own)


def _counted(label: str, reviews: Sequence[Review], scores: dict[AnswerKey, QuestionScore]) -> RowReviews:
    current = [
        review for review in reviews if review.attempt == scores[review.cell_id, review.instance_id].attempts - 1
    ]
    answers = [list(own) for _, own in groupby(current, key=lambda review: (review.cell_id, review.instance_id))]
    changes = [change for own in answers if (change := _change(own, scores)) is not None]
    return RowReviews(
        label=label,
        reviewers=len({review.author for review in current}),
        reviewed=len(answers),
        starred=sum(any(review.starred for review in own) for own in answers),
        labelled=sum(any(review.label for review in own) for own in answers),
        disputed=len(changes),
        right_called_wrong=changes.count((WRONG, RIGHT)),
        wrong_called_right=changes.count((RIGHT, WRONG)),
        other_behaviour=sum(change not in ((WRONG, RIGHT), (RIGHT, WRONG)) for change in changes),
        earlier_attempts=len(reviews) - len(current),
    )


def _change(own: Sequence[Review], scores: dict[AnswerKey, QuestionScore]) -> tuple[str, str] | None:
    """The judge's label of an answer and the first other one of a person; None where no person differs."""
    verdict = verdict_of(scores[own[0].cell_id, own[0].instance_id])
    other_labels = [review.label for review in own if review.label is not None and review.label != verdict]
    return None if verdict is None or not other_labels else (verdict, other_labels[0])
