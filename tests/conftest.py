"""What holds for all tests: nothing is compiled twice, properties are never timed, long files come first."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

# Tests start programs by the thousand. Where the environment forbids Python to keep what it compiles, as that of many a
# container does, each of them would compile all of its modules again, which doubles what a short run costs.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

HERE = Path(__file__).parent
TOGETHER = ("spark",)
"""Folders whose files one process takes: each process would otherwise make the runs of their session fixtures anew."""
APART = ("spark/test_embedded.py",)
"""Files of such a folder that use none of them."""
LONGEST_FIRST = (
    "spark",
    "e2e/test_run.py",
    "e2e/test_named_runs.py",
    "e2e/test_addresses.py",
    "conformance/test_broken.py",
    "spark/test_embedded.py",
    "e2e/test_kills.py",
    "judging/test_embedded_judge.py",
    "e2e/test_struck.py",
)
"""What takes longest, begun first: none of it is left for one process when the others have nothing left."""

settings.register_profile("here", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("gate" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first; the rest stays in order."""
    ranks = {f"tests/{name}": rank for rank, name in enumerate(LONGEST_FIRST)}
    missing = [name for name in (*LONGEST_FIRST, *TOGETHER, *APART) if not (HERE / name).exists()]
    assert not missing, f"not there any more: {missing}"
    items.sort(key=lambda item: ranks.get(_unit(item.nodeid), len(ranks)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """With ``--dist loadfile`` a process takes a whole file, or one of ``TOGETHER``."""
    return _Units(config, log) if config.getoption("dist") == "loadfile" else None


class _Units(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return _unit(nodeid)


def _unit(nodeid: str) -> str:
    """The file of a test, or its folder where that is taken whole."""
    file = nodeid.partition("::")[0]
    for folder in TOGETHER:
        if file.startswith(f"tests/{folder}/") and file.removeprefix("tests/") not in APART:
            return f"tests/{folder}"
    return file
