"""Fixtures: small worlds, generated once for a session of tests (also for those of simulator and quality measures)."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena_masim.config import WorldConfig, preset
from memarena_masim.output.generate import generate

WorldOf = Callable[[WorldConfig], Path]


@pytest.fixture(scope="session")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> WorldOf:
    """Return a function from a configuration to its data set, generated once, also for several processes.

    Tests must not change it.
    """
    base = tmp_path_factory.getbasetemp()
    worlds = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "worlds"

    def of(config: WorldConfig) -> Path:
        folder = worlds / hashlib.sha256(config.model_dump_json().encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        out, whole = folder / f"seed_{config.seed}", folder / "whole"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not whole.exists():
                generate(config, out, workers=1)
                whole.touch()
        return out

    return of


@pytest.fixture(scope="session")
def small_config() -> WorldConfig:
    """Return a world with every kind of session, generated in a second or two."""
    return WorldConfig(name="test", agents=8, days=5, density=0.4, question_share=2.5, seed=101)


@pytest.fixture(scope="session")
def small_world(small_config: WorldConfig, world_of: WorldOf) -> Path:
    """The data set of ``small_config``."""
    return world_of(small_config)


@pytest.fixture(scope="session")
def other_small_worlds(small_config: WorldConfig, world_of: WorldOf) -> list[Path]:
    """Two more data sets like it, as training data."""
    return [world_of(small_config.model_copy(update={"seed": seed})) for seed in (104, 105)]


@pytest.fixture(scope="session")
def tiny_world(world_of: WorldOf) -> Path:
    """The data set of preset tiny."""
    return world_of(preset("tiny", 102))
