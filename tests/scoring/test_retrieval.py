"""Tests retrieval figures, from the items that Search returned, and the stage that a wrong answer is attributed to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from memarena.log.records import AnyRecord, RetrievedItem
from memarena.scoring.results import RowScores
from memarena_dataset.model import Family

from ..support.logs import (
    abstain,
    make_asked,
    make_cell,
    make_evidence,
    make_ingest,
    make_item,
    make_question,
    make_run,
    permission,
    text_gold,
)
from ..support.scoring import score_records

CELL = make_cell("bm25")
EVIDENCE = [
    make_evidence("s1", ("Maya", "Porto."), started_at="2025-01-02T10:00:00Z"),
    make_evidence("s2", ("Maya", "Lisbon."), started_at="2025-01-05T10:00:00Z"),
]
BOTH = make_question("qa_1", Family.QA, text_gold("Porto and Lisbon"), "Where?", evidence=["s1", "s2"])
NOTHING = make_question("conf_1", Family.CONFABULATION, abstain(), "When?", evidence=["s1"])
NONE = make_question("qa_2", Family.QA, text_gold("Porto"), "Where?")
DENY = make_question("perm_1", Family.PERMISSION, permission("4821", "withhold"), "Code?", asker=None, evidence=["s1"])
OTHER = [make_item(f"noise {n}", f"x{n}") for n in range(12)]
S1, S2 = make_item("Porto.", "s1"), make_item("Lisbon.", "s2")
INGESTED = [make_ingest(CELL, day) for day in range(8)]


def row_of(*attempts: AnyRecord, ingest: Sequence[AnyRecord] = tuple(INGESTED)) -> RowScores:
    records = make_run([CELL], [BOTH, NOTHING, NONE, DENY], EVIDENCE, [*ingest, *attempts])
    return score_records(records).scores.rows[0]


@pytest.mark.parametrize(
    ("items", "at_k", "everywhere", "complete", "rank"),
    [
        ([S1, S2], 1.0, 1.0, 1.0, 1.0),
        ([OTHER[0], S2, OTHER[1]], 0.5, 0.5, 0.0, 2.0),
        ([*OTHER[:10], S1, S2], 0.0, 1.0, 1.0, 11.0),
        ([*OTHER[:9], S1, S2], 0.5, 1.0, 1.0, 10.0),
        (OTHER[:3], 0.0, 0.0, 0.0, None),
        ([make_item("both", "s1", "s2")], 1.0, 1.0, 1.0, 1.0),
        ([S1, S1, S1], 0.5, 0.5, 0.0, 1.0),
    ],
)
def test_recall_counts_evidence_sessions_among_the_first_ten_items(
    items: list[RetrievedItem], at_k: float, everywhere: float, complete: float, rank: float | None
) -> None:
    figures = row_of(make_asked(CELL, BOTH, "Porto", items=items)).retrieval
    assert figures is not None
    assert (figures.recall_at_k, figures.recall_all, figures.complete) == (at_k, everywhere, complete)
    assert figures.first_rank_p50 == rank
    assert figures.k == 10


def test_a_backend_without_sources_of_items_has_no_recall() -> None:
    row = row_of(make_asked(CELL, BOTH, "Vienna", items=[make_item("Porto."), make_item("Lisbon.")]))
    assert row.retrieval is None
    assert row.errors is None


def test_a_failed_search_counts_as_empty_and_an_infrastructure_failure_is_excluded() -> None:
    good = make_asked(CELL, BOTH, "Porto", items=[S1, S2])
    theirs = make_asked(CELL, NOTHING, status="backend_failed", cause="x", search_ok=False)
    ours = make_asked(CELL, NOTHING, status="infra_failed", cause="x", search_ok=False)
    for failed, recall, n in ((theirs, 0.5, 2), (ours, 1.0, 1)):
        figures = row_of(good, failed).retrieval
        assert figures is not None
        assert (figures.recall_at_k, figures.questions) == (recall, n)


def test_context_is_counted_in_bytes_over_four() -> None:
    figures = row_of(make_asked(CELL, BOTH, "Porto", items=[make_item("éé", "s1"), make_item("abcd", "s2")])).retrieval
    assert figures is not None
    assert figures.context_tokens == 2.0


@pytest.mark.parametrize(
    ("items", "days", "stage"),
    [
        ([S1, S2], range(8), (0, 0, 1)),
        ([S1], range(8), (0, 1, 0)),
        ([S1], range(4), (1, 0, 0)),
        ([], range(8), (0, 1, 0)),
        ([], (), (1, 0, 0)),
    ],
)
def test_a_wrong_answer_is_attributed_to_ingest_retrieval_or_reading(
    items: list[RetrievedItem], days: Sequence[int], stage: tuple[int, int, int]
) -> None:
    other = make_asked(CELL, NOTHING, "I don't know", items=[S1])
    ingest = [make_ingest(CELL, day) for day in days]
    figures = row_of(make_asked(CELL, BOTH, "Vienna", items=items), other, ingest=ingest).errors
    assert figures is not None
    assert (figures.not_ingested, figures.not_retrieved, figures.misread) == stage


def test_a_failed_day_or_one_of_another_namespace_counts_as_not_ingested() -> None:
    other = [make_ingest(CELL, day, namespace="old") for day in range(8)]
    failed = [make_ingest(CELL, day, code="INTERNAL") for day in range(8)]
    for ingest in (other, failed):
        figures = row_of(make_asked(CELL, BOTH, "Vienna", items=[S1]), ingest=ingest).errors
        assert figures is not None
        assert figures.not_ingested == 1


def test_questions_without_evidence_are_attributed_to_no_stage() -> None:
    attempts = [make_asked(CELL, NOTHING, "Monday", items=[S1]), make_asked(CELL, DENY, "4821", items=[S1])]
    figures = row_of(*attempts).errors
    assert figures is not None
    assert (figures.not_ingested, figures.not_retrieved, figures.misread) == (0, 0, 0)


@pytest.mark.parametrize(
    ("items", "shown", "stage"),
    [
        ([S1, S2], (0, 1), "misread"),
        ([S1, S2], (0,), "cut_from_prompt"),
        ([S1, S2], (), "cut_from_prompt"),
        ([S1, S2], None, "misread"),
        ([S1], (), "not_retrieved"),
        ([make_item("Porto."), make_item("Lisbon.")], (0,), "unknown"),
    ],
)
def test_evidence_retrieved_but_missing_in_the_prompt_is_attributed_to_the_cut(
    items: list[RetrievedItem], shown: tuple[int, ...] | None, stage: str
) -> None:
    """Neither search nor reader failed: the evidence did not fit into the prompt."""
    attempts = make_asked(CELL, BOTH, "Vienna", items=items)
    assert attempts.answer is not None
    attempts = attempts.model_copy(update={"answer": attempts.answer.model_copy(update={"shown_items": shown})})
    ingest = [make_ingest(CELL, day) for day in range(8)]
    records = make_run([CELL], [BOTH], EVIDENCE, [*ingest, attempts])
    (question,) = score_records(records).questions
    assert question.stage == stage


def test_items_of_the_backends_own_answer_decide_the_stage_and_not_those_of_search() -> None:
    attempt = make_asked(CELL, BOTH, "Vienna", items=[S1])
    assert attempt.answer is not None
    answer = attempt.answer.model_copy(update={"items": (S1, S2), "shown_items": (0, 1), "searched_items": False})
    records = make_run([CELL], [BOTH], EVIDENCE, [attempt.model_copy(update={"answer": answer})])
    (question,) = score_records(records).questions
    assert question.stage == "misread"
    assert question.retrieved is not None
    assert (question.retrieved.found, question.retrieved.read, question.retrieved.shown) == (1, 2, 2)


INTERFERING = [0, 1, 2, 4, 5, 16, 17, 400, None, "many"]
WORDED = ["description", "plain", "plain", "other_name", "riddle", None]


@pytest.mark.parametrize(
    ("field", "values", "parts"),
    [
        ("interference", INTERFERING, [("0", 1), ("1", 1), ("2–4", 2), ("5–16", 2), ("17+", 2)]),
        ("wording", WORDED, [("plain", 2), ("other_name", 1), ("description", 1)]),
    ],
)
def test_questions_are_broken_down_by_metadata_of_the_data_set(
    field: str, values: list[object], parts: list[tuple[str, int]]
) -> None:
    questions = [make_question(f"q_{n:02d}", Family.QA, text_gold("Porto"), "Where?") for n in range(len(values))]
    marked = [
        q.model_copy(update={"instance": q.instance.model_copy(update={"metadata": {field: value}})})
        for q, value in zip(questions, values, strict=True)
    ]
    attempts = [make_asked(CELL, q, "Porto") for q in marked]
    slices = score_records(make_run([CELL], marked, [], attempts)).scores.rows[0].slices
    assert [(s.key, s.counts.planned) for s in slices if s.by == field] == parts
