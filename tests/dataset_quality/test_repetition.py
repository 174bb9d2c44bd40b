"""Tests measures of repetition: repeated builds of sentences show in any words; figures equal the shared definition."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.repetition import coverage, text_figures
from memarena_dataset_quality.tokenization import sentences, words
from memarena_dataset_quality.waking_hours import asleep, outside_hours
from memarena_dataset_quality.world import World, read_world

SHARED = Path(os.environ.get("MEMARENA_SHARED", Path(__file__).parents[3] / "shared"))
DEFINITION = SHARED / "tools" / "world_bars.py"


@pytest.fixture(scope="module")
def world(small_world: Path) -> World:
    """The small world, read."""
    return read_world(small_world)


def free_text(count: int, seed: int) -> list[list[str]]:
    """Sessions of words in no build at all."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(3_000)]
    return [[" ".join(rng.choices(vocabulary, k=20)) for _ in range(8)] for _ in range(count)]


def templates(count: int, seed: int) -> list[list[str]]:
    """Sessions of one build with other words in it."""
    words_of = iter([word for session in free_text(count, seed) for turn in session for word in turn.split()])
    return [
        [f"well you know that {next(words_of)} is what we said when it was {next(words_of)} at the time of it"] * 1
        for _ in range(count)
    ]


def test_templates_are_seen_through_other_words() -> None:
    """Filled with words that never come again, one build is still one build; free text repeats nothing."""
    bound, free = text_figures(templates(300, 1)), text_figures(free_text(100, 2))
    assert bound.masked_8gram > 0.9
    assert free.plain_6gram < 0.01
    assert bound.plain_6gram > 0.12


def test_turns_said_twice_are_counted_if_they_are_long() -> None:
    """Above twelve words nothing may come again; below it may."""
    long = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert text_figures([[long, "yes of course"], [long, "yes of course"]]).repeated_long_turns == 2


def test_an_empty_corpus_is_refused() -> None:
    """Nothing to measure is no figure."""
    with pytest.raises(QualityError, match="no word"):
        text_figures([[""], []])


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 8))
def test_coverage_is_a_share_and_falls_with_length(tokens: list[str], n: int) -> None:
    """A longer n-gram that comes again holds a shorter one that does."""
    assert 0 <= coverage(tokens, n + 1) <= coverage(tokens, n) <= 1


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=30), st.integers(1, 5))
def test_coverage_counts_what_stands_in_a_repeated_sequence(tokens: list[str], n: int) -> None:
    """Against the definition, token by token."""
    grams = [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
    inside = sum(
        any(at - back >= 0 and at - back < len(grams) and grams.count(grams[at - back]) > 1 for back in range(n))
        for at in range(len(tokens))
    )
    assert coverage(tokens, n) == pytest.approx(inside / len(tokens))


def test_titles_end_no_sentence() -> None:
    """Doctors keep their names."""
    assert sentences("I see Dr. Moss now. Good! Is it? yes") == ["I see Dr. Moss now.", "Good!", "Is it?", "yes"]
    assert words("It's 7:30, Zoe") == ["it's", "7", "30", "zoe"]


@pytest.mark.skipif(not DEFINITION.exists(), reason=f"{DEFINITION} is not there")
def test_figures_are_those_of_the_shared_definition(small_world: Path, world: World, tmp_path: Path) -> None:
    """Both run on the same world and print the same digits; and on a text that is nothing but templates."""
    bound = tmp_path / "bound"
    bound.mkdir()
    sessions = templates(300, 3)
    rows = [json.dumps({"turns": [{"text": text} for text in session]}) for session in sessions]
    (bound / "corpus_sessions.jsonl").write_text("\n".join(rows), encoding="utf-8")
    for folder, texts in ((small_world, world.texts()), (bound, sessions)):
        shared = _printed([str(folder)])
        ours = text_figures(texts)
        assert shared["masked 8-gram coverage"] == f"{ours.masked_8gram:.3f}"
        assert shared["6-gram coverage"] == f"{ours.plain_6gram:.3f}"
        assert shared["words per turn"] == f"{ours.words_per_turn:.3f}"
        assert shared["turns above 12 words that occur twice"] == f"{ours.repeated_long_turns:,}"


def _printed(arguments: Sequence[str]) -> dict[str, str]:
    result = subprocess.run([sys.executable, str(DEFINITION), *arguments], capture_output=True, text=True, check=True)
    lines = [line.rsplit(maxsplit=1) for line in result.stdout.splitlines() if line.startswith("  ")]
    return {name.strip(): figure for name, figure in lines}


def test_nobody_is_met_asleep_or_behind_closed_doors(world: World) -> None:
    """The world as it is made keeps its hours."""
    assert asleep(world) == 0
    assert outside_hours(world) == 0


def test_a_session_at_night_is_found(world: World) -> None:
    """Moved to four in the morning, every session meets a sleeper, and those at places closed doors."""
    night = tuple(
        session.model_copy(update={"start_time": session.day + 4 / 24, "end_time": session.day + 4.1 / 24})
        for session in world.sessions
    )
    moved = replace(world, sessions=night)
    assert asleep(moved) == len(night)
    public = [session for session in night if (session.location_id or "").startswith("third")]
    outside = outside_hours(moved)
    assert outside is not None
    assert outside >= len(public) > 0
