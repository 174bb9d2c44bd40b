"""The refusal detector agrees with people on a labelled set, and keeps its laws."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.text.stance import read_stance

LABELLED = Path(__file__).parent / "data" / "stances.tsv"
ROWS = [
    line.split("\t") for line in LABELLED.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
]


def test_the_labelled_set_is_large_and_holds_every_label() -> None:
    assert len(ROWS) >= 200
    assert {label for label, _, _ in ROWS} == {"dont_know", "refuse", "answers"}
    assert len({(q, a) for _, q, a in ROWS}) == len(ROWS)


@pytest.mark.parametrize("label", ["dont_know", "refuse", "answers"])
def test_labelled_answers_are_read_as_labelled(label: str) -> None:
    """All but one in a hundred: a negated event may itself be the answer (``He was not given a raise``)."""
    rows = [(question, answer) for given, question, answer in ROWS if given == label]
    read = [(a, read_stance(a, q)) for q, a in rows]
    other = [(a, stance) for a, stance in read if (stance.manner if stance.abstains else "answers") != label]
    assert len(other) <= 0.01 * len(rows), other


def test_a_value_offered_beside_a_disclaimer_is_named() -> None:
    stance = read_stance("I don't know, but maybe the red one.", "Which car is it?")
    assert (stance.manner, stance.asserts, stance.declines_first) == ("dont_know", "but maybe the red one", True)


@given(st.text(max_size=200))
def test_any_text_has_a_stance_and_an_abstaining_one_declines(answer: str) -> None:
    stance = read_stance(answer, "When did it happen?")
    assert not stance.abstains or stance.declines


@given(
    opening=st.sampled_from(["I don't know.", "The context does not say.", "I can't share that.", "Not mentioned."]),
    offered=st.sampled_from(
        [
            ("When did it happen?", "It was Tuesday."),
            ("How much was it?", "Probably 50 euros."),
            ("Who told her?", "Maybe Bob."),
            ("Where did Ida go?", "She went to Lisbon."),
        ]
    ),
    value_first=st.booleans(),
)
def test_no_disclaimer_makes_an_asserted_value_an_abstention(
    opening: str, offered: tuple[str, str], value_first: bool
) -> None:
    question, value = offered
    answer = f"{value} {opening}" if value_first else f"{opening} {value}"
    assert read_stance(opening).abstains
    assert not read_stance(answer, question).abstains
