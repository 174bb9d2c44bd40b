"""Tests each memory system over the example: it ingests and answers, and the report states what it kept.

A *memory system* here is another project's memory with its own environment; these runs show that each adapter still
works with the real packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from memarena.configs import read_named
from memarena.log.records import IngestDone, QuestionAsked
from memarena.log.store import read_records
from memarena.scoring.kept import counted

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
LIMIT_S = 560.0
KEEP_COUNT = ("mem0_raw", "mempalace")

pytestmark = pytest.mark.skipif(
    os.environ.get("MEMARENA_SYSTEMS_TEST") != "1",
    reason="MEMARENA_SYSTEMS_TEST=1 is not set: backends with environments of their own are not started",
)


@pytest.mark.timeout(LIMIT_S + 30)
def test_systems_that_need_no_llm_answer_in_one_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags: list[str | Path] = [
        "--dataset",
        EXAMPLE,
        "--reader",
        "extractive",
        "--embedder",
        "embedded",
        "--limit",
        "4",
        "--out",
        out,
    ]
    command = [sys.executable, "-m", "memarena", "run", "systems-without-llm", *flags, "--meter", "none"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    records = list(read_records(out))
    attempts = [record for record in records if isinstance(record, QuestionAsked)]
    backends = read_named("systems-without-llm").run["backends"]
    assert isinstance(backends, list)
    statuses = Counter((record.cell_id.partition("@")[0], record.status) for record in attempts)
    assert statuses == {(str(name), "answered"): 4 for name in backends}
    for name in KEEP_COUNT:
        days = [r for r in records if isinstance(r, IngestDone) and r.cell_id.startswith(f"{name}@")]
        stored = sum(counted(day.notices)["memories_stored"] for day in days)
        assert stored >= sum(counted(day.notices)["sessions_given"] for day in days) > 0, name
    report = subprocess.run(
        [sys.executable, "-m", "memarena", "report", out, "--format", "json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows = {row["backend"]: row for row in json.loads(report.stdout)["runs"][0]["rows"]}
    assert {name for name, row in rows.items() if row["kept"]} >= set(KEEP_COUNT)
