"""The value judge on answers by a hand that did not know it: a bound at what was measured, not at the aim.

The sets have no evidence sessions: what the right answers to a question say stands for them. Conflicts are asked in
time order there ("first …, later …"), which the project's gold does not have, so wrong answers that only turn the order
round cannot be told; wrong answers to conflicts are left out. docs/judging.md has the figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.judge import judge_answer

from ..support.blind_values import blind_values
from ..support.logs import make_evidence, make_question

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "most_rejected", "most_accepted"), [("values_blind", 0.20, 0.12), ("values_blind_extra", 0.25, 0.20)]
)
def test_errors_stay_at_what_was_measured(name: str, most_rejected: float, most_accepted: float) -> None:
    rejected, accepted, right, wrong = [], [], 0, 0
    for blind in blind_values(DATA / f"{name}.v1.jsonl"):
        evidence = make_evidence("sess_1", *(("Maya Chen", said) for said in blind.said))
        question = make_question("q1", blind.family, blind.gold, blind.question, evidence=["sess_1"])
        correct = judge_answer(question, [evidence], blind.answer).correct
        if blind.right:
            right += 1
            rejected += [blind.answer] * (not correct)
        elif blind.sort != "conflict":
            wrong += 1
            accepted += [blind.answer] * correct
    assert right + wrong >= 100
    assert len(rejected) / right <= most_rejected, rejected
    assert len(accepted) / wrong <= most_accepted, accepted
