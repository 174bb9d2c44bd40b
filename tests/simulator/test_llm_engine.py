"""The LLM engine against a scripted model: whatever the model does, every statement is said where it was planned."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from masim.config import WorldConfig
from masim.engines.endpoint import Endpoint, EndpointConfig
from masim.engines.llm import LlmEngine
from masim.errors import MasimError
from masim.output.generate import ENGINE_LOG, generate
from memarena.dataset.reading import open_dataset
from memarena.dataset.validate import Profile, validate
from memarena.dataset.value_matching import Passage, names_value
from memarena.dataset.values import Value
from pydantic import JsonValue, TypeAdapter

from .llm_server import Asked, Behaviour, ModelServer, Reaction, as_json, friendly, perfect, read, session_reply

CONFIG = WorldConfig(name="test", agents=5, days=2, density=0.14, question_share=2.0, seed=103)
VALUE: TypeAdapter[Value] = TypeAdapter(Value)
Body = Mapping[str, JsonValue]


def endpoint(server: ModelServer, **more: Any) -> EndpointConfig:
    """The scripted server as the engine sees it, with waits that suit a test."""
    return EndpointConfig(server.url, "scripted", **{"longest_wait_s": 0.05, "timeout_s": 20.0, **more})


def made(out: Path, behaviour: Behaviour = friendly, config: WorldConfig = CONFIG, **more: Any) -> dict[str, Any]:
    """Make a data set with the scripted model; returns what the report says of the engine."""
    with ModelServer(behaviour) as server, LlmEngine(endpoint(server, **more)) as engine:
        generate(config, out, engine=engine)
    report = json.loads((out / "pipeline_report.json").read_text())
    engine_report = report["engine"]
    assert isinstance(engine_report, dict)
    return engine_report


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def unsaid(out: Path) -> list[str]:
    """Statements of ``facts.jsonl`` whose value is not in so many words in the turn, by the speaker, that it names."""
    lost = []
    with open_dataset(out) as dataset:
        sessions = {row["session_id"]: row for row in rows(out / "corpus_sessions.jsonl")}
        for fact in rows(out / "facts.jsonl"):
            session = sessions[fact["session_id"]]
            turn = next(one for one in session["turns"] if one["turn_id"] == fact["turn_id"])
            said_on = dataset.calendar_epoch + timedelta(days=int(session["start_time"]))
            value = VALUE.validate_python(fact["value"])
            readable = fact["role"] != "fate" and not fact["attribute"].startswith(("tie", "date"))
            if turn["speaker_id"] != fact["speaker_id"] or (readable and not names_value(value, turn["text"], said_on)):
                lost.append(f"{fact['fact_id']}: {turn['text']}")
            assert Passage(turn["text"], said_on).text
    return lost


def total(report: Mapping[str, Any], what: str) -> int:
    """A count over all kinds of statements."""
    return sum(int(counts.get(what, 0)) for counts in report["statements"].values())


def only_sessions(change: Callable[[list[dict[str, str]], Asked], object]) -> Behaviour:
    """Session replies changed in place (or replaced by what is returned); all others perfect."""

    def behave(body: Body, _number: int) -> Reaction:
        asked = read(body)
        if asked.kind != "session":
            return Reaction(perfect(body))
        turns = session_reply(asked)
        changed = change(turns, asked)
        return Reaction(as_json(turns if changed is None else changed))

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
    assert total(report, "planned") == total(report, "at_once") == len(rows(out / "facts.jsonl"))
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
    assert set(report["files"]) >= {"session.v1.txt", "turn.v1.txt", "question.v1.txt", "given_names.v1.txt"}
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

    def never(body: Body, number: int) -> Reaction:
        asked = read(body)
        if asked.kind == "turn":
            return Reaction(json.dumps({"text": "I really do not want to talk about that."}))
        return only_sessions(dropping)(body, number)

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
    text = (tmp_path / "w" / "corpus_sessions.jsonl").read_text()
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
        number = f"{fact['value']['amount']:g}"
        session = {key: turn for key, turn in turns.items() if turn["session_id"] == fact["session_id"]}
        said_in = {key for key, turn in session.items() if f" {number} " in f" {turn['text']} "}
        planned = {one["turn_id"] for one in facts if f"{one['value']['amount']:g}" == number}
        assert said_in <= planned


FAULTS: dict[str, tuple[Callable[[str], Reaction], str]] = {
    "prose": (lambda text: Reaction("Sure! Here is a lovely conversation about gardens."), "not_json"),
    "half a reply": (lambda text: Reaction(text[: len(text) // 2], finish="length"), "endless"),
    "no turns": (lambda text: Reaction('{"conversation": []}'), "no_turns"),
    "two turns": (lambda text: Reaction(as_json(json.loads(text)["turns"][:2])), "too_few_turns"),
    "too many": (lambda text: Reaction(as_json(json.loads(text)["turns"] * 2)), "too_many_turns"),
    "everybody is Zed": (
        lambda text: Reaction(as_json([{**turn, "speaker": "Zed"} for turn in json.loads(text)["turns"]])),
        "wrong_speaker",
    ),
    "empty texts": (
        lambda text: Reaction(as_json([{**turn, "text": " "} for turn in json.loads(text)["turns"]])),
        "empty",
    ),
    "null": (lambda text: Reaction("null"), "not_json"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_malformed_replies_cost_no_statement(fault: str, tmp_path: Path) -> None:
    """Half of the session replies are malformed, again and again; the fault is counted, the data set is whole."""
    react, counted = FAULTS[fault]

    def behave(body: Body, _number: int) -> Reaction:
        asked = read(body)
        good = perfect(body)
        bad = asked.kind == "session" and len(asked.turns) % 2 == 0
        return react(good) if bad else Reaction(good)

    out = tmp_path / "w"
    report = made(out, behave)
    assert report["replies"][counted] > 0
    assert unsaid(out) == []
    assert total(report, "planned") == len(rows(out / "facts.jsonl"))
    assert [str(finding.problem) for finding in validate(out, Profile.FULL).errors] == []


def test_a_reply_in_a_fence_is_read(tmp_path: Path) -> None:
    """Words around the JSON are no fault."""
    report = made(tmp_path / "w", lambda body, _: Reaction(f"Here you are:\n```json\n{perfect(body)}\n```\nEnjoy!"))
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

    def parrot(body: Body, _number: int) -> Reaction:
        asked = read(body)
        if asked.kind == "session":
            return Reaction(as_json([{"speaker": speaker, "text": same} for speaker, _ in asked.turns]))
        return Reaction(json.dumps({"text": same} if asked.kind == "turn" else {"question": ""}))

    made(tmp_path / "w", parrot)
    texts = [turn["text"] for row in rows(tmp_path / "w" / "corpus_sessions.jsonl") for turn in row["turns"]]
    assert texts.count(same) == 1
    assert len([text for text in texts if len(text.split()) > 12]) == len({t for t in texts if len(t.split()) > 12})
    assert unsaid(tmp_path / "w") == []


# ------------------------------------------------------------------ the wire


def test_too_many_requests_wait_as_long_as_they_are_told(tmp_path: Path) -> None:
    """429 with Retry-After: nothing is sent before, nothing is lost, and the retries are counted."""
    refused_at: list[int] = []

    def busy(body: Body, number: int) -> Reaction:
        if number in (2, 9):
            refused_at.append(number)
            return Reaction(status=429, headers={"Retry-After": "0.2"})
        return Reaction(perfect(body))

    report = made(tmp_path / "w", busy, concurrency=4)
    assert refused_at == [2, 9]
    assert report["calls"]["status_429"] == 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]
    assert unsaid(tmp_path / "w") == []


def test_retry_after_holds_everybody_back() -> None:
    """While the server asks for time, other requests wait too."""
    moments: list[float] = []

    async def run(server: ModelServer) -> None:
        client = Endpoint(endpoint(server, concurrency=1, longest_wait_s=5.0))
        tasks = [asyncio.create_task(client.complete([{"role": "user", "content": "x"}], 8, {})) for _ in range(3)]
        await asyncio.gather(*tasks)
        await client.close()

    def behave(_body: Body, number: int) -> Reaction:
        moments.append(time.monotonic())
        return Reaction(status=429, headers={"Retry-After": "0.4"}) if number == 0 else Reaction("{}")

    with ModelServer(behave) as server:
        asyncio.run(run(server))
    assert len(moments) == 4
    assert moments[1] - moments[0] >= 0.4


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_server_errors_are_tried_again(status: int, tmp_path: Path) -> None:
    """Every fifth request fails; the words are the model's all the same."""

    def shaky(body: Body, number: int) -> Reaction:
        return Reaction(status=status) if number % 5 == 0 else Reaction(perfect(body))

    report = made(tmp_path / "w", shaky)
    assert report["calls"][f"status_{status}"] > 0
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_timeouts_are_tried_again(tmp_path: Path) -> None:
    """A reply that does not come in time is asked for again."""

    def slow(body: Body, number: int) -> Reaction:
        return Reaction(perfect(body), delay_s=5.0 if number in (0, 3) else 0.0)

    report = made(tmp_path / "w", slow, timeout_s=1.5)
    assert report["calls"]["timeouts"] == 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]


