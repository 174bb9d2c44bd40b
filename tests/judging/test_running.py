"""Tests judging a run: one verdict per answer and judge version, and in memory while a harness writes the log."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.evaluation import evaluate, judge_run, load_facts, missing_verdicts
from memarena.judging import data_files, value_judge_version, versions
from memarena.log.records import AnyRecord, Outcome, Verdict
from memarena.log.store import LogError, LogWriter, read_records
from memarena.scoring.errors import ScoringError
from memarena_dataset.model import Family
from memarena_dataset.values import PlaceValue

from ..support.logs import (
    abstain,
    cloze,
    make_asked,
    make_cell,
    make_evidence,
    make_question,
    make_run,
    text_gold,
    write_log,
)

CELL = make_cell("bm25")
WHERE = make_question(
    "qa_1", Family.QA, text_gold("Porto", values=[PlaceValue(name="Porto")]), "Where is it?", evidence=["s1"]
)
WHY = make_question("qa_2", Family.QA, text_gold("because it rained"), "Why?", evidence=["s1"])
PICK = make_question("cloze_1", Family.CLOZE, cloze("A", "x", "y"), "Which?")
NEVER = make_question("conf_1", Family.CONFABULATION, abstain(), "When did it not happen?")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    attempts = [
        make_asked(CELL, WHERE, "Lisbon", status="answered"),
        make_asked(CELL, WHERE, "In Porto.", attempt=1),
        make_asked(CELL, WHY, "because it rained"),
        make_asked(CELL, PICK, "A"),
        make_asked(CELL, NEVER, "I don't know"),
        make_asked(CELL, WHY, status="backend_failed", attempt=1, cause="Search: INTERNAL: broken"),
    ]
    evidence = [make_evidence("s1", ("Maya", "It rained in Porto."))]
    return write_log(tmp_path / "run", make_run([CELL], [WHERE, WHY, PICK, NEVER], evidence, attempts))


def verdicts(run_dir: Path) -> list[Verdict]:
    return [r for r in read_records(run_dir, "verdict") if r.kind == "verdict"]


def test_every_open_answer_gets_one_verdict_and_a_second_judging_adds_none(run_dir: Path) -> None:
    assert judge_run(run_dir) == 3
    assert [(v.instance_id, v.attempt, v.route, v.correct) for v in verdicts(run_dir)] == [
        ("qa_1", 0, "value", False),
        ("qa_1", 1, "value", True),
        ("qa_2", 0, "text", True),
    ]
    assert {v.judge_version for v in verdicts(run_dir)} == {value_judge_version()}
    assert judge_run(run_dir) == 0
    assert list(missing_verdicts(load_facts(run_dir))) == []


def test_verdicts_of_another_version_do_not_count(run_dir: Path) -> None:
    judge_run(run_dir)
    old = [v.model_copy(update={"judge_version": "0" * 64, "judge": "value"}) for v in verdicts(run_dir)]
    fresh = write_log(run_dir.parent / "old", [*_without_verdicts(run_dir), *old])
    assert len(list(missing_verdicts(load_facts(fresh)))) == 3


def test_verdicts_of_an_older_version_are_scored_under_their_own_version(run_dir: Path) -> None:
    judge_run(run_dir)
    turned = [v.model_copy(update={"judge_version": "0" * 64, "correct": not v.correct}) for v in verdicts(run_dir)]
    log = write_log(run_dir.parent / "old", [*_without_verdicts(run_dir), *turned])
    assert judge_run(log) == 3
    today, old = (_right(log, judge) for judge in ("value", "value@000000"))
    assert today == {"qa_1": True}
    assert old == {"qa_1": False}
    with pytest.raises(ScoringError, match=r"--judge value@none: .*there are: value@000000000000, value@"):
        evaluate(log, "value@none")


def _right(log: Path, judge: str) -> dict[str, bool]:
    scored = evaluate(log, judge, resamples=0).questions
    return {q.instance_id: q.outcome is Outcome.CORRECT for q in scored if q.instance_id == "qa_1"}


def _without_verdicts(run_dir: Path) -> list[AnyRecord]:
    return [r for r in read_records(run_dir) if r.kind != "verdict"]


def test_missing_verdicts_are_computed_while_another_process_writes(run_dir: Path) -> None:
    with LogWriter(run_dir):
        assert len(list(missing_verdicts(load_facts(run_dir)))) == 3
        with pytest.raises(LogError, match="another process is writing"):
            judge_run(run_dir)


def test_a_folder_without_a_log_is_refused_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match="no run log"):
        judge_run(tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_every_file_that_decides_a_verdict_is_named_with_its_hash() -> None:
    names = data_files()
    assert "judging/tables/text_gold.v1.toml" in names
    assert {"judging/models/commitment.npz", "values/units.v1.txt"} <= set(names)
    assert all(len(digest) == 64 for digest in names.values())


def test_error_rates_are_named_and_do_not_change_the_judges_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version, names = versions.value_judge_version.__wrapped__, data_files()
    old_version = version()
    for changed, same in (("judging/tables/error_rates.v1.toml", True), ("judging/tables/text_gold.v1.toml", False)):
        assert changed in names
        monkeypatch.setattr(versions, "data_files", lambda name=changed: names | {name: "0" * 64})
        assert (version() == old_version) is same
