"""D2, D3, D4, the answer half of D5 and extensions: right or wrong as a judge's verdict says."""

from __future__ import annotations

from dataclasses import dataclass

from memarena_dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena_dataset.values.words import token_f1

from memarena.log.records import Outcome, Verdict
from memarena.scoring.results import Route


@dataclass(frozen=True)
class AnswerOutcome:
    """The outcome of an answer, by which route it was decided, and why."""

    outcome: Outcome
    route: Route | None
    why: str


def outcome_by_verdict(verdict: Verdict | None, missing: str) -> AnswerOutcome:
    """The outcome by verdict. An answer without one is an infrastructure failure with the cause ``missing``."""
    if verdict is None:
        return AnswerOutcome(Outcome.INFRA_FAILED, None, missing)
    return AnswerOutcome(Outcome.CORRECT if verdict.correct else Outcome.WRONG, verdict.route, verdict.reason)


def gold_texts(gold: Gold) -> tuple[str, ...]:
    """Texts of an open gold, any of which an answer may match; empty for other golds."""
    if isinstance(gold, TextGold):
        return gold.answers
    if isinstance(gold, CounterfactualGold):
        return (gold.real_fact,)
    if isinstance(gold, ConflictGold):
        return (f"{gold.original_detail} {gold.changed_detail}",)
    if isinstance(gold, AnaphoraGold):
        return (gold.referent, gold.antecedent_text)
    return ()


def best_token_f1(gold: Gold, answer: str) -> float | None:
    """Token-F1 with the most similar gold text; None for golds that are not open."""
    texts = gold_texts(gold)
    return max(token_f1(answer, text) for text in texts) if texts else None
