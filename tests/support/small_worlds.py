"""Small worlds, made once for a session of tests; the folders of simulator and quality measures take them over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from memarena_masim.config import WorldConfig, preset
from memarena_masim.output.generate import generate

WorldOf = Callable[[WorldConfig], Path]


@pytest.fixture(scope="session")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> WorldOf:
    """Gives the data set of a configuration; each is made once. Nobody may change it."""
    made: dict[WorldConfig, Path] = {}

    def of(config: WorldConfig) -> Path:
        if config not in made:
            out = tmp_path_factory.mktemp("world") / f"seed_{config.seed}"
            generate(config, out, workers=1)
            made[config] = out
        return made[config]

    return of


@pytest.fixture(scope="session")
def small_config() -> WorldConfig:
    """A world with every kind of session, in a second or two."""
    return WorldConfig(name="test", agents=8, days=5, density=0.6, question_share=3.0, seed=101)


@pytest.fixture(scope="session")
def small_world(small_config: WorldConfig, world_of: WorldOf) -> Path:
    """The data set of ``small_config``."""
    return world_of(small_config)


@pytest.fixture(scope="session")
def other_small_worlds(small_config: WorldConfig, world_of: WorldOf) -> list[Path]:
    """Two more like it, to learn from."""
    return [world_of(small_config.model_copy(update={"seed": seed})) for seed in (104, 105)]


@pytest.fixture(scope="session")
def tiny_world(world_of: WorldOf) -> Path:
    """The data set of preset tiny."""
    return world_of(preset("tiny", 102))
