"""Fixtures of the tests of sweeps: the plain run that a sweep's results are compared with."""

from __future__ import annotations

import pytest

from tests.e2e.harnessing import EXAMPLE, memarena

from .sweeping import MEMORIES, Settled, of_run


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Settled:
    """Results of an undisturbed run of both memories."""
    out = tmp_path_factory.mktemp("plain") / "run"
    result = memarena(
        *("run", "--dataset", EXAMPLE, "--backend", ",".join(MEMORIES), "--reader", "extractive", "--limit", "6"),
        *("--floor-samples", "0", "--meter", "none", "--out", out),
    )
    assert result.returncode == 0, result.stderr
    return of_run(out)
