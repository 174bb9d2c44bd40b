"""D5, abstain half: declining is right, offering anything is wrong."""

from __future__ import annotations

import pytest
from memarena.log.records import Outcome
from memarena.scoring.dimensions.abstention import abstention_outcome

from ..support.logs import abstain

QUESTION = "What did Caroline realize after her charity race?"
GOLD = abstain("self-care is important")


@pytest.mark.parametrize(
    ("answer", "outcome", "why"),
    [
        ("I don't know.", Outcome.CORRECT, "declines"),
        ("The context does not mention a charity race of Caroline's.", Outcome.CORRECT, "declines"),
        ("I can't share that.", Outcome.CORRECT, "declines"),
        ("Caroline did not have a charity race.", Outcome.CORRECT, "declines"),
        ("That self-care is important.", Outcome.WRONG, "states the trap"),
        ("I don't know, but perhaps that self-care is important.", Outcome.WRONG, "states the trap"),
        ("She realized that running is fun.", Outcome.WRONG, "does not decline"),
        ("", Outcome.WRONG, "empty"),
    ],
)
def test_an_answer_about_nothing_is_right_only_if_it_offers_nothing(answer: str, outcome: Outcome, why: str) -> None:
    settled = abstention_outcome(GOLD, QUESTION, answer)
    assert settled.outcome is outcome, settled
    assert settled.route == "refusal"
    assert why in settled.why
