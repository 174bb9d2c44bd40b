"""Tests that the double replies like the real server: every recorded exchange is repeated and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scenario import recorded
from tests.memobase.scripted_models import scripted_models

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.json"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_double_answers_as_the_server_that_was_recorded(path: Path) -> None:
    real = json.loads(path.read_text(encoding="utf-8"))["steps"]
    with scripted_models() as models, Double(Models(models.base_url)) as double:
        ours = recorded(double.url, TOKEN, models)
    for expected, got in zip(real, ours, strict=True):
        assert got == expected, expected["what"]
    assert len(real) > 60
