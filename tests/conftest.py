"""Configures all tests: compiled files are cached, property tests have no deadline, long files start first.

``GATE_ONLY`` lists the slow tests, which `make test` leaves out; the gate (`make test-gate`) runs them.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from zlib import crc32

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
"""Folders whose files run in one process: otherwise each process would repeat the runs of their session fixtures."""
APART = ("spark/test_embedded.py",)
"""Files of folders in ``TOGETHER`` that use none of these fixtures and may run in another process."""
SPLIT = {"conformance/test_broken.py": 8, "conformance/test_lives.py": 4}
"""Long files whose tests share nothing: number of parts, each of which may run in another process."""
LONGEST_FIRST = (
    "spark",
    "spark/test_embedded.py",
    "e2e/test_run.py",
    "e2e/test_named_runs.py",
    "backends/test_memsearch_server.py",
    "dataset_quality/test_command.py",
    "e2e/test_struck.py",
    "sweep/test_ray.py",
    "conformance/test_broken.py",
    "e2e/test_kills.py",
    "reproduction/test_killed.py",
    "memobase/test_run.py",
    "judging/test_embedded_judge.py",
    "conformance/test_lives.py",
    "conformance/test_backends.py",
    "backends/test_memsearch.py",
    "e2e/test_reader_habits.py",
    "cli/test_demo.py",
    "sweep/test_local.py",
    "viewer/test_in_browser.py",
    "report/test_commands.py",
    "report/test_html_in_browser.py",
    "repo/test_import_rules.py",
    "simulator/plan/test_day.py",
    "compose/test_compose.py",
    "compose/test_run_containers.py",
    "compose/test_spark_stack.py",
)
"""Folders and files that take longest; started first, so that none of them runs alone at the end."""

GATE_ONLY = {
    "backends/test_example_typescript.py::test_a_run": "needs the backend that make typescript builds",
    "backends/test_memsearch_server.py": "a Milvus server next to the store in process that other tests use",
    "compose/test_script.py": "two whole runs by the containers' script",
    "conformance/test_broken.py::test_a_defect": "the conformance suite once for each of 135 defects",
    "dataset_quality/test_command.py": "every measure of test_* in this folder once more, by the command",
    "e2e/test_addresses.py": "backends replaced at their address, in each moment of a run",
    "e2e/test_kills.py": "20 kills at random moments",
    "e2e/test_named_runs.py": "a run of each named configuration",
    "e2e/test_own_environment.py": "makes an environment, as make systems does",
    "e2e/test_policies.py": "a run for each policy of the reader",
    "e2e/test_struck.py": "backends killed in an ingest and in a search",
    "judging/test_embedded_judge.py": "a real model reads the judge's prompts",
    "memobase/test_run.py": "whole runs against the scripted Memobase server",
    "spark/test_embedded.py": "a certified run with a real model",
    "readers/test_reader_environments.py::test_every": "resolves the packages of three servers from the index",
    "reproduction/test_killed.py": "three tables of the paper, each killed and stopped on its way",
    "sweep/test_ray.py": "Ray clusters, with kills",
}
"""Files or tests (by how their id begins) that take half a minute or more, and why: they get the mark ``gate``.

What they check of the whole, other tests check part by part, so `make test` may leave them out."""

settings.register_profile("here", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("gate" if os.environ.get("CI") else "here")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which the marks select nothing: each process would import them, which takes half a minute."""
    marks = str(config.getoption("markexpr"))
    if collection_path.suffix != ".py" or not marks.startswith(("gate", "not gate")):
        return None
    name = collection_path.relative_to(HERE).as_posix()
    if marks.startswith("not gate"):
        return True if name in GATE_ONLY else None
    is_listed = name in {test.partition("::")[0] for test in GATE_ONLY}
    return None if is_listed or "mark.gate" in collection_path.read_text(encoding="utf-8") else True


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that only the gate runs, and sort the longest first; the others keep their order."""
    ranks = {f"tests/{name}": rank for rank, name in enumerate(LONGEST_FIRST)}
    missing = [name for name in (*LONGEST_FIRST, *TOGETHER, *APART, *SPLIT, *GATE_ONLY) if not _exists(name)]
    assert not missing, f"not there any more: {missing}"
    gate_only = tuple(f"tests/{name}" for name in GATE_ONLY)
    for item in items:
        if item.nodeid.startswith(gate_only):
            item.add_marker("gate")
    items.sort(key=lambda item: ranks.get(_unit(item.nodeid), len(ranks)))


def pytest_collection_finish() -> None:
    """Take modules and tests out of garbage collection, and collect seldom: it was a tenth of simulator tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """With ``--dist loadfile`` a process gets a file, a folder of ``TOGETHER`` or a part of a file of ``SPLIT``."""
    return _Units(config, log) if config.getoption("dist") == "loadfile" else None


class _Units(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        unit = _unit(nodeid)
        parts = SPLIT.get(unit.removeprefix("tests/"), 1)
        return f"{unit} {crc32(nodeid.encode()) % parts}"


def _exists(name: str) -> bool:
    """Whether the folder or file of ``FILE::TEST`` exists, and has a test whose name begins with TEST."""
    file, _, test = name.partition("::")
    path = HERE / file
    return path.exists() and (not test or f"\ndef {test}" in path.read_text(encoding="utf-8"))


def _unit(nodeid: str) -> str:
    """Return the file of a test, or its folder if one process runs the whole folder."""
    file = nodeid.partition("::")[0]
    for folder in TOGETHER:
        if file.startswith(f"tests/{folder}/") and file.removeprefix("tests/") not in APART:
            return f"tests/{folder}"
    return file
