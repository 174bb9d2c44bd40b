"""Checks the field ``metadata.wording``, which states how a question names its subject."""

from __future__ import annotations

from collections.abc import Iterator

from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World
from memarena_dataset.model import WORDINGS


def unknown_wording(world: World) -> Iterator[Finding]:
    """Yield questions with an unknown wording, or without one if other questions of the data set have one."""
    if not any("wording" in instance.metadata for instance in world.by_ego):
        return
    expected = f"one of {', '.join(WORDINGS)} is expected"
    for instance in world.by_ego:
        wording = instance.metadata.get("wording")
        if wording not in WORDINGS:
            reason = (
                f"missing, while other questions have it; {expected}" if wording is None else f"{wording!r}; {expected}"
            )
            yield world.at(instance, "unknown-wording", "metadata.wording", reason)
