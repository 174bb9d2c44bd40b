"""What a run finds out before it makes a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.config import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.store import log_path

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_a_backend_that_cannot_be_started_is_found_before_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMOBASE_URL", raising=False)
    monkeypatch.setenv("MEMOBASE_TOKEN", "token")
    values = {
        "dataset": EXAMPLE,
        "backends": ["bm25", "memobase"],
        "readers": [{"spec": "extractive"}],
        "floor_samples": 0,
        "meters": ["none"],
    }
    with pytest.raises(RunError, match="--backend memobase: cannot be started: MEMOBASE_URL must be set"):
        execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))
    assert not log_path(tmp_path / "run").exists()
