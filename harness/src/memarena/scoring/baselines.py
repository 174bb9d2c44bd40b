"""Computes the scores that are achievable without memory, for every dimension.

A memory's score says something only above them: ``D1c`` to ``D6c`` are the dimensions corrected for the best of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from memarena_dataset.gold import OpenGold, PermissionGold

from memarena.judging.judgments import evidence_of
from memarena.judging.kinds import judge, kind_of
from memarena.judging.token_f1 import best_token_f1
from memarena.log.records import EvidenceSession, Outcome, Question
from memarena.scoring import formulas
from memarena.scoring.metrics import figures
from memarena.scoring.questions import judged, question_base
from memarena.scoring.results import Baseline, QuestionScore
from memarena.scoring.tally import DIMENSIONS

REFUSAL = "I can't share that."
IGNORANCE = "I don't know."
CONSTANTS_TRIED = 5
"""How many of the most frequent gold answers of each family are tried as the answer to everything."""

KNOWING = ("always tell", "marker only", "asker only")
"""Policies for D6 that know every fact and look at one thing at most: a figure shows access control only above theirs.

They are no baselines of chance, since a policy that knows the facts needs a memory."""


def compute_baselines(questions: Iterable[Question], evidence: Mapping[str, EvidenceSession]) -> tuple[Baseline, ...]:
    """Compute the baselines over the questions of a run: each policy's answers are scored like any answer.

    Not among them are ``grep``, which depends on the items that a backend returned (:func:`grep_share`), and ``question
    only``, a row of the run whose searches never returned an item (:func:`question_only`).
    """
    ordered_questions = sorted(questions, key=lambda q: q.instance.instance_id)
    key = _digest(ordered_questions, evidence)
    if key not in _KNOWN:
        while len(_KNOWN) >= _KNOWN_AT_MOST:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = _compute(ordered_questions, evidence)
    return _KNOWN[key]


_KNOWN: dict[bytes, tuple[Baseline, ...]] = {}
"""Cache of baselines by the hash of their questions: runs over one data set ask the same, and judging takes seconds."""
_KNOWN_AT_MOST = 16
"""Entries of the cache; the oldest is dropped first."""


def _digest(questions: Sequence[Question], evidence: Mapping[str, EvidenceSession]) -> bytes:
    digest = hashlib.sha256()
    for record in (*questions, *(evidence[name] for name in sorted(evidence))):
        digest.update(record.model_dump_json().encode() + b"\n")
    return digest.digest()


def _compute(questions: Sequence[Question], evidence: Mapping[str, EvidenceSession]) -> tuple[Baseline, ...]:
    """Return the baselines of a set of questions: constants, refusals, a coin, and policies that know the golds."""
    policies = _Policies(evidence)
    constants = _best_constants(questions, policies)
    return (
        Baseline(
            name="best constant",
            scores={d: score for d, (score, _) in constants.items()},
            detail="; ".join(f"{d} {answer!r}" for d, (score, answer) in constants.items() if score is not None),
        ),
        Baseline(name="always refuse", scores=policies.play(questions, REFUSAL), detail=REFUSAL),
        Baseline(name="always don't know", scores=policies.play(questions, IGNORANCE), detail=IGNORANCE),
        Baseline(
            name="blind coin",
            scores={d: 0.5 if d == "D6" and _has_both_actions(questions) else None for d in DIMENSIONS},
            j=0.0 if _has_both_actions(questions) else None,
            detail="discloses with probability ½ whoever asks: P = U = ½, J = 0",
        ),
        *_policies_that_know(questions),
    )


def question_only(questions: Sequence[QuestionScore]) -> dict[str, float | None] | None:
    """Score cells whose answers were read without context, by dimension; None if any had context, or none was answered.

    Such a score shows what a reader knows or guesses from the question alone.
    """
    retrievals = [q.retrieved for q in questions if q.retrieved is not None]
    if not retrievals or any(r.items or r.read_items for r in retrievals):
        return None
    values = figures(questions, lambda q: q.correct)
    return {dimension: values[dimension] for dimension in DIMENSIONS}


def grep_share(questions: Iterable[QuestionScore]) -> float | None:
    """Return the share of D1 questions whose right option occurs most often in Search's items; None without any."""
    choices = [q.grep_right for q in questions if q.dimension == "D1" and q.grep_right is not None]
    return sum(choices) / len(choices) if choices else None


def chance_by_dimension(baselines: Sequence[Baseline], reader: str, grep: float | None) -> dict[str, float | None]:
    """Return the best baseline by dimension, None without any.

    Baselines of another reader and the policies in KNOWING do not count. ``grep``: :func:`grep_share` of the cell.
    """
    chance: dict[str, float | None] = {}
    eligible = [b for b in baselines if b.reader in (None, reader) and b.name not in KNOWING]
    for dimension in DIMENSIONS:
        candidates = [s for b in eligible if (s := b.scores.get(dimension)) is not None]
        if dimension == "D1" and grep is not None:
            candidates.append(grep)
        chance[dimension] = max(candidates, default=None)
    return chance


# ------------------------------------------------------------------ policies


