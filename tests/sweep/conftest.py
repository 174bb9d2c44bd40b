"""What tests of sweeps share: the run that they are compared with."""

from __future__ import annotations

import pytest

from tests.e2e.harnessing import EXAMPLE, memarena

from .sweeping import MEMORIES, Settled, of_run


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Settled:
    """A run of both memories that nothing disturbs."""
    out = tmp_path_factory.mktemp("plain") / "run"
    done = memarena(
        *("run", "--dataset", EXAMPLE, "--backend", ",".join(MEMORIES), "--reader", "extractive", "--limit", "6"),
        *("--floor-samples", "0", "--meter", "none", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    return of_run(out)
