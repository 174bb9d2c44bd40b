"""Tests random streams: each depends on its key alone, and is the same everywhere.

The same seed must give the same world on every machine; a stream that depended on anything but its key would break
that.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from memarena_masim.rng import Stream


def test_first_draws_of_a_known_key_never_change() -> None:
    """A data set is the same bytes on any machine only if these are."""
    stream = Stream("masim", 42, "speech")
    assert [stream.below(1000) for _ in range(6)] == [982, 535, 164, 104, 617, 552]


@given(st.text(), st.integers(), st.integers(0, 700))
def test_a_draw_depends_on_key_and_place_only(name: str, number: int, skipped: int) -> None:
    """Another stream drawn in between changes nothing, across block borders too."""
    first_stream, second_stream = Stream(name, number), Stream(name, number)
    noise = Stream(name, number, "noise")
    for _ in range(skipped):
        first_stream.word()
        second_stream.word()
        noise.word()
    assert first_stream.word() == second_stream.word()


@given(st.text(), st.integers())
def test_text_and_number_are_different_keys(name: str, number: int) -> None:
    """``("1",)`` and ``(1,)`` do not share a stream."""
    assert Stream(name, number).word() != Stream(name, str(number)).word()


@given(st.integers(1, 50), st.integers(0, 60), st.integers())
def test_sample_has_no_repeats_and_only_members(size: int, sample_size: int, seed: int) -> None:
    """A sample is a subset of the stated size."""
    sample = Stream(seed).sample(range(size), sample_size)
    assert len(sample) == min(size, sample_size) == len(set(sample))
    assert set(sample) <= set(range(size))


@given(st.lists(st.integers(), max_size=40), st.integers())
def test_shuffle_keeps_every_item(items: list[int], seed: int) -> None:
    """A shuffle is a permutation."""
    assert Counter(Stream(seed).shuffled(items)) == Counter(items)


def test_weights_are_followed() -> None:
    """Three to one stays three to one."""
    stream = Stream("weights")
    counts = Counter(stream.weighted("ab", (3.0, 1.0)) for _ in range(8000))
    assert 0.72 < counts["a"] / 8000 < 0.78
