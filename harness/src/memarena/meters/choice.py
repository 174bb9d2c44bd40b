"""Expands the words by which a user chooses meters, such as ``auto`` or ``nvml,procfs``, to specifications."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.meters.readings import MeterError
from memarena.meters.sources import KINDS

AUTO = ("nvml", "hwmon", "procfs")
"""The meters of ``auto``; on a machine that lacks a device its channels are unavailable."""
NONE = ("none",)
"""The choice to measure nothing."""


def chosen_meters(words: Sequence[str]) -> tuple[str, ...]:
    """Return the specifications (``sources.open_source``) of the chosen meters.

    ``auto`` means :data:`AUTO` and ``none`` no meter; ``none`` must be the only word. Raises
    :class:`~memarena.meters.readings.MeterError` for a word that is not a meter, or is repeated.
    """
    if not words:
        raise MeterError("no meter is named; say none if nothing is to be measured")
    specs = [spec for word in words for spec in (AUTO if word == "auto" else (word,))]
    for spec in specs:
        kind = spec.partition(":")[0]
        if kind not in KINDS:
            raise MeterError(f"{spec}: no such meter; expected auto or some of {', '.join(KINDS)}")
        if specs.count(spec) > 1:
            raise MeterError(f"{spec}: the meter is named twice" + (" (auto holds it)" if "auto" in words else ""))
    if "none" in specs and len(specs) > 1:
        raise MeterError("none: goes with no other meter")
    return tuple(specs)
