"""The verdicts of one judge on a run: by attempt, with behaviour labels, causes, repeats and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memarena_dataset.gold import Gold, RubricGold

from memarena.judging import JUDGE_NAME
from memarena.log.records import BucketNamed, JudgingFailed, Verdict
from memarena.scoring.run_facts import RunFacts

AttemptKey = tuple[str, str, int]
"""Cell, instance, attempt."""


@dataclass(frozen=True)
class VerdictIndex:
    """What one judge said. Of several verdicts on one attempt the last counts; repeats decide nothing."""

    judge: str
    verdicts: Mapping[AttemptKey, Verdict]
    """Whether an answer is right."""
    behaviours: Mapping[AttemptKey, Verdict]
    """How an answer to a D6 question behaves."""
    buckets: Mapping[AttemptKey, BucketNamed]
    failures: Mapping[AttemptKey, JudgingFailed]
    """Attempts for which judging failed and that have no verdict."""
    repeats: Mapping[AttemptKey, tuple[Verdict, ...]]
    """Attempts with more than one verdict, in the order of their repeats, the one that counts first."""
    labels_behaviour: bool
    """Whether it labels D6 answers: then the rules do not decide an answer without its label."""

    def failure_of(self, key: AttemptKey) -> str:
        """Why there is no verdict, in one line."""
        failure = self.failures.get(key)
        if failure is None:
            return f"no verdict by judge {self.judge}"
        return f"judge {self.judge}: {failure.cause}: {failure.message}"

    def leaves(self, gold: Gold) -> bool:
        """Whether the judge judges no such question at all: the rules without a model read no rubric."""
        return isinstance(gold, RubricGold) and self.is_rules

    @property
    def is_rules(self) -> bool:
        """Whether the judge is the rules without a model."""
        return self.judge.partition("@")[0] == JUDGE_NAME

    @property
    def repeated(self) -> int:
        """Most verdicts on one answer, at least 1."""
        return max((len(r) for r in self.repeats.values()), default=1)


def is_by(judge: str, record: Verdict | BucketNamed | JudgingFailed) -> bool:
    """Whether a judge made a record; ``NAME@HASH`` is a judge as a version of it that begins so.

    Without a version all count, and of several on one attempt the last does.
    """
    name, _, version = judge.rpartition("@")
    return record.judge == judge or (record.judge == name and record.judge_version.startswith(version or "?"))


def index_verdicts(facts: RunFacts, more: Iterable[Verdict], judge: str) -> VerdictIndex:
    """The verdicts of a judge in the log and, after those, in ``more``."""
    verdicts: dict[AttemptKey, Verdict] = {}
    behaviours: dict[AttemptKey, Verdict] = {}
    again: dict[tuple[AttemptKey, int], Verdict] = {}
    for verdict in (*facts.verdicts, *more):
        if not is_by(judge, verdict):
            continue
        key = (verdict.cell_id, verdict.instance_id, verdict.attempt)
        if verdict.repeat:
            again[key, verdict.repeat] = verdict
        elif verdict.task == "behaviour":
            behaviours[key] = verdict
        else:
            verdicts[key] = verdict
    first = {**verdicts, **behaviours}
    failed = [f for f in facts.judging_failures if is_by(judge, f) and not f.repeat]
    return VerdictIndex(
        judge=judge,
        verdicts=verdicts,
        behaviours=behaviours,
        buckets={(b.cell_id, b.instance_id, b.attempt): b for b in facts.buckets if is_by(judge, b) and not b.repeat},
        failures={
            key: f for f in failed if f.task != "bucket" and (key := (f.cell_id, f.instance_id, f.attempt)) not in first
        },
        repeats=_repeats(first, again),
        labels_behaviour=bool(behaviours) or any(f.task == "behaviour" for f in failed),
    )


def _repeats(
    first: Mapping[AttemptKey, Verdict], again: Mapping[tuple[AttemptKey, int], Verdict]
) -> dict[AttemptKey, tuple[Verdict, ...]]:
    """Verdicts by the version that counts, one per repeat."""
    found: dict[AttemptKey, list[Verdict]] = {}
    for (key, _), verdict in sorted(again.items(), key=lambda item: item[0]):
        counts = first.get(key)
        if counts is not None and counts.judge_version == verdict.judge_version:
            found.setdefault(key, [counts]).append(verdict)
    return {key: tuple(verdicts) for key, verdicts in found.items()}
