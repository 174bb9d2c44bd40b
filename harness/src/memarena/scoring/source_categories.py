"""Scores a row by the categories of the benchmark that a data set was imported from, as its publishers report them.

A score can then be compared with published ones, which are by these categories and not by MemArena's dimensions.
Importers store a question's category in its metadata. A part is one category, all of them, their mean, or the selection
that most papers report, such as categories 1 to 4 of LoCoMo. Intervals are over draws of egos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from memarena_dataset.errors import FieldError
from memarena_dataset.io.gold_reading import parse_gold

from memarena.judging import judge
from memarena.judging.judgments import Judgments, evidence_of, raw_output
from memarena.judging.kinds import kind_of
from memarena.log.records import Outcome, Question
from memarena.scoring.errors import ScoringError
from memarena.scoring.figures import Score, SourcePart, SourceScores
from memarena.scoring.metrics import count
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.uncertainty.bootstrap import Draws, interval
from memarena.scoring.uncertainty_records import Interval

KEYS = ("category", "ability", "question_type", "kind")
"""Keys of metadata that hold a category, in order: of LoCoMo; BEAM; LongMemEval, HaluMem and PersonaMem; GateMem."""
LOCOMO = {
    "multi-hop": "1 multi-hop",
    "temporal": "2 temporal",
    "open-domain": "3 open-domain",
    "single-hop": "4 single-hop",
    "adversarial": "5 adversarial",
}
"""LoCoMo's categories with their numbers, by which they are published."""
ALL, MEAN = "all", "mean of categories"
"""Names of the parts that are over all questions: pooled, and the mean of the categories with equal weights."""


@dataclass(frozen=True)
class Categories:
    """The categories of a run's questions; empty if its data set has none."""

    by: str = ""
    """The key of metadata that holds the category."""
    of: Mapping[str, str] = field(default_factory=dict)
    """Category by instance id."""
    abstain: frozenset[str] = frozenset()
    """Ids of questions that no history answers."""
    rubrics: frozenset[str] = frozenset()
    """Ids of questions that a rubric decides."""
    corrected: Mapping[str, Question] = field(default_factory=dict)
    """By instance id, questions whose gold a correction changed, with their published gold."""


def categories(questions: Iterable[Question]) -> Categories:
    """Return the categories of a run's questions, by the first key that all questions have with two or more values."""
    all_questions = list(questions)
    for key in KEYS:
        values = {q.instance.instance_id: q.instance.metadata.get(key) for q in all_questions}
        names = {name: LOCOMO.get(value, value) for name, value in values.items() if isinstance(value, str) and value}
        if names and len(names) == len(all_questions) and len(set(names.values())) > 1:
            return Categories(
                by=key,
                of=names,
                abstain=frozenset(q.instance.instance_id for q in all_questions if q.instance.gold.kind == "abstain"),
                rubrics=frozenset(q.instance.instance_id for q in all_questions if kind_of(q).task == "rubric"),
                corrected={q.instance.instance_id: was for q in all_questions if (was := _as_published(q)) is not None},
            )
    return Categories()


def _as_published(question: Question) -> Question | None:
    """Return the question with the published gold that a correction replaced; None without a correction."""
    instance = question.instance
    correction = instance.metadata.get("correction")
    published = correction.get("published_ground_truth") if isinstance(correction, Mapping) else None
    if not isinstance(published, Mapping):
        return None
    try:
        gold = parse_gold(instance.family, published, query=instance.query)
    except FieldError as error:
        raise ScoringError(f"{instance.instance_id}: metadata.correction: {error.field}: {error.reason}") from error
    return question.model_copy(update={"instance": instance.model_copy(update={"gold": gold})})


