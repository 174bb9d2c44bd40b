"""Builds the page that lists all runs, grouped by whether they can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from memarena.viewer.cache_file import BestRow
from memarena.viewer.found_runs import RunHead
from memarena.viewer.templating import render

MOST_TOGETHER = 8
"""Number of runs that a link of this page puts into one grid at most."""


def runs_page(
    heads: Sequence[RunHead],
    faults: Mapping[Path, str] | None = None,
    best: Mapping[Path, BestRow | None] | None = None,
    *,
    static: bool = False,
) -> str:
    """Return the page of all runs; runs that can be compared are in one group.

    Args:
        heads: the runs.
        faults: by folder, why the run's log could not be read or scored.
        best: by folder, the best row of the run; None or missing if it was not scored yet.
        static: whether the page is written to a file.
    """
    groups: dict[object, list[RunHead]] = {}
    for head in heads:
        groups.setdefault(head.comparable_with, []).append(head)
    return render(
        "runs",
        static=static,
        groups=[(group, "" if static else _together(group)) for group in groups.values()],
        count=len(heads),
        live=not static and any(head.state == "being written" for head in heads),
        faults=faults or {},
        best=best or {},
    )


def _together(group: Sequence[RunHead]) -> str:
    """Return the address of a grid with the runs of a group; empty if fewer than two have a manifest."""
    first, *others = [head.run.key for head in group if head.manifest is not None][:MOST_TOGETHER] or [""]
    return f"/run/{first}?{urlencode([('with', key) for key in others])}" if others else ""
