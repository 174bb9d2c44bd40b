"""Builds the social graph: nested Watts–Strogatz layers with the sizes of Dunbar's circles.

The layers, from 0, are close friends, friends and acquaintances. They decide who meets whom how often, who can be named
in a wish, and which relation a question states.
"""

from __future__ import annotations

from memarena_masim.rng import Stream
from memarena_masim.world.model import Edge

LAYERS = ((5, 4, 0.30), (15, 4, 0.15), (50, 6, 0.08))
"""For each layer: size of its rings, neighbours of each member, share of rewired edges."""
ALPHA = 0.33
"""Ratio of the weights of a layer and of the next closer layer."""
LAYER_WEIGHTS = (1.0, ALPHA, round(ALPHA**2, 3))
"""Mean weight of an edge, by layer: a person's partner in a meeting is drawn by weight."""
FLOOR = 0.02
"""Weight of a pair that is in no layer."""


def build_graph(ids: tuple[str, ...], stream: Stream) -> dict[tuple[str, str], Edge]:
    """Return an edge for every pair; a pair that is joined in several layers gets the closest."""
    order = stream.shuffled(ids)
    layer_of: dict[tuple[str, str], int] = {}
    for layer, (full, neighbours, rewiring) in enumerate(LAYERS):
        size = min(full, len(order))
        for start in range(0, len(order), size):
            ring = order[start : start + size]
            if len(ring) < size and start:
                ring = order[-size:]
            for pair in watts_strogatz(ring, neighbours, rewiring, stream):
                layer_of.setdefault(pair, layer)
    edges: dict[tuple[str, str], Edge] = {}
    ordered = sorted(ids)
    for index, agent in enumerate(ordered):
        for other in ordered[index + 1 :]:
            layer = layer_of.get((agent, other), -1)
            base = LAYER_WEIGHTS[layer] if layer >= 0 else FLOOR
            edges[agent, other] = Edge(agent, other, round(base * (0.8 + 0.4 * stream.unit()), 4), layer)
    return edges


def watts_strogatz(ring: list[str], neighbours: int, rewiring: float, stream: Stream) -> list[tuple[str, str]]:
    """Return the edges of a ring in which each member knows its ``neighbours`` nearest, some rewired at random."""
    count = len(ring)
    reach = min(neighbours // 2, (count - 1) // 2) or (1 if count > 1 else 0)
    edges: dict[tuple[str, str], None] = {}
    for index in range(count):
        for step in range(1, reach + 1):
            other = (index + step) % count
            if stream.chance(rewiring) and count > 2 * reach + 1:
                strangers = [n for n in range(count) if n != index and _pair(ring[index], ring[n]) not in edges]
                other = stream.pick(strangers) if strangers else other  # a member who knows all keeps the neighbour
            if other != index:
                edges.setdefault(_pair(ring[index], ring[other]), None)
    return list(edges)


def _pair(left: str, right: str) -> tuple[str, str]:
    return (left, right) if left < right else (right, left)
