"""Tests that LaTeX reports compile whatever texts a run has, by the checker in latex_reading.py."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memarena.report.document import report_document
from memarena.report.layout import Cell, Column, Document, Section, section
from memarena.report.render.latex import escaped, to_latex
from memarena.report.report_input import ReportInput

from ..support import golden_run
from ..support.scoring import score_records
from .latex_reading import LatexError, check, environments

BODY = r"\begin{tabular}{@{}lr@{}}" + "\n\\toprule\n%s \\\\\n\\bottomrule\n\\end{tabular}"


@pytest.mark.parametrize(
    "broken",
    ["a_b", "{", "a}", "$x", "\\nosuch", "caf\u00e9", BODY % "a", BODY % "a & b & c", BODY % "[x] & b", "x\\"],
)
def test_the_checker_refuses_text_that_would_not_compile(broken: str) -> None:
    with pytest.raises(LatexError):
        check(broken)


def test_the_checker_accepts_a_valid_table() -> None:
    check(BODY % r"a\_b & $\pm$ 1\%")


@pytest.fixture(scope="module")
def text() -> str:
    return to_latex(report_document([ReportInput(score_records(golden_run.records()).scores)] * 2))


def test_the_report_of_the_golden_run_is_valid(text: str) -> None:
    check(text)
    environments(text)


def test_every_table_of_the_report_has_a_caption_and_a_label(text: str) -> None:
    tables = [s for s in report_document([ReportInput(score_records(golden_run.records()).scores)]).sections if s.table]
    for part in tables:
        assert rf"\caption{{{escaped(part.title)}}}\label{{tab:{part.anchor}}}" in text
    assert text.count(r"\begin{tabular}") == len(tables)


def test_labels_are_unique(text: str) -> None:
    labels = [line.split(r"\label{")[1] for line in text.splitlines() if r"\label{" in line]
    assert len(labels) == len(set(labels))


@given(st.text())
def test_any_text_is_escaped_to_valid_ascii(text: str) -> None:
    check(escaped(text))


@given(st.text(), st.text())
@example("", "±…◇†‡§¶※⊗◌◷×∅Δ·½≈≤≥→–—“”’‘−κ²αβγ′ß")
def test_any_cell_and_line_leaves_the_document_valid(cell: str, line: str) -> None:
    table = section("t", [Column("a", cell, align="left"), Column("b")], [[Cell(cell), Cell("1", strong=True)]], [line])
    text = to_latex(Document(line, (table, Section(cell, (line, ""), notes=(cell,)))))
    check(text)
    environments(text)


def test_signs_of_reports_have_their_form() -> None:
    assert escaped("71.6 ±15.6") == r"71.6 $\pm$15.6"
    assert escaped("Müller") == r"M\"{u}ller"
    assert escaped("F1_PU 5%") == r"F1\_PU 5\%"
    assert escaped("猫") == r"\texttt{U+732B}"
