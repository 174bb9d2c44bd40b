"""Joins the facts of several runs over one data set into those of one run, for sweeps, whose cells have a log each.

Scores of the joined run have every cell in one table, with the same draws of egos, so that cells can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from memarena.log.manifest import Manifest, ReaderRef
from memarena.scoring.errors import ScoringError
from memarena.scoring.run_facts import RunFacts

K = TypeVar("K")
V = TypeVar("V")


def join_facts(parts: Sequence[RunFacts], run_id: str) -> RunFacts:
    """Return one run with the cells of all ``parts``, which are not changed.

    Times of different runs count as different segments, so that a sample never mixes them. ``run_id`` names the joined
    run.

    Raises :class:`ScoringError` if the parts are over different data sets, protocols, questions or prompts, or two
    cells have the same name.
    """
    first = parts[0]
    for part in parts[1:]:
        _check_alike(first, part)
    cells = tuple(cell for part in parts for cell in part.manifest.cells)
    names = [cell.cell_id for cell in cells]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ScoringError(f"{twice}: two cells over {first.manifest.dataset.name} go by this name")
    manifest = first.manifest.model_copy(
        update={
            "cells": cells,
            "readers": _readers(parts),
            "helpers": {role: ref for part in parts for role, ref in part.manifest.helpers.items()},
        }
    )
    started = first.started.model_copy(
        update={
            "run_id": run_id,
            "manifest": manifest,
            "started_at": min(part.started.started_at for part in parts),
        }
    )
    joined = RunFacts(started, questions=first.questions, evidence=first.evidence)
    joined.segments = 0  # each part adds its own
    for part in parts:
        _take(joined, part)
    reasons = [part.ended.reason if part.ended else None for part in parts]
    worst = next((part.ended for part, reason in zip(parts, reasons, strict=True) if reason != "completed"), None)
    joined.ended = parts[-1].ended if all(reason == "completed" for reason in reasons) else worst
    return joined


def _take(joined: RunFacts, part: RunFacts) -> None:
    """Add the facts of one run to those joined so far; its segments are numbered after theirs."""
    shift = joined.segments
    joined.segments += part.segments
    for key, attempts in part.attempts.items():
        joined.attempts[key] = [replace(attempt, segment=attempt.segment + shift) for attempt in attempts]
    joined.verdicts += part.verdicts
    joined.buckets += part.buckets
    joined.judging_failures += part.judging_failures
    joined.floor_search_ns += part.floor_search_ns
    joined.floor_hop_ns += part.floor_hop_ns
    joined.floor_added_ns += part.floor_added_ns
    joined.phases += part.phases
    joined.problems += part.problems
    joined.described |= part.described
    joined.not_isolated |= part.not_isolated
    joined.calls |= part.calls
    joined.after_return |= part.after_return
    joined.budget_refusals |= part.budget_refusals
    joined.ingests |= part.ingests
    joined.footprints |= part.footprints
    joined.deletions |= part.deletions


def _d6_rules(manifest: Manifest) -> set[str]:
    return {cell.reading.d6_rules for cell in manifest.cells}


def _check_alike(first: RunFacts, part: RunFacts) -> None:
    ours, theirs = first.manifest, part.manifest
    if first.questions.keys() != part.questions.keys():
        raise ScoringError(f"{_cell_names(ours)} and {_cell_names(theirs)}: their questions differ")
    for subject, a, b in (
        ("data sets", ours.dataset.sha256, theirs.dataset.sha256),
        ("protocols", ours.protocol, theirs.protocol),
        ("rules of D6 in the reader's prompt", _d6_rules(ours), _d6_rules(theirs)),
        ("files that decide scores", ours.data_files_sha256, theirs.data_files_sha256),
        ("versions of memarena", ours.versions.memarena, theirs.versions.memarena),
    ):
        if a != b:
            raise ScoringError(f"{_cell_names(ours)} and {_cell_names(theirs)}: their {subject} differ")


def _cell_names(manifest: Manifest) -> str:
    return ", ".join(cell.cell_id for cell in manifest.cells)


def _readers(parts: Iterable[RunFacts]) -> tuple[ReaderRef, ...]:
    by_name = {reader.name: reader for part in parts for reader in part.manifest.readers}
    return tuple(by_name.values())
