"""Tests *answerable*: the share of questions whose prompt holds turns that suffice for the gold, whoever reads it.

It separates a memory's share in a wrong answer from the reader's: no reader can answer from a prompt that lacks the
turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest
from memarena.log.records import HeldText, Question, RetrievedItem
from memarena.scoring.compare import choose, compare
from memarena.scoring.figures import Permission, Score
from memarena.scoring.results import ANSWERABLE, AVG_WITHOUT_D6, RowScores
from memarena_dataset.model import Family

from ..support.logs import (
    abstain,
    make_asked,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_run,
    permission,
    text_gold,
)
from ..support.scoring import score_records

CELL, OTHER = make_cell("bm25"), make_cell("other")
EVIDENCE = [make_evidence(session, ("Maya", "A word.")) for session in ("s1", "s2", "s3")]
S1, S2, S3 = (make_item(f"words of {session}", session) for session in ("s1", "s2", "s3"))
DENY = make_question("perm_1", Family.PERMISSION, permission("4821", "withhold"), "Code?", asker=None, evidence=["s1"])
ABSTAIN = make_question("conf_1", Family.CONFABULATION, abstain(), "When?", evidence=["s1"])


def asking(*groups: tuple[str, ...], name: str = "qa_1", turns: bool = True) -> Question:
    """Return a question with evidence in three sessions of one turn each.

    ``groups``: turn ids of each needed fact, any one of which suffices.
    """
    question = make_question(name, Family.QA, text_gold("Porto"), "Where?", evidence=["s1", "s2", "s3"])
    cited = ("s1_t01", "s2_t01", "s3_t01") if turns else ()
    update = {"evidence_turn_ids": cited, "sufficient_turn_ids": groups}
    return question.model_copy(update={"instance": question.instance.model_copy(update=update)})


RESTATED = asking(("s1_t01", "s3_t01"), ("s2_t01",))
"""The first and the third session state one fact, the second another; both facts are needed."""


def answerable(question: Question, items: Sequence[RetrievedItem], shown_items: tuple[int, ...] | None = None) -> Score:
    attempts = make_asked(CELL, question, "Vienna", items=list(items))
    assert attempts.answer is not None
    attempts = attempts.model_copy(update={"answer": attempts.answer.model_copy(update={"shown_items": shown_items})})
    return score_records(make_run([CELL], [question], EVIDENCE, [attempts])).scores.rows[0].metrics[ANSWERABLE]


def holding(item: RetrievedItem, *turn_ids: str, share: float) -> RetrievedItem:
    sessions = tuple(turn_id.split("_")[0] for turn_id in turn_ids)
    held_text = HeldText(session_ids=sessions, turn_ids=turn_ids, verbatim_share=share)
    return item.model_copy(update={"held": held_text})


@pytest.mark.parametrize(
    ("what", "question", "items", "shown", "expected"),
    [
        ("a turn of each group", RESTATED, [S1, S2], None, 1.0),
        ("the restatement in place of the first", RESTATED, [S2, S3], None, 1.0),
        ("one fact twice, the other not", RESTATED, [S1, S3], None, 0.0),
        ("nothing", RESTATED, [], None, 0.0),
        ("retrieved and cut from the prompt", RESTATED, [S1, S2], (0,), 0.0),
        ("all evidence turns where no group is named", asking(), [S1, S2, S3], None, 1.0),
        ("an evidence turn less", asking(), [S1, S2], None, 0.0),
        ("all evidence sessions where no turn is named", asking(turns=False), [S3, S2, S1], None, 1.0),
        ("an evidence session less", asking(turns=False), [S3, S2], None, 0.0),
        ("the text holds no turn that it names", RESTATED, [holding(S1, share=0.9), S2], None, 0.0),
        ("the text holds a turn that is not named", RESTATED, [holding(S2, "s2_t01", "s3_t01", share=1)], None, 1.0),
        ("rewritten, and the turn is named", RESTATED, [holding(S1, share=0.1), S2], None, 1.0),
        ("no item says where it comes from", RESTATED, [make_item("a"), make_item("b")], None, None),
    ],
)  # fmt: skip
def test_any_sufficient_turns_in_the_prompt_count(
    what: str, question: Question, items: list[RetrievedItem], shown: tuple[int, ...] | None, expected: float | None
) -> None:
    assert answerable(question, items, shown).value == expected, what


def test_questions_without_a_fact_are_excluded_and_a_failed_backend_counts_as_0() -> None:
    questions = [RESTATED, asking(name="qa_2"), ABSTAIN, DENY]
    good = make_asked(CELL, RESTATED, "Porto", items=[S1, S2])
    nothing = [make_asked(CELL, q, "I don't know", items=[S1]) for q in (ABSTAIN, DENY)]
    ends: tuple[tuple[Literal["backend_failed", "infra_failed"], float | None, float], ...]
    ends = (("backend_failed", 0.5, 0.5), ("infra_failed", None, 1.0))
    for status, value, high in ends:
        failed = make_asked(CELL, questions[1], status=status, cause="x", search_ok=False)
        row = score_records(make_run([CELL], questions, EVIDENCE, [good, failed, *nothing])).scores.rows[0]
        figure = row.metrics[ANSWERABLE]
        assert (figure.value, figure.low, figure.high) == (value, 0.5, high)
        (family,) = row.answerable
        assert (family.family, family.questions, family.score.value) == ("d7_qa", 2, value)
    alone = score_records(make_run([CELL], [ABSTAIN, DENY], EVIDENCE, nothing)).scores.rows[0]
    assert (alone.metrics[ANSWERABLE].low, alone.answerable) == (None, ())


def test_answerable_compares_prompts_and_not_answers() -> None:
    attempts = [
        make_asked(CELL, RESTATED, "Vienna", items=[S1, S2]),
        make_asked(OTHER, RESTATED, "Porto", items=[S1]),
    ]
    scored = score_records(make_run([CELL, OTHER], [RESTATED], EVIDENCE, attempts))
    differences = {d.metric: d for d in compare(choose(scored, "bm25"), choose(scored, "other")).differences}
    prompts, right = differences[ANSWERABLE], differences["all"]
    assert (prompts.a, prompts.b, prompts.only_a, prompts.only_b) == (1.0, 0.0, 1, 0)
    assert (right.only_a, right.only_b) == (0, 1)


@pytest.mark.parametrize(
    ("low", "high", "average"),
    [(0.01, 0.4, "Avg"), (-0.1, 0.3, AVG_WITHOUT_D6), (-0.5, -0.1, "Avg"), (None, None, AVG_WITHOUT_D6)],
)
def test_d6_is_excluded_from_the_average_while_the_interval_of_j_includes_0(
    low: float | None, high: float | None, average: str
) -> None:
    row: RowScores = score_records(make_run([CELL], [DENY], EVIDENCE, [])).scores.rows[0]
    d6 = Permission(
        allow=9, deny=9, f1_pu=Score(), j=Score(), j_low=low, j_high=high, gates=None, deny_labels={}, allow_labels={},
        known_facts=0,
    )  # fmt: skip
    assert row.model_copy(update={"permission": d6}).rank_by == average
