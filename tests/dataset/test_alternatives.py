"""Tests that golds with several right answers are split into them, and that others are not."""

from __future__ import annotations

import pytest
from memarena_dataset.values.alternatives import alternatives


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        ("12 weeks. 13 weeks (counting the first one) is also acceptable.", ("12 weeks", "13 weeks")),
        ("4.5 km. 4.6 km would be acceptable too.", ("4.5 km", "4.6 km")),
        ("1 hour and 5 minutes (or 65 minutes)", ("1 hour and 5 minutes", "65 minutes")),
        ("14 lessons (15 is also accepted)", ("14 lessons", "15 lessons")),
        ("Mr. Okoro; also acceptable: the headmaster", ("Mr. Okoro", "the headmaster")),
        ("the blue van (the van or the Transit is also correct)", ("the blue van", "the van", "the Transit")),
        ("9 or 10 are both acceptable", ("9", "10")),
        ("Lisbon or Porto (either is correct)", ("Lisbon", "Porto")),
        ("Ludmila (also known as Mila)", ("Ludmila", "Mila")),
        ("6:30 pm or 18:30", ("6:30 pm", "18:30")),
        ("five or 5", ("five", "5")),
        ("two weeks or 14 days", ("two weeks", "14 days")),
        ("the WHO or the World Health Organization", ("the WHO or the World Health Organization",)),
        ("WHO or World Health Organization", ("WHO", "World Health Organization")),
        ("jazz or blues", ("jazz or blues",)),
        ("13 or 15 days", ("13 or 15 days",)),
        ("Either by bus or on foot", ("Either by bus or on foot",)),
        ("40 pages (or more)", ("40 pages (or more)",)),
        ("a terrier (five years old)", ("a terrier (five years old)",)),
        ("6 guests (including the hosts)", ("6 guests (including the hosts)",)),
        ("She plays the flute. Her brother is also musical.", ("She plays the flute. Her brother is also musical.",)),
        ("No. The rent is acceptable.", ("No. The rent is acceptable.",)),
        ("12 stamps (13 is accepted)", ("12 stamps", "13 stamps")),
        ("3/4 or so", ("3/4 or so",)),
    ],
)
def test_a_gold_is_split_only_if_it_names_another_right_answer(gold: str, answers: tuple[str, ...]) -> None:
    assert alternatives(gold) == answers
