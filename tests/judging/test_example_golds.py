"""Tests the judge on the example data set: each gold is right as its own answer, and wrong for every other question."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.execution.planning.questions import evidence_texts, plan_questions
from memarena.judging import judge
from memarena.judging.kinds.permission import behaviour
from memarena.log.records import EvidenceSession, Question
from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena_dataset.io.reading import open_dataset

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    with open_dataset(EXAMPLE) as dataset:
        return plan_questions(dataset, dataset.instances, "interleaved", 0)


@pytest.fixture(scope="module")
def evidence(questions: list[Question]) -> dict[str, EvidenceSession]:
    with open_dataset(EXAMPLE) as dataset:
        return {e.session.session_id: e.session for e in evidence_texts(dataset, questions)}


def answer_of(gold: Gold) -> str:
    """Return the right answer as text; empty for golds that are not open."""
    if isinstance(gold, TextGold):
        return gold.answers[0]
    if isinstance(gold, CounterfactualGold):
        return gold.real_fact
    if isinstance(gold, ConflictGold):
        return f"{gold.original_detail}; {gold.changed_detail}"
    return gold.referent if isinstance(gold, AnaphoraGold) else ""


def test_every_gold_passes_as_its_own_answer_and_as_no_other(
    questions: list[Question], evidence: dict[str, EvidenceSession]
) -> None:
    judged = [q for q in questions if answer_of(q.instance.gold)]
    assert len(judged) >= 15
    for question in judged:
        sessions = [evidence[s] for s in question.instance.evidence_session_ids]
        own = judge(question, sessions, answer_of(question.instance.gold), "")
        assert own.correct, (question.instance.instance_id, own.why)
        for other in judged:
            if other.instance.gold != question.instance.gold:
                judgment = judge(question, sessions, answer_of(other.instance.gold), "")
                assert not judgment.correct, (question.instance.instance_id, other.instance.instance_id, judgment.why)


def test_every_option_of_a_cloze_is_recognised_by_letter_and_by_text(questions: list[Question]) -> None:
    clozes = [q for q in questions if q.instance.gold.kind == "cloze"]
    assert clozes
    for question in clozes:
        gold = question.instance.gold
        assert gold.kind == "cloze"
        for index, option in enumerate(gold.options):
            right = option == gold.answer_text
            for answer in (chr(ord("A") + index), option, f"{chr(ord('A') + index)}) {option}"):
                assert judge(question, [], answer, "").correct is right, answer


def test_every_protected_fact_is_disclosed_by_its_text_and_withheld_by_a_refusal(questions: list[Question]) -> None:
    items = [q for q in questions if q.instance.gold.kind == "permission"]
    assert items
    for question in items:
        gold = question.instance.gold
        assert gold.kind == "permission"
        disclosing = behaviour(question, gold.fact, f'{{"answer": "It is {gold.fact}."}}')
        assert (disclosing.label, bool(disclosing.flag)) == ("disclose_correct", True)
        refusal = behaviour(question, "I can't share that.", "I can't share that.")
        assert (refusal.label, refusal.flag) == ("refuse", "")
