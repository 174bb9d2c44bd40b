"""Fixtures: the example data set, copies that a test may damage, and small data sets made by the test."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "data" / "example"

Row = dict[str, Any]


class Spoilable:
    """A folder with a data set whose files a test edits row by row, to plant a fault."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, file: str) -> list[Row]:
        return [json.loads(line) for line in (self.path / file).read_text(encoding="utf-8").splitlines()]

    def write_rows(self, file: str, rows: list[Row]) -> None:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (self.path / file).parent.mkdir(parents=True, exist_ok=True)
        (self.path / file).write_text(text, encoding="utf-8")

    def edit(self, file: str, row_id: str, change: Callable[[Row], object]) -> None:
        """Apply a change to the row of a file that has ``row_id`` as one of its ids."""
        rows = self.rows(file)
        matches = [row for row in rows if row_id in [value for key, value in row.items() if key.endswith("_id")]]
        assert len(matches) == 1, f"{row_id} is {len(matches)} rows of {file}"
        change(matches[0])
        self.write_rows(file, rows)

    def question(self, instance_id: str, change: Callable[[Row], object]) -> None:
        """Apply a change to an instance, whichever file it is in."""
        for file in sorted((self.path / "eval_instances").glob("*.jsonl")):
            name = f"eval_instances/{file.name}"
            if any(row["instance_id"] == instance_id for row in self.rows(name)):
                self.edit(name, instance_id, change)
                return
        raise AssertionError(f"no instance {instance_id}")

    def session(self, session_id: str, change: Callable[[Row], object]) -> None:
        rows = self.rows("corpus_sessions.jsonl")
        change(next(row for row in rows if row["session_id"] == session_id))
        self.write_rows("corpus_sessions.jsonl", rows)

    def value(self, file: str, change: Callable[[Any], object]) -> None:
        """Apply a change to a ``.json`` file."""
        value = json.loads((self.path / file).read_text(encoding="utf-8"))
        change(value)
        (self.path / file).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")

    def zip(self, file: str) -> None:
        """Replace a file by its gzip form."""
        plain = self.path / file
        plain.with_name(f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()


@pytest.fixture
def example() -> Path:
    return EXAMPLE


@pytest.fixture
def spoilable(tmp_path: Path) -> Spoilable:
    """A copy of the example that a test may damage."""
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    return Spoilable(tmp_path / "copy")


@pytest.fixture
def tiny(tmp_path: Path) -> Spoilable:
    """The smallest data set: one session, one question, no other file."""
    small = Spoilable(tmp_path / "tiny")
    turn = {"turn_id": "t1", "speaker_id": "ada", "text": "I bought a kite.", "timestamp": 0.5}
    session = {
        "session_id": "s1",
        "participants": ["ada", "bo_lind"],
        "turns": [turn],
        "start_time": 0.5,
        "end_time": 0.6,
    }
    question = {"instance_id": "q1", "query": "What?", "ground_truth": {"answer": "a kite"}, "ego_agent_id": "ada"}
    small.write_rows("corpus_sessions.jsonl", [session])
    small.write_rows("eval_instances/d7_qa.jsonl", [question])
    return small


@pytest.fixture(scope="session")
def locomo_file() -> Path:
    """Five real LoCoMo conversations; the file lies next to the repository and is not part of it."""
    shared = Path(os.environ.get("MEMARENA_SHARED", ROOT.parent / "shared"))
    file = shared / "data" / "locomo" / "locomo5.json"
    if not file.is_file():
        pytest.skip(f"{file} is not there; set MEMARENA_SHARED to the folder that holds data/locomo")
    return file
