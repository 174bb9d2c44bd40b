"""Tests that the facts of several runs are joined whole: a fact that is left out changes the scores of a sweep."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from memarena.log.store import read_records
from memarena.scoring.joining import join_facts
from memarena.scoring.run_facts import RunFacts, gather

from ..support import golden_run

FILLED: dict[type, Any] = {list: ["a row"], dict: {"a cell": "a row"}, set: {"a cell"}}
"""A value for every collection, so that none is equal to its default. What is in it does not matter here."""


def test_one_run_joined_is_that_run(tmp_path: Path) -> None:
    facts = gather(read_records(shutil.copytree(golden_run.SMALL_RUN, tmp_path / "run")))
    kept = {"started", "questions", "evidence", "attempts", "ended", "segments"}
    collections = {each.name: type(getattr(facts, each.name)) for each in fields(RunFacts) if each.name not in kept}
    facts = replace(facts, **{name: FILLED[kind] for name, kind in collections.items()})
    joined = join_facts([facts], facts.started.run_id)
    for each in fields(RunFacts):
        assert getattr(joined, each.name) == getattr(facts, each.name), each.name
