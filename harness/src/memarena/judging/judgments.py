"""Combines the judgments of one judge on a run: verdicts of the log, and decisions of the rules without a verdict.

Scoring asks :meth:`Judgments.of` for each attempt and need not know whether the log or the rules decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memarena_dataset.gold import Gold

from memarena.judging.judgment import JUDGE_NAME, Judgment, by_disclosure, of_verdict
from memarena.judging.kinds import KINDS, judge, kind_of
from memarena.judging.versions import value_judge_version
from memarena.log.records import (
    AnswerSpan,
    BucketNamed,
    EvidenceSession,
    JudgingFailed,
    Question,
    QuestionAsked,
    Verdict,
)

AttemptKey = tuple[str, str, int]
"""Cell, instance, attempt."""


class Judgments:
    """One judge's judgments of a run's answers. The last of several verdicts on an attempt counts; repeats do not.

    The rules judge every attempt without a verdict of their current version when it is asked for.

    Attributes:
        judge: its name, or ``NAME@HASH`` for the version whose hash begins with HASH.
        verdicts: whether an answer is right, by attempt.
        behaviours: how an answer to a D6 question behaves.
        buckets: why a fact was withheld.
        failures: attempts for which judging failed and that have no verdict.
        repeats: attempts with more than one verdict, in the order of their repeats, the one that counts first.
        labels_behaviour: whether it labels D6 answers; if so, an answer without its label has no judgment.
    """

    def __init__(
        self,
        judge: str,
        verdicts: Iterable[Verdict],
        buckets: Iterable[BucketNamed] = (),
        failures: Iterable[JudgingFailed] = (),
        evidence: Mapping[str, EvidenceSession] | None = None,
    ) -> None:
        self.judge = judge
        self.by_rules = judge == JUDGE_NAME
        version = value_judge_version()
        self.verdicts: dict[AttemptKey, Verdict] = {}
        self.behaviours: dict[AttemptKey, Verdict] = {}
        again: dict[tuple[AttemptKey, int], Verdict] = {}
        for verdict in verdicts:
            if not is_by(judge, verdict) or (self.by_rules and verdict.judge_version != version):
                continue
            if verdict.repeat:
                again[key_of(verdict), verdict.repeat] = verdict
            else:
                (self.behaviours if verdict.task == "behaviour" else self.verdicts)[key_of(verdict)] = verdict
        first = {**self.verdicts, **self.behaviours}
        failed = [f for f in failures if is_by(judge, f) and not f.repeat]
        self.buckets = {key_of(b): b for b in buckets if is_by(judge, b) and not b.repeat}
        self.failures = {key_of(f): f for f in failed if f.task != "bucket" and key_of(f) not in first}
        self.repeats = _repeats(first, again)
        self.labels_behaviour = bool(self.behaviours) or any(f.task == "behaviour" for f in failed)
        self._evidence = evidence or {}
        self._cache: dict[tuple[str, str, str], Judgment] = {}

    def of(self, question: Question, attempt: QuestionAsked) -> Judgment | None:
        """Return the judgment of an attempt; None if it has no answer, or the judge has not judged it."""
        if attempt.answer is None:
            return None
        key, decided_by = key_of(attempt), KINDS[question.instance.gold.kind].decided_by
        if decided_by == "verdict":
            verdict = self.verdicts.get(key)
            if verdict is not None:
                return of_verdict(verdict)
            return self._judge(question, attempt.answer) if self.by_rules else None
        judgment = self._judge(question, attempt.answer)
        return self._with_label(judgment, key) if decided_by == "label" else judgment

    def own(self, question: Question, attempt: QuestionAsked) -> Judgment | None:
        """Return the judge's own judgment, also of kinds that the rules decide whichever judge is chosen."""
        if self.by_rules or KINDS[question.instance.gold.kind].decided_by != "rules":
            return self.of(question, attempt)
        verdict = self.verdicts.get(key_of(attempt))
        return None if verdict is None else of_verdict(verdict)

    def verdict_of(self, question: Question, attempt: QuestionAsked) -> Verdict | None:
        """Return the logged verdict that decides an attempt; None if the rules decide, or nothing does yet."""
        decided_by = KINDS[question.instance.gold.kind].decided_by
        if decided_by == "verdict":
            return self.verdicts.get(key_of(attempt))
        return self.behaviours.get(key_of(attempt)) if decided_by == "label" else None

    def failure_of(self, attempt: QuestionAsked) -> str:
        """Return why there is no judgment, in one line."""
        failure = self.failures.get(key_of(attempt))
        if failure is None:
            return f"no verdict by judge {self.judge}"
        return f"judge {self.judge}: {failure.cause}: {failure.message}"

    @property
    def is_rules(self) -> bool:
        """Whether the judge is the rules without a model, of whatever version."""
        return self.judge.partition("@")[0] == JUDGE_NAME

    def leaves(self, gold: Gold) -> bool:
        """Whether the judge judges no question with such a gold: the rules cannot judge a rubric."""
        return self.is_rules and not KINDS[gold.kind].has_rules

    @property
    def repeated(self) -> int:
        """Most verdicts on one answer, at least 1."""
        return max((len(r) for r in self.repeats.values()), default=1)

    def _judge(self, question: Question, span: AnswerSpan) -> Judgment:
        """Return the rules' judgment. It is cached: readers and seeds often give the same answer."""
        raw = raw_output(span) if question.instance.gold.kind == "permission" else ""
        key = (question.instance.instance_id, span.answer, raw)
        if key not in self._cache:
            self._cache[key] = judge(question, evidence_of(question, self._evidence), span.answer, raw)
        return self._cache[key]

    def _with_label(self, judgment: Judgment, key: AttemptKey) -> Judgment | None:
        """Return the judgment with the judge's label in place of the rules' label, and its bucket.

        None if the judge labels behaviour and has not labelled this attempt.
        """
        disclosure = judgment.disclosure
        assert disclosure is not None
        changes: dict[str, str] = {}
        if self.labels_behaviour:
            verdict = self.behaviours.get(key)
            if verdict is None or verdict.label is None:
                return None
            changes = {"label": verdict.label, "labelled_by": "rules" if verdict.handed_over else "judge"}
        if key in self.buckets:
            changes["bucket"] = self.buckets[key].bucket
        return by_disclosure(disclosure.model_copy(update=changes)) if changes else judgment


