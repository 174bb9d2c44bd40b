"""Reads the social graph from a data set, and draws it as SVG or HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt

from memarena_masim.world.graph import LAYER_WEIGHTS

LAYER_NAMES = ("close friends", "friends", "acquaintances")
_SIZE, _MARGIN = 960, 70
_ROUNDS = 300
"""Maximum number of steps in which the drawing moves its people."""
_PULL = (1.0, 0.35, 0.12)
"""Force by which a layer's edges pull people together in the drawing."""
_LOOK = (("#1b3a4b", 2.4, 0.9), ("#4f86a3", 1.2, 0.6), ("#a9c4d0", 0.6, 0.45))
"""Colour, width and opacity of a layer's edges."""
_NODE = "#d97b29"


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """A pair with its weight and layer (0 closest, -1 none)."""

    one: str
    other: str
    weight: float
    layer: int


@dataclass(frozen=True)
class SocialGraph:
    """The people and pairs of a world."""

    people: tuple[str, ...]
    edges: tuple[DrawnEdge, ...]

    @classmethod
    def of(cls, people: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> SocialGraph:
        """Build from the rows of ``graph_edges.jsonl``. A pair's layer is the one with the nearest weight."""
        edges = tuple(
            DrawnEdge(str(row["source"]), str(row["target"]), float(row["weight"]), _layer(float(row["weight"])))
            for row in rows
        )
        return cls(tuple(sorted(people)), edges)

    def layer(self, person: str, other: str) -> int:
        """Return the layer of a pair; -1 for none."""
        return self._layers.get((min(person, other), max(person, other)), -1)

    @cached_property
    def _layers(self) -> dict[tuple[str, str], int]:
        return {(min(edge.one, edge.other), max(edge.one, edge.other)): edge.layer for edge in self.edges}

    def near(self, person: str, layer: int) -> list[tuple[float, str]]:
        """Return (weight, id) of a person's people in a layer, the closest first."""
        pairs = [
            (edge.weight, edge.other if edge.one == person else edge.one)
            for edge in self.edges
            if edge.layer == layer and person in (edge.one, edge.other)
        ]
        return sorted(pairs, key=lambda pair: (-pair[0], pair[1]))


def _layer(weight: float) -> int:
    """Return the layer of a weight: the nearest by ratio, since weights are within a fifth of their layer's."""
    nearest = min(range(len(LAYER_WEIGHTS)), key=lambda layer: abs(math.log(weight / LAYER_WEIGHTS[layer])))
    return nearest if 0.75 <= weight / LAYER_WEIGHTS[nearest] <= 1.25 else -1


def svg_of(graph: SocialGraph, names: Mapping[str, str], title: str) -> str:
    """Return the graph as an SVG image: close people near each other, edges by layer, the far layers below."""
    places = dict(zip(graph.people, layout(graph).tolist(), strict=True))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="#fff"/>',
        f'<text x="20" y="32" font-size="18" fill="#222">{escape(title)}</text>',
    ]
    for layer in reversed(range(len(LAYER_NAMES))):
        colour, width, opacity = _LOOK[layer]
        parts.append(f'<g stroke="{colour}" opacity="{opacity}">')
        for edge in graph.edges:
            if edge.layer == layer:
                (x1, y1), (x2, y2) = places[edge.one], places[edge.other]
                thick = width * edge.weight / LAYER_WEIGHTS[layer]
                parts.append(
                    f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke-width="{thick:.2f}">'
                    f"<title>{escape(names[edge.one])} – {escape(names[edge.other])}: {edge.weight:.2f}</title></line>"
                )
        parts.append("</g>")
    size = max(7, min(13, round(420 / max(1, len(graph.people)) + 6)))
    for person in graph.people:
        x, y = places[person]
        close = len(graph.near(person, 0))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 + 0.6 * close:.1f}" fill="{_NODE}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{y - 9:.1f}" font-size="{size}" text-anchor="middle" fill="#111" stroke="#fff" '
            f'stroke-width="3" paint-order="stroke">{escape(names[person])}</text>'
        )
    for layer, name in enumerate(LAYER_NAMES):
        colour, width, _ = _LOOK[layer]
        y = _SIZE - 60 + 18 * layer
        parts.append(f'<line x1="20" y1="{y}" x2="50" y2="{y}" stroke="{colour}" stroke-width="{width}"/>')
        parts.append(f'<text x="58" y="{y + 4}" font-size="12" fill="#222">{name}</text>')
    return "\n".join((*parts, "</svg>\n"))


def layout(graph: SocialGraph) -> npt.NDArray[np.float64]:
    """Compute positions of the people (n × 2, in pixels) by forces: all repel each other, edges pull by layer.

    The method of Fruchterman and Reingold (1991), started on a circle, so that the same graph always looks the same.
    """
    count = len(graph.people)
    index = {person: index for index, person in enumerate(graph.people)}
    angle = 2 * np.pi * np.arange(count) / max(1, count)
    places = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    pull = np.zeros((count, count))
    for edge in graph.edges:
        if edge.layer >= 0:
            left, right = index[edge.one], index[edge.other]
            pull[left, right] = pull[right, left] = _PULL[edge.layer]
    ideal = 1.6 / math.sqrt(max(1, count))
    for step in range(min(_ROUNDS, 2_000_000 // max(1, count * count) + 30)):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        force = ideal**2 / distance - pull * distance**2 / ideal
        np.fill_diagonal(force, 0.0)
        move = (apart / distance[:, :, None] * force[:, :, None]).sum(axis=1) - 0.05 * places
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        places = places + move / length * np.minimum(length, 0.12 * (1 - step / _ROUNDS))
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: npt.NDArray[np.float64] = (places - low) / np.maximum(high - low, 1e-9)
    return _MARGIN + scaled * (_SIZE - 2 * _MARGIN)


def html_of(graph: SocialGraph, names: Mapping[str, str], title: str, lines: Sequence[str]) -> str:
    """Return a page with the drawing and the same as text."""
    drawing, words = svg_of(graph, names, title), escape("\n".join(lines))
    style = "body{margin:2rem auto;max-width:60rem;font-family:sans-serif}pre{overflow:auto;font-size:.8rem}"
    head = (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>'
    )
    return f"{head}\n{drawing}<pre>{words}</pre></html>\n"
