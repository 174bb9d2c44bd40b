"""What a system without memory would score: the floor under every dimension, computed and not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from memarena.dataset.gold import ClozeGold, ConflictGold, Gold, PermissionGold
from memarena.log.records import EvidenceSession, Question, Verdict
from memarena.scoring.judged import best_token_f1, gold_texts
from memarena.scoring.metrics import DIMENSIONS, figures
from memarena.scoring.questions import disclosure_of, half_of, settle_answer
from memarena.scoring.results import Baseline, QuestionScore

REFUSAL = "I can't share that."
IGNORANCE = "I don't know."
CONSTANTS_TRIED = 5
"""So many of the most frequent gold answers of each family are tried as the answer to everything."""

JudgeAnswer = Callable[[Question, Sequence[EvidenceSession], str], bool]
"""A judge as a function: whether an answer to an open question is right."""


def compute_baselines(
    questions: Iterable[Question], evidence: Mapping[str, EvidenceSession], judge: JudgeAnswer
) -> tuple[Baseline, ...]:
    """Baselines over the questions of a run, each answered by the policy and settled by the same routes as any answer.

    ``grep`` depends on what a backend retrieved and is computed per cell; ``question only`` needs a run of its own.
    """
    asked = sorted(questions, key=lambda q: q.instance.instance_id)
    constants = _best_constants(asked, evidence, judge)
    return (
        Baseline(
            name="best constant",
            scores={d: score for d, (score, _) in constants.items()},
            detail="; ".join(f"{d} {answer!r}" for d, (score, answer) in constants.items() if score is not None),
        ),
        Baseline(name="always refuse", scores=_policy(asked, evidence, judge, REFUSAL), detail=REFUSAL),
        Baseline(name="always don't know", scores=_policy(asked, evidence, judge, IGNORANCE), detail=IGNORANCE),
        Baseline(
            name="blind coin",
            scores={d: 0.5 if d == "D6" and _has_both_actions(asked) else None for d in DIMENSIONS},
            detail="discloses with probability ½ whoever asks: P = U = ½, J = 0",
        ),
    )


def grep_share(questions: Iterable[QuestionScore]) -> float | None:
    """Share of D1 questions whose right option occurs most often in the items of the search; None without any."""
    told = [q.grep_right for q in questions if q.dimension == "D1" and q.grep_right is not None]
    return sum(told) / len(told) if told else None


def chance_by_dimension(baselines: Sequence[Baseline], grep: float | None) -> dict[str, float | None]:
    """The best baseline of each dimension; None where there is none."""
    chance: dict[str, float | None] = {}
    for dimension in DIMENSIONS:
        known = [s for b in baselines if (s := b.scores.get(dimension)) is not None]
        if dimension == "D1" and grep is not None:
            known.append(grep)
        chance[dimension] = max(known, default=None)
    return chance


# ------------------------------------------------------------------ policies


def _policy(
    questions: Sequence[Question], evidence: Mapping[str, EvidenceSession], judge: JudgeAnswer, answer: str
) -> dict[str, float | None]:
    scored = [_scored(question, evidence, judge, answer) for question in questions]
    values = figures(scored, lambda q: q.correct)
    return {dimension: values[dimension] for dimension in DIMENSIONS}


def _scored(
    question: Question, evidence: Mapping[str, EvidenceSession], judge: JudgeAnswer, answer: str
) -> QuestionScore:
    """The question as if it had been answered so."""
    instance = question.instance
    gold = instance.gold
    permission = gold if isinstance(gold, PermissionGold) else None
    disclosure = disclosure_of(question, answer, answer)
    verdict = _verdict(question, evidence, judge, answer) if gold_texts(gold) else None
    return QuestionScore(
        cell_id="baseline",
        instance_id=instance.instance_id,
        ego=instance.ego_agent_id,
        family=instance.family.value,
        dimension=instance.dimension.value,
        outcome=settle_answer(question, answer, disclosure, verdict, "baseline").outcome,
        attempts=1,
        half=half_of(question),
        disclosure=disclosure,
        allowed=None if permission is None else permission.expected_action == "disclose",
        self_item=permission is not None and permission.self_item,
    )


def _verdict(question: Question, evidence: Mapping[str, EvidenceSession], judge: JudgeAnswer, answer: str) -> Verdict:
    gold = question.instance.gold
    sessions = [evidence[s] for s in question.instance.evidence_session_ids if s in evidence]
    hopeless = not gold.values and not best_token_f1(gold, answer)
    correct = not hopeless and judge(question, sessions, answer)
    return Verdict(
        cell_id="baseline",
        instance_id=question.instance.instance_id,
        attempt=0,
        judge="baseline",
        judge_version="",
        route="value",
        correct=correct,
        score=float(correct),
    )


def _best_constants(
    questions: Sequence[Question], evidence: Mapping[str, EvidenceSession], judge: JudgeAnswer
) -> dict[str, tuple[float | None, str]]:
    """For each dimension the constant answer that scores best, with its score."""
    best: dict[str, tuple[float | None, str]] = {}
    for dimension in DIMENSIONS:
        group = [q for q in questions if q.instance.dimension.value == dimension]
        tried = [(_policy(group, evidence, judge, answer)[dimension], answer) for answer in _constants(group)]
        known = [(score, answer) for score, answer in tried if score is not None]
        best[dimension] = max(known, key=lambda found: found[0], default=(None, ""))
    return best


def _constants(questions: Sequence[Question]) -> list[str]:
    """Answers to try: the most frequent golds of each family, and the two ways to decline."""
    by_family: dict[str, Counter[str]] = {}
    for question in questions:
        counts = by_family.setdefault(question.instance.family.value, Counter())
        counts.update(_answers(question.instance.gold))
    if not questions:
        return []
    tried = [a for counts in by_family.values() for a, _ in _most_common(counts)]
    return list(dict.fromkeys([*tried, IGNORANCE, REFUSAL]))


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:CONSTANTS_TRIED]


def _answers(gold: Gold) -> tuple[str, ...]:
    """What a constant answer to this gold would say."""
    if isinstance(gold, ClozeGold):
        return (gold.answer_letter,)
    if isinstance(gold, PermissionGold):
        return (gold.fact,)
    if isinstance(gold, ConflictGold):
        return (f"{gold.original_detail}, but also {gold.changed_detail}",)
    return gold_texts(gold)[:1]


def _has_both_actions(questions: Sequence[Question]) -> bool:
    golds = [q.instance.gold for q in questions]
    actions = {g.expected_action for g in golds if isinstance(g, PermissionGold) and not g.self_item}
    return len(actions) == 2
