"""Tests scores by the categories of an imported benchmark: which questions count where, and by which gold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memarena.log.records import AnyRecord, Question
from memarena.report.report_input import ReportInput
from memarena.report.rows import rows_of
from memarena.report.tables.source_categories import source_table
from memarena.scoring.errors import ScoringError
from memarena.scoring.figures import SourcePart
from memarena.scoring.metrics import count
from memarena.scoring.results import RowScores
from memarena.scoring.run import ScoredRun

from ..support import golden_run
from ..support.scoring import score_records

LOCOMO = ("multi-hop", "temporal", "open-domain", "single-hop")


def asked_with(metadata_of: Callable[[Question, int], dict[str, Any]]) -> list[AnyRecord]:
    """Return the log's records with the metadata of an imported data set, its questions split between two egos."""
    changed: list[AnyRecord] = []
    position = 0
    for record in golden_run.records():
        if record.kind == "question":
            metadata = metadata_of(record, position)
            ego = f"{record.instance.ego_agent_id}_{position % 2}"
            instance = record.instance.model_copy(update={"metadata": metadata, "ego_agent_id": ego})
            changed.append(record.model_copy(update={"instance": instance}))
            position += 1
        else:
            changed.append(record)
    return changed


def category(question: Question, position: int) -> dict[str, Any]:
    adversarial = question.instance.gold.kind == "abstain"
    return {"category": "adversarial" if adversarial else LOCOMO[position % 4]}


def parts_of(scored: ScoredRun, label: str) -> dict[str, SourcePart]:
    row = row_of(scored, label)
    assert row.source is not None
    return {part.key: part for part in row.source.parts}


def row_of(scored: ScoredRun, label: str) -> RowScores:
    return next(row for row in scored.scores.rows if row.label == label)


def test_locomo_has_its_five_categories_and_the_first_four_together() -> None:
    scored = score_records(asked_with(category))
    parts = parts_of(scored, "bm25@small")
    names = ["1 multi-hop", "2 temporal", "3 open-domain", "4 single-hop", "5 adversarial"]
    assert list(parts) == [*names, "1 to 4", "1 to 5"]
    row = row_of(scored, "bm25@small")
    cells = {cell.cell_id for cell in row.cells if cell.seed_label in row.headline_seeds}
    questions = [q for q in scored.questions if q.cell_id in cells and not q.outside_f1]
    answerable = [q for q in questions if not q.instance_id.startswith(("abst_1", "abst_2"))]
    assert (parts["1 to 4"].counts, parts["1 to 4"].score) == (count(answerable), count(answerable).accuracy)
    assert parts["1 to 5"].counts == count(questions)
    assert sum(parts[name].counts.correct for name in names) == parts["1 to 5"].counts.correct
    all_categories = parts["1 to 5"]
    assert all_categories.interval is not None
    assert all_categories.interval.low < (all_categories.score.value or 0.0) < all_categories.interval.high
    assert all_categories.interval.clusters == 2
    assert all_categories.published is None


def test_a_row_with_infrastructure_failures_has_a_range_and_no_interval() -> None:
    all_categories = parts_of(score_records(asked_with(category)), "hazy@small")["1 to 5"]
    assert (all_categories.score.value, all_categories.interval) == (None, None)
    assert (all_categories.score.low or 0.0) < (all_categories.score.high or 0.0)


def test_types_of_questions_have_their_mean_and_those_that_nothing_answers() -> None:
    scored = score_records(asked_with(lambda q, n: {"question_type": ("recall", "update")[n % 4 == 0]}))
    parts = parts_of(scored, "bm25@small")
    assert list(parts) == ["recall", "update", "abstention", "all", "mean of categories"]
    recall, update = parts["recall"].score.value or 0.0, parts["update"].score.value or 0.0
    assert parts["mean of categories"].score.value == pytest.approx((recall + update) / 2)
    assert parts["all"].score.value != parts["mean of categories"].score.value
    assert parts["abstention"].counts.planned == 6
    section = source_table(rows_of([ReportInput(scored.scores)]))
    assert section is not None
    assert section.table is not None
    assert len(section.table.rows) == 5 * len(scored.scores.rows)
    assert "fewer than 8 egos" in " ".join(section.notes)


@pytest.mark.parametrize(
    "metadata_of",
    [
        lambda q, n: {"question_type": "recall"} if n else {},
        lambda q, n: {"question_type": "recall"},
        lambda q, n: {"ability": n},
    ],
)
def test_a_data_set_without_categories_has_no_such_scores(
    metadata_of: Callable[[Question, int], dict[str, Any]],
) -> None:
    scored = score_records(asked_with(metadata_of))
    assert all(row.source is None for row in scored.scores.rows)
    assert source_table(rows_of([ReportInput(scored.scores)])) is None


def corrected(published: Any) -> Callable[[Question, int], dict[str, Any]]:
    def metadata_of(question: Question, position: int) -> dict[str, Any]:
        more = category(question, position)
        if question.instance.instance_id == "qa_1":
            more["correction"] = {"reason": "misread", "published_ground_truth": {"answer": published}}
        return more

    return metadata_of


def test_answers_to_corrected_questions_are_also_judged_by_the_published_gold() -> None:
    parts = parts_of(score_records(asked_with(corrected("Reykjavik"))), "bm25@small")
    fixed, all_categories = parts["corrected golds"], parts["1 to 4"]
    assert (fixed.score.value, fixed.published, fixed.counts.planned) == (1.0, 0.0, 3)
    assert all_categories.published == pytest.approx(
        (all_categories.score.value or 0.0) - 3 / all_categories.counts.asked
    )
    assert parts["5 adversarial"].published == parts["5 adversarial"].score.value


def test_an_invalid_published_gold_is_named() -> None:
    with pytest.raises(ScoringError, match=r"qa_1: metadata.correction: ground_truth.answer: missing"):
        score_records(asked_with(corrected("")))
