"""Computes the scores of a run for the commands, certification, benchmarks and viewers.

The log is read, every answer gets a judgment, and :mod:`memarena.scoring` computes the figures. Only :func:`judge_run`
writes. The side effects of scoring are here: reading the log, a second process, the cycle collector.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from memarena_dataset.model import DIMENSION_OF, Dimension

from memarena import judging
from memarena.forked_worker import can_fork, forked
from memarena.judging.errors import JudgeError
from memarena.judging.human.sampling import JudgedAnswer, Sample, draw_sample
from memarena.judging.judgments import Judgments, is_by
from memarena.judging.kinds import kind_of
from memarena.log.projection import read_projection
from memarena.log.records import (
    EvidenceSession,
    GatewayCall,
    JudgeRecord,
    JudgingFailed,
    Question,
    QuestionAsked,
    Verdict,
)
from memarena.log.store import LOG_NAME, LogReader, LogWriter, read_records
from memarena.scoring.errors import ScoringError
from memarena.scoring.questions import RunBoth, one_after_the_other
from memarena.scoring.run import ScoredRun, score_run
from memarena.scoring.run_facts import RunFacts, RunFactsBuilder
from memarena.scoring.uncertainty_records import RESAMPLES

A = TypeVar("A")
B = TypeVar("B")

_BATCH = 200
"""Verdicts that are appended to a log at once."""
FORK_FROM = 20_000
"""Least product of questions and cells for which a second process saves time."""


def load_facts(run_dir: Path) -> RunFacts:
    """Read the facts of a run from its log. Raises LogError if it cannot be read, ScoringError if it holds no run."""
    builder = RunFactsBuilder(str(run_dir))
    with _without_cycle_collection():
        for record in read_projection(run_dir, wants_raw=builder.wants_raw):
            builder.add(record)
    return builder.facts()


def evaluate(run: str | Path | RunFacts, judge: str = judging.JUDGE_NAME, *, resamples: int = RESAMPLES) -> ScoredRun:
    """Return the scores of a run.

    Args:
        run: its folder or the ``run.sqlite`` in it, or its facts if they are loaded already.
        judge: whose verdicts count. Verdicts of the rules that are missing in the log are computed, not written.
        resamples: draws of egos for the intervals; 0 leaves intervals and variances out.

    Raises:
        ScoringError: the log holds no run, or nothing of that judge, not even a failure.
        LogError: the log cannot be read.
    """
    facts = run if isinstance(run, RunFacts) else load_facts(_folder(Path(run)))
    if judge != judging.JUDGE_NAME:
        _check_judge(facts, judge)
    with _without_cycle_collection():
        return score_run(facts, judgments_of(facts, judge), resamples=resamples, run_both=_run_both(facts))


def judgments_of(facts: RunFacts, judge: str) -> Judgments:
    """Return the judgments of a judge on the answers of a run."""
    return Judgments(judge, facts.verdicts, facts.buckets, facts.judging_failures, facts.evidence)


def _folder(path: Path) -> Path:
    return path.parent if path.name == LOG_NAME and path.is_file() else path


def missing_verdicts(
    facts: RunFacts,
    of: Iterable[tuple[str, str]] | None = None,
    *,
    anew: bool = False,
) -> Iterator[Verdict]:
    """Yield verdicts of the rules on answers that have none of the current version in the log.

    ``of``: only for these pairs of cell and instance id; ``anew``: also if the log has a verdict.
    """
    keys = facts.attempts.keys() if of is None else of
    attempts = (attempt.record for key in keys for attempt in facts.attempts.get(key, ()))
    yield from judging.verdicts_to_add(facts.questions, facts.evidence, () if anew else facts.verdicts, attempts)


def judge_run(run_dir: Path) -> int:
    """Append the missing verdicts to the log and return how many there were.

    Raises LogError if another process writes the log, LogFullError if it cannot be written.
    """
    with LogWriter.of_run(run_dir) as log:
        pending = list(missing_verdicts(load_facts(run_dir)))
        for start in range(0, len(pending), _BATCH):
            log.append(*pending[start : start + _BATCH])
    return len(pending)


@dataclass
class AnswerRecords:
    """The log's records of a question in a cell, with the texts that scoring leaves out."""

    asked: list[QuestionAsked] = field(default_factory=list)
    calls: list[GatewayCall] = field(default_factory=list)
    judged: list[JudgeRecord] = field(default_factory=list)

    def judged_with_rules(
        self, question: Question, evidence: Mapping[str, EvidenceSession], judge: str
    ) -> list[JudgeRecord]:
        """Return the records of all judges, with missing verdicts of the rules computed; those of ``judge`` first."""
        verdicts = [record for record in self.judged if isinstance(record, Verdict)]
        computed = judging.verdicts_to_add({question.instance.instance_id: question}, evidence, verdicts, self.asked)
        return sorted([*self.judged, *computed], key=lambda r: (r.judge != judge, r.judge, r.attempt, r.repeat))