def source_scores(
    of_run: Categories,
    questions: Sequence[QuestionScore],
    facts: RunFacts,
    judgments: Judgments,
    draws: Draws | None,
) -> SourceScores | None:
    """Score a row by category, seeds pooled; None without categories.

    Args:
        of_run: the run's categories.
        questions: those of the row's headline cells.
        facts: has the answers.
        judgments: has the scores by rubric. If the rules judge, answers to corrected questions are judged by the
            published gold too; a model's verdict on that gold is not known.
        draws: of egos; None: no intervals.
    """
    in_scores = [q for q in questions if not q.outside_f1 and q.instance_id in of_run.of]
    if not in_scores:
        return None
    scorer = _Scorer(of_run, facts, judgments, draws)
    names = sorted({of_run.of[q.instance_id] for q in in_scores})
    by_name = {name: [q for q in in_scores if of_run.of[q.instance_id] == name] for name in names}
    parts = [scorer.part(name, of_name) for name, of_name in by_name.items()]
    if set(names) <= set(LOCOMO.values()):
        answerable = [q for q in in_scores if of_run.of[q.instance_id] != LOCOMO["adversarial"]]
        parts.append(scorer.part("1 to 4", answerable))
        parts.append(scorer.part("1 to 5", in_scores))
    else:
        abstain = [q for q in in_scores if q.instance_id in of_run.abstain]
        parts += [scorer.part("abstention", abstain)] if 0 < len(abstain) < len(in_scores) else []
        parts += [scorer.part(ALL, in_scores), scorer.mean(parts[: len(names)], list(by_name.values()))]
    corrected = [q for q in in_scores if q.instance_id in of_run.corrected]
    parts += [scorer.part("corrected golds", corrected)] if corrected else []
    return SourceScores(by=of_run.by, parts=tuple(parts))


@dataclass(frozen=True)
class _Scorer:
    """Scores the parts of one row."""

    of_run: Categories
    facts: RunFacts
    judgments: Judgments
    draws: Draws | None

    def part(self, key: str, questions: Sequence[QuestionScore]) -> SourcePart:
        """Score a part that consists of these questions."""
        counts = count(questions)
        return SourcePart(
            key=key,
            counts=counts,
            score=counts.accuracy,
            interval=self._interval([questions]),
            rubric=self._rubric(questions),
            published=self._right_by_published_gold(questions),
        )

    def mean(self, parts: Sequence[SourcePart], groups: Sequence[Sequence[QuestionScore]]) -> SourcePart:
        """Average categories with equal weights."""
        return SourcePart(
            key=MEAN,
            counts=count([q for group in groups for q in group]),
            score=Score(
                value=_mean([part.score.value for part in parts]),
                low=_mean([part.score.low for part in parts]),
                high=_mean([part.score.high for part in parts]),
            ),
            interval=self._interval(groups),
            rubric=_mean([part.rubric for part in parts]),
            published=_mean([part.published for part in parts]),
        )

    def _interval(self, groups: Sequence[Sequence[QuestionScore]]) -> Interval | None:
        """Return the interval of the share right, averaged over groups; None for a range, or without draws."""
        if self.draws is None or any(q.outcome is None or q.unmeasured for group in groups for q in group):
            return None
        shares = [self.draws.shares(group, lambda q: q.correct) for group in groups]
        egos = min(len({q.ego for q in group}) for group in groups)
        return interval(np.mean(shares, axis=0), egos)

    def _rubric(self, questions: Sequence[QuestionScore]) -> float | None:
        """Average the scores by rubric, a failed backend's with 0; None without any, or if an answer has no verdict."""
        scores = []
        for question in questions:
            if question.instance_id not in self.of_run.rubrics:
                continue
            attempts = self.facts.attempts.get((question.cell_id, question.instance_id), ())
            key = (question.cell_id, question.instance_id, attempts[-1].record.attempt) if attempts else None
            verdict = self.judgments.verdicts.get(key) if key else None
            if verdict is None and question.outcome is not Outcome.BACKEND_FAILED:
                return None
            scores.append(verdict.score if verdict else 0.0)
        return _mean(scores)

    def _right_by_published_gold(self, questions: Sequence[QuestionScore]) -> float | None:
        """Return the share right by the published golds; None without corrections, or if it is not known."""
        if not self.judgments.is_rules or not self.of_run.corrected or count(questions).accuracy.value is None:
            return None
        return _mean([self._right_as_published(q) for q in questions if q.outcome is not None])

    def _right_as_published(self, question: QuestionScore) -> float:
        was = self.of_run.corrected.get(question.instance_id)
        attempts = self.facts.attempts.get((question.cell_id, question.instance_id), ())
        answer = attempts[-1].record.answer if attempts else None
        if was is None or answer is None:
            return float(question.correct)
        return float(judge(was, evidence_of(was, self.facts.evidence), answer.answer, raw_output(answer)).correct)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None without values, or if any value is None."""
    figures = [value for value in values if value is not None]
    return sum(figures) / len(figures) if figures and len(figures) == len(values) else None
