"""Opening a data set: what is tolerated, what is refused, and what the message says."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.dataset.errors import DatasetError
from memarena.dataset.model import Instance, Session
from memarena.dataset.reading import open_dataset
from memarena.dataset.rows import dump_row, session_of

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


def refusal(path: Path) -> str:
    """The message with which a strict opening refuses."""
    with pytest.raises(DatasetError) as caught:
        open_dataset(path).close()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_example_reads_without_a_complaint(example: Path) -> None:
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
        before = (plain.sha256, plain.instances, [dump_row(session) for session in plain.corpus.sessions()])
    for file in FILES:
        spoilable.zip(file)
    with open_dataset(spoilable.path) as packed:
        after = (packed.sha256, packed.instances, [dump_row(session) for session in packed.corpus.sessions()])
    assert before == after


def test_the_hash_changes_with_any_byte_of_what_a_run_reads(spoilable: Any) -> None:
    seen = set()
    for file in ("", *FILES):
        if file:
            path = spoilable.path / file
            path.write_bytes(path.read_bytes() + b"\n")
        with open_dataset(spoilable.path) as dataset:
            seen.add(dataset.sha256)
    assert len(seen) == len(FILES) + 1


@pytest.mark.parametrize("file", ["facts.jsonl", "ego_session_map.json", "graph_edges.jsonl", "agent_schedules.jsonl"])
def test_files_that_no_run_reads_do_not_change_the_hash(spoilable: Any, file: str) -> None:
    with open_dataset(spoilable.path) as dataset:
        before = dataset.sha256
    (spoilable.path / file).write_text("changed")
    with open_dataset(spoilable.path) as dataset:
        assert dataset.sha256 == before


def test_both_forms_of_a_file_are_refused(spoilable: Any) -> None:
    plain = spoilable.path / "events.jsonl"
    plain.with_name("events.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert "events.jsonl: both events.jsonl and events.jsonl.gz are there" in refusal(spoilable.path)


@pytest.mark.parametrize("file", ["corpus_sessions.jsonl", "events.jsonl", "groups.json"])
def test_a_cut_gzip_file_is_named(spoilable: Any, file: str) -> None:
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


def test_a_broken_row_is_named_with_file_and_line(spoilable: Any) -> None:
    path = spoilable.path / "corpus_sessions.jsonl"
    lines = path.read_text().splitlines()
    lines[6] = lines[6][:100]
    path.write_text("\n".join(lines))
    assert refusal(spoilable.path).startswith("corpus_sessions.jsonl:7: broken JSON")


def test_blank_lines_count_but_do_not_hurt(spoilable: Any) -> None:
    path = spoilable.path / "corpus_sessions.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n\n".join(lines[:-1]) + "\n\n[1]\n")
    assert refusal(spoilable.path).startswith(f"corpus_sessions.jsonl:{2 * len(lines) - 1}: a JSON object is expected")


def test_a_strict_opening_says_how_many_more(spoilable: Any) -> None:
    for session_id in ("sess_0002", "sess_0003", "sess_0005"):
        spoilable.session(session_id, lambda row: row.pop("start_time"))
    message = refusal(spoilable.path)
    assert message.startswith("corpus_sessions.jsonl:2: start_time: missing (and ")
    assert "more; memarena dataset validate" in message


SPOILED_ROWS: list[tuple[str, Callable[[Any], object], str]] = [
    ("a session without turns list", lambda d: d.session("sess_0004", lambda r: r.pop("turns")), ":4: turns: missing"),
    (
        "a text that is a number",
        lambda d: d.session("sess_0004", lambda r: r["turns"][3].update(text=7)),
        ":4: turns.3.text: input should be a valid string",
    ),
    (
        "a time that is no number",
        lambda d: d.session("sess_0004", lambda r: r.update(start_time="noon")),
        ":4: start_time: input should be a valid number",
    ),
    (
        "a time before the world",
        lambda d: d.session("sess_0004", lambda r: r.update(start_time=-1)),
        ":4: start_time: -1.0; a time in simulated days",
    ),
    (
        "a turn of another session",
        lambda d: d.session("sess_0004", lambda r: r["turns"][0].update(session_id="sess_0001")),
        ":4: turns.0.session_id: 'sess_0001', but the session is 'sess_0004'",
    ),
    (
        "a turn id twice in a session",
        lambda d: d.session("sess_0004", lambda r: r["turns"][1].update(turn_id="sess_0004_t01")),
        ":4: turns: turn_id 'sess_0004_t01' occurs twice",
    ),
    (
        "a session id twice",
        lambda d: d.write_rows("corpus_sessions.jsonl", [*(s := d.rows("corpus_sessions.jsonl"))[:3], s[0], *s[4:]]),
        ":4: session_id: 'sess_0001' is also the session of line 1",
    ),
    (
        "an empty id",
        lambda d: d.session("sess_0004", lambda r: r["turns"][0].update(turn_id=" ")),
        ":4: turns.0.turn_id: empty",
    ),
    (
        "a text with U+0000",
        lambda d: d.session("sess_0004", lambda r: r["turns"][2].update(text="a\0b")),
        ":4: turns.2.text: holds U+0000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "spoil", "message"), SPOILED_ROWS, ids=[row[0] for row in SPOILED_ROWS])
def test_a_session_that_cannot_be_used_is_named(
    spoilable: Any, what: str, spoil: Callable[[Any], object], message: str
) -> None:
    for file in (spoilable.path / "eval_instances").iterdir():
        file.unlink()
    spoil(spoilable)
    assert refusal(spoilable.path).startswith(f"corpus_sessions.jsonl{message}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(tiny: Any, number: str) -> None:
    path = tiny.path / "corpus_sessions.jsonl"
    path.write_text(path.read_text().replace('"start_time": 0.5', f'"start_time": {number}'))
    assert refusal(tiny.path).startswith("corpus_sessions.jsonl:1: ")


def test_bytes_that_are_not_utf8_are_refused(tiny: Any) -> None:
    path = tiny.path / "corpus_sessions.jsonl"
    path.write_bytes(path.read_bytes().replace(b"kite", b"k\xffte"))
    assert refusal(tiny.path).startswith("corpus_sessions.jsonl:1: not UTF-8")


def test_half_surrogates_are_refused(tiny: Any) -> None:
    path = tiny.path / "corpus_sessions.jsonl"
    path.write_text(path.read_text().replace("kite", "\\ud83d"))
    assert refusal(tiny.path).startswith("corpus_sessions.jsonl:1: holds half of a surrogate pair")


SPOILED_QUESTIONS: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    (
        "evidence session that does not exist",
        lambda row: row.update(evidence_session_ids=["sess_9999"]),
        "evidence_session_ids: session 'sess_9999' does not exist in the corpus",
    ),
    (
        "evidence turn that does not exist",
        lambda row: row["metadata"].update(evidence_turn_ids=["t9"]),
        "evidence_turn_ids: turn 't9' does not exist in the corpus",
    ),
    (
        "evidence turn of another session",
        lambda row: row["metadata"].update(evidence_turn_ids=["sess_0001_t01"]),
        "evidence_turn_ids: turn 'sess_0001_t01' is not in any of the evidence sessions",
    ),
    ("no ego", lambda row: row.pop("ego_agent_id"), "ego_agent_id: missing or empty"),
    ("empty query", lambda row: row.update(query="  "), "query: missing or empty"),
    ("gold that is a text", lambda row: row.update(ground_truth="Gdynia"), "ground_truth: an object is expected"),
    ("gold without an answer", lambda row: row["ground_truth"].pop("answer"), "ground_truth.answer: missing or empty"),
    (
        "a value of no known type",
        lambda row: row["ground_truth"].update(values=[{"type": "colour", "name": "red"}]),
        "ground_truth.values.0: ",
    ),
    (
        "a date that is none",
        lambda row: row["ground_truth"].update(values=[{"type": "date", "date": "soon"}]),
        "ground_truth.values.0.date.date: ",
    ),
    (
        "the family of another file",
        lambda row: row.update(dimension="d5_cloze"),
        "dimension: 'd5_cloze' in the file of d7_qa",
    ),
    ("a timestamp in words", lambda row: row["metadata"].update(query_timestamp="noon"), "query_timestamp: "),
    ("an asker that is a list", lambda row: row.update(asker_agent_id=["x"]), "asker_agent_id: a text or null"),
    ("the id of another instance", lambda row: row.update(instance_id="conf_0001"), "instance_id: 'conf_0001' is also"),
    ("metadata that is a list", lambda row: row.update(metadata=[1]), "metadata: an object is expected"),
]


@pytest.mark.parametrize(("what", "change", "message"), SPOILED_QUESTIONS, ids=[row[0] for row in SPOILED_QUESTIONS])
def test_a_question_that_cannot_be_used_is_named(
    spoilable: Any, what: str, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    spoilable.question("qa_0002", change)
    assert refusal(spoilable.path).startswith(f"eval_instances/d7_qa.jsonl:2: {message}")
    with open_dataset(spoilable.path, strict=False) as dataset:
        assert len(dataset.instances) == 34
        assert len(dataset.problems) == 1


def test_an_unknown_question_file_is_named(spoilable: Any) -> None:
    spoilable.write_rows("eval_instances/d9_new.jsonl", [{}])
    assert refusal(spoilable.path).startswith("eval_instances/d9_new.jsonl: not named after a task family (d5_cloze")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"calendar_epoch": "spring"}, "pipeline_report.json: calendar_epoch: 'spring'; a date YYYY-MM-DD"),
        ({"config": {"calendar_epoch": 7}}, "pipeline_report.json: config.calendar_epoch: 7; a date"),
        ({"day_count": 0}, "pipeline_report.json: day_count: 0; a number of days"),
        ([1], "pipeline_report.json: a JSON object is expected"),
    ],
)
def test_a_report_that_makes_no_sense_is_named(tiny: Any, report: Any, message: str) -> None:
    (tiny.path / "pipeline_report.json").write_text(json.dumps(report))
    assert refusal(tiny.path).startswith(message)


def test_empty_days_at_the_end_come_from_the_report(tiny: Any) -> None:
    (tiny.path / "pipeline_report.json").write_text(json.dumps({"config": {"day_count": 9}}))
    with open_dataset(tiny.path) as dataset:
        assert dataset.day_count == 9
        assert list(dataset.day_sessions("ada", 8)) == []
        assert dataset.question_day(dataset.instances[0]) == 8


def test_evidence_and_time_are_found_in_metadata_and_meta_and_at_the_top(tiny: Any) -> None:
    found = {"query_timestamp": 0.75, "evidence_session_ids": ["s1"], "evidence_turn_ids": ["t1"]}
    base = tiny.rows("eval_instances/d7_qa.jsonl")[0]
    rows = [
        {**base, "instance_id": "q1", **found},
        {**base, "instance_id": "q2", "metadata": found},
        {**base, "instance_id": "q3", "meta": found, "evidence_session_ids": None},
    ]
    tiny.write_rows("eval_instances/d7_qa.jsonl", rows)
    with open_dataset(tiny.path) as dataset:
        for instance in dataset.instances:
            assert instance.query_timestamp == 0.75
            assert instance.evidence_session_ids == ("s1",)
            assert instance.evidence_turn_ids == ("t1",)


def test_options_that_a_file_keeps_apart_go_on_the_wire(tiny: Any) -> None:
    truth = {"answer_letter": "B", "options": ["kite", "drum"]}
    row = {"instance_id": "c1", "query": "She bought a ____.", "ground_truth": truth, "ego_agent_id": "ada"}
    tiny.write_rows("eval_instances/d5_cloze.jsonl", [row])
    with open_dataset(tiny.path) as dataset:
        cloze = next(instance for instance in dataset.instances if instance.instance_id == "c1")
        assert cloze.query == "She bought a ____.\nA) kite\nB) drum"


def test_an_instance_survives_the_way_through_a_log(example: Path) -> None:
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


def test_moments_are_whole_seconds_of_the_worlds_calendar(example: Path) -> None:
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


def test_an_unknown_session_is_an_error_and_not_nothing(example: Path) -> None:
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


def test_a_corpus_that_changes_under_our_hands_is_an_error(spoilable: Any) -> None:
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
    """24 MB of conversation open in less than 6 MB: a body or two and a megabyte of buffer, never all of them."""
    base = tiny.rows("corpus_sessions.jsonl")[0]
    with (tiny.path / "corpus_sessions.jsonl").open("w") as stream:
        for number in range(200):
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


# ------------------------------------------------------------------ forms


@pytest.mark.parametrize(
    "groups",
    [
        [{"group_id": "g1", "name": "Rowing Club", "members": ["ada", "bo_lind"]}],
        [
            {
                "id": "g1",
                "title": "Rowing Club",
                "members": [{"agent_id": "ada"}, {"agent_id": "bo_lind", "role": "cox"}],
            }
        ],
        {"g1": {"group_name": "Rowing Club", "member_ids": ["ada", "bo_lind"]}},
        {"g1": {"group_id": "g1", "label": "Rowing Club", "members": {"ada": "stroke", "bo_lind": "cox"}}},
        {"groups": [{"group_id": "g1", "name": "Rowing Club", "participants": ["ada", "bo_lind"]}]},
    ],
)
def test_groups_are_read_in_every_form(tiny: Any, groups: Any) -> None:
    (tiny.path / "groups.json").write_text(json.dumps(groups))
    with open_dataset(tiny.path) as dataset:
        group = dataset.groups["g1"]
        assert (group.name, group.members) == ("Rowing Club", ("ada", "bo_lind"))


@pytest.mark.parametrize(
    "locations",
    [
        [{"location_id": "l1", "name": "Pier"}],
        [{"id": "l1", "title": "Pier"}],
        {"l1": {"name": "Pier"}},
        {"l1": "Pier"},
    ],
)
def test_places_are_read_in_every_form(tiny: Any, locations: Any) -> None:
    (tiny.path / "locations.json").write_text(json.dumps(locations))
    with open_dataset(tiny.path) as dataset:
        assert dataset.locations["l1"].name == "Pier"


def test_groups_of_no_known_form_are_named(tiny: Any) -> None:
    (tiny.path / "groups.json").write_text('[{"group_id": "g1", "members": 7}]')
    assert refusal(tiny.path).startswith("groups.json: 0.members: a list of agents")
    (tiny.path / "groups.json").write_text('"none"')
    assert refusal(tiny.path).startswith("groups.json: a list of objects or an object keyed by group_id")


@pytest.mark.parametrize(
    ("neighbors", "relation"),
    [
        (["bo_lind"], ""),
        ([{"agent_id": "bo_lind", "relation": "brother"}], "brother"),
        ([{"id": "bo_lind", "relationship": "brother"}], "brother"),
        ({"bo_lind": "brother"}, "brother"),
        ({"bo_lind": {"relation_type": "brother", "weight": 1}}, "brother"),
        ({"bo_lind": 0.33}, ""),
        ({"brother": ["bo_lind"]}, "brother"),
        (None, ""),
    ],
)
def test_relations_are_read_in_every_form(tiny: Any, neighbors: Any, relation: str) -> None:
    tiny.write_rows("agents_personas.jsonl", [{"agent_id": "ada", "social_neighbors": neighbors}])
    with open_dataset(tiny.path) as dataset:
        assert dataset.relationship("ada", "bo_lind") == relation
        assert dataset.relationship("bo_lind", "ada") == ""
        assert ("bo_lind" in dataset.neighbors("ada")) == (neighbors is not None)


def test_a_relation_that_a_question_states_wins(tiny: Any) -> None:
    tiny.write_rows("agents_personas.jsonl", [{"agent_id": "ada", "social_neighbors": {"bo_lind": "brother"}}])
    change = {"asker_agent_id": "bo_lind", "metadata": {"relationship": "twin"}}
    tiny.edit("eval_instances/d7_qa.jsonl", "q1", lambda row: row.update(change))
    with open_dataset(tiny.path) as dataset:
        assert dataset.relationship("ada", "bo_lind") == "twin"


# ------------------------------------------------------------------ round trip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(
    st.text("xyz_", min_size=4, max_size=8).filter(lambda key: not key.startswith("_")), JSON, max_size=3
)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(top=UNKNOWN, inner=UNKNOWN, text=WORDS)
def test_a_row_read_and_written_again_loses_nothing(top: Any, inner: Any, text: str) -> None:
    turn = {
        "turn_id": "t1",
        "session_id": "s1",
        "speaker_id": "ada",
        "text": text,
        "timestamp": 0.5,
        "metadata": inner,
        **inner,
    }
    raw = {"session_id": "s1", "participants": ["ada"], "turns": [turn], "start_time": 0.5, "end_time": 0.75, **top}
    session = session_of(json.loads(json.dumps(raw)))
    assert isinstance(session, Session)
    assert dump_row(session) == raw
