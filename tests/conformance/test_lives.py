"""Tests that a life (many days) makes each breach fail its check, and that sound backends pass.

A *breach* is a backend that breaks one clause of the contract in a way that single days do not show. The conformance
suite sends a life to detect such a backend; without this test a change of the life could lose what makes one visible.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from memarena.conformance import LifeSize, Patience, Settings, SuiteResult, run_suite

from tests.conformance.broken_kinds import BREACHES as OF_KINDS
from tests.conformance.broken_kinds import ReportsWhatItCuts
from tests.conformance.broken_lives import BREACHES as OF_LIVES
from tests.conformance.broken_retrieval import RankedMemory
from tests.conformance.sound import Parts, Served

SMALL = LifeSize(days=24, long_turns=110, many=6, per_group=1, text_bytes=2_000)
SEED = 8
"""Fixed, since with some seeds a life as small as SMALL has nothing that shows a certain breach."""
BREACHES = OF_LIVES | OF_KINDS
NEEDS = {
    # Breaches that only a longer life shows: more text, events or turns than SMALL has.
    "text above 64 KiB": replace(SMALL, text_bytes=70_000),
    "long texts cut by a restart": replace(SMALL, text_bytes=70_000),
    "a thousand words": replace(SMALL, text_bytes=14_000),
    "more than 50 events": replace(SMALL, many=56),
    "later frames": replace(SMALL, long_turns=400),
    "the end of very many turns": replace(SMALL, long_turns=400),
}
CHECKS = ("life", "ans.unaltered", "ans.sampling", "ans.streams", "evd.competitor", "idn.scores")


TRIES = {"days cut off return": 8}
"""How often a defect is tried that not every run meets: gRPC may report a cancelled stream to a server as ended."""


def lived(parts: Parts, folder: Path, *only: str, size: LifeSize = SMALL) -> SuiteResult:
    """Run checks with a small life and a restart."""
    log = folder / "log"
    log.write_text("listening\n", encoding="utf-8")
    patience = Patience(retry_s=0.2, hold_s=0.5)
    settings = Settings(timeout_s=10.0, start_s=0.5, patience=patience, log=log, life_size=size, seed=SEED)
    served = Served(parts, folder)
    try:
        return run_suite(served.address, only=only, restart=served.restart, settings=settings)
    finally:
        served.stop()


@pytest.mark.parametrize("memory", [None, RankedMemory])
def test_a_sound_backend_passes(memory: type[RankedMemory] | None, tmp_path: Path) -> None:
    parts = Parts() if memory is None else Parts(memory=memory)
    result = lived(parts, tmp_path, *CHECKS, "sec.log")
    assert [(each.check.check_id, each.message) for each in result.results if each.status != "passed"] == []


def test_a_memory_may_index_the_beginning_of_a_text_if_it_reports_so(tmp_path: Path) -> None:
    result = lived(Parts(memory=ReportsWhatItCuts), tmp_path, "life.ingested", size=NEEDS["a thousand words"])
    assert [(each.status, each.message) for each in result.results if each.check.chapter == "life"] == [("passed", "")]


@pytest.mark.parametrize("kind", BREACHES)
def test_a_breach_fails_its_check_by_name(kind: str, tmp_path: Path) -> None:
    breach = BREACHES[kind]
    more = {"sec.log": "ans.streams", "hlt.after-errors": "life.ingested"}.get(breach.check, breach.check)
    for tries_left in reversed(range(TRIES.get(kind, 1))):
        folder = tmp_path / str(tries_left)
        folder.mkdir()
        result = lived(breach.parts, folder, more, breach.check, size=NEEDS.get(kind, SMALL))
        ingested = {each.check.check_id: each.message for each in result.results if each.status == "failed"}
        if ingested:
            break
    assert breach.says in ingested.get(breach.check, ""), ingested
