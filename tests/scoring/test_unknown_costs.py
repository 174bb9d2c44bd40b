"""Tests unknown costs: tokens and seconds of ingest and the floor are reported as unknown, never as 0."""

from __future__ import annotations

from pathlib import Path

from memarena.cli.scores import report_run
from memarena.log.records import AnyRecord
from memarena.report.document import report_document
from memarena.report.render.markdown import to_markdown
from memarena_dataset.model import Family

from ..support.logs import cloze, make_asked, make_call, make_cell, make_ingest, make_question, make_run, write_log

CELL = make_cell("bm25")
QUESTIONS = [make_question(f"q_{n:02d}", Family.CLOZE, cloze("A", "x", "y"), "Which?") for n in range(3)]
UNKNOWN: dict[str, object] = {"status": 499, "done_ns": None, "prompt_tokens": None, "completion_tokens": None}


def text_of(folder: Path, *calls: dict[str, object], floor: bool = True) -> str:
    body: list[AnyRecord] = [make_ingest(CELL, 0)]
    for number, update in enumerate(calls):
        call = make_call(f"c{number}", CELL, QUESTIONS[0], ttft_ms=100, server_ms=98)
        body.append(call.model_copy(update={"phase": "ingest", **update}))
    body += [make_asked(CELL, question, "A") for question in QUESTIONS]
    return to_markdown(
        report_document([report_run(write_log(folder, make_run([CELL], QUESTIONS, [], body, floor=floor)))])
    )


def ingest_of(text: str) -> tuple[dict[str, str], str]:
    """Return the only row of the ingest table by column heads, and the text below it."""
    part = text.partition("Ingest\n")[2].partition("\n#")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    heads, cells = ([cell.strip() for cell in line.split("|")] for line in (lines[0], lines[2]))
    return dict(zip(heads, cells, strict=True)), part


def test_calls_of_unknown_size_make_sums_lower_bounds_and_are_counted(tmp_path: Path) -> None:
    row, part = ingest_of(text_of(tmp_path / "run", {}, UNKNOWN, {**UNKNOWN, "last_content_ns": 3_000_000_000}))
    assert (row["model calls"], row["prompt tokens"], row["models s"]) == ("3", "≥ 300", "≥ 3.14")
    assert "2 model calls of unknown size" in part
    assert "2 model calls whose end was not observed" in part


def test_calls_without_any_usage_give_no_number(tmp_path: Path) -> None:
    row, part = ingest_of(text_of(tmp_path / "run", UNKNOWN, UNKNOWN))
    assert row["model calls"] == "2"
    assert "prompt tokens" not in row
    assert "left out, n/a in every row: prompt tokens, models s" in part


def test_calls_with_full_usage_give_plain_sums(tmp_path: Path) -> None:
    row, part = ingest_of(text_of(tmp_path / "run", {}, {}))
    assert (row["model calls"], row["prompt tokens"], row["models s"]) == ("2", "600", "0.28")
    assert "≥" not in part


def test_a_missing_floor_is_reported_as_missing(tmp_path: Path) -> None:
    assert "floor     not measured" in text_of(tmp_path / "without", floor=False)
    assert "floor     null backend and null reader on this machine: Search p50" in text_of(tmp_path / "with")
