"""Tests engines/endpoint.py through the LLM engine: refused, malformed and late replies, retries and concurrency."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from memarena_masim.engines.endpoint import Endpoint
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.errors import MasimError
from memarena_masim.output.generate import generate

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

from .llm_worlds import CONFIG, endpoint, made, unsaid
from .scripted_llm import perfect, read, requests


def test_status_429_is_retried_after_the_time_of_retry_after(tmp_path: Path) -> None:
    """Nothing is lost, and the refused calls are counted."""
    refused_at: list[int] = []

    def busy(body: Body) -> Script:
        if body.number in (2, 9):
            refused_at.append(body.number)
            return Script(status=429, headers={"Retry-After": "0.2"})
        return Script(perfect(body))

    report = made(tmp_path / "w", busy, concurrency=4)
    assert refused_at == [2, 9]
    assert report["calls"]["status_429"] == 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]
    assert unsaid(tmp_path / "w") == []


def test_retry_after_delays_all_requests() -> None:
    """Other requests wait too, until the time is over."""
    moments: list[float] = []

    async def run(server: ModelServer) -> None:
        client = Endpoint(endpoint(server, concurrency=1, longest_wait_s=5.0))
        tasks = [asyncio.create_task(client.complete([{"role": "user", "content": "x"}], 8, {})) for _ in range(3)]
        await asyncio.gather(*tasks)
        await client.close()

    def behave(body: Body) -> Script:
        moments.append(time.monotonic())
        return Script(status=429, headers={"Retry-After": "0.4"}) if body.number == 0 else Script("{}")

    with ModelServer(behave) as server:
        asyncio.run(run(server))
    assert len(moments) == 4
    assert moments[1] - moments[0] >= 0.4


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """It would send the key and the prompts to another server."""
    elsewhere = {"Location": "http://127.0.0.1:9/v1/chat/completions"}
    with pytest.raises(MasimError, match=r"a redirect to http://127\.0\.0\.1:9/.*, which is not followed"):
        made(tmp_path / "w", lambda body: Script(status=307, headers=elsewhere))


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_server_errors_are_retried(status: int, tmp_path: Path) -> None:
    """Every fifth request fails; still all turns are the model's."""

    def shaky(body: Body) -> Script:
        return Script(status=status) if body.number % 5 == 0 else Script(perfect(body))

    report = made(tmp_path / "w", shaky)
    assert report["calls"][f"status_{status}"] > 0
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_timeouts_are_retried(tmp_path: Path) -> None:
    """Two replies come too late."""

    def slow(body: Body) -> Script:
        return Script(perfect(body), delay_s=5.0 if body.number in (0, 3) else 0.0)

    report = made(tmp_path / "w", slow, timeout_s=1.5)
    assert report["calls"]["timeouts"] == 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]


@pytest.mark.parametrize("raw", ["{this is no JSON", "[]", '{"choices": []}', '{"choices": [{"message": null}]}', "7"])
def test_bodies_that_are_not_a_completion_are_retried(raw: str, tmp_path: Path) -> None:
    """They do not count as empty replies. A prompt gets at most one such body, so that a retry succeeds."""
    prompts: set[str] = set()

    def broken(body: Body) -> Script:
        prompt = str(body["messages"])
        again = prompt in prompts
        prompts.add(prompt)
        return Script(body=raw) if body.number % 4 == 1 and not again else Script(perfect(body))

    report = made(tmp_path / "w", broken)
    assert report["calls"]["malformed_replies"] > 0
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_server_that_refuses_schemas_is_asked_without_them(tmp_path: Path) -> None:
    """It refuses the first requests with ``response_format``; later ones have none."""
    with_schema: list[int] = []

    def plain(body: Body) -> Script:
        if "response_format" in body:
            with_schema.append(body.number)
            return Script(message="response_format is not supported", status=400)
        return Script(perfect(body))

    report = made(tmp_path / "w", plain, concurrency=4)
    assert report["calls"]["status_400"] == len(with_schema) <= 2 * (4 + 2)
    assert 0 < report["calls"]["schema_refused"] <= 4 + 2
    assert report["turns"]["from_model"] == report["turns"]["planned"]


def test_a_session_that_is_refused_is_worded_offline(tmp_path: Path) -> None:
    """Status 400 for some sessions, with schema or without: these are worded by the banks and counted."""

    def picky(body: Body) -> Script:
        request = read(body)
        if request.kind == "session" and len(request.turns) == 10:
            return Script(message="prompt is too long", status=400)
        return Script(perfect(body))

    report = made(tmp_path / "w", picky, concurrency=4)
    assert 0 < report["sessions"]["offline"] == report["sessions"]["no_reply"] < report["sessions"]["planned"]
    assert unsaid(tmp_path / "w") == []


@pytest.mark.parametrize(
    ("status", "message"), [(401, "--api-key-env"), (404, "--model"), (503, "finished days are kept")]
)
def test_an_unusable_endpoint_ends_the_generation_with_one_line(status: int, message: str, tmp_path: Path) -> None:
    """Wrong key, wrong model or no answer: the data set is not silently made offline."""
    with pytest.raises(MasimError) as failure:
        made(tmp_path / "w", lambda body: Script(message="no", status=status), attempts=2)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "w" / "corpus_sessions.jsonl").exists()


# ------------------------------------------------------------------ concurrency


class Rounds:
    """Holds replies back until as many requests are there as may be at a time (or as are left)."""

    def __init__(self, concurrency: int, expected: int) -> None:
        self.concurrency, self.left = concurrency, expected
        self.full = 0
        self._waiting: list[threading.Event] = []
        self._lock = threading.Lock()

    def __call__(self) -> None:
        turn = threading.Event()
        with self._lock:
            if self.left <= 0:
                return
            self._waiting.append(turn)
            if len(self._waiting) == min(self.concurrency, self.left):
                self.left -= len(self._waiting)
                self.full += 1
                for each in self._waiting:
                    each.set()
                self._waiting = []
        turn.wait(60)


@pytest.mark.parametrize("concurrency", [1, 5, 7])
def test_the_endpoint_is_kept_busy_across_the_end_of_a_day(concurrency: int, tmp_path: Path) -> None:
    """Replies come only once all slots are taken: every round is full, over both days, and no slot is ever exceeded.

    An engine that waited for the stragglers of a day would never fill the round that spans its end, and time out.
    """
    with ModelServer(perfect) as counting, LlmEngine(endpoint(counting)) as engine:
        generate(CONFIG, tmp_path / "count", engine=engine)
        sessions = len(requests(counting, "session"))
    first_day = sum("Wednesday" in request.user.splitlines()[0] for request in requests(counting, "session"))
    assert first_day % concurrency or concurrency == 1  # the day's end falls inside a round
    rounds = Rounds(concurrency, sessions)
    with ModelServer(perfect) as server, LlmEngine(endpoint(server, concurrency=concurrency)) as engine:
        server.before_chat = rounds
        generate(CONFIG, tmp_path / "w", engine=engine)
        assert server.most_in_flight == concurrency
    assert rounds.full == -(-sessions // concurrency)
    assert rounds.left == 0