def answer_records(run_dir: Path, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], AnswerRecords]:
    """Return the complete records of some questions by cell and instance id; each of ``keys`` is in the result."""
    records_by_key = {key: AnswerRecords() for key in keys}
    kinds = ("asked", "gateway_call", "verdict", "bucket", "judging_failed")
    with LogReader(run_dir) as log:
        for (cell_id, instance_id), answer in records_by_key.items():
            for record in log.records(*kinds, cell_id=cell_id, instance_id=instance_id):
                if record.kind == "asked":
                    answer.asked.append(record)
                elif record.kind == "gateway_call":
                    answer.calls.append(record)
                elif isinstance(record, JudgeRecord):
                    answer.judged.append(record)
    return records_by_key


# ------------------------------------------------------------------ samples for people


def draw_sample_of(run: Path, judge: str, seed: int, **items: int) -> Sample:
    """Draw answers for people to judge; ``items`` as in :func:`memarena.judging.human.sampling.draw_sample`.

    Raises JudgeError if there is no verdict by this judge. The rules need none.
    """
    facts = load_facts(run)
    judgments = judgments_of(facts, judge)
    latest = [(facts.questions[name], attempts[-1].record) for (_, name), attempts in facts.attempts.items()]
    answers = [
        JudgedAnswer(question, asked, judgment)
        for question, asked in latest
        if _is_for_people(question, asked) and (judgment := judgments.own(question, asked)) is not None
    ]
    if not answers or not (judgments.is_rules or judgments.verdicts or judgments.behaviours):
        raise JudgeError(f"--judge {judge}: no verdict by this judge in {run}; judge the run first")
    return draw_sample(facts.started.run_id, judge, answers, facts.evidence, seed, **items)


def _is_for_people(question: Question, asked: QuestionAsked) -> bool:
    """Whether an answer needs a judge and counts: options need no judge, extensions (X1) are in no average."""
    scores = DIMENSION_OF[question.instance.family] is not Dimension.X1
    return asked.status == "answered" and asked.answer is not None and scores and kind_of(question).task is not None


def labels_of_judge(run: Path, sample: Sample, judge: str) -> dict[str, str]:
    """Return the judge's label of each item of a sample that it judged, by item id.

    Raises JudgeError if the log has no verdict by this judge.
    """
    facts = load_facts(run)
    judgments = judgments_of(facts, judge)
    if not (judgments.is_rules or judgments.verdicts or judgments.behaviours):
        raise JudgeError(f"--judge {judge}: no verdict by this judge in {run}; judge the run first")
    labels: dict[str, str] = {}
    for item in sample.items:
        attempts = facts.attempts.get((item.cell_id, item.instance_id), ())
        asked = next((a.record for a in attempts if a.record.attempt == item.attempt), None)
        judgment = judgments.own(facts.questions[item.instance_id], asked) if asked is not None else None
        if judgment is None:
            continue
        if judgment.disclosure is None:
            labels[item.item] = "correct" if judgment.correct else "wrong"
        elif judgments.is_rules or judgments.labels_behaviour:
            labels[item.item] = judgment.disclosure.label
    return labels


def judges_of(run: Path) -> list[str]:
    """Return the sorted names of the judges with a verdict in the log, and of the rules, which need no verdict."""
    return sorted({judging.JUDGE_NAME, *(r.judge for r in read_records(run, "verdict") if r.kind == "verdict")})


# ------------------------------------------------------------------ helpers


def _check_judge(facts: RunFacts, judge: str) -> None:
    records: list[Verdict | JudgingFailed] = [*facts.verdicts, *facts.judging_failures]
    if not any(is_by(judge, record) for record in records):
        judge_names = ", ".join(sorted({f"{r.judge}@{r.judge_version[:12]}" for r in records})) or "none"
        raise ScoringError(f"--judge {judge}: no verdict by this judge in the log; there are: {judge_names}")


def _run_both(facts: RunFacts) -> RunBoth:
    """Return how to run two computations: in two processes for a large run if it may fork, else sequentially."""
    large = len(facts.questions) * len(facts.manifest.cells) >= FORK_FROM
    return _in_two_processes if large and can_fork() else one_after_the_other


def _in_two_processes(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    with forked(first) as first_result:
        done = second()
        return first_result(), done


@contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """Switch off cycle collection, which takes a third of the time for nothing: the records have no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # The objects made here stay alive: without freezing, the first collection would scan them for a second.
            gc.freeze()
            gc.enable()
