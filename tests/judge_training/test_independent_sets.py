"""The value judge on answers that nothing was learned from: bounds at what the model card prints.

The blind sets have no evidence; what the right answers to a question say stands for it. ``assistant_answers`` were
written in the manner of large and small assistants by somebody who saw questions, gold and evidence, but neither code
nor verdicts.
"""

from __future__ import annotations

import pytest
from judge_training.typed_answers import Errors, errors
from judge_training.typed_value_sets import independent


@pytest.mark.parametrize(
    ("name", "most_rejected", "most_accepted"),
    [
        ("assistant_answers", 15, 7),
        ("assistant_answers_second", 7, 10),
        ("assistant_answers_third", 17, 10),
        ("assistant_answers_fourth", 5, 1),
        ("values_blind", 32, 9),
        ("values_blind_extra", 12, 7),
        ("labelled_llm_answers", 0, 1),
    ],
)
def test_errors_stay_at_what_was_measured(name: str, most_rejected: int, most_accepted: int) -> None:
    rows = independent()[name]
    words = [(one, one.judged().correct) for one in rows]
    found: Errors = errors(words)
    assert found.false_rejects.cases + found.false_accepts.cases >= 100
    assert found.false_rejects.errors <= most_rejected
    assert found.false_accepts.errors <= most_accepted
