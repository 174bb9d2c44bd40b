"""What holds for all tests: nothing is compiled twice, properties are never timed, long files come first."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests start programs by the thousand. Where the environment forbids Python to keep what it compiles, as that of many a
# container does, each of them would compile all of its modules again, which doubles what a short run costs.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

HERE = Path(__file__).parent
LONGEST_FIRST = (
    "e2e/test_run.py",
    "e2e/test_named_runs.py",
    "spark/test_embedded.py",
    "e2e/test_struck.py",
    "conformance/test_broken.py",
    "simulator/test_demo_world.py",
    "simulator/engines/test_llm_embedded.py",
)
"""Files of a minute and more, begun first: none of them is left for one process when the other has nothing left."""

settings.register_profile("here", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("gate" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the rest stays in order. A process of pytest-xdist takes file by file."""
    ranks = {HERE / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    assert all(path.is_file() for path in ranks), "a file of LONGEST_FIRST is not there any more"
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
