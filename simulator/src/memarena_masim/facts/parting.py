"""Divides a catalogue for a world: facts that questions may be about, and facts that are only mentioned in passing.

If every stated fact could be asked about, a memory could keep all that sounds like a fact and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from memarena_masim.facts.catalogue import Attribute, Catalogue, base
from memarena_masim.facts.values import ValueKind
from memarena_masim.rng import Stream

MENTIONED_SHARE = 0.35
"""Share of the items, happenings and finds of a world that no question is about."""

_FEWEST_VALUES = 10
"""Minimum length of a list of values that is divided."""

T = TypeVar("T")


def parted(catalogue: Catalogue, key: str) -> tuple[Catalogue, Catalogue]:
    """Return two catalogues: of things that questions may be about, and of things that are only mentioned.

    No item, happening, find or source is in both, nor a name, place or term as a value. The division is drawn for each
    world (``key``), so that no word tells to which of the two it belongs. Homes, jobs, groups and ties are not divided.
    """
    stream = Stream(key, "parting")
    asked: dict[str, Attribute] = {}
    mentioned: dict[str, Attribute] = {}
    for name, attribute in catalogue.attributes.items():
        kinds = _kinds(stream, attribute.kind)
        asked[name], mentioned[name] = (
            replace(attribute, items=items, kind=kind)
            for items, kind in zip(_cut(stream, attribute.items), kinds, strict=True)
        )
    happenings: tuple[list[str], list[str]] = ([], [])
    for mood in dict.fromkeys(catalogue.moods.values()):
        of_mood = [happening for happening in catalogue.happenings if catalogue.moods[base(happening)] == mood]
        for part, some in zip(happenings, _cut(stream, of_mood), strict=True):
            part.extend(some)
    finds, sources = _cut(stream, catalogue.finds), _cut(stream, catalogue.sources)
    return (
        replace(catalogue, attributes=asked, happenings=tuple(happenings[0]), finds=finds[0], sources=sources[0]),
        replace(catalogue, attributes=mentioned, happenings=tuple(happenings[1]), finds=finds[1], sources=sources[1]),
    )


def _kinds(stream: Stream, kind: ValueKind) -> tuple[ValueKind, ValueKind]:
    """Return the values of each part; amounts, times, days and short lists are not divided."""
    if kind.type not in ("name", "place", "term") or len(kind.choices) < _FEWEST_VALUES:
        return kind, kind
    asked, mentioned = _cut(stream, kind.choices)
    return replace(kind, choices=asked), replace(kind, choices=mentioned)


def _cut(stream: Stream, ones: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Divide ``ones`` at random into two parts, each in its original order; the second has MENTIONED_SHARE."""
    chosen = set(stream.sample(range(len(ones)), max(1, round(MENTIONED_SHARE * len(ones)))))
    return (
        tuple(item for index, item in enumerate(ones) if index not in chosen),
        tuple(item for index, item in enumerate(ones) if index in chosen),
    )
