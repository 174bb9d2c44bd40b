"""Tests engines/llm.py with a scripted model: whatever it writes, each statement is in the turn planned for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.validate import Profile, validate
from memarena_masim.output.generate import ENGINE_LOG

from tests.support.model_script import Answer, Body, Reply, Script

from .llm_worlds import CONFIG, made, rows, said, total, unsaid
from .scripted_llm import Asked, as_json, perfect, read, session_reply


def only_sessions(change: Callable[[list[dict[str, str]], Asked], object]) -> Reply:
    """Return a model that changes session replies in place (or replaces them by a return value); others are perfect."""

    def behave(body: Body) -> Script:
        request = read(body)
        if request.kind != "session":
            return Script(perfect(body))
        turns = session_reply(request)
        changed = change(turns, request)
        return Script(as_json(turns if changed is None else changed))

    return behave


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A data set of a model that follows its prompts, and the report's record of the engine."""
    out = tmp_path_factory.mktemp("llm") / "whole"
    return out, made(out)


def test_statements_of_a_perfect_model_need_no_repair(whole: tuple[Path, dict[str, Any]]) -> None:
    """Every statement is in its planned turn, in the model's words, and the data set is valid."""
    out, report = whole
    assert unsaid(out) == []
    assert total(report, "planned") == total(report, "at_once") == said(out)
    assert report["turns"] == {"from_model": report["turns"]["planned"], "planned": report["turns"]["planned"]}
    assert [str(finding.problem) for finding in validate(out, Profile.FULL).errors] == []
    assert all(
        "as they say around" in turn["text"] for row in rows(out / "corpus_sessions.jsonl") for turn in row["turns"]
    )


def test_the_report_records_model_prompts_and_no_determinism(whole: tuple[Path, dict[str, Any]]) -> None:
    """The address, which may vary between runs, is only in ``run_info.json``."""
    out, report = whole
    assert report["name"] == "llm"
    assert report["model"] == "scripted"
    assert report["deterministic"] is False
    assert set(report["files"]) >= {"session.v1.txt", "turn.v1.txt", "question.v2.txt", "given_names.v1.txt"}
    run_info = json.loads((out / "run_info.json").read_text())
    assert run_info["endpoint"].startswith("http://127.0.0.1:")
    assert run_info["deterministic"] is False
    assert "127.0.0.1" not in (out / "pipeline_report.json").read_text()


def dropping(turns: list[dict[str, str]], request: Asked) -> None:
    for turn, (_, must) in zip(turns, request.turns, strict=True):
        if must:
            turn["text"] = "Never mind what I was going to say there."


def test_turns_without_their_statement_are_requested_again(tmp_path: Path) -> None:
    """A model that omits every statement in a session adds them in the repaired turns."""
    report = made(tmp_path / "w", only_sessions(dropping))
    assert unsaid(tmp_path / "w") == []
    assert total(report, "asked_again") == total(report, "repaired") == total(report, "planned") > 0


def test_statements_missing_after_the_repair_are_inserted_from_the_banks(tmp_path: Path) -> None:
    """With a model that never makes a statement: each is inserted in its turn, and counted by kind."""

    def never(body: Body) -> Answer:
        request = read(body)
        if request.kind == "turn":
            return Script(json.dumps({"text": "I really do not want to talk about that."}))
        return only_sessions(dropping)(body)

    report = made(tmp_path / "w", never)
    assert unsaid(tmp_path / "w") == []
    assert total(report, "offline") == total(report, "planned") > 0
    assert report["statements"]["detail"]["offline"] > 0
    assert [str(finding.problem) for finding in validate(tmp_path / "w", Profile.FULL).errors] == []


INVENTED = "My cousin Sarah met Leopold there. It was 4711 steps. See you on March 3 at 5:15 pm. I got a typewriter."


def test_sentences_with_invented_facts_are_removed_and_logged(tmp_path: Path) -> None:
    """Names, numbers, dates, times and things of other facts are removed; other sentences of the turn remain."""

    def inventing(turns: list[dict[str, str]], _request: Asked) -> None:
        for turn in turns:
            turn["text"] = f"{turn['text']} {INVENTED}"

    report = made(tmp_path / "w", only_sessions(inventing))
    assert set(report["unplanned"]) == {"name", "number", "date", "time", "value"}
    sessions = rows(tmp_path / "w" / "corpus_sessions.jsonl")
    text = " ".join(turn["text"] for session in sessions for turn in session["turns"])
    assert all(word not in text for word in ("Sarah", "Leopold", "4711", "5:15"))
    assert "as they say around" in text
    assert unsaid(tmp_path / "w") == []
    log = rows(tmp_path / "w" / ENGINE_LOG)
    assert sum(row["what"].startswith("unplanned") for row in log) == sum(report["unplanned"].values())
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_turn_whose_statement_has_an_invention_is_requested_again(tmp_path: Path) -> None:
    """The statement is lost with the sentence that is removed, so the turn is repaired."""

    def mixing(turns: list[dict[str, str]], request: Asked) -> None:
        for turn, (_, must) in zip(turns, request.turns, strict=True):
            if must:
                turn["text"] = " ".join(f"{sentence[:-1]} with my old friend Leopold." for sentence in must)

    report = made(tmp_path / "w", only_sessions(mixing))
    assert unsaid(tmp_path / "w") == []
    assert total(report, "repaired") > 0
    assert "Leopold" not in (tmp_path / "w" / "corpus_sessions.jsonl").read_text()


