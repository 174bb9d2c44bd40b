"""Which questions a report traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from memarena.log.records import Outcome
from memarena.scoring.results import QuestionScore, RowScores

AT_MOST = 160
"""Traces in a whole report; each row has its share."""
MOST_OF_A_ROW = 18


def sample_questions(
    rows: Sequence[RowScores], questions: Iterable[QuestionScore], runs: int = 1, *, quota: int | None = None
) -> list[QuestionScore]:
    """Questions to trace: of each row failures first, by outcome and family in turn, and a few right.

    ``quota`` of each row, where it is set. Else the ``runs`` of a report share the traces it has room for, and the rows
    of a run its share; every row has at least one. The order within a family is by a hash of the instance id, so that
    the same log gives the same traces, and rows trace the same questions where they can.
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
        few = min(len(right), max(quota // 4, quota - len(wrong)))
        sample += [*wrong[: quota - few], *right[:few]]
    return sample


_OUTCOMES = (
    Outcome.INFRA_FAILED,
    Outcome.READER_NOT_APPLICABLE,
    Outcome.BACKEND_FAILED,
    Outcome.WRONG,
    Outcome.CORRECT,
)


def _in_turn(questions: Iterable[QuestionScore]) -> list[QuestionScore]:
    """One of each outcome and family, then the next of each, and so on; no instance twice before all had a turn."""
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
