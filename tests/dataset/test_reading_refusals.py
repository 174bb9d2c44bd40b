"""Tests the refusal of data sets with unusable rows or files, and the message."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from memarena_dataset.io.reading import open_dataset

from .refusing import refusal


def test_a_broken_row_is_named_with_file_and_line(spoilable: Any) -> None:
    path = spoilable.path / "corpus_sessions.jsonl"
    lines = path.read_text().splitlines()
    lines[6] = lines[6][:100]
    path.write_text("\n".join(lines))
    assert refusal(spoilable.path).startswith("corpus_sessions.jsonl:7: broken JSON")


def test_blank_lines_are_counted_and_skipped(spoilable: Any) -> None:
    path = spoilable.path / "corpus_sessions.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n\n".join(lines[:-1]) + "\n\n[1]\n")
    assert refusal(spoilable.path).startswith(f"corpus_sessions.jsonl:{2 * len(lines) - 1}: a JSON object is expected")


def test_a_strict_opening_states_the_number_of_further_problems(spoilable: Any) -> None:
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
        "participants that are no list",
        lambda d: d.session("sess_0004", lambda r: r.update(participants=7)),
        ":4: participants: a list is expected",
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
def test_an_unusable_session_is_named(spoilable: Any, what: str, spoil: Callable[[Any], object], message: str) -> None:
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


def test_lone_surrogates_are_refused(tiny: Any) -> None:
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
def test_an_unusable_question_is_named(
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


PACK = {"name": "x", "version": "1", "sha256": "00"}


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"calendar_epoch": "spring"}, "pipeline_report.json: calendar_epoch: 'spring'; a date YYYY-MM-DD"),
        ({"config": {"calendar_epoch": 7}}, "pipeline_report.json: config.calendar_epoch: 7; a date"),
        ({"day_count": 0}, "pipeline_report.json: day_count: 0; a number of days"),
        ([1], "pipeline_report.json: a JSON object is expected"),
        ({"pack": {"name": "x"}}, "pipeline_report.json: pack: an object with the texts name, version, sha256"),
        ({"pack": PACK}, "pipeline_report.json: banks: the SHA-256 of each file"),
        (
            {"configuration": {"pack": PACK}, "banks": {"a": "0"}},
            "pipeline_report.json: configuration.pack.sha256: 00 is",
        ),
    ],
)
def test_an_invalid_report_is_named(tiny: Any, report: Any, message: str) -> None:
    (tiny.path / "pipeline_report.json").write_text(json.dumps(report))
    assert refusal(tiny.path).startswith(message)
