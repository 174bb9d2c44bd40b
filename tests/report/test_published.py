"""Tests the comparison with the paper: its cells next to the run's, with differences, and predicted cells marked."""

from __future__ import annotations

import pytest
from memarena.paper.published import load_published
from memarena.report.document import report_document
from memarena.report.layout import Document, Section
from memarena.report.paper.sections import published_sections
from memarena.report.render.html import to_html
from memarena.report.render.json import JsonReport, to_json
from memarena.report.report_input import ReportInput
from memarena.scoring.results import RunScores

from ..support import golden_run
from ..support.golden_reports import plain
from ..support.logs import make_asked, make_cell, make_reader, make_run
from ..support.scoring import score_records


def scores_of(backend: str, reader: str = "small") -> RunScores:
    """Score a run of one memory that answers all questions correctly."""
    cell = make_cell(backend, reader)
    attempts = [make_asked(cell, q, golden_run.RIGHT[q.instance.instance_id]) for q in golden_run.QUESTIONS]
    records = make_run([cell], golden_run.QUESTIONS, golden_run.EVIDENCE, attempts, readers=[make_reader(reader)])
    return score_records(records).scores


def part(document: Document, title: str) -> Section:
    return next(s for s in document.sections if s.title == title)


def rows(section: Section) -> list[list[str]]:
    assert section.table is not None
    return [[cell.text for cell in row] for row in section.table.rows]


def test_a_memory_is_shown_next_to_the_papers_cells_of_its_kind() -> None:
    table_rows = rows(
        part(report_document([ReportInput(scores_of("bm25"))], published=True), "Next to the published figures")
    )
    assert table_rows[0][:7] == ["ours", "bm25", "small", "100.0", "100.0", "100.0", "100.0"]
    assert [row[:3] for row in table_rows[1:]] == [
        ["paper", "RAG", reader] for reader in ("Qwen3-0.6B", "Llama-3.2-3B", "Mistral-7B", "Qwen3-8B", "Qwen3-32B")
    ]
    assert table_rows[1][3:] == ["44.5 ±2.2", "36.9 ±0.7", "12.5 ±1.6", "30.5 ±0.9", "161", "87"]


def test_a_reader_of_the_paper_is_shown_next_to_its_own_cell_only() -> None:
    document = report_document([ReportInput(scores_of("memsearch", "Qwen3-8B"))], published=True)
    table_rows = rows(part(document, "Next to the published figures"))
    assert [row[2] for row in table_rows] == ["Qwen3-8B", "Qwen3-8B"]
    assert table_rows[1][7:] == ["≈1,106", "48"], "composed from a fit"
    assert rows(part(document, "Next to the published figures: dimensions"))[1][3:] == [
        "79.3 ±0.5", "21.3 ±1.2", "49.3 ±0.8", "17.2 ±2.5", "32.5 ±1.2", "2.7",
    ]  # fmt: skip


def test_other_tables_of_the_paper_are_shown_too() -> None:
    document = report_document([ReportInput(scores_of("bm25", "Qwen3-8B"))], published=True)
    f1 = rows(part(document, "Next to the published figures: token-F1"))
    assert f1[1] == [
        "paper",
        "RAG",
        "Qwen3-8B",
        "19.0 ±0.4",
        "12.5 ±0.1",
        "26.5 ±0.5",
        "50.3 ±0.5",
        "33.9 ±0.2",
        "24.8 ±0.0",
    ]
    denied = rows(part(document, "Next to the published figures: DENY items"))
    assert denied[0][3:] == ["0.0", "100.0", "0.0", "0.0", "100.0"], "the run answers everything right"
    assert denied[1] == ["paper", "RAG", "Qwen3-8B", "7.5", "13.8", "20.4", "58.3", "14.9"]
    times = rows(part(document, "Next to the published figures: time of an answer"))
    assert times[-1] == ["paper", "RAG", "Qwen3-8B", "1,424", "2.4", "21,340", "45", "4,748"]


def test_permission_ablations_are_shown_with_their_j() -> None:
    table_rows = rows(
        part(report_document([ReportInput(scores_of("novel"))], published=True), "Published variations of permission")
    )
    assert table_rows[0] == ["ours", "novel", "small", "100.0", "100.0", "100.0", "100.0"]
    assert len(table_rows) == 17
    assert table_rows[1] == ["paper", "Retrieval", "dense E5", "1.2", "97.0", "2.4", "-1.8"]
    assert max(float(row[6]) for row in table_rows[1:]) <= 1.0, "no published lever gates"


def test_an_ablation_is_shown_next_to_the_papers_table_of_it() -> None:
    titles = [s.title for s in published_sections([], [], ["distractors"])]
    assert "Published: Oracle with the latest other sessions" in titles
    assert "Published: Access notes next to the evidence" not in titles
    others = next(s for s in published_sections([], [], ["distractors"]) if s.title == "Other published tables")
    assert any("memarena run access-markers" in str(line) for line in others.lines)


def test_differences_of_the_settings_are_listed() -> None:
    table_rows = rows(
        part(report_document([ReportInput(scores_of("oracle"))], published=True), "Where the protocols differ")
    )
    differences = {row[0]: row[1:] for row in table_rows}
    assert differences["budgets"][1] == "512 context tokens, 64 answer tokens"
    assert differences["when it is asked"][1] == "interleaved"
    assert {"data set", "judge", "seeds", "hints to the reader", "failures", "D6"} <= set(differences)


def test_a_memory_that_is_not_in_the_paper_is_noted() -> None:
    table_rows = part(
        report_document([ReportInput(scores_of("novel"))], published=True), "Next to the published figures"
    )
    assert "the paper has no figures for these backends" in str(table_rows.lines[0])


@pytest.mark.parametrize("backend", ["bm25", "oracle", "novel"])
def test_every_format_has_the_comparison(backend: str) -> None:
    run = ReportInput(scores_of(backend))
    text = plain(report_document([run], published=True))
    assert max(len(line) for line in text.splitlines() if "memarena show" not in line) <= 120
    assert len(JsonReport.model_validate_json(to_json([run], published=True)).published) == 25
    assert JsonReport.model_validate_json(to_json([run])).published == ()
    assert JsonReport.model_validate_json(to_json([run], published=True)).published_tables == load_published()
    assert JsonReport.model_validate_json(to_json([run])).published_tables is None
    assert "Next to the published figures" in to_html([run], published=True)
    assert "Next to the published figures" not in to_html([run])
