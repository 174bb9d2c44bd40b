"""Tests a backend that crashes on every tenth question at each attempt: counted as wrong, listed, and not judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.cli.scores import report_run
from memarena.log.records import AnyRecord, Outcome
from memarena.log.store import read_records
from memarena.report.document import report_document
from memarena_dataset.model import Family
from memarena_dataset.values import PlaceValue

from ..support.golden_reports import plain
from ..support.judges import rules
from ..support.logs import make_asked, make_cell, make_question, make_run, text_gold, write_log
from ..support.model_judging import JUDGE, judge

CELL = make_cell("bm25", seed="s2")
QUESTIONS = [
    make_question(f"qa_{n}", Family.QA, text_gold("Porto", values=[PlaceValue(name="Porto")]), f"Where is number {n}?")
    for n in range(40)
]
CRASHED = {f"qa_{n}" for n in range(9, 40, 10)}
CAUSE = "Search: UNAVAILABLE: the process ended with code 139"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Every tenth question was lost with the process twice; all others were answered correctly."""
    body: list[AnyRecord] = []
    for question in QUESTIONS:
        attempt = make_asked(CELL, question, "In Porto.")
        if question.instance.instance_id not in CRASHED:
            body.append(attempt)
            continue
        lost_attempt = attempt.model_copy(
            update={"status": "backend_failed", "cause": CAUSE, "answer": None, "search": None}
        )
        body += [lost_attempt, lost_attempt.model_copy(update={"attempt": 1})]
    return write_log(tmp_path / "run", make_run([CELL], QUESTIONS, [], body))


@pytest.mark.parametrize("name", ["value", "scripted"])
def test_lost_questions_count_as_wrong_and_the_row_keeps_its_headline(name: str, run_dir: Path) -> None:
    if name == "scripted":
        judged, requests = judge(run_dir, rules)
        assert (judged.verdicts, judged.open_jobs) == (36, 0)
        assert len(requests) == 36, "a judge is not asked about what was never answered"
        assert not CRASHED & {v.instance_id for v in read_records(run_dir, "verdict") if v.kind == "verdict"}
    run = report_run(run_dir, JUDGE.name if name == "scripted" else name)
    [row] = run.scores.rows
    assert (row.counts.correct, row.counts.backend_failed, row.counts.infra_failed) == (36, 4, 0)
    assert row.metrics["D3"].value == pytest.approx(0.9)
    [failure] = row.failures
    assert (failure.outcome, failure.count) == ("backend_failed", 4)
    assert failure.share == pytest.approx(0.1)
    assert {q.instance_id for q in run.questions if q.outcome is Outcome.BACKEND_FAILED} == CRASHED
    assert all(q.attempts == 2 for q in run.questions if q.instance_id in CRASHED)
    text = plain(report_document([run]))
    assert "UNAVAILABLE" in text
    assert "no headline" not in text
