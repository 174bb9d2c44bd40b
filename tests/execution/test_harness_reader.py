"""Tests central reading: a question that cannot be put to the reader stays open and does not end the run.

In *central reading* the harness, not the backend, puts the retrieved items to the reader.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import QuestionAsked
from memarena.log.store import read_records

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


def test_a_question_longer_than_the_readers_window_stays_open_and_the_others_are_asked(tmp_path: Path) -> None:
    data = Path(shutil.copytree(EXAMPLE, tmp_path / "data"))
    path = data / "eval_instances" / "d7_qa.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["query"] = "And what then? " * 400
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    with CapturingBackend(answers=False) as backend:
        values = {
            "dataset": data,
            "backends": [f"capture={backend.address}"],
            "readers": [{"spec": "extractive", "window_tokens": 1024}],
            "floor_samples": 0,
        }
        outcome = execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))
    assert (outcome.reason, outcome.left) == ("incomplete", 1)
    questions = [r for r in read_records(tmp_path / "run", "asked") if isinstance(r, QuestionAsked)]
    unanswered = [r for r in questions if r.status != "answered"]
    assert {(r.instance_id, r.status) for r in unanswered} == {(rows[0]["instance_id"], "infra_failed")}
    assert all("window of 1024 tokens" in r.cause for r in unanswered)
