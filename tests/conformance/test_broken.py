"""Tests that each broken backend fails its checks of defects.toml and no other of those run; sound backends pass.

A defect is held to its own checks and a third of the others (``SHARE``), since all of them take three times as long.

It holds the conformance suite to both sides: a defect that passes stays hidden in a vendor's backend, and a check that
fails for another reason blames a vendor falsely.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from memarena.conformance import Patience, Settings, SuiteResult, all_checks, run_suite

from tests.conformance.broken import BROKEN
from tests.conformance.broken_retrieval import RankedMemory
from tests.conformance.sound import Parts, Served
from tests.conformance.test_lives import SEED, SMALL

TABLE: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "defects.toml").read_text(encoding="utf-8"))
IN_PROCESS = [name for name, row in TABLE.items() if not row.get("process")]

LONG = {"gen.deadline", "ing.cancelled", "lim.response"}
"""Checks of more than half a second."""
COSTLY = {"dig.every-field", "gen.concurrent", "lim.frame", "txt.times"}
"""Checks of hundreds of calls or megabytes, which together take a quarter of a run's time on the processor."""
CHOSEN = LONG | COSTLY | {check.check_id for check in all_checks() if check.chapter == "life"}
"""Run for the sound backends, and for those whose row names them."""
SHARE = 3
"""A defect meets one of so many other checks, by both names: each check meets at least 34 defects of others."""


def checks_for(name: str, row: dict[str, Any]) -> list[str]:
    """Return the checks to run for a defect: those of its row, and a share of the others or all."""
    own = {*row["fails"], *row.get("may_fail", ())}

    def is_drawn(check_id: str) -> bool:
        return row.get("every_check", False) or crc32(f"{name} {check_id}".encode()) % SHARE == 0

    ids = [check.check_id for check in all_checks()]
    return [each for each in ids if each in own or (each not in CHOSEN and is_drawn(each))]


def hold_to_spec(parts: Parts, data_dir: Path, row: dict[str, Any], only: Sequence[str] = ()) -> SuiteResult:
    """Run the suite with short waits, as for a local and fast backend."""
    served = Served(parts, data_dir)
    patience = Patience(
        retry_s=row.get("retry_s", 0.1),
        linger_s=0.2,
        hold_s=row.get("hold_s", 5.0),
        deadline_s=row.get("deadline_s", 0.2),
        notice_s=row.get("notice_s", 0.3),
    )
    try:
        settings = Settings(
            timeout_s=row.get("timeout_s", 20.0),
            start_s=0.5,
            patience=patience,
            life_size=replace(SMALL, **row.get("life", {})),
            seed=SEED,
        )
        return run_suite(served.address, only=only, settings=settings)
    finally:
        served.stop()


def test_the_table_and_the_broken_backends_are_the_same() -> None:
    assert set(IN_PROCESS) == set(BROKEN)
    assert len(TABLE) >= 75


def test_the_table_names_checks_that_exist() -> None:
    known = {check.check_id for check in all_checks()}
    assert {name for row in TABLE.values() for name in row["fails"]} <= known


def test_a_sound_backend_passes_every_check_that_applies(tmp_path: Path) -> None:
    result = hold_to_spec(Parts(), tmp_path, {})
    assert [(each.check.check_id, each.message) for each in result.results if each.status == "failed"] == []
    assert result.passed
    assert result.ids("advice") == []
    assert result.ids("skipped") == [
        "dsc.kept-facts",
        "ans.undeclared",
        "fgt.undeclared",
        "evd.diagnostic",
        "lim.day-bytes",
        "hlt.restart",
        "sec.token",
        "sec.log",
    ]


def test_a_sound_backend_that_ranks_passes(tmp_path: Path) -> None:
    result = hold_to_spec(Parts(memory=RankedMemory), tmp_path, {})
    assert [(each.check.check_id, each.message) for each in result.results if each.status in ("failed", "advice")] == []


@pytest.mark.parametrize("name", IN_PROCESS)
def test_a_defect_fails_exactly_the_checks_of_the_table(name: str, tmp_path: Path) -> None:
    result = hold_to_spec(BROKEN[name], tmp_path, TABLE[name], checks_for(name, TABLE[name]))
    assert not result.passed
    failures = {each.check.check_id: each.message for each in result.results if each.status == "failed"}
    # A race may show in one check or in two.
    assert sorted(set(failures) - set(TABLE[name].get("may_fail", ()))) == sorted(TABLE[name]["fails"]), failures


def test_every_check_with_a_control_fails_for_a_backend_that_finds_nothing() -> None:
    """A check that something is not visible needs a control; a new one belongs to the row ``empty-search`` too."""
    negative = {
        "lim.ids",
        "ing.cancelled",
        "ing.no-trailer",
        "ing.digest-checked",
        "ing.conflict",
    }
    assert negative <= set(TABLE["empty-search"]["fails"])
