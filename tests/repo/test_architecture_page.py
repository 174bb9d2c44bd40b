"""Every file and folder that docs/architecture.md names is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted({name for name in re.findall(r"`([\w./-]+)`", PAGE) if name.endswith((".py", ".npz", ".toml", "/"))})
"""Names in backticks that are of a file or end like a folder; ``backends/<name>/`` stands for many and is none."""


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [f"/{line}" for line in listed.stdout.splitlines()]


def test_the_page_names_files() -> None:
    assert len(NAMED) >= 25


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_there(name: str, tracked: list[str]) -> None:
    """By the end of its path: the page names a file from its package on."""
    end = f"/{name}"
    assert any(end in path if name.endswith("/") else path.endswith(end) for path in tracked)
