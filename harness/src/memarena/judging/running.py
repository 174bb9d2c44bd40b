"""Judging a run: verdicts for every answer that has none yet, appended to its log or kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from memarena.judging.judgment import JUDGE_NAME
from memarena.judging.judgments import evidence_of, key_of
from memarena.judging.kinds import judge, kind_of
from memarena.judging.versions import value_judge_version
from memarena.log.projection import ProjectedAttempt, read_projection
from memarena.log.records import EvidenceSession, Question, QuestionAsked, Verdict
from memarena.log.store import LogWriter, read_records

_BATCH = 200


def missing_verdicts(run_dir: Path) -> Iterator[Verdict]:
    """Verdicts of the value judge, as it stands today, on every answered attempt that has none of this version.

    Reads the log only, so that it works while the run goes on. Raises LogError if the log cannot be read.
    """
    questions: dict[str, Question] = {}
    evidence: dict[str, EvidenceSession] = {}
    verdicts: list[Verdict] = []
    for record in read_records(run_dir, "question", "evidence", "verdict"):
        if record.kind == "question":
            questions[record.instance.instance_id] = record
        elif record.kind == "evidence":
            evidence[record.session.session_id] = record.session
        elif record.kind == "verdict":
            verdicts.append(record)
    attempts = read_projection(run_dir, "asked", wants_raw=lambda _: False)
    asked = (attempt.record for attempt in attempts if isinstance(attempt, ProjectedAttempt))
    yield from verdicts_to_add(questions, evidence, verdicts, asked)


def verdicts_to_add(
    questions: Mapping[str, Question],
    evidence: Mapping[str, EvidenceSession],
    verdicts: Iterable[Verdict],
    attempts: Iterable[QuestionAsked],
) -> Iterator[Verdict]:
    """As :func:`missing_verdicts`, for records at hand: reading a large log once more takes longer than judging it.

    Args:
        questions: by instance id.
        evidence: sessions by id.
        verdicts: those that are there, of whatever judge.
        attempts: with the parsed answer; items and raw output are not looked at.
    """
    version = value_judge_version()
    done = {key_of(v) for v in verdicts if v.judge == JUDGE_NAME and v.judge_version == version}
    for asked in attempts:
        question = questions.get(asked.instance_id)
        if question is None or asked.status != "answered" or asked.answer is None or key_of(asked) in done:
            continue
        kind = kind_of(question)
        if not kind.has_rules or kind.decided_by != "verdict":
            continue
        judgment = judge(question, evidence_of(question, evidence), asked.answer.answer, "")
        yield Verdict(
            cell_id=asked.cell_id,
            instance_id=asked.instance_id,
            attempt=asked.attempt,
            judge=JUDGE_NAME,
            judge_version=version,
            route="token_f1" if judgment.route == "token_f1" else "value",
            correct=judgment.correct,
            score=judgment.score,
            reason=judgment.why,
        )


def judge_run(run_dir: Path) -> int:
    """Append the missing verdicts to the log and return how many there were.

    Raises LogError if another process writes the log, LogFullError if it cannot be written.
    """
    with LogWriter.of_run(run_dir) as log:
        pending = list(missing_verdicts(run_dir))
        for start in range(0, len(pending), _BATCH):
            log.append(*pending[start : start + _BATCH])
    return len(pending)