@pytest.mark.parametrize("raw", ["{this is no JSON", "[]", '{"choices": []}', '{"choices": [{"message": null}]}', "7"])
def test_bodies_that_are_no_completion_are_tried_again(raw: str, tmp_path: Path) -> None:
    """And never taken for an empty reply."""

    def broken(body: Body, number: int) -> Reaction:
        return Reaction(raw=raw) if number % 4 == 1 else Reaction(perfect(body))

    report = made(tmp_path / "w", broken)
    assert report["calls"]["malformed_replies"] > 0
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_server_without_schemas_is_asked_without(tmp_path: Path) -> None:
    """It refuses the first requests that carry one; from then on none does."""
    with_schema: list[int] = []

    def plain(body: Body, number: int) -> Reaction:
        if "response_format" in body:
            with_schema.append(number)
            return Reaction("response_format is not supported", status=400)
        return Reaction(perfect(body))

    report = made(tmp_path / "w", plain, concurrency=4)
    assert report["calls"]["schema_refused"] == len(with_schema) <= 4 + 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_session_that_is_refused_is_worded_offline(tmp_path: Path) -> None:
    """400 for some sessions, schema or not: those are worded by the banks, and counted; the others by the model."""

    def picky(body: Body, _number: int) -> Reaction:
        asked = read(body)
        if asked.kind == "session" and len(asked.turns) == 10:
            return Reaction("prompt is too long", status=400)
        return Reaction(perfect(body))

    report = made(tmp_path / "w", picky, concurrency=4)
    assert 0 < report["sessions"]["offline"] == report["sessions"]["no_reply"] < report["sessions"]["planned"]
    assert unsaid(tmp_path / "w") == []


