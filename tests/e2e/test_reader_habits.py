# ruff: noqa: E501  (a line of the table is a case)
"""Tests runs with readers that misbehave like real model servers: the status, the message, and no silent score.

Each case is one run of bm25 over three questions of the example data.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from memarena.log.records import GatewayCall, QuestionAsked
from memarena.log.store import LogError, read_records

from tests.support.model_script import (
    ANSWER,
    DONE,
    Answer,
    Body,
    Reply,
    Script,
    chunk,
    first_then,
    good,
    refuses,
    says,
    usage,
    words_of,
)
from tests.support.model_server import ModelServer, Route

from .harnessing import EXAMPLE, asked, here

MODEL = "some-model"
QUESTIONS = 3
PROBES = 2
VLLM = "This model's maximum context length is 2048 tokens. However, you requested 2500 tokens (2100 in the messages)."
LLAMA = {
    "error": {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 3021,
        "n_ctx": 1024,
    }
}


def openai(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def listed(**more: object) -> dict[str, object]:
    return {"data": [{"id": MODEL, **more}]}


def gzipped(body: Body) -> Script:
    """Return a reply whose gzip body expands to 64 MB."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
    return Script(body=gzip.compress(b"data: " + b" " * (64 << 20)), headers=headers)


def later(bad: Reply) -> Reply:
    """Return a script that replies badly to questions and well to probes."""
    return first_then(PROBES, good, bad)


@dataclass(frozen=True)
class Case:
    chat: Reply
    code: int
    words: str
    """Text on standard error if the run ends early or warns, else in the cause of each question."""
    statuses: frozenset[str] = frozenset({"infra_failed"})
    """Statuses of the attempts in the log; empty if no question was put to the reader."""
    non_answer: str = ""
    flags: tuple[str, ...] = ()
    models: Route = None
    """Reply of the route that lists models; None: the usual one."""


