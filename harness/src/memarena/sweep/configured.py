"""Converts a run's configuration to the file of a sweep: a run for each memory, reader and seed, instead of one.

So a named configuration, such as the paper's main grid, can be run on several machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memarena.execution.planning.config import RunConfig
from memarena.sweep.plan import OF_THE_SWEEP, SweepFile

_LISTS = ("diagnostic", "access_markers", "whole_corpus")
"""Fields of a run that list memories."""
_OF_MEMORIES = (*_LISTS, "options", "settings", "prompt_styles")
"""Fields of a run that are lists of memories or tables by memory: in a sweep's file each memory has its own."""


def sweep_of(config: RunConfig, title: str, *, timed: bool = False) -> SweepFile:
    """Return the sweep over a configuration's memories, readers and seeds on its data set."""
    run = config.model_dump(mode="json", exclude_defaults=True)
    return SweepFile.model_validate(
        {
            "title": title,
            "worlds": [{"dataset": str(config.dataset.absolute())}],
            "memories": [memory_entry(name, backend, run) for name, backend in named_backends(run)],
            "readers": run["readers"],
            "seeds": config.seeds,
            "timed": timed,
            "run": {name: value for name, value in run_fields(run).items() if name not in OF_THE_SWEEP},
        }
    )


def named_backends(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, backend) of each memory of a run."""
    parts = (text.rpartition("=") for text in run["backends"])
    return [(name or backend, backend) for name, _, backend in parts]


def memory_entry(name: str, backend: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of one memory in a sweep's file, with the fields of the run that concern it alone."""
    memory_fields: dict[str, Any] = {part: [name] for part in _LISTS if name in run.get(part, ())}
    if name in (styles := run.get("prompt_styles", {})):
        memory_fields["prompt_style"] = styles[name]
    entry = {
        "name": name,
        "backend": backend if backend != name else None,
        "options": run.get("options", {}).get(name),
        "settings": run.get("settings", {}).get(name),
        "run": memory_fields or None,
    }
    return {field: value for field, value in entry.items() if value is not None}


def run_fields(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a run that hold for every cell of a sweep."""
    elsewhere = ("dataset", "backends", "readers", "seeds", *_OF_MEMORIES)
    return {name: value for name, value in run.items() if name not in elsewhere}