@pytest.mark.parametrize(
    ("status", "said"), [(401, "--api-key-env"), (404, "--model scripted"), (503, "finished days are kept")]
)
def test_an_endpoint_of_no_use_ends_the_generation_in_one_line(status: int, said: str, tmp_path: Path) -> None:
    """Wrong key, wrong model, nobody there: no data set is made offline in silence."""
    with pytest.raises(MasimError) as failure:
        made(tmp_path / "w", lambda *_: Reaction("no", status=status), attempts=2)
    assert said in str(failure.value)
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "w" / "corpus_sessions.jsonl").exists()


# ------------------------------------------------------------------ concurrency


class Rounds:
    """Holds replies back until as many requests are there as may be at a time (or as are left)."""

    def __init__(self, concurrency: int, expected: int) -> None:
        self.concurrency, self.left = concurrency, expected
        self.full = 0
        self._waiting = 0
        self._event: asyncio.Event | None = None

    async def __call__(self, _server: ModelServer) -> None:
        if self.left <= 0:
            return
        if self._event is None:
            self._event = asyncio.Event()
        event = self._event
        self._waiting += 1
        if self._waiting == min(self.concurrency, self.left):
            self.left -= self._waiting
            self.full += 1
            self._waiting, self._event = 0, None
            event.set()
        await event.wait()


@pytest.mark.parametrize("concurrency", [1, 5, 7])
def test_the_endpoint_is_kept_busy_across_the_end_of_a_day(concurrency: int, tmp_path: Path) -> None:
    """Replies come only once all slots are taken: every round is full, over both days, and no slot is ever exceeded.

    An engine that waited for the stragglers of a day would never fill the round that spans its end, and time out.
    """
    with ModelServer() as counting, LlmEngine(endpoint(counting)) as engine:
        generate(CONFIG, tmp_path / "count", engine=engine)
        sessions = len(counting.requests("session"))
    first_day = sum("Wednesday" in asked.user.splitlines()[0] for asked in counting.requests("session"))
    assert first_day % concurrency or concurrency == 1  # the day's end falls inside a round
    rounds = Rounds(concurrency, sessions)
    with ModelServer(gate=rounds) as server, LlmEngine(endpoint(server, concurrency=concurrency)) as engine:
        generate(CONFIG, tmp_path / "w", engine=engine)
        assert server.most_in_flight == concurrency
    assert rounds.full == -(-sessions // concurrency)
    assert rounds.left == 0
