"""Tests training: models are reproducible, evaluated on unseen sets, and err as their cards state."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_training import abstention as training
from judge_training.rates import Rate
from judge_training.task import Example, Settings
from memarena.judging.abstention import MODEL
from memarena.judging.error_rates import text_error_counts
from memarena.judging.linear_model import stored_model


def test_training_is_repeatable_and_tells_the_labels_apart() -> None:
    from judge_training.training import train

    rows = [Example(frozenset({"always", "no" if n % 2 else "yes", f"of{n % 5}"}), n % 2 == 0) for n in range(40)]
    model = train(rows, Settings())
    assert model.sha256 == train(rows, Settings()).sha256
    assert model.score(["yes"]) > 0 > model.score(["no"])
    assert "yes" not in train(rows, Settings(), lambda feature: feature == "yes").weights
    with pytest.raises(ValueError, match="both labels"):
        train(rows[::2], Settings())


def test_a_rate_has_wilson_s_interval() -> None:
    low, high = Rate(3, 120).interval
    assert (round(low, 4), round(high, 4)) == (0.0085, 0.0709)
    assert (str(Rate(0, 0)), Rate(0, 0).interval) == ("n/a", (0.0, 1.0))


MEASURED = {"plain": (0.01, 0.015), "usual": (0.02, 0.02), "varied": (0.11, 0.06), "third": (0.04, 0.06)}
"""Shares of declining answers missed and of others taken for such, a little above what the card has."""


def test_independent_sets_are_read_as_well_as_the_card_says() -> None:
    from judge_training.evaluate import evaluate

    rates_by_set = {rates.name: rates for rates in evaluate(training.TASK, stored_model(MODEL))}
    assert rates_by_set.keys() == MEASURED.keys()
    for name, (most_missed, most_taken) in MEASURED.items():
        assert (rates_by_set[name].missed.share or 0) <= most_missed, rates_by_set[name].wrong
        assert (rates_by_set[name].taken.share or 0) <= most_taken, rates_by_set[name].wrong


def test_no_independent_answer_was_learned_from() -> None:
    learned = {" ".join(text.answer.lower().split()) for text in training.texts()}
    for name in ("plain", "usual", "varied"):
        cases = training.independent()[name]
        # "Not mentioned." has been said before; a sentence of one's own hardly ever.
        shared = [c for c in cases if " ".join(c.answer.lower().split()) in learned and len(c.answer.split()) > 6]
        assert len(shared) <= 0.005 * len(cases)


def test_the_error_rates_are_those_of_the_card() -> None:
    card = (Path(__file__).parents[2] / "harness" / "judge_training" / "MODEL_CARD.text_gold.md").read_text("utf-8")
    (row,) = [line for line in card.splitlines() if line.startswith("| `blind`")]
    counts = text_error_counts()
    assert f"{counts.right_called_wrong} of {counts.right} = " in row
    assert f"{counts.wrong_called_right} of {counts.wrong} = " in row
