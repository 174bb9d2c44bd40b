"""Does an answer decline? Labelled sets of many styles, and what is learned without a set, on that set.

How unseen each set was when it was first measured stands in docs/judging.md.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from memarena.text import learning
from memarena.text.stance import read_stance

DATA = Path(__file__).parent / "data"
AIM = 0.02
VERY_SHORT = 6
"""Answers of so few words everybody writes."""

Row = tuple[bool, str, str]
"""Whether it declines, the question, the answer."""


def of_patterns(name: str) -> list[Row]:
    """Every phrasing of a file with every subject."""
    table = tomllib.loads((DATA / f"{name}.v1.toml").read_text("utf-8"))
    rows = []
    for kind in ("abstains", "answers"):
        for phrasing in table[kind]:
            for subject in table["subjects"]:
                answer = phrasing
                for word in ("topic", "value", "who"):
                    answer = answer.replace("{" + word + "}", subject[word])
                rows.append((kind == "abstains", subject["question"], answer[0].upper() + answer[1:]))
        rows += [(kind == "abstains", question, answer) for question, answer in table["real"][kind]]
    return rows


def of_blind(*names: str) -> list[Row]:
    """Answers by a hand that did not know the detector."""
    lines = [line for n in names for line in (DATA / f"declining_blind_{n}.v1.jsonl").read_text("utf-8").splitlines()]
    return [(row["declines"], row["question"], row["answer"]) for row in map(json.loads, lines)]


def of_table(name: str) -> list[Row]:
    """Answers by a hand that wrote them for nothing but this: nothing is learned from them."""
    lines = (DATA / f"declining_{name}.v1.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [(label[0] == "+", question, learning.unescaped(answer)) for label, question, answer in rows]


def errors(rows: Sequence[Row], declines: Callable[[str, str], bool]) -> tuple[float, float, list[str]]:
    """Share of the declining answers missed, share of the others taken for such, and the answers themselves."""
    wrong = [(label, answer) for label, question, answer in rows if declines(answer, question) != label]
    count = sum(label for label, _, _ in rows)
    missed = sum(label for label, _ in wrong)
    return missed / count, (len(wrong) - missed) / (len(rows) - count), [answer for _, answer in wrong]


def detector(answer: str, question: str) -> bool:
    return read_stance(answer, question).abstains


@pytest.mark.parametrize("name", ["declining_held_out", "declining_second", "declining_third"])
def test_few_refusals_of_many_styles_are_missed_and_few_answers_taken_for_refusals(name: str) -> None:
    """The wordings of the first two were learned from with other subjects; those of the third were not."""
    rows = of_patterns(name)
    assert len(rows) >= 500
    missed, taken, wrong = errors(rows, detector)
    assert missed <= AIM, wrong
    assert taken <= AIM, wrong


def test_the_third_set_is_not_among_what_was_learned_from() -> None:
    table = tomllib.loads((DATA / "declining_third.v1.toml").read_text("utf-8"))
    written = {text.source for text in learning.texts()} | {text.answer for text in learning.texts()}
    shared = [p for kind in ("abstains", "answers") for p in table[kind] if p in written]
    # Ways to say it that every set has.
    assert len(shared) <= 0.1 * (len(table["abstains"]) + len(table["answers"])), shared


@pytest.mark.parametrize(("name", "least"), [("plain", 400), ("usual", 600)])
def test_plain_answers_of_models_that_nothing_was_learned_from_are_read_as_labelled(name: str, least: int) -> None:
    rows = of_table(name)
    assert len(rows) >= least
    missed, taken, wrong = errors(rows, detector)
    assert missed <= AIM, wrong
    assert taken <= AIM, wrong


def test_answers_more_varied_than_models_write_are_read_as_well_as_measured() -> None:
    """Nothing was learned from them; far from the aim, and the docs say so."""
    rows = of_table("varied")
    assert len(rows) >= 500
    missed, taken, wrong = errors(rows, detector)
    assert missed <= 0.10, wrong
    assert taken <= 0.06, wrong


@pytest.mark.parametrize("name", ["plain", "usual", "varied"])
def test_the_sets_by_another_hand_are_not_among_what_was_learned_from(name: str) -> None:
    learned = {_plainly(text.answer) for text in learning.texts()}
    answers = {_plainly(answer) for _, _, answer in of_table(name)}
    # "Not mentioned." has been said before; a sentence of one's own hardly ever ("I'm not at liberty to say").
    assert len([answer for answer in answers & learned if len(answer.split()) > VERY_SHORT]) <= 0.005 * len(answers)


def _plainly(answer: str) -> str:
    return " ".join(re.findall(r"\w+", answer.lower()))


def test_answers_by_another_hand_that_were_learned_from_are_read_as_labelled() -> None:
    """A regression bound over 1,100 labelled answers: what was learned has to be kept."""
    rows = of_blind("dev", "a", "b")
    assert len(rows) >= 1000
    missed, taken, wrong = errors(rows, detector)
    # Some say it with no word of declining at all ("He got home late, which is as precise as the conversation gets.").
    assert missed <= 2 * AIM, wrong
    assert taken <= AIM, wrong


def test_the_weights_are_what_the_training_texts_give() -> None:
    """The file in the package comes from the texts beside it: feature for feature, but for rounding."""
    learned = learning.learn(learning.texts())
    kept = json.loads(learning.stored_weights())
    assert kept.keys() == learned.keys()
    for side, weights in learned.items():
        names = weights.keys() | kept[side].keys()
        differences = [apart(weights.get(n, 0.0), kept[side].get(n, 0.0)) for n in names]
        # Where the search for the least ends depends on the last digits of a machine's arithmetic.
        assert max(differences) <= 0.5
        assert sum(differences) <= 0.01 * len(differences)


def apart(one: float | list[float], other: float | list[float]) -> float:
    """How far two entries of the file are apart; one that is missing is 0."""
    first, second = (found if isinstance(found, list) else [found] for found in (one, other))
    return max(abs(a - b) for a, b in itertools.zip_longest(first, second, fillvalue=0.0))
