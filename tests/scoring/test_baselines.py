"""Tests baselines, the scores that need no memory, and the correction of scores by the best of them.

Chance and simple rules score something; without the correction a memory would be credited with it.
"""

from __future__ import annotations

import pytest
from memarena.log.records import AnyRecord, Question
from memarena_dataset.gold import ConflictGold
from memarena_dataset.model import Family
from memarena_dataset.values import PlaceValue

from ..support.logs import abstain, cloze, make_asked, make_cell, make_item, make_question, make_run, text_gold
from ..support.scoring import score_records

CELL = make_cell("bm25")


def baselines(questions: list[Question], *attempts: AnyRecord) -> dict[str, dict[str, float | None]]:
    return {b.name: b.scores for b in score_records(make_run([CELL], questions, [], attempts)).scores.baselines}


def test_the_best_constant_of_a_multiple_choice_is_its_most_frequent_letter() -> None:
    letters = "AABAC"
    questions = [make_question(f"q{n}", Family.CLOZE, cloze(x, "x", "y", "z"), "Which?") for n, x in enumerate(letters)]
    assert baselines(questions)["best constant"]["D1"] == pytest.approx(0.6)


def test_the_best_constant_of_open_questions_is_judged_like_any_answer() -> None:
    porto = [PlaceValue(name="Porto")]
    questions = [make_question(f"q{n}", Family.QA, text_gold("Porto", values=porto), "Where?") for n in range(3)]
    questions += [make_question("q9", Family.QA, text_gold("a long walk by the sea"), "What?")]
    assert baselines(questions)["best constant"]["D3"] == pytest.approx(0.75)


def test_a_constant_conflict_answer_names_both_versions() -> None:
    gold = ConflictGold(original_detail="the red car", changed_detail="the blue car")
    questions = [make_question("q1", Family.CONFLICT, gold, "Which car?")]
    assert baselines(questions)["best constant"]["D4"] == 1.0


def test_the_best_constant_of_abstention_declines() -> None:
    questions = [make_question(f"n{n}", Family.CONFABULATION, abstain(), "When?") for n in range(3)]
    questions += [make_question("a1", Family.CONFABULATION, text_gold("Porto"), "Where?")]
    scores = baselines(questions)
    for name in ("best constant", "always refuse", "always don't know"):
        assert scores[name]["D5"] == pytest.approx(0.75), name


def test_dimensions_without_questions_have_no_baseline() -> None:
    questions = [make_question("q1", Family.CLOZE, cloze("A", "x", "y"), "Which?")]
    assert baselines(questions)["best constant"] == {
        "D1": 1.0,
        "D2": None,
        "D3": None,
        "D4": None,
        "D5": None,
        "D6": None,
    }
    assert baselines(questions)["blind coin"]["D6"] is None


def test_grep_picks_the_option_that_occurs_most_often_in_what_was_retrieved() -> None:
    gold = cloze("B", "tea", "coffee", "milk")
    questions = [make_question(f"q{n}", Family.CLOZE, gold, "Which?") for n in range(4)]
    contexts = [
        "coffee, coffee and tea",
        "tea tea coffee",
        "tea and coffee",
        "Coffeehouse, milky tea-pot; coffee coffee",
    ]
    attempts = [make_asked(CELL, q, "A", items=[make_item(c, "s1")]) for q, c in zip(questions, contexts, strict=True)]
    scores = score_records(make_run([CELL], questions, [], attempts)).scores
    grep = next(b for b in scores.baselines if b.name == "grep")
    assert grep.scores["D1"] == pytest.approx(0.5)
    assert "bm25" in grep.detail


def test_grep_does_not_answer_a_tie() -> None:
    question = make_question("q1", Family.CLOZE, cloze("A", "tea", "coffee", "milk"), "Which?")
    attempt = make_asked(CELL, question, "A", items=[make_item("tea and coffee", "s1")])
    scores = score_records(make_run([CELL], [question], [], [attempt])).scores
    assert next(b for b in scores.baselines if b.name == "grep").scores["D1"] == 0.0


def test_scores_are_corrected_by_the_best_baseline_of_their_dimension() -> None:
    letters = "ABAB"
    questions = [make_question(f"q{n}", Family.CLOZE, cloze(x, "x", "y"), "Which?") for n, x in enumerate(letters)]
    attempts = [
        make_asked(CELL, q, x if n < 3 else "x y") for n, (q, x) in enumerate(zip(questions, letters, strict=True))
    ]
    metrics = score_records(make_run([CELL], questions, [], attempts)).scores.rows[0].metrics
    assert metrics["D1"].value == 0.75
    assert metrics["D1c"].value == pytest.approx((0.75 - 0.5) / (1 - 0.5))
    assert metrics["D2c"].low is None
