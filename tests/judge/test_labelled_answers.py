"""The value judge agrees with people on what a small model really answered.

``data/labelled_llm_answers.v1.jsonl`` holds answers of the embedded reader to questions of five generated worlds, read
over the oracle's sessions or over the evidence turns alone, each labelled by hand. Answers that people could not agree
on were left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memarena.dataset.gold import Gold
from memarena.dataset.model import Family
from memarena.judge import judge_answer
from memarena.judge.calibration import by_token_f1
from memarena.judge.calibration.planting import Planted
from memarena.log.records import EvidenceSession, EvidenceTurn
from pydantic import TypeAdapter

from ..support.logs import make_question

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "labelled_llm_answers.v1.jsonl").read_text("utf-8").splitlines()
]
GOLD: TypeAdapter[Gold] = TypeAdapter(Gold)


def planted(row: dict[str, Any]) -> Planted:
    sessions = tuple(
        EvidenceSession(
            session_id=f"s{n}",
            started_at=session["started_at"],
            place=session["place"],
            turns=tuple(EvidenceTurn(turn_id=f"s{n}_t{m}", **turn) for m, turn in enumerate(session["turns"])),
        )
        for n, session in enumerate(row["evidence"])
    )
    question = make_question(
        "q", Family(row["family"]), GOLD.validate_python(row["gold"]), row["question"], asked_at=row["asked_at"]
    )
    question = question.model_copy(update={"ego_name": row["ego_name"]})
    return Planted(question, sessions, row["answer"], row["right"], "model")


def test_the_labelled_set_holds_enough_of_both_kinds() -> None:
    assert len(ROWS) >= 200
    assert sum(row["right"] for row in ROWS) >= 25


def test_the_value_judge_errs_on_few_real_answers_and_less_than_token_f1() -> None:
    """Measured when written: see docs/judging.md."""
    answers = [planted(row) for row in ROWS]
    said = [judge_answer(p.question, p.evidence, p.answer).correct for p in answers]
    accepted = [p.answer for p, word in zip(answers, said, strict=True) if word and not p.right]
    rejected = [p.answer for p, word in zip(answers, said, strict=True) if p.right and not word]
    assert len(accepted) <= MOST_ACCEPTED, accepted
    assert len(rejected) <= MOST_REJECTED, rejected
    by_f1 = sum(by_token_f1(p) != p.right for p in answers)
    assert len(accepted) + len(rejected) < by_f1


MOST_ACCEPTED = 0
MOST_REJECTED = 0
