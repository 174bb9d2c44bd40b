"""Tests the backend with the double on what a SIGKILL can break; the full suite is run by ``make conformance``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from memarena.conformance import run_suite
from memarena.conformance.suite import restart_by

from tests.conformance.support import restartable
from tests.memobase.conftest import Stack


@pytest.mark.parametrize("variant", ["memobase", "memobase_oracle"])
def test_it_keeps_the_contract_over_sigkill(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    for name, value in stack.environment.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "memarena_backend_memobase", "--variant", variant]
    (tmp_path / "backend").mkdir()
    with restartable(command, tmp_path / "backend") as backend:
        restart = restart_by(backend.restart_command)
        result = run_suite(backend.address, restart=restart, only=("hlt", "ing.cancelled", "ing.ready", "mod"))
    assert result.passed, [each for each in result.results if each.status == "failed"]
    assert "hlt.restart" in result.ids("passed")
