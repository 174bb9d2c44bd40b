"""Which verdicts decided the questions of a run: those of the judge's model, of the rules in its place, or none yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memarena.log.records import BucketNamed, JudgeTask, Outcome, Verdict
from memarena.scoring.judge_provenance import Decider, JudgeModel, Judging
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.verdict_index import AttemptKey, VerdictIndex


@dataclass(frozen=True)
class DecidingVerdicts:
    """The verdicts that decided a question, and the attempts that wait for one."""

    verdicts: tuple[Verdict, ...]
    waiting: tuple[AttemptKey, ...]

    @property
    def typed_share(self) -> float | None:
        """Share of the verdicts on open answers without a model that rest on typed values; None without any."""
        decided = Counter(v.route for v in self.verdicts if v.task == "answer")
        without_model = decided["value"] + decided["token_f1"]
        return decided["value"] / without_model if without_model else None

    @property
    def handed_over_share(self) -> float | None:
        """Share of a judge's verdicts that the rules made in its model's place; None for a judge without a model."""
        if not any(v.model or v.route == "llm" for v in self.verdicts):
            return None
        return sum(bool(v.handed_over) for v in self.verdicts) / len(self.verdicts)


def deciding_verdicts(
    questions: Sequence[QuestionScore], facts: RunFacts, verdict_index: VerdictIndex
) -> DecidingVerdicts:
    """The verdict that decided each question, by its latest attempt."""
    verdicts: list[Verdict] = []
    waiting: list[AttemptKey] = []
    for question in questions:
        attempts = facts.attempts.get((question.cell_id, question.instance_id))
        if not attempts:
            continue
        latest = attempts[-1].record
        key = (question.cell_id, question.instance_id, latest.attempt)
        if question.outcome is Outcome.INFRA_FAILED and latest.status == "answered":
            waiting.append(key)
        elif question.route in ("value", "token_f1", "llm", "permission"):
            said = verdict_index.behaviours if question.route == "permission" else verdict_index.verdicts
            verdict = said.get(key)
            verdicts += [verdict] if verdict else []
    return DecidingVerdicts(tuple(verdicts), tuple(waiting))


def judge_provenance(used: DecidingVerdicts, verdict_index: VerdictIndex) -> Judging:
    """Models, how often each decided, and how many questions wait."""
    decided = Counter(_decider(v) for v in used.verdicts)
    return Judging(
        models=_models((*used.verdicts, *verdict_index.buckets.values())),
        decided=dict(sorted(decided.items())),
        handed_over=sum(bool(v.handed_over) for v in used.verdicts),
        unjudged=len(used.waiting),
    )


def failures_of(used: DecidingVerdicts, verdict_index: VerdictIndex) -> dict[str, int]:
    """Causes for which the judge gave no verdict on attempts that wait for one."""
    causes = Counter(verdict_index.failures[key].cause for key in used.waiting if key in verdict_index.failures)
    return dict(sorted(causes.items()))


def _decider(verdict: Verdict) -> Decider:
    if verdict.route == "llm":
        return "model"
    if verdict.task == "behaviour":
        return "labels"
    return "typed_values" if verdict.route == "value" else "token_f1"


def _models(records: Iterable[Verdict | BucketNamed]) -> tuple[JudgeModel, ...]:
    """Each model and setting once. Causes name their model but no setting, and only add the hash of their prompt."""
    prompts: dict[tuple[str, float | None, int | None], dict[JudgeTask, str]] = {}
    grounds: dict[str, str] = {}
    for record in records:
        if not record.model:
            continue
        if record.kind == "bucket":
            grounds[record.model] = record.prompt_sha256
        else:
            found = prompts.setdefault((record.model, record.temperature, record.seed), {})
            found[record.task] = record.prompt_sha256
    for (model, *_), found in prompts.items():
        if model in grounds:
            found["bucket"] = grounds[model]
    return tuple(
        JudgeModel(model=model, temperature=temperature, seed=seed, prompts_sha256=dict(sorted(found.items())))
        for (model, temperature, seed), found in prompts.items()
    )
