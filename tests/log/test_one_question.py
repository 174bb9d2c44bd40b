"""Tests reading all records of one question by the log's index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from memarena.evaluation import answer_records
from memarena.log.store import LogReader, read_records

GOLDEN = Path(__file__).parents[1] / "golden" / "judged_run"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the log, since reading may leave files next to it."""
    return shutil.copytree(GOLDEN, tmp_path / "run")


def test_the_records_of_a_question_are_those_that_name_it(run: Path) -> None:
    every = list(read_records(run))
    judged = {(record.cell_id, record.instance_id) for record in every if record.kind == "verdict"}
    attempt = next(r for r in every if r.kind == "asked" and (r.cell_id, r.instance_id) in judged)
    for cell in (None, attempt.cell_id):
        expected = [
            record
            for record in every
            if record.kind in ("asked", "verdict", "gateway_call")
            and record.instance_id == attempt.instance_id
            and cell in (None, record.cell_id)
        ]
        kinds = ("asked", "verdict", "gateway_call")
        assert list(read_records(run, *kinds, cell_id=cell, instance_id=attempt.instance_id)) == expected
        assert len(expected) > 1
    answer_rows = answer_records(run, [(attempt.cell_id, attempt.instance_id), ("none", "none")])
    assert attempt in answer_rows[attempt.cell_id, attempt.instance_id].asked
    assert answer_rows["none", "none"].asked == []


def test_counts_of_a_kind_are_those_of_its_records(run: Path) -> None:
    every = list(read_records(run))
    with LogReader(run) as log:
        counts, last = log.counts("asked"), log.last_seq()
    assert last == len(every)
    assert sum(counts.values()) == sum(record.kind == "asked" for record in every)
    for cell, count in counts.items():
        assert count == sum(record.kind == "asked" and record.cell_id == cell for record in every)