def test_a_value_is_in_no_other_turn_than_its_statement_s(tmp_path: Path) -> None:
    """Even if the model repeats each statement in every turn of the session."""

    def echoing(turns: list[dict[str, str]], request: Asked) -> None:
        sentences = [sentence for _, must in request.turns for sentence in must]
        for turn in turns:
            turn["text"] = " ".join((turn["text"], *sentences))

    made(tmp_path / "w", only_sessions(echoing), CONFIG.model_copy(update={"density": 0.6}))
    turns = {turn["turn_id"]: turn for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for turn in row["turns"]}
    facts = [fact for fact in rows(tmp_path / "w" / "facts.jsonl") if fact["value"]["type"] == "amount"]
    assert facts
    for fact in facts:
        number, item = f"{fact['value']['amount']:g}", fact["attribute"].partition(": ")[2].removeprefix("the ")
        session = {key: turn for key, turn in turns.items() if turn["session_id"] == fact["session_id"]}
        said_in = {
            key for key, turn in session.items() if f" {number} " in f" {turn['text']} " and item in turn["text"]
        }
        planned = {row["turn_id"] for row in facts if f"{row['value']['amount']:g}" == number}
        assert said_in <= planned


FAULTS: dict[str, tuple[Callable[[str], Script], str]] = {
    "prose": (lambda text: Script("Sure! Here is a lovely conversation about gardens."), "not_json"),
    "half a reply": (lambda text: Script(text[: len(text) // 2], finish_reason="length"), "endless"),
    "no turns": (lambda text: Script('{"conversation": []}'), "no_turns"),
    "two turns": (lambda text: Script(as_json(json.loads(text)["turns"][:2])), "too_few_turns"),
    "too many": (lambda text: Script(as_json(json.loads(text)["turns"] * 2)), "too_many_turns"),
    "everybody is Zed": (
        lambda text: Script(as_json([{**turn, "speaker": "Zed"} for turn in json.loads(text)["turns"]])),
        "wrong_speaker",
    ),
    "empty texts": (
        lambda text: Script(as_json([{**turn, "text": " "} for turn in json.loads(text)["turns"]])),
        "empty",
    ),
    "null": (lambda text: Script("null"), "not_json"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_malformed_replies_cost_no_statement(fault: str, tmp_path: Path) -> None:
    """Half of the session replies are malformed; the fault is counted, and the data set is complete."""
    react, count_key = FAULTS[fault]

    def behave(body: Body) -> Script:
        request = read(body)
        good = perfect(body)
        bad = request.kind == "session" and len(request.turns) % 2 == 0
        return react(good) if bad else Script(good)

    out = tmp_path / "w"
    report = made(out, behave)
    assert report["replies"][count_key] > 0
    assert unsaid(out) == []
    assert total(report, "planned") == said(out)
    assert [str(finding.problem) for finding in validate(out, Profile.FULL).errors] == []


def test_a_reply_in_a_code_fence_is_accepted(tmp_path: Path) -> None:
    """Text around the JSON does not count as a fault."""
    report = made(tmp_path / "w", lambda body: Script(f"Here you are:\n```json\n{perfect(body)}\n```\nEnjoy!"))
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_an_overlong_turn_is_requested_again(tmp_path: Path) -> None:
    """With a turn of a thousand words."""

    def rambling(turns: list[dict[str, str]], _request: Asked) -> None:
        turns[0]["text"] = "and so on " * 400

    report = made(tmp_path / "w", only_sessions(rambling))
    assert report["replies"]["overlong_turn"] == report["turns"]["asked_again"] == report["sessions"]["planned"]
    longest = max(
        len(t["text"].split()) for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for t in row["turns"]
    )
    assert longest < 300


def test_a_repeated_turn_is_worded_offline(tmp_path: Path) -> None:
    """If a model always writes the same, its first turn is accepted; the offline engine words the others."""
    same = "It is what it is, and what it is is nothing that I would want to be, if you ask me."

    def parrot(body: Body) -> Script:
        request = read(body)
        if request.kind == "session":
            return Script(as_json([{"speaker": speaker, "text": same} for speaker, _ in request.turns]))
        return Script(json.dumps({"text": same} if request.kind == "turn" else {"question": ""}))

    made(tmp_path / "w", parrot)
    texts = [turn["text"] for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for turn in row["turns"]]
    assert texts.count(same) == 1
    assert unsaid(tmp_path / "w") == []
