"""Samples the questions whose traces a report shows.

A report with the traces of all questions would be too large. Failures come first, as they show what to improve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from memarena.log.records import Outcome
from memarena.scoring.results import QuestionScore, RowScores

AT_MOST = 160
"""Traces of a report, shared equally by its rows."""
MOST_OF_A_ROW = 18
"""Traces of a row at most."""


def sample_questions(
    rows: Sequence[RowScores], questions: Iterable[QuestionScore], runs: int = 1, *, quota: int | None = None
) -> list[QuestionScore]:
    """Sample questions of each row: first failures, alternating over outcomes and families, then a few right answers.

    ``quota``: questions of each row; None: the ``runs`` of a report share :data:`AT_MOST` equally, and so do the rows
    of a run; every row has at least one. The order within a family is by a hash of the instance id, so that the same
    log gives the same sample, and rows share questions where possible.
    """
    if not rows:
        return []
    quota = quota or min(max(AT_MOST // (len(rows) * runs), 1), MOST_OF_A_ROW)
    by_cell: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.outcome is not None:
            by_cell.setdefault(question.cell_id, []).append(question)
    sample = []
    for row in rows:
        cells = [c.cell_id for c in row.cells if c.seed_label in row.headline_seeds]
        candidates = [q for cell in cells for q in by_cell.get(cell, ())]
        wrong = _in_turn([q for q in candidates if q.outcome is not Outcome.CORRECT])
        right = _in_turn([q for q in candidates if q.outcome is Outcome.CORRECT])
        # A quarter of the quota, or more if there are not enough failures for the rest.
        right_count = min(len(right), max(quota // 4, quota - len(wrong)))
        sample += [*wrong[: quota - right_count], *right[:right_count]]
    return sample


_OUTCOMES = (
    Outcome.INFRA_FAILED,
    Outcome.READER_NOT_APPLICABLE,
    Outcome.BACKEND_FAILED,
    Outcome.WRONG,
    Outcome.CORRECT,
)
"""Outcomes in the order in which their questions are chosen."""


def _in_turn(questions: Iterable[QuestionScore]) -> list[QuestionScore]:
    """Order questions round-robin over (outcome, family); an instance appears again only after all instances."""
    strata: dict[tuple[int, str], list[QuestionScore]] = {}
    for question in sorted(questions, key=lambda q: (_hash(q.instance_id), q.cell_id)):
        rank = _OUTCOMES.index(question.outcome) if question.outcome else len(_OUTCOMES)
        strata.setdefault((rank, question.family), []).append(question)
    groups = [strata[key] for key in sorted(strata)]
    depth = max(map(len, groups), default=0)
    in_turn = [group[i] for i in range(depth) for group in groups if i < len(group)]
    first: dict[str, QuestionScore] = {}
    for question in in_turn:
        first.setdefault(question.instance_id, question)
    return [*first.values(), *(q for q in in_turn if first[q.instance_id] is not q)]


def _hash(instance_id: str) -> str:
    return hashlib.sha256(instance_id.encode()).hexdigest()
