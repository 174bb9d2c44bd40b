"""Tests StreamWatch, which reads an event stream in chunks of any size while it is forwarded."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.gateway.calls import OpenCall
from memarena.gateway.streams import StreamWatch
from memarena_answering.servers.replies import MAX_EVENT_BYTES, UpstreamError, error_message


def event(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}], **more}).encode() + b"\n\n"


OPENING = event({"role": "assistant", "content": ""})
STREAM = [
    OPENING,
    b": ping\n\n",
    event({"content": "Tues"}),
    event({"content": "day ✓"}),
    event({}, "stop"),
    b'data: {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}\n\n',
    b"data: [DONE]\n\n",
]


def a_call() -> OpenCall:
    async def make() -> OpenCall:
        return OpenCall("id", "/v1/chat/completions")

    call = asyncio.run(make())
    call.forwarded_ns = 0
    return call


@given(cuts=st.lists(st.integers(0, sum(map(len, STREAM)))), hide=st.booleans(), crlf=st.booleans())
def test_a_stream_reads_the_same_however_it_is_split(cuts: list[int], hide: bool, crlf: bool) -> None:
    events = [event_bytes.replace(b"\n\n", b"\r\n\r\n") for event_bytes in STREAM] if crlf else STREAM
    stream = b"".join(events)
    call = a_call()
    watch = StreamWatch(call, hide_usage=hide)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut <= len(stream))})
    passed = b"".join(watch.feed(stream[a:b], b) for a, b in pairwise(edges))
    passed += watch.end(len(stream))
    watch.finish()
    assert call.output == "Tuesday ✓"
    assert (call.prompt_tokens, call.completion_tokens) == (4, 2)
    assert passed == b"".join(event_bytes for event_bytes in events if not (hide and b"usage" in event_bytes))


def test_the_opening_role_chunk_goes_out_with_the_first_content() -> None:
    watch = StreamWatch(a_call(), hide_usage=True)
    assert watch.feed(OPENING, 1) == b""
    assert watch.feed(event({"content": "x"}), 2) == OPENING + event({"content": "x"})
    assert watch.feed(event({"content": "y"}), 3) == event({"content": "y"})


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"tool_calls": [{"index": 0}]}])
def test_any_content_ends_the_opening(delta: dict[str, object]) -> None:
    call = a_call()
    assert StreamWatch(call, hide_usage=True).feed(OPENING + event(delta), 1) == OPENING + event(delta)
    assert call.first_content_ns is None


def test_a_byte_order_mark_before_the_first_event_is_ignored() -> None:
    """The format of event streams allows one; it must not hide the first text."""
    call = a_call()
    watch = StreamWatch(call, hide_usage=True)
    assert watch.feed(b"\xef\xbb\xbf" + event({"content": "x"}), 1) == event({"content": "x"})
    watch.finish()
    assert call.output == "x"


def test_a_stream_with_done_and_no_final_line_end_is_complete() -> None:
    unended = b"data: [DONE]"
    watch = watching(STREAM[:5])
    assert watch.feed(unended, 2) == b""
    assert watch.end(3) == unended


def watching(events: list[bytes]) -> StreamWatch:
    watch = StreamWatch(a_call(), hide_usage=True)
    watch.feed(b"".join(events), 1)
    return watch


def test_a_stream_that_just_ends_is_broken() -> None:
    with pytest.raises(UpstreamError, match="before the reply was complete"):
        watching(STREAM[:4]).end(2)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [b'data: {"choices": null}\n\n'],
        [OPENING],
        [STREAM[5]],
        [event({"content": ""})],
        [b'data: {"choices": [{"text": "x"}]}\n\n'],
        [event({"content": "x"}), STREAM[5]],
    ],
)
def test_a_stream_with_done_but_no_finish_reason_is_broken(events: list[bytes]) -> None:
    watch = StreamWatch(a_call(), hide_usage=False)
    watch.feed(b"".join(events) + STREAM[-1], 1)
    assert watch.failure is not None
    assert "not why the reply ended" in watch.failure.message


@pytest.mark.parametrize(
    "events",
    [
        [OPENING, event({}, "stop")],
        [b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\n'],
        [b'data: {"choices": [{"text": "x", "finish_reason": "stop"}]}\n\n'],
        [event({"tool_calls": [{"index": 0}]}, "tool_calls")],
        [event({"reasoning_content": "hm"}, "length")],
        [b'data: {"choices": []}\n\n', event({"content": "x"}, "stop"), STREAM[5]],
    ],
)
def test_a_stream_with_an_empty_reply_is_complete(events: list[bytes]) -> None:
    watch = StreamWatch(a_call(), hide_usage=False)
    stream = b"".join(events) + STREAM[-1]
    assert watch.feed(stream, 1) + watch.end(2) == stream
    assert watch.failure is None


@pytest.mark.parametrize(
    ("chunk", "passed"),
    [
        (b"retry: 3000\n\n", b""),
        (b"id: 7\nevent: message\ndata: {}\n\n", b"data: {}\n\n"),
        (b'data: {"usage": {"prompt_tokens": -5, "total_tokens": 2}}\n\n', b'data: {"usage":{"total_tokens":2}}\n\n'),
        (b'data: {"usage": {"prompt_tokens": 0, "total_tokens": 2}}\n\n', b'data: {"usage":{"total_tokens":2}}\n\n'),
        (b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}]}\n\n', b'data: {"choices":[]}\n\n'),
        (b'data: {"usage": {"prompt_tokens": 1%s}}\n\n' % (b"0" * 30), b'data: {"usage":{}}\n\n'),
        (b'data: {"timings": {"prompt_ms": NaN}}\n\n', b'data: {"timings":{"prompt_ms":null}}\n\n'),
        (
            event({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "yes"}]}),
            b'data: {"choices":[{"delta":{"content":"yes","reasoning_content":"hm"},"finish_reason":null}]}\n\n',
        ),
        (
            event({"content": [{"type": ["text"], "text": "yes"}]}),
            b'data: {"choices":[{"delta":{"content":"yes"},"finish_reason":null}]}\n\n',
        ),
        (
            b'data: {"choices": [{"delta": {"content": "\\ud83d"}, "finish_reason": {"type": "stop"}}]}\n\n',
            b'data: {"choices":[{"delta":{"content":"\\ufffd"},"finish_reason":"stop"}]}\n\n',
        ),
    ],
)  # fmt: skip
def test_other_forms_of_chunks_are_normalised(chunk: bytes, passed: bytes) -> None:
    call = a_call()
    watch = StreamWatch(call, hide_usage=False)
    watch.feed(OPENING + event({"content": "x"}), 1)
    assert watch.feed(chunk, 2) == passed
    assert watch.failure is None
    assert (call.prompt_tokens, call.server_prompt_ms) == (None, None)


@pytest.mark.parametrize(
    ("pieces", "reasoning_ns", "answer_ns"),
    [
        (["Tues", "day"], None, 1),
        (["<", "3"], None, 1),
        (["\n<th", "ink>", "hm", "</thi", "nk>", "\n\n", "Tuesday"], 1, 7),
        (["<think>hm</think>Tuesday"], 1, 1),
        (["hm", " hm</think>", "Tuesday"], 1, 3),
        (["[THINK]", "never done"], 1, None),
    ],
)
def test_the_answer_begins_after_reasoning_between_tags(
    pieces: list[str], reasoning_ns: int | None, answer_ns: int | None
) -> None:
    call = a_call()
    watch = StreamWatch(call, hide_usage=False)
    for at_ns, piece in enumerate(pieces, 1):
        watch.feed(event({"content": piece}), at_ns)
    assert (call.first_reasoning_ns, call.first_content_ns) == (reasoning_ns, answer_ns)


@pytest.mark.parametrize(("key", "word"), [("content", "word "), ("reasoning_content", "word "), ("content", "ねこ")])
def test_an_endless_reply_is_stopped(key: str, word: str) -> None:
    watch = StreamWatch(a_call(), hide_usage=False, max_tokens=1)
    for at_ns in range(1, 20):
        watch.feed(event({key: word * 200}), at_ns)
    assert watch.failure is not None
    assert "does not stop" in watch.failure.message


def test_an_endless_event_is_not_buffered() -> None:
    watch = StreamWatch(a_call(), hide_usage=False)
    watch.feed(b"data: " + b"x" * MAX_EVENT_BYTES, 1)
    assert watch.failure is not None


@pytest.mark.parametrize("choices", [b"5", b'"text"', b"[null]", b"[5]"])
def test_invalid_choices_are_an_error(choices: bytes) -> None:
    watch = watching([b'data: {"choices": ' + choices + b"}\n\n"])
    assert watch.failure is not None


@pytest.mark.parametrize(
    "bad",
    [
        b"data: {oops\n\n",
        b"data: 3\n\n",
        b'data: {"error": {"message": "boom"}}\n\n',
        b'event: error\ndata: {"message": "boom"}\n\n',
        b"event: error\ndata: boom\n\n",
        event({"content": "x"}, "error"),
        event({}, "abort"),
        event({"content": 5}),
        b'data: {"choices": [{"error": {"message": "boom"}}]}\n\n',
    ],
)
def test_an_event_that_is_no_chunk_is_an_error(bad: bytes) -> None:
    watch = watching(STREAM[:3])
    assert watch.feed(STREAM[3] + bad + STREAM[4], 2) == STREAM[3]
    assert watch.failure is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"message": "c\n\x1b[31md\x07"}, "c [31md"),
        ({"detail": "e"}, "e"),
        ([{"error": {"message": {"message": "g"}}}], "g"),
        ("f", "f"),
        ({"x": 1}, '{"x": 1}'),
    ],
)
def test_errors_in_any_form_become_one_line(body: object, words: str) -> None:
    assert error_message(body) == words