NONE: frozenset[str] = frozenset()
ANSWERED = frozenset({"answered"})
CASES: dict[str, Case] = {
    # ---- the context is too long
    "context 400 of vLLM at once": Case(refuses(400, openai(VLLM), lambda b: words_of(b) > 900), 3, "--reader-window 2048", NONE),
    "context 400 of llama.cpp later": Case(later(refuses(400, LLAMA)), 3, "--reader-window 1024"),
    "413 of a proxy later": Case(later(refuses(413, "<html>413 Request Entity Too Large</html>")), 3, "--reader-window"),
    "prompts cut without a word": Case(
        lambda b: Script(events=[chunk({"content": ANSWER}), chunk({}, "stop"), usage(min(300, words_of(b) * 2)), DONE]),
        3, "it cuts what is too long (state the window with --reader-window 300", NONE,
    ),
    "prompts cut from the first question on": Case(
        later(says(chunk({"content": ANSWER}), chunk({}, "stop"), usage(40), DONE)), 3, "read 40 tokens of a prompt of"
    ),
    # ---- what is refused
    "system role refused": Case(
        refuses(400, openai("System role not supported"), lambda b: b["messages"][0]["role"] == "system"),
        3, "--no-system-role", NONE,
    ),
    "parameter refused": Case(
        refuses(400, openai("Unsupported parameter: 'seed'", param="seed"), lambda b: "seed" in b),
        3, "--reader-drop seed leaves it out", NONE,
    ),
    "limit of a reply by another name": Case(
        refuses(400, openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), lambda b: "max_tokens" in b),
        3, "--reader-drop max_tokens leaves it out", NONE,
    ),
    "parameter dropped": Case(
        refuses(400, openai("Unsupported parameter: 'seed'", param="seed"), lambda b: "seed" in b or b.get("top_k") != 1),
        0, "", ANSWERED, flags=("--reader-drop", "seed", "--reader-param", "top_k=1"),
    ),
    "filtered with 400": Case(later(refuses(400, openai("flagged", code="content_filter"))), 3, "flagged"),
    # ---- errors inside a reply of status 200
    "error object in the stream": Case(later(says(chunk({"content": "Tu"}), b'data: {"error": {"message": "out of memory"}}\n\n', DONE)), 3, "out of memory"),
    "JSON error under 200": Case(later(lambda b: Script(body=openai("no GPU left"))), 3, "no GPU left"),
    "finish reason abort": Case(later(says(chunk({"content": "Tu"}), chunk({}, "abort"), DONE)), 3, "finish_reason abort"),
    # ---- another form
    "content as parts": Case(
        says(chunk({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}]}), chunk({"content": [None, {"type": "text", "text": ANSWER}]}, "stop"), DONE),
        0, "", ANSWERED,
    ),
    "two answers in one stream, and no count": Case(
        says(chunk({"content": ANSWER}), b'data: {"choices": [{"index": 1, "delta": {"content": "OTHER"}}]}\n\n', chunk({}, "stop"), usage(0), DONE),
        0, "", ANSWERED,
    ),
    # ---- no answers
    "all spent on reasoning": Case(
        says(chunk({"reasoning_content": "Let me think"}), chunk({}, "length"), DONE),
        0, "3 of 3 answers: 3 spent on reasoning", ANSWERED, "reasoning",
    ),
    "stop without a text": Case(later(says(chunk({}, "stop"), DONE)), 0, "3 empty", ANSWERED, "empty"),
    "filtered": Case(later(says(chunk({"content": ""}, "content_filter"), DONE)), 0, "held back by the server's filter", ANSWERED, "filtered"),
    "cut by length": Case(later(says(chunk({"content": '{"answer": "Tues'}, "length"), DONE)), 0, "3 cut off", ANSWERED, "cut"),
    # ---- the list of models
    "no list of models": Case(good, 0, "is taken as named", ANSWERED, flags=("--model", MODEL), models=Script(status=404)),
    "no list and no name": Case(good, 2, "say which with --model", NONE, models=Script(status=404)),
    "a list under another name": Case(good, 0, "does not name some-model", ANSWERED, flags=("--model", MODEL), models=listed(id="other")),
    "a window in the list": Case(
        refuses(400, openai(VLLM), lambda b: words_of(b) > 1500), 0, "", ANSWERED, models=listed(max_model_len=2048),
    ),
    "loading at the start": Case(good, 0, "", ANSWERED, models=first_then(2, refuses(503, openai("Loading model")), lambda b: Script(body=listed()))),
    # ---- patience
    "429 with seconds": Case(first_then(3, refuses(429, openai("slow down"), retry_after="0.2")), 0, "", ANSWERED),
    "529 with seconds": Case(first_then(3, refuses(529, openai("Overloaded"), retry_after="0.2")), 0, "", ANSWERED),
    "429 for good": Case(
        later(refuses(429, openai("quota spent"), retry_after="3600")), 3, "quota spent (--reader-requests-per-minute"
    ),
    # ---- attackers
    "a redirect": Case(good, 2, "not followed", NONE, models=Script(status=302, headers={"Location": "http://127.0.0.1:9/v1/models"})),
    "a bomb": Case(later(gzipped), 3, "a body in gzip, which was not asked for"),
    "a reader that never stops": Case(later(says(chunk({"content": "word " * 2000}), lambda: chunk({"content": "word " * 100}))), 3, "does not stop"),
    "a line without end": Case(later(says(b"data: ", lambda: b"x" * 65536)), 3, "an event of more than"),
}  # fmt: skip


def run(server: ModelServer, out: Path, *flags: str, limit: int = QUESTIONS) -> Any:
    usual = ("--dataset", EXAMPLE, "--backend", "bm25", "--limit", str(limit), "--floor-samples", "0")
    return here("run", *usual, "--meter", "none", "--reader", server.base_url, "--out", out, *flags)


def attempts(out: Path) -> list[QuestionAsked]:
    try:
        return asked(out)
    except LogError:
        return []


