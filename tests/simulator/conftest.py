"""Small worlds that the tests of the simulator share."""

from __future__ import annotations

from pathlib import Path

import pytest
from masim.config import WorldConfig, preset
from masim.output.generate import generate


@pytest.fixture(scope="session")
def small_config() -> WorldConfig:
    """A world with every kind of session, in a second or two."""
    return WorldConfig(name="test", agents=8, days=5, density=0.6, question_share=3.0, seed=101)


@pytest.fixture(scope="session")
def small_world(small_config: WorldConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set of ``small_config``."""
    out = tmp_path_factory.mktemp("world") / "small"
    generate(small_config, out, workers=1)
    return out


@pytest.fixture(scope="session")
def tiny_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set of preset tiny."""
    out = tmp_path_factory.mktemp("world") / "tiny"
    generate(preset("tiny", 102), out, workers=1)
    return out
