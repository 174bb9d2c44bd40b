"""D5, abstain half: right if the answer declines and states no value."""

from __future__ import annotations

from collections.abc import Iterable

from memarena_dataset.gold import AbstainGold

from memarena.judging.abstention import judge_abstention
from memarena.log.records import Outcome
from memarena.scoring.dimensions.open_answer import AnswerOutcome


def abstention_outcome(gold: AbstainGold, question: str, answer: str, names: Iterable[str] = ()) -> AnswerOutcome:
    """The outcome of an answer to a question about something that was never said."""
    judgment = judge_abstention(gold, question, answer, names)
    return AnswerOutcome(Outcome.CORRECT if judgment.correct else Outcome.WRONG, "refusal", judgment.why)
