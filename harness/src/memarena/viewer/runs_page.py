"""The page of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from memarena.viewer.cache_file import BestRow
from memarena.viewer.found_runs import RunHead
from memarena.viewer.templating import render

MOST_TOGETHER = 8
"""Runs that a link of the page of runs puts into one grid."""


def runs_page(
    heads: Sequence[RunHead],
    faults: Mapping[Path, str] | None = None,
    best: Mapping[Path, BestRow | None] | None = None,
    *,
    static: bool = False,
) -> str:
    """All runs, those that can be compared beside each other.

    Args:
        heads: the runs.
        faults: by folder, why a log gave no scores when it was read whole.
        best: by folder, the memory that comes first, as far as the run was read.
        static: for a file.
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
    """Address of a grid with all runs of a group; empty where there are not two."""
    first, *rest = [head.run.key for head in group if head.manifest is not None][:MOST_TOGETHER] or [""]
    return f"/run/{first}?{urlencode([('with', key) for key in rest])}" if rest else ""
