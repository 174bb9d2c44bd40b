"""Judging a run: verdicts for every answer that has none yet, appended to its log or kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memarena.judge.value import JUDGE_NAME, is_judged, judge_answer
from memarena.judge.versions import value_judge_version
from memarena.log.records import EvidenceSession, Question, Verdict
from memarena.log.slim import SlimAsked, read_slim
from memarena.log.store import LOG_NAME, LogError, LogWriter, log_path, read_records

_BATCH = 200


def missing_verdicts(run_dir: Path) -> Iterator[Verdict]:
    """Verdicts of the value judge, as it stands today, on every answered attempt that has none of this version.

    Reads the log only, so that it works while the run goes on. Raises LogError if the log cannot be read.
    """
    version = value_judge_version()
    questions: dict[str, Question] = {}
    evidence: dict[str, EvidenceSession] = {}
    done: set[tuple[str, str, int]] = set()
    for record in read_records(run_dir, "question", "evidence", "verdict"):
        if record.kind == "question":
            questions[record.instance.instance_id] = record
        elif record.kind == "evidence":
            evidence[record.session.session_id] = record.session
        elif record.kind == "verdict" and record.judge == JUDGE_NAME and record.judge_version == version:
            done.add((record.cell_id, record.instance_id, record.attempt))
    for attempt in read_slim(run_dir, "asked", wants_raw=lambda _: False):
        asked = attempt.record if isinstance(attempt, SlimAsked) else None
        if asked is None or asked.status != "answered" or asked.answer is None:
            continue
        question = questions.get(asked.instance_id)
        key = (asked.cell_id, asked.instance_id, asked.attempt)
        if question is None or key in done or not is_judged(question.instance.gold):
            continue
        sessions = [evidence[s] for s in question.instance.evidence_session_ids if s in evidence]
        ruling = judge_answer(question, sessions, asked.answer.answer)
        yield Verdict(
            cell_id=asked.cell_id,
            instance_id=asked.instance_id,
            attempt=asked.attempt,
            judge=JUDGE_NAME,
            judge_version=version,
            route=ruling.route,
            correct=ruling.correct,
            score=ruling.score,
            reason=ruling.reason,
        )


def judge_run(run_dir: Path) -> int:
    """Append the missing verdicts to the log and return how many there were.

    Raises LogError if another process writes the log, LogFullError if it cannot be written.
    """
    if not log_path(run_dir).exists():
        raise LogError(f"{run_dir}: no run log ({LOG_NAME}) in this folder")
    with LogWriter(run_dir) as log:
        pending = list(missing_verdicts(run_dir))
        for start in range(0, len(pending), _BATCH):
            log.append(*pending[start : start + _BATCH])
    return len(pending)
