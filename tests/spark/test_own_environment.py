"""Tests that certification installs nothing: a backend without its environment is refused before all else."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena_spark.errors import SparkError
from memarena_spark.running import run_certification

from .nodes import FakeNode, spark_plan


def test_a_backend_without_its_environment_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMARENA_ENVIRONMENTS", str(tmp_path / "environments"))
    (tmp_path / "requirements.txt").touch()
    manifest = tmp_path / "backend.toml"
    manifest.write_text(
        'schema = 1\n[environment]\nrequirements = "requirements.txt"\n'
        '[[backend]]\nname = "apart"\nkind = "competitor"\ncommand = ["{python}"]\n'
    )
    loaded = spark_plan()
    run = loaded.plan.run.model_copy(update={"backends": (str(manifest),)})
    loaded = loaded.model_copy(update={"plan": loaded.plan.model_copy(update={"run": run})})
    messages: list[str] = []
    with pytest.raises(SparkError, match="cannot be started: not installed: run memarena backends install apart"):
        run_certification(FakeNode(), loaded, tmp_path / "out", messages.append)
    assert messages == []
    assert not (tmp_path / "out").exists()
