"""Tests opening a data set: which deviations are tolerated, which are refused, and the message."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.io.rows import dump_row
from memarena_dataset.model import Instance

from .refusing import refusal

FILES = (
    "corpus_sessions.jsonl",
    "agents_personas.jsonl",
    "events.jsonl",
    "groups.json",
    "locations.json",
    "pipeline_report.json",
    "eval_instances/d7_qa.jsonl",
    "eval_instances/d4_permission.jsonl",
)


def test_the_example_is_read_without_a_problem(example: Path) -> None:
    with open_dataset(example) as dataset:
        assert dataset.problems == ()
        assert (len(dataset.corpus), len(dataset.instances), len(dataset.events)) == (16, 35, 4)
        assert dataset.egos == ("ines_okafor", "priya_raman", "tomas_lindqvist")
        assert dataset.day_count == 2
        assert dataset.calendar_epoch == date(2025, 3, 6)
        assert dataset.groups["grp_choir"].name == "Tidewater Choir"
        assert dataset.locations["loc_quay"].name == "Ferry Quay"
        assert dataset.agents["assistant_ines_okafor"].name == "Ines Okafor's assistant"


def test_gzip_and_plain_files_are_the_same_data_set(spoilable: Any) -> None:
    with open_dataset(spoilable.path) as plain:
        plain_content = (plain.sha256, plain.instances, [dump_row(session) for session in plain.corpus.sessions()])
    for file in FILES:
        spoilable.zip(file)
    with open_dataset(spoilable.path) as packed:
        after = (packed.sha256, packed.instances, [dump_row(session) for session in packed.corpus.sessions()])
    assert plain_content == after


def test_the_hash_changes_with_any_byte_that_a_run_reads(spoilable: Any) -> None:
    hashes = set()
    for file in ("", *FILES):
        if file:
            path = spoilable.path / file
            path.write_bytes(path.read_bytes() + b"\n")
        with open_dataset(spoilable.path) as dataset:
            hashes.add(dataset.sha256)
    assert len(hashes) == len(FILES) + 1


@pytest.mark.parametrize("file", ["facts.jsonl", "ego_session_map.json", "graph_edges.jsonl", "agent_schedules.jsonl"])
def test_files_that_no_run_reads_do_not_change_the_hash(spoilable: Any, file: str) -> None:
    with open_dataset(spoilable.path) as dataset:
        old_hash = dataset.sha256
    (spoilable.path / file).write_text("changed")
    with open_dataset(spoilable.path) as dataset:
        assert dataset.sha256 == old_hash


def test_a_file_in_both_forms_plain_and_gzip_is_refused(spoilable: Any) -> None:
    plain = spoilable.path / "events.jsonl"
    plain.with_name("events.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert "events.jsonl: both events.jsonl and events.jsonl.gz are there" in refusal(spoilable.path)


@pytest.mark.parametrize("file", ["corpus_sessions.jsonl", "events.jsonl", "groups.json"])
def test_a_truncated_gzip_file_is_named(spoilable: Any, file: str) -> None:
    spoilable.zip(file)
    packed = spoilable.path / f"{file}.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    assert refusal(spoilable.path).startswith(f"{file}.gz: not a whole gzip file")


def test_a_folder_that_is_missing_or_a_file_is_named(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    assert "not a folder" in refusal(tmp_path / "file")


def test_a_folder_without_a_corpus_is_named(spoilable: Any) -> None:
    (spoilable.path / "corpus_sessions.jsonl").unlink()
    assert "corpus_sessions.jsonl is missing" in refusal(spoilable.path)


def test_an_empty_corpus_is_refused(tiny: Any) -> None:
    (tiny.path / "corpus_sessions.jsonl").write_text("\n\n")
    assert "holds no session" in refusal(tiny.path)


def test_only_a_corpus_is_needed(tiny: Any) -> None:
    with open_dataset(tiny.path) as dataset:
        assert dataset.egos == ("ada",)
        assert dataset.agents["bo_lind"].name == "Bo Lind"
        assert dataset.calendar_epoch == date(2025, 1, 1)
        assert dataset.day_count == 1
        assert dataset.question_day(dataset.instances[0]) == 0


def test_an_unusable_question_is_omitted_only_by_name(tiny: Any) -> None:
    (good,) = tiny.rows("eval_instances/d7_qa.jsonl")
    for bad in ({"query": 3}, {"evidence_session_ids": ["none"]}, {"ground_truth": None}):
        tiny.write_rows("eval_instances/d7_qa.jsonl", [{**good, "instance_id": "bad", **bad}, good])
        assert "d7_qa.jsonl:1" in refusal(tiny.path)
        with open_dataset(tiny.path, leave_out=["bad"]) as dataset:
            assert [instance.instance_id for instance in dataset.instances] == ["q1"]
        with pytest.raises(DatasetError, match="--leave-out q7: no question has this id"):
            open_dataset(tiny.path, leave_out=["bad", "q7"])


def test_empty_days_at_the_end_come_from_the_report(tiny: Any) -> None:
    (tiny.path / "pipeline_report.json").write_text(json.dumps({"config": {"day_count": 9}}))
    with open_dataset(tiny.path) as dataset:
        assert dataset.day_count == 9
        assert list(dataset.day_sessions("ada", 8)) == []
        assert dataset.question_day(dataset.instances[0]) == 8


def test_evidence_and_time_are_read_from_metadata_meta_or_the_row(tiny: Any) -> None:
    fields = {"query_timestamp": 0.75, "evidence_session_ids": ["s1"], "evidence_turn_ids": ["t1"]}
    base = tiny.rows("eval_instances/d7_qa.jsonl")[0]
    rows = [
        {**base, "instance_id": "q1", **fields},
        {**base, "instance_id": "q2", "metadata": fields},
        {**base, "instance_id": "q3", "meta": fields, "evidence_session_ids": None},
    ]
    tiny.write_rows("eval_instances/d7_qa.jsonl", rows)
    with open_dataset(tiny.path) as dataset:
        for instance in dataset.instances:
            assert instance.query_timestamp == 0.75
            assert instance.evidence_session_ids == ("s1",)
            assert instance.evidence_turn_ids == ("t1",)


def test_separate_options_of_a_file_become_part_of_the_query(tiny: Any) -> None:
    truth = {"answer_letter": "B", "options": ["kite", "drum"]}
    row = {"instance_id": "c1", "query": "She bought a ____.", "ground_truth": truth, "ego_agent_id": "ada"}
    tiny.write_rows("eval_instances/d5_cloze.jsonl", [row])
    with open_dataset(tiny.path) as dataset:
        cloze = next(instance for instance in dataset.instances if instance.instance_id == "c1")
        assert cloze.query == "She bought a ____.\nA) kite\nB) drum"


def test_an_instance_survives_a_round_trip_through_a_log(example: Path) -> None:
    with open_dataset(example) as dataset:
        for instance in dataset.instances:
            assert Instance.model_validate_json(instance.model_dump_json()) == instance
            assert not hasattr(instance, "ground_truth")


def test_who_asks_is_never_taken_from_gold(tiny: Any) -> None:
    truth = {"fact": "a kite", "expected_action": "withhold", "query_agent": "bo_lind", "target_agent": "ada"}
    row = {"instance_id": "p1", "query": "What?", "ground_truth": truth, "ego_agent_id": "ada", "asker_agent_id": None}
    tiny.write_rows("eval_instances/d4_permission.jsonl", [row])
    with open_dataset(tiny.path) as dataset:
        instance = next(instance for instance in dataset.instances if instance.instance_id == "p1")
        assert instance.asker_agent_id is None
        assert getattr(instance.gold, "query_agent", None) == "bo_lind"


def test_a_question_after_the_last_day_is_asked_on_the_last_day(tiny: Any) -> None:
    tiny.edit("eval_instances/d7_qa.jsonl", "q1", lambda row: row.update(metadata={"query_timestamp": 17.2}))
    with open_dataset(tiny.path) as dataset:
        assert dataset.question_day(dataset.instances[0]) == 0


def test_times_are_whole_seconds_of_the_worlds_calendar(example: Path) -> None:
    with open_dataset(example) as dataset:
        assert dataset.moment(0) == datetime(2025, 3, 6, tzinfo=UTC)
        assert dataset.moment(1.5) == datetime(2025, 3, 7, 12, tzinfo=UTC)
        assert dataset.moment(0.25 + 0.4 / 86_400).microsecond == 0


def test_sessions_of_a_day_come_by_start_and_id(tiny: Any) -> None:
    base = tiny.rows("corpus_sessions.jsonl")[0]
    order = [("s9", 1.9), ("s2", 1.2), ("s1", 1.2), ("s5", 0.1), ("s7", 2.0)]
    rows = [
        {**base, "session_id": name, "start_time": start, "end_time": start,
         "turns": [{**base["turns"][0], "turn_id": f"{name}t", "timestamp": start}]}
        for name, start in order
    ]  # fmt: skip
    tiny.write_rows("corpus_sessions.jsonl", rows)
    with open_dataset(tiny.path) as dataset:
        assert [session.session_id for session in dataset.day_sessions("ada", 1)] == ["s1", "s2", "s9"]
        assert [session.session_id for session in dataset.day_sessions("ada", 2)] == ["s7"]
        assert dataset.day_count == 3


def test_an_unknown_session_is_an_error_and_not_none(example: Path) -> None:
    with open_dataset(example) as dataset:
        with pytest.raises(DatasetError, match="no session 'sess_9'"):
            dataset.session("sess_9")
        assert list(dataset.day_sessions("nobody", 0)) == []


def test_reading_after_closing_is_an_error(example: Path) -> None:
    dataset = open_dataset(example)
    dataset.close()
    dataset.close()
    with pytest.raises(DatasetError, match="closed"):
        dataset.session("sess_0001")


def test_a_corpus_that_changes_while_open_is_an_error(spoilable: Any) -> None:
    with open_dataset(spoilable.path) as dataset:
        path = spoilable.path / "corpus_sessions.jsonl"
        with path.open("r+b") as stream:
            stream.write(b" " * 50)
        with pytest.raises(DatasetError, match=r"corpus_sessions.jsonl:1: changed"):
            dataset.session("sess_0001")


def test_sessions_can_be_read_from_several_threads(example: Path) -> None:
    with open_dataset(example) as dataset, ThreadPoolExecutor(8) as pool:
        ids = list(dataset.corpus.session_ids()) * 20
        assert [session.session_id for session in pool.map(dataset.session, ids)] == ids


@pytest.mark.parametrize("packed", [False, True])
def test_memory_holds_the_index_and_never_the_bodies(tiny: Any, packed: bool) -> None:
    """12 MB of conversation are opened in less than 6 MB: one or two sessions and a buffer of a megabyte at a time."""
    base = tiny.rows("corpus_sessions.jsonl")[0]
    with (tiny.path / "corpus_sessions.jsonl").open("w") as stream:
        for number in range(100):
            turn = {**base["turns"][0], "turn_id": f"t{number}", "text": "word " * 24_000}
            stream.write(json.dumps({**base, "session_id": f"s{number}", "turns": [turn]}) + "\n")
    if packed:
        tiny.zip("corpus_sessions.jsonl")
    gc.collect()
    tracemalloc.start()
    try:
        with open_dataset(tiny.path) as dataset:
            for session in dataset.day_sessions("ada", 0):
                assert len(session.turns) == 1
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000
