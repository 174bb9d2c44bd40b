"""Tests scripts/docstrings.py: a docstring that names the result is reported, one that begins with a verb is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts import docstrings

MODULE = '''
def base_url(text: str) -> str | None:
    """The base URL of an API, None for other text."""

def rows() -> list[int]:
    """Rows of the table."""

async def total() -> int:
    """``first`` and ``second`` added."""

def parsed(text: str) -> int:
    """Return the number."""

def passes() -> bool:
    """Whether it passes."""

def process() -> int:
    """Process the rows."""

def write() -> None:
    """The writer."""

@property
def name() -> str:
    """The name."""
'''


def test_nouns_at_the_beginning_are_reported_with_their_lines() -> None:
    assert [line for line, _ in docstrings.problems(ast.parse(MODULE))] == [2, 5, 8]


def test_a_file_with_a_problem_gives_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(MODULE, encoding="utf-8")
    assert docstrings.main([str(tmp_path)]) == 1
    assert f"{file}:2: The base URL of an API, None for other text.: expected a verb" in capsys.readouterr().out
    file.write_text('def total() -> int:\n    """Return the sum."""\n', encoding="utf-8")
    assert docstrings.main([str(tmp_path)]) == 0
