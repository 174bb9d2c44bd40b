"""Tests docs/architecture.md: every file and folder in it exists, and its table of imports matches the rules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from scripts import import_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted({name for name in re.findall(r"`([\w./-]+)`", PAGE) if name.endswith((".py", ".npz", ".toml", "/"))})
"""Names in backticks that are of a file or end like a folder; ``backends/<name>/`` stands for many and is none."""


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    result = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [f"/{line}" for line in result.stdout.splitlines()]


def test_the_page_names_files() -> None:
    assert len(NAMED) >= 25


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_there(name: str, tracked: list[str]) -> None:
    """Paths are compared by their end: the page names a file from its package on."""
    end = f"/{name}"
    assert any(end in path if name.endswith("/") else path.endswith(end) for path in tracked)


RULES = """
[[tool.importlinter.contracts]]
type = "may_import_only"
source_modules = ["memarena"]
[[tool.importlinter.contracts]]
type = "may_import_only"
source_modules = ["memarena.log", "memarena.paper"]
allowed_modules = ["memarena_dataset"]
"""


def test_the_imports_of_a_room_are_written_from_the_rules() -> None:
    rows = "| --- | --- | --- |\n| `memarena.log`, `paper` | job | nothing |\n| `memarena.cli` | all | x |\n"
    table = f"{import_table.HEAD}\n{rows}"
    page, faults = import_table.written(f"Before\n{table}\nAfter\n", import_table.rules(RULES))
    assert not faults
    assert page == f"Before\n{table}\nAfter\n".replace("job | nothing", "job | dataset").replace(
        "all | x", "all | anything of the harness, nothing"
    )


def test_a_room_without_a_rule_and_a_rule_without_a_room_are_faults() -> None:
    rows = "| `memarena.log` | job | dataset |\n| `memarena.cli` | a | b |\n| `memarena.ghost` | c | d |\n"
    _, faults = import_table.written(f"{import_table.HEAD}\n{rows}\n", import_table.rules(RULES))
    assert ["ghost" in fault or "memarena.paper" in fault for fault in faults] == [True, True]
