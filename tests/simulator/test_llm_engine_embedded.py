"""The LLM engine with a real, very small model: hardly anything that it writes can be used, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from masim.config import WorldConfig
from masim.engines.endpoint import EndpointConfig
from masim.engines.llm import LlmEngine
from masim.output.generate import generate
from memarena.dataset.validate import Profile, validate
from memarena.readers.starting import start_reader

from .test_llm_engine import rows, total, unsaid

CONFIG = WorldConfig(name="test", agents=4, days=2, density=0.02, question_share=1.0, seed=108)
"""Four sessions: a minute or two on two idle cores."""


@pytest.mark.llm
@pytest.mark.timeout(1200)
def test_a_tiny_world_by_the_embedded_model(tmp_path: Path) -> None:
    """Every statement is in its turn, through repair or offline where need be, and the data set is valid."""
    reader = start_reader("embedded", work_dir=tmp_path)
    try:
        config = EndpointConfig(reader.upstream.base_url, reader.upstream.upstream_model, concurrency=1)
        with LlmEngine(config) as engine:
            generate(CONFIG, tmp_path / "w", engine=engine)
    finally:
        reader.stop()
    report: dict[str, Any] = json.loads((tmp_path / "w" / "pipeline_report.json").read_text())["engine"]
    planned = total(report, "planned")
    assert planned == len(rows(tmp_path / "w" / "facts.jsonl")) > 0
    assert planned == total(report, "at_once") + total(report, "repaired") + total(report, "offline")
    assert report["turns"].get("from_model", 0) > 0
    assert report["tokens"]["completion"] > 0
    assert unsaid(tmp_path / "w") == []
    assert [str(finding.problem) for finding in validate(tmp_path / "w", Profile.FULL).errors] == []
