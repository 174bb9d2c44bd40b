"""Tests the value judge on answers that it did not learn from: errors stay within the bounds of its model card.

The blind sets have no evidence; what the right answers to a question say stands for it. ``assistant_answers`` were
written in the manner of large and small assistants by somebody who saw questions, gold and evidence, but neither code
nor verdicts.
"""

from __future__ import annotations

import json

import pytest
from judge_training import abstention
from judge_training.task import INDEPENDENT, text_of
from judge_training.typed_answers import Errors, errors
from judge_training.typed_value_sets import independent
from memarena.judging.prompt_injection import speaks_to_marker


@pytest.mark.parametrize(
    ("name", "most_rejected", "most_accepted"),
    [
        ("assistant_answers", 15, 7),
        ("assistant_answers_second", 7, 10),
        ("assistant_answers_third", 17, 10),
        ("assistant_answers_fourth", 5, 1),
        ("values_blind", 31, 9),
        ("values_blind_extra", 12, 7),
        ("labelled_llm_answers", 0, 1),
    ],
)
def test_errors_stay_at_what_was_measured(name: str, most_rejected: int, most_accepted: int) -> None:
    rows = independent()[name]
    words = [(row, row.judged().correct) for row in rows]
    error_counts: Errors = errors(words)
    assert error_counts.false_rejects.cases + error_counts.false_accepts.cases >= 100
    assert error_counts.false_rejects.errors <= most_rejected
    assert error_counts.false_accepts.errors <= most_accepted


def test_no_labelled_answer_is_taken_for_words_to_the_judge() -> None:
    """All answers of a real model, right or wrong, and those that decline; of typed values by hand the right ones."""
    rows = [json.loads(line) for name in ("values_blind", "values_blind_extra") for line in _lines(f"{name}.v1.jsonl")]
    answers = [row["answer"] for row in rows if row["right"]]
    answers += [json.loads(line)["answer"] for line in _lines("labelled_llm_answers.v1.jsonl")]
    assert len(answers) > 500
    answers += [case.answer for cases in abstention.independent().values() for case in cases]
    assert len(answers) > 2000
    assert [answer for answer in answers if speaks_to_marker(answer)] == []


def _lines(name: str) -> list[str]:
    return text_of(INDEPENDENT / f"{name}.xz").splitlines()
