"""The LLM engine against a scripted model: whatever the model does, every statement is said where it was planned."""

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
    """Session replies changed in place (or replaced by what is returned); all others perfect."""

    def behave(body: Body) -> Script:
        asked = read(body)
        if asked.kind != "session":
            return Script(perfect(body))
        turns = session_reply(asked)
        changed = change(turns, asked)
        return Script(as_json(turns if changed is None else changed))

    return behave


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A data set of a model that does as it is told."""
    out = tmp_path_factory.mktemp("llm") / "whole"
    return out, made(out)


def test_a_good_model_says_everything_at_once(whole: tuple[Path, dict[str, Any]]) -> None:
    """Every statement stands where it was planned, in the model's words, and the data set is valid."""
    out, report = whole
    assert unsaid(out) == []
    assert total(report, "planned") == total(report, "at_once") == said(out)
    assert report["turns"] == {"from_model": report["turns"]["planned"], "planned": report["turns"]["planned"]}
    assert [str(finding.problem) for finding in validate(out, Profile.FULL).errors] == []
    assert all(
        "as they say around" in turn["text"] for row in rows(out / "corpus_sessions.jsonl") for turn in row["turns"]
    )


def test_the_report_says_that_words_differ_between_runs(whole: tuple[Path, dict[str, Any]]) -> None:
    """Model, prompts and the lack of determinism are on record; the address is what varies."""
    out, report = whole
    assert report["name"] == "llm"
    assert report["model"] == "scripted"
    assert report["deterministic"] is False
    assert set(report["files"]) >= {"session.v1.txt", "turn.v1.txt", "question.v2.txt", "given_names.v1.txt"}
    run_info = json.loads((out / "run_info.json").read_text())
    assert run_info["endpoint"].startswith("http://127.0.0.1:")
    assert run_info["deterministic"] is False
    assert "127.0.0.1" not in (out / "pipeline_report.json").read_text()


def dropping(turns: list[dict[str, str]], asked: Asked) -> None:
    for turn, (_, must) in zip(turns, asked.turns, strict=True):
        if must:
            turn["text"] = "Never mind what I was going to say there."


def test_what_is_missing_is_asked_for_again(tmp_path: Path) -> None:
    """A model that leaves every statement out is asked for those turns, and says them then."""
    report = made(tmp_path / "w", only_sessions(dropping))
    assert unsaid(tmp_path / "w") == []
    assert total(report, "asked_again") == total(report, "repaired") == total(report, "planned") > 0


def test_what_is_missing_still_is_said_offline(tmp_path: Path) -> None:
    """A model that never says a statement: the banks' sentence stands in its turn, and is counted by kind."""

    def never(body: Body) -> Answer:
        asked = read(body)
        if asked.kind == "turn":
            return Script(json.dumps({"text": "I really do not want to talk about that."}))
        return only_sessions(dropping)(body)

    report = made(tmp_path / "w", never)
    assert unsaid(tmp_path / "w") == []
    assert total(report, "offline") == total(report, "planned") > 0
    assert report["statements"]["detail"]["offline"] > 0
    assert [str(finding.problem) for finding in validate(tmp_path / "w", Profile.FULL).errors] == []


INVENTED = "My cousin Sarah met Leopold there. It was 4711 steps. See you on March 3 at 5:15 pm. I got a typewriter."


def test_invented_facts_are_taken_out_and_logged(tmp_path: Path) -> None:
    """Names, numbers, dates, times and things that facts are about leave the text; the rest of the turn stays."""

    def inventing(turns: list[dict[str, str]], _asked: Asked) -> None:
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


def test_a_statement_inside_an_invention_is_asked_for_again(tmp_path: Path) -> None:
    """Where a sentence both states the fact and invents another, the turn is written again without the invention."""

    def mixing(turns: list[dict[str, str]], asked: Asked) -> None:
        for turn, (_, must) in zip(turns, asked.turns, strict=True):
            if must:
                turn["text"] = " ".join(f"{sentence[:-1]} with my old friend Leopold." for sentence in must)

    report = made(tmp_path / "w", only_sessions(mixing))
    assert unsaid(tmp_path / "w") == []
    assert total(report, "repaired") > 0
    assert "Leopold" not in (tmp_path / "w" / "corpus_sessions.jsonl").read_text()


def test_a_value_is_said_by_nobody_but_its_speaker(tmp_path: Path) -> None:
    """A model that repeats each statement in every turn of the session does not spread the evidence."""

    def echoing(turns: list[dict[str, str]], asked: Asked) -> None:
        said = [sentence for _, must in asked.turns for sentence in must]
        for turn in turns:
            turn["text"] = " ".join((turn["text"], *said))

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
        planned = {one["turn_id"] for one in facts if f"{one['value']['amount']:g}" == number}
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
    """Half of the session replies are malformed, again and again; the fault is counted, the data set is whole."""
    react, counted = FAULTS[fault]

    def behave(body: Body) -> Script:
        asked = read(body)
        good = perfect(body)
        bad = asked.kind == "session" and len(asked.turns) % 2 == 0
        return react(good) if bad else Script(good)

    out = tmp_path / "w"
    report = made(out, behave)
    assert report["replies"][counted] > 0
    assert unsaid(out) == []
    assert total(report, "planned") == said(out)
    assert [str(finding.problem) for finding in validate(out, Profile.FULL).errors] == []


def test_a_reply_in_a_fence_is_read(tmp_path: Path) -> None:
    """Words around the JSON are no fault."""
    report = made(tmp_path / "w", lambda body: Script(f"Here you are:\n```json\n{perfect(body)}\n```\nEnjoy!"))
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_turn_that_never_ends_is_cut_short(tmp_path: Path) -> None:
    """A turn of a thousand words is written again."""

    def rambling(turns: list[dict[str, str]], _asked: Asked) -> None:
        turns[0]["text"] = "and so on " * 400

    report = made(tmp_path / "w", only_sessions(rambling))
    assert report["replies"]["overlong_turn"] == report["turns"]["asked_again"] == report["sessions"]["planned"]
    longest = max(
        len(t["text"].split()) for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for t in row["turns"]
    )
    assert longest < 300


def test_no_turn_comes_twice(tmp_path: Path) -> None:
    """A model that always says the same gets its first turn in; the others are worded offline."""
    same = "It is what it is, and what it is is nothing that I would want to be, if you ask me."

    def parrot(body: Body) -> Script:
        asked = read(body)
        if asked.kind == "session":
            return Script(as_json([{"speaker": speaker, "text": same} for speaker, _ in asked.turns]))
        return Script(json.dumps({"text": same} if asked.kind == "turn" else {"question": ""}))

    made(tmp_path / "w", parrot)
    texts = [turn["text"] for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for turn in row["turns"]]
    assert texts.count(same) == 1
    assert unsaid(tmp_path / "w") == []