@pytest.mark.parametrize("name", CASES)
def test_a_run_against_a_server_with_a_habit(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    routes = {} if case.models is None else {"/v1/models": case.models}
    with ModelServer(case.chat, model=MODEL, routes=routes) as server:
        result = run(server, tmp_path / "run", *case.flags)
    assert "Traceback" not in result.stderr + result.stdout
    assert result.returncode == case.code, result.stderr
    attempts_made = attempts(tmp_path / "run")
    assert {record.status for record in attempts_made} == case.statuses, [record.cause for record in attempts_made]
    causes = " ".join(record.cause for record in attempts_made)
    assert case.words in (result.stderr + causes)
    for record in attempts_made:
        if record.status == "answered":
            assert record.answer is not None
            assert record.answer.non_answer == case.non_answer
            assert record.answer.answer == ("Tuesday" if not case.non_answer else record.answer.answer)
            assert all(c.prompt_tokens is None or c.prompt_tokens >= 0 for c in calls(tmp_path / "run"))


def calls(out: Path) -> list[GatewayCall]:
    return [record for record in read_records(out, "gateway_call") if isinstance(record, GatewayCall)]


def test_a_resumed_run_asks_only_questions_that_failed_because_of_the_reader(tmp_path: Path) -> None:
    """The reader refuses the first prompt, and accepts it later; the answers of the first run stay."""
    out = tmp_path / "run"
    unfit: list[Any] = []

    def bad(body: Body) -> Answer:
        if body.number == PROBES:
            unfit.append(body["messages"])
        return refuses(400, LLAMA, lambda request: request["messages"] in unfit)(body)

    with ModelServer(bad) as server:
        first = run(server, out)
        answered_before = {r.instance_id for r in asked(out) if r.status == "answered"}
        assert (first.returncode, len(answered_before)) == (3, QUESTIONS - 1), first.stderr
        server.script = good
        again = here("run", "--out", out, "--resume")
    assert again.returncode == 0, again.stderr
    answered_ids = [r.instance_id for r in asked(out) if r.status == "answered"]
    assert len(answered_ids) == len(set(answered_ids)) == QUESTIONS


def test_a_reader_that_fails_every_question_ends_the_run_early(tmp_path: Path) -> None:
    """The reader answers each probe and no question."""

    def bad(body: Body) -> Answer:
        probing = "greeting" in body["messages"][-1]["content"] or body.number < PROBES
        return good(body) if probing else Script(events=[DONE])

    with ModelServer(bad) as server:
        result = run(server, tmp_path / "run", limit=20)
    assert result.returncode == 3
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "5 questions in a row failed" in line
    assert len({record.instance_id for record in asked(tmp_path / "run")}) == 5


def test_waits_for_a_busy_server_are_excluded_from_times(tmp_path: Path) -> None:
    """Every request gets Retry-After: 0.4 s first; the answers themselves take a few milliseconds."""
    busy = refuses(429, openai("slow down"), retry_after="0.4")
    with ModelServer(lambda body: (good if body.number % 2 else busy)(body)) as server:
        result = run(server, tmp_path / "run")
    assert result.returncode == 0, result.stderr
    for record in asked(tmp_path / "run"):
        assert record.answer is not None
        assert record.answer.waited_ns >= 400_000_000
        assert record.answer.completed_ns is not None
        assert record.answer.ttft_ns is not None
        assert record.answer.ttft_ns <= record.answer.completed_ns


def test_reasoning_is_timed_separately_in_both_forms(tmp_path: Path) -> None:
    """Reasoning in a separate field and between marks in the text gives the same two times, half a second apart."""
    closing = (0.5, chunk({"content": ANSWER}), chunk({}, "stop"), DONE)
    for number, opening in enumerate(
        ([chunk({"reasoning_content": "hm"})], [chunk({"content": "<think>hm"}), chunk({"content": "</think>"})])
    ):
        out = tmp_path / f"run{number}"
        with ModelServer(says(*opening, *closing)) as server:
            assert run(server, out).returncode == 0
        for record in asked(out):
            assert record.answer is not None
            assert record.answer.reasoning_ttft_ns is not None
            assert record.answer.ttft_ns is not None
            assert record.answer.ttft_ns - record.answer.reasoning_ttft_ns >= 200_000_000
            assert record.answer.rest_ns is not None
            assert record.answer.rest_ns >= 0


@pytest.mark.parametrize(
    ("chat", "code", "words"),
    [
        (good, 0, ["window             16,384 tokens, assumed", "reasoning          none seen", "longest prompt     about"]),
        (says(chunk({"reasoning_content": "hm"}), chunk({"content": "Hello"}, "stop"), usage(9999), DONE), 0, ["in a separate field"]),
        (says(chunk({"content": "Hello"}, "stop"), usage(300), DONE), 1, ["not fit for a run", "it cuts what is too long"]),
    ],
)  # fmt: skip
def test_a_reader_can_be_checked_without_a_run(chat: Reply, code: int, words: list[str]) -> None:
    with ModelServer(chat) as server:
        result = here("reader", "check", server.base_url)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stdout + result.stderr
