"""The watch over event streams, fed in any pieces."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.gateway.calls import OpenCall, UpstreamError
from memarena.gateway.streams import StreamWatch, error_message


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
def test_however_a_stream_is_cut_into_pieces_it_says_the_same(cuts: list[int], hide: bool, crlf: bool) -> None:
    events = [each.replace(b"\n\n", b"\r\n\r\n") for each in STREAM] if crlf else STREAM
    whole = b"".join(events)
    call = a_call()
    watch = StreamWatch(call, hide_usage=hide)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut <= len(whole))})
    passed = b"".join(watch.feed(whole[a:b], b) for a, b in pairwise(edges))
    passed += watch.end(len(whole))
    watch.settle()
    assert call.output == "Tuesday ✓"
    assert (call.prompt_tokens, call.completion_tokens) == (4, 2)
    assert passed == b"".join(each for each in events if not (hide and b"usage" in each))


def test_the_opening_role_chunk_goes_out_with_the_first_content() -> None:
    watch = StreamWatch(a_call(), hide_usage=True)
    assert watch.feed(OPENING, 1) == b""
    assert watch.feed(event({"content": "x"}), 2) == OPENING + event({"content": "x"})
    assert watch.feed(event({"content": "y"}), 3) == event({"content": "y"})


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"tool_calls": [{"index": 0}]}])
def test_anything_said_ends_the_opening(delta: dict[str, object]) -> None:
    call = a_call()
    assert StreamWatch(call, hide_usage=True).feed(OPENING + event(delta), 1) == OPENING + event(delta)
    assert call.first_content_ns is None


def test_a_stream_without_its_last_line_end_is_complete_if_it_says_so() -> None:
    unended = b"data: [DONE]"
    watch = watching(STREAM[:4])
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
    ],
)
def test_a_stream_that_is_done_without_a_reply_is_broken(events: list[bytes]) -> None:
    watch = StreamWatch(a_call(), hide_usage=False)
    watch.feed(b"".join(events) + STREAM[-1], 1)
    assert watch.failure is not None
    assert "held no reply" in watch.failure.message


@pytest.mark.parametrize(
    "events",
    [
        [OPENING, event({}, "stop")],
        [b'data: {"choices": [{"text": "", "finish_reason": "stop"}]}\n\n'],
        [b'data: {"choices": [{"text": "x"}]}\n\n'],
        [event({"tool_calls": [{"index": 0}]})],
        [event({"reasoning_content": "hm"})],
        [b'data: {"choices": []}\n\n', event({"content": "x"}), STREAM[5]],
    ],
)
def test_a_stream_with_a_reply_is_complete_also_where_that_is_empty(events: list[bytes]) -> None:
    watch = StreamWatch(a_call(), hide_usage=False)
    whole = b"".join(events) + STREAM[-1]
    assert watch.feed(whole, 1) + watch.end(2) == whole
    assert watch.failure is None


@pytest.mark.parametrize("choices", [b"5", b'"text"', b"[null]", b"[5]"])
def test_choices_that_are_none_are_an_error(choices: bytes) -> None:
    watch = watching([b'data: {"choices": ' + choices + b"}\n\n"])
    assert watch.failure is not None


@pytest.mark.parametrize("bad", [b"data: {oops\n\n", b"data: 3\n\n", b'data: {"error": {"message": "boom"}}\n\n'])
def test_what_is_no_chunk_is_an_error(bad: bytes) -> None:
    watch = watching(STREAM[:3])
    assert watch.feed(STREAM[3] + bad + STREAM[4], 2) == STREAM[3]
    assert watch.failure is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"message": "c\nd"}, "c d"),
        ({"detail": "e"}, "e"),
        ("f", "f"),
        ({"x": 1}, '{"x": 1}'),
    ],
)
def test_errors_in_any_form_become_one_line(body: object, words: str) -> None:
    assert error_message(body) == words  # type: ignore[arg-type]
