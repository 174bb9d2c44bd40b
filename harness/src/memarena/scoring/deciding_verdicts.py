"""Determines what decided each question of a run: a judge's model, the rules in its place, or the rules alone.

A report says so at its head, as scores by a model and scores by rules are not the same measure. A verdict is *handed
over* if the rules made it because the judge's model did not decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memarena.judging import value_judge_version
from memarena.judging.judgments import Judgments, key_of
from memarena.log.records import BucketNamed, JudgeTask, Outcome, QuestionAsked, Verdict
from memarena.scoring.results import Decider, JudgeModel, Judging, QuestionScore
from memarena.scoring.run_facts import RunFacts

_RULES: dict[str, Decider] = {"value": "typed_values", "text": "text", "token_f1": "token_f1"}
"""Routes on which the rules decide, and what a report calls them."""


@dataclass
class DecidingVerdicts:
    """Verdicts that decided the questions of a run, each by its latest attempt."""

    verdicts: list[Verdict] = field(default_factory=list)
    """Verdicts that decided a question and are in the log."""
    by_rules: Counter[str] = field(default_factory=Counter)
    """By route, number of open answers that the rules judged while scoring, as the log has no verdict on them."""
    waiting: list[QuestionAsked] = field(default_factory=list)
    """Attempts that were answered and have no judgment."""

    @property
    def versions(self) -> tuple[str, ...]:
        """SHA-256 of each judge version that decided, sorted."""
        own = {value_judge_version()} if self.by_rules else set()
        return tuple(sorted(own.union(v.judge_version for v in self.verdicts)))

    @property
    def typed_share(self) -> float | None:
        """Share of typed values among the judgments of open answers without a model; None without any."""
        decided = self.by_rules + Counter(v.route for v in self.verdicts if v.task == "answer")
        without_model = decided["value"] + decided["text"] + decided["token_f1"]
        return decided["value"] / without_model if without_model else None

    @property
    def handed_over_share(self) -> float | None:
        """Share of a judge's verdicts that the rules made in its model's place; None for a judge without a model."""
        if not any(v.model or v.route == "llm" for v in self.verdicts):
            return None
        return sum(bool(v.handed_over) for v in self.verdicts) / len(self.verdicts)


def deciding_verdicts(questions: Sequence[QuestionScore], facts: RunFacts, judgments: Judgments) -> DecidingVerdicts:
    """Collect the verdict that decided each question, by its latest attempt."""
    result = DecidingVerdicts()
    for question in questions:
        attempts = facts.attempts.get((question.cell_id, question.instance_id))
        if not attempts:
            continue
        latest = attempts[-1].record
        if question.outcome is Outcome.INFRA_FAILED and latest.status == "answered":
            result.waiting.append(latest)
        elif question.route is not None:
            verdict = judgments.verdict_of(facts.questions[question.instance_id], latest)
            if verdict is not None:
                result.verdicts.append(verdict)
            elif question.route in _RULES:
                result.by_rules[question.route] += 1
    return result


def judge_provenance(deciding: DecidingVerdicts, judgments: Judgments) -> Judging:
    """Return the judge's models, how often each kind of decider decided, and how many questions wait for a verdict."""
    decided = Counter(_decider(v) for v in deciding.verdicts)
    decided.update({_RULES[route]: count for route, count in deciding.by_rules.items()})
    return Judging(
        models=_models((*deciding.verdicts, *judgments.buckets.values())),
        decided=dict(sorted(decided.items())),
        handed_over=sum(bool(v.handed_over) for v in deciding.verdicts),
        unjudged=len(deciding.waiting),
    )


def failures_of(deciding: DecidingVerdicts, judgments: Judgments) -> dict[str, int]:
    """Count by cause the waiting attempts on which the judge failed to give a verdict."""
    failures = [judgments.failures.get(key_of(attempt)) for attempt in deciding.waiting]
    return dict(sorted(Counter(failure.cause for failure in failures if failure).items()))


def _decider(verdict: Verdict) -> Decider:
    if verdict.route == "llm":
        return "model"
    return "labels" if verdict.task == "behaviour" else _RULES[verdict.route]


def _models(records: Iterable[Verdict | BucketNamed]) -> tuple[JudgeModel, ...]:
    """Return each model and setting once.

    Records of causes (``bucket``) have a model and no setting, so they only add the hash of their prompt.
    """
    prompts: dict[tuple[str, float | None, int | None], dict[JudgeTask, str]] = {}
    grounds: dict[str, str] = {}
    for record in records:
        if not record.model:
            continue
        if record.kind == "bucket":
            grounds[record.model] = record.prompt_sha256
        else:
            hashes = prompts.setdefault((record.model, record.temperature, record.seed), {})
            hashes[record.task] = record.prompt_sha256
    for (model, *_), hashes in prompts.items():
        if model in grounds:
            hashes["bucket"] = grounds[model]
    return tuple(
        JudgeModel(model=model, temperature=temperature, seed=seed, prompts_sha256=dict(sorted(hashes.items())))
        for (model, temperature, seed), hashes in prompts.items()
    )
