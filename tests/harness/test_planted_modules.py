"""Tests that commands import no module of their working folder, even if it shadows the standard library."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harnessing import EXAMPLE, ROOT

BIN = Path(sys.executable).parent
MARK = "imported.txt"
SWEEP = """
[[worlds]]
dataset = "."
[[memories]]
name = "bm25"
[[readers]]
spec = "extractive"
[run]
limit = 2
"""
RUN = ("--dataset", ".", "--backend", "bm25", "--reader", "extractive", "--limit", "2", "--meter", "procfs")
COMMANDS = (
    ("memarena", "run", *RUN, "--out", "../run"),
    ("memarena", "sweep", "../sweep.toml", "--out", "../sweep"),
    ("masim", "generate", "--preset", "tiny", "--agents", "6", "--days", "2", "--workers", "2", "--out", "../world"),
    ("memarena-spark", "canary", "--profile", "cpu-dev"),
)
UNSAFE = re.compile(r"""(sys\.executable|["']python3?["']),\s*["']-[mc]["']""")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """The example's files next to a planted file for every module."""
    folder = tmp_path / "data"
    shutil.copytree(EXAMPLE, folder)
    mark = tmp_path / MARK
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write(__file__ + '\\n')\n", encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP.replace('"."', f'"{folder}"'), encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_no_file_of_the_current_folder_is_imported(command: tuple[str, ...], planted: Path) -> None:
    program, *arguments = command
    result = subprocess.run(
        [BIN / program, *arguments], cwd=planted, capture_output=True, text=True, timeout=240, check=False
    )
    mark = planted.parent / MARK
    assert not mark.exists(), mark.read_text(encoding="utf-8")
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_child_of_ours_is_started_so() -> None:
    """Also those that only start where there is Docker, a GPU or a browser."""
    shipped = [
        path for top in ("harness", "spark", "simulator", "backends") for path in (ROOT / top).rglob("src/**/*.py")
    ]
    unsafe = [path for path in shipped if UNSAFE.search(path.read_text(encoding="utf-8"))]
    assert shipped
    assert unsafe == []