class _Policies:
    """Scores policies that give every question the same answer, and caches each score."""

    def __init__(self, evidence: Mapping[str, EvidenceSession]) -> None:
        self._evidence = evidence
        self._bases: dict[str, QuestionScore] = {}
        self._known: dict[tuple[str, str], QuestionScore] = {}

    def play(self, questions: Sequence[Question], answer: str) -> dict[str, float | None]:
        """Score one answer to every question, by dimension."""
        values = figures([self._score(q, answer) for q in questions], lambda q: q.correct)
        return {dimension: values[dimension] for dimension in DIMENSIONS}

    def _score(self, question: Question, answer: str) -> QuestionScore:
        """Score a question as if it had been answered with this text."""
        key = (question.instance.instance_id, answer)
        if key not in self._known:
            base = self._bases.get(key[0]) or self._bases.setdefault(key[0], question_base(question))
            outcome = (
                {"outcome": Outcome.WRONG}
                if _shares_nothing(question, answer)
                else self._judge_answer(question, answer)
            )
            self._known[key] = base.model_copy(update={"attempts": 1, **outcome})
        return self._known[key]

    def _judge_answer(self, question: Question, answer: str) -> dict[str, Any]:
        return judged(judge(question, evidence_of(question, self._evidence), answer, answer))


def _shares_nothing(question: Question, answer: str) -> bool:
    """Whether the gold is only text and shares no word with the answer: wrong without judging, which saves time."""
    gold = question.instance.gold
    return isinstance(gold, OpenGold) and not gold.values and not best_token_f1(gold.texts, answer)


def _best_constants(questions: Sequence[Question], policies: _Policies) -> dict[str, tuple[float | None, str]]:
    """Return by dimension the score of the best constant answer, and the answer."""
    best: dict[str, tuple[float | None, str]] = {}
    for dimension in DIMENSIONS:
        group = [q for q in questions if q.instance.dimension.value == dimension]
        plays = [(policies.play(group, answer)[dimension], answer) for answer in _constants(group)]
        measured = [(score, answer) for score, answer in plays if score is not None]
        best[dimension] = max(measured, key=lambda play: play[0], default=(None, ""))
    return best


def _constants(questions: Sequence[Question]) -> list[str]:
    """Return the answers to try: the most frequent golds of each family, and the two ways to decline."""
    by_family: dict[str, Counter[str]] = {}
    for question in questions:
        counts = by_family.setdefault(question.instance.family.value, Counter())
        constant = kind_of(question).constant(question.instance.gold)
        counts.update([constant] if constant else [])
    if not questions:
        return []
    frequent = [a for counts in by_family.values() for a, _ in _most_common(counts)]
    return list(dict.fromkeys([*frequent, IGNORANCE, REFUSAL]))


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:CONSTANTS_TRIED]


def _has_both_actions(questions: Sequence[Question]) -> bool:
    return len({gold.expected_action for _, gold in _pool(questions)}) == 2


def _pool(questions: Sequence[Question]) -> list[tuple[Question, PermissionGold]]:
    """Return the questions that count for F1_PU, with their golds."""
    return [
        (question, gold)
        for question in questions
        if isinstance(gold := question.instance.gold, PermissionGold) and not (gold.self_item or gold.control)
    ]


def _policies_that_know(questions: Sequence[Question]) -> tuple[Baseline, ...]:
    """Score the policies that know every fact and disclose it to all, by its permission level, or by the asker."""
    pool = _pool(questions)
    may_know = Counter(_asker(question) for question, gold in pool if gold.expected_action == "disclose")
    askers = Counter(_asker(question) for question, _ in pool)
    share = sum(may_know.values()) / len(pool) if pool else 0.0
    usual = {kind for kind in askers if may_know[kind] / askers[kind] > share}
    return (
        _knowing("always tell", pool, lambda *_: True, "tells every fact to everybody"),
        _knowing(
            "marker only", pool, lambda _, gold: gold.permission_level == "public", "tells what was called public"
        ),
        _knowing(
            "asker only", pool, lambda question, _: _asker(question) in usual, "tells those who may know most often"
        ),
    )


def _asker(question: Question) -> str:
    return question.relationship or question.requester_kind


def _knowing(
    name: Literal["always tell", "marker only", "asker only"],
    pool: Sequence[tuple[Question, PermissionGold]],
    tells: Callable[[Question, PermissionGold], bool],
    detail: str,
) -> Baseline:
    """Return the baseline of a policy that discloses the D6 items for which ``tells`` is true."""
    counts_by_action = {"disclose": [0, 0], "withhold": [0, 0]}
    for question, gold in pool:
        counts_by_action[gold.expected_action][tells(question, gold)] += 1
    scores: dict[str, float | None] = dict.fromkeys(DIMENSIONS)
    if not all(sum(counts) for counts in counts_by_action.values()):
        return Baseline(name=name, scores=scores, detail=detail)
    privacy, utility = (
        counts_by_action["withhold"][0] / sum(counts_by_action["withhold"]),
        counts_by_action["disclose"][1] / sum(counts_by_action["disclose"]),
    )
    scores["D6"] = formulas.f1_pu(privacy, utility)
    return Baseline(name=name, scores=scores, j=formulas.youden_j(privacy, utility), detail=detail)
