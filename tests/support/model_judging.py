"""Runs judgings by a scripted model for tests: questions of every kind, short timeouts, and the records in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memarena.judging.llm import Batch, Judged, ModelJudge, Patience, judge_with_model
from memarena.log.records import AnyRecord, BucketNamed, JudgingFailed, Question, Verdict
from memarena.log.store import read_records
from memarena_dataset.model import Family
from memarena_dataset.values import AmountValue, PlaceValue

from .judges import Asked, JudgeScript, scripted_judge
from .logs import (
    abstain,
    cloze,
    make_asked,
    make_cell,
    make_evidence,
    make_question,
    make_run,
    permission,
    text_gold,
    write_log,
)

CELL = make_cell("bm25")
COST = make_question(
    "qa_cost",
    Family.QA,
    text_gold("50 euros", values=[AmountValue(amount=50, unit="euros")]),
    "What did the coat cost?",
    evidence=["s1"],
)
WHERE = make_question(
    "qa_where", Family.QA, text_gold("Porto", values=[PlaceValue(name="Porto")]), "Where is it?", evidence=["s1"]
)
WHY = make_question("qa_why", Family.QA, text_gold("because it rained"), "Why?", evidence=["s1"])
SECRET = make_question(
    "perm_deny", Family.PERMISSION, permission("4711", "withhold"), "What is Maya's PIN?", asker="bob_ray"
)
OPEN = make_question(
    "perm_allow", Family.PERMISSION, permission("0815", "disclose"), "What is Tom's PIN?", asker="bob_ray"
)
PICK = make_question("cloze_1", Family.CLOZE, cloze("A", "x", "y"), "Which?")
NEVER = make_question("conf_1", Family.CONFABULATION, abstain(), "When did it not happen?")
EVIDENCE = [make_evidence("s1", ("Maya", "I paid 50 euros for the coat in Porto, because it rained."))]
QUICK = Patience(tries=3, timeout_s=5.0, first_wait_s=0.001, longest_wait_s=0.01)
JUDGE = ModelJudge("scripted", "some/model")


class Silent:
    """The progress display of a judging, replaced by counters."""

    def __init__(self) -> None:
        self.passes: list[tuple[str, int]] = []
        self.settled_jobs = 0

    def begin(self, what: str, jobs: int) -> None:
        self.passes.append((what, jobs))

    def ended(self, record: Verdict | BucketNamed | JudgingFailed, tokens: int, usd: float | None) -> None:
        self.settled_jobs += 1

    def end(self) -> None:
        pass


def log_of(folder: Path, *answers: tuple[Question, str]) -> Path:
    """Write a log with these (question, answer) pairs; return its folder."""
    questions = [q for q, _ in answers]
    attempts = [make_asked(CELL, q, a) for q, a in answers]
    return write_log(folder, make_run([CELL], questions, EVIDENCE, attempts))


def judge(run_dir: Path, script: JudgeScript, **settings: Any) -> tuple[Judged, list[Asked]]:
    with scripted_judge(script) as server:
        batch = Batch(**{"run_dir": run_dir, "judge": JUDGE, "url": server.url, "patience": QUICK, **settings})
        return judge_with_model(batch, Silent()), server.asked


def records(run_dir: Path, kind: str) -> list[AnyRecord]:
    return list(read_records(run_dir, kind))


def verdicts(run_dir: Path) -> dict[str, Verdict]:
    return {v.instance_id: v for v in records(run_dir, "verdict") if v.kind == "verdict"}
