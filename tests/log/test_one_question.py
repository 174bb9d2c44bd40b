"""What a log holds of one question, found by its index."""

from __future__ import annotations

from pathlib import Path

from memarena.evaluation import answer_records
from memarena.log.store import LogReader, read_records

RUN = Path(__file__).parents[1] / "golden" / "judged_run"


def test_the_records_of_a_question_are_those_that_name_it() -> None:
    every = list(read_records(RUN))
    judged = {(record.cell_id, record.instance_id) for record in every if record.kind == "verdict"}
    asked = next(r for r in every if r.kind == "asked" and (r.cell_id, r.instance_id) in judged)
    for cell in (None, asked.cell_id):
        own = [
            record
            for record in every
            if record.kind in ("asked", "verdict", "gateway_call")
            and record.instance_id == asked.instance_id
            and cell in (None, record.cell_id)
        ]
        kinds = ("asked", "verdict", "gateway_call")
        assert list(read_records(RUN, *kinds, cell_id=cell, instance_id=asked.instance_id)) == own
        assert len(own) > 1
    kept = answer_records(RUN, [(asked.cell_id, asked.instance_id), ("none", "none")])
    assert asked in kept[asked.cell_id, asked.instance_id].asked
    assert kept["none", "none"].asked == []


def test_counts_of_a_kind_are_those_of_its_records() -> None:
    every = list(read_records(RUN))
    with LogReader(RUN) as log:
        counts, last = log.counts("asked"), log.last_seq()
    assert last == len(every)
    assert sum(counts.values()) == sum(record.kind == "asked" for record in every)
    for cell, count in counts.items():
        assert count == sum(record.kind == "asked" and record.cell_id == cell for record in every)
