"""Tests laws of the social graph over many seeds: every pair has an edge, and layers have their sizes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_masim.rng import Stream
from memarena_masim.world.graph import LAYERS, build_graph, watts_strogatz

seeds = st.integers(0, 10**6)


@given(seeds, st.integers(4, 60))
@settings(max_examples=20, deadline=None)
def test_every_pair_has_one_edge_and_layers_nest(seed: int, count: int) -> None:
    """All pairs, weights above nothing and by layer."""
    ids = tuple(f"a{n:02d}" for n in range(count))
    edges = build_graph(ids, Stream(seed))
    assert len(edges) == count * (count - 1) // 2
    for (first_id, second_id), edge in edges.items():
        assert first_id < second_id
        assert 0 < edge.weight <= 1.2
        assert -1 <= edge.layer < len(LAYERS)


@given(seeds, st.integers(5, 50))
@settings(max_examples=20, deadline=None)
def test_a_ring_without_rewiring_is_regular(seed: int, size: int) -> None:
    """Each member of a ring of neighbours k has k of them."""
    ring = [f"a{n:02d}" for n in range(size)]
    degree = Counter(end for pair in watts_strogatz(ring, 4, 0.0, Stream(seed)) for end in pair)
    assert set(degree.values()) == {4}


@given(seeds, st.integers(3, 8), st.sampled_from([2, 4, 6]))
@settings(max_examples=60, deadline=None)
def test_rewiring_comes_to_an_end_where_everybody_knows_everybody(seed: int, size: int, neighbours: int) -> None:
    """In small rings somebody may be joined to all others before their own turn to be rewired comes."""
    ring = [f"a{n}" for n in range(size)]
    pairs = watts_strogatz(ring, neighbours, 0.9, Stream(seed))
    assert len(set(pairs)) == len(pairs) <= size * (size - 1) // 2


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_layers_have_their_sizes(seed: int) -> None:
    """Rings of 5, 15 and 50 with 4, 4 and 6 neighbours: so many joined pairs; weights fall from layer to layer."""
    edges = build_graph(tuple(f"a{n:02d}" for n in range(50)), Stream(seed)).values()
    pairs = Counter(edge.layer for edge in edges)
    assert pairs[0] == 50 * 4 // 2
    assert 25 <= pairs[1] <= 60 * 4 // 2  # the last ring of 15 overlaps; pairs of layer 0 stay there
    assert pairs[2] <= 50 * 6 // 2
    assert pairs[2] >= 30
    mean = {layer: sum(e.weight for e in edges if e.layer == layer) / pairs[layer] for layer in (0, 1, 2)}
    for layer, weight in enumerate((1.0, 0.33, 0.109)):
        assert mean[layer] == pytest.approx(weight, rel=0.1)