def verdicts_to_add(
    questions: Mapping[str, Question],
    evidence: Mapping[str, EvidenceSession],
    verdicts: Iterable[Verdict],
    attempts: Iterable[QuestionAsked],
) -> Iterator[Verdict]:
    """Yield the rules' verdicts on answers to open questions that have no verdict of this version.

    Args:
        questions: by instance id.
        evidence: sessions by id.
        verdicts: those of the log, of any judge.
        attempts: with the parsed answer; items and raw output are not read.
    """
    version = value_judge_version()
    judged = {key_of(v) for v in verdicts if v.judge == JUDGE_NAME and v.judge_version == version}
    for attempt in attempts:
        question = questions.get(attempt.instance_id)
        if question is None or attempt.status != "answered" or attempt.answer is None or key_of(attempt) in judged:
            continue
        kind = kind_of(question)
        if not kind.has_rules or kind.decided_by != "verdict":
            continue
        judgment = judge(question, evidence_of(question, evidence), attempt.answer.answer, "")
        yield Verdict(
            cell_id=attempt.cell_id,
            instance_id=attempt.instance_id,
            attempt=attempt.attempt,
            judge=JUDGE_NAME,
            judge_version=version,
            route="text" if judgment.route == "text" else "value",
            correct=judgment.correct,
            score=judgment.score,
            reason=judgment.why,
        )


def key_of(record: QuestionAsked | Verdict | BucketNamed | JudgingFailed) -> AttemptKey:
    """Return the key of the attempt that a record is about."""
    return record.cell_id, record.instance_id, record.attempt


def raw_output(span: AnswerSpan) -> str:
    """Return everything that a reader put out for an answer: raw text, answer and reason, without repetitions."""
    return "\n".join(dict.fromkeys(part for part in (span.raw, span.answer, span.reason) if part))


def evidence_of(question: Question, evidence: Mapping[str, EvidenceSession]) -> list[EvidenceSession]:
    """Return the question's evidence sessions that the mapping has."""
    return [evidence[s] for s in question.instance.evidence_session_ids if s in evidence]


def is_by(judge: str, record: Verdict | BucketNamed | JudgingFailed) -> bool:
    """Whether a judge made a record. ``NAME@HASH`` is a version of a judge whose hash begins with HASH.

    Without a version all of the judge's records count; the last of several on one attempt decides.
    """
    # An empty version after "@" is the version of no record: no hash begins with "?".
    name, _, version = judge.rpartition("@")
    return record.judge == judge or (record.judge == name and record.judge_version.startswith(version or "?"))


def _repeats(
    first: Mapping[AttemptKey, Verdict], again: Mapping[tuple[AttemptKey, int], Verdict]
) -> dict[AttemptKey, tuple[Verdict, ...]]:
    """Group verdicts of the version that counts by attempt, one per repeat, the one that counts first."""
    verdicts_of: dict[AttemptKey, list[Verdict]] = {}
    for (key, _), verdict in sorted(again.items(), key=lambda item: item[0]):
        counts = first.get(key)
        if counts is not None and counts.judge_version == verdict.judge_version:
            verdicts_of.setdefault(key, [counts]).append(verdict)
    return {key: tuple(verdicts) for key, verdicts in verdicts_of.items()}
