"""D5, abstain half: right if the answer declines and asserts no value."""

from __future__ import annotations

from collections.abc import Iterable

from memarena.dataset.gold import AbstainGold
from memarena.log.records import Outcome
from memarena.scoring.judged import Settled
from memarena.text.stance import read_stance


def settle_abstention(gold: AbstainGold, question: str, answer: str, names: Iterable[str] = ()) -> Settled:
    """Settle an answer to a question about something that was never said.

    A refusal counts as much as a claim not to know; an answer that offers a value beside either does not. ``names`` are
    those by which the answer may address its asker.
    """
    stance = read_stance(answer, question, names)
    if stance.abstains:
        return Settled(Outcome.CORRECT, "refusal", f"declines: {stance.declines!r}")
    if not answer.strip():
        return Settled(Outcome.WRONG, "refusal", "empty")
    if stance.declines:
        return Settled(Outcome.WRONG, "refusal", f"declines, yet asserts {stance.asserts!r}")
    claim = f" (the premise: {gold.adversarial_answer!r})" if gold.adversarial_answer else ""
    return Settled(
        Outcome.WRONG, "refusal", f"asserts {stance.asserts!r}{claim}" if stance.asserts else "does not decline"
    )
