"""Tests text and sizes over gRPC: a size at the limit is accepted, above it is refused by name; all scripts survive."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memarena_backend import Description, Limits
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    Served,
    Verbatim,
    bad_fields,
    code_of,
    make_day,
    make_query,
    make_session,
    message_of,
    serve,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(("size", "fits"), [(256 * 1024, True), (256 * 1024 + 1, False)])
def test_the_text_of_a_turn_has_a_limit(served: Served, size: int, fits: bool) -> None:
    # Three-byte characters: bytes count, not characters.
    text = "€" * (size // 3) + "x" * (size % 3)
    frames = make_day("n1", 0, [make_session("s1", [text])])
    if fits:
        served.ingest(frames)
        assert served.find("n1", "€", 0) == [text]
    else:
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(frames)
        assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "session.turns[0].text" in message_of(caught.value)
        assert "262144" in message_of(caught.value)


@pytest.mark.parametrize("excess", [0, 1])
def test_a_frame_has_a_limit(served: Served, excess: int) -> None:
    session = make_session("s1", ["x" * 200_000] * 5)
    room = 1024 * 1024 + excess - pb.IngestRequest(session=session).ByteSize()
    # Growing a text by n bytes grows the frame by n as long as no length needs another byte.
    session.turns[4].text += "x" * room
    frames = make_day("n1", 0, [session])
    assert frames[1].ByteSize() == 1024 * 1024 + excess
    if excess == 0:
        served.ingest(frames)
    else:
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(frames)
        assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert message_of(caught.value) == "session: 1048577 bytes are above the limit of 1048576"


def test_a_frame_far_above_the_limit_meets_the_same_error(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(make_day("n1", 0, [make_session("s1", ["x" * 1_000_000] * 6)]))
    assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert message_of(caught.value).startswith("session: 6000")


def test_ids_of_128_bytes_work_and_longer_ones_are_refused(served: Served) -> None:
    long = "n" * 128
    session = make_session("s1", ["boat"])
    session.session_id, session.turns[0].turn_id = "s" * 128, "t" * 128
    served.ingest(make_day(long, 0, [session], batch_id="b" * 128))
    (item,) = served.search(make_query(long, "boat", 0)).items
    assert [*item.source_session_ids, *item.source_turn_ids] == ["s" * 128, "t" * 128]
    with pytest.raises(grpc.RpcError) as caught:
        served.ingest(make_day("n" * 129, 0, batch_id="b"))
    assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_tighter_limit_of_the_backend_takes_the_place_of_the_contracts(tmp_path: Path) -> None:
    class Small(Verbatim):
        def describe(self) -> Description:
            return Description("small", "1", limits=Limits(max_turn_text_bytes=5, max_query_text_bytes=5, max_items=2))

    with serve(Small(), tmp_path) as small:
        small.ingest(make_day("n1", 0, [make_session("s1", ["12345"])]))
        for refused in (
            lambda: small.ingest(make_day("n1", 1, [make_session("s1", ["123456"])])),
            lambda: small.search(make_query("n1", "123456", 0)),
            lambda: small.search(make_query("n1", "1", 0, max_items=3)),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                refused()
            assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert small.find("n1", "12345", 0, max_items=2) == ["12345"]


def test_invalid_utf8_is_refused_by_the_name_of_its_field(served: Served) -> None:
    frames = [frame.SerializeToString() for frame in make_day("n1", 0, [make_session("s1", ["boat", "QQQQ"])])]
    assert frames[1].count(b"QQQQ") == 1
    frames[1] = frames[1].replace(b"QQQQ", b"Q\xff\xfeQ")
    raw = served.channel.stream_unary(
        "/memarena.v1.MemoryBackend/Ingest", lambda data: data, pb.IngestResponse.FromString
    )
    with pytest.raises(grpc.RpcError) as caught:
        raw(iter(frames), timeout=20)
    assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, ["session.turns.text"])


def test_bytes_that_are_no_message_are_refused(served: Served) -> None:
    raw = served.channel.unary_unary(
        "/memarena.v1.MemoryBackend/Search", lambda data: data, pb.SearchResponse.FromString
    )
    with pytest.raises(grpc.RpcError) as caught:
        raw(b"\x0a\xff\xff\xff\xff\x0f", timeout=20)
    assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, ["SearchRequest"])


UNICODE = [
    "Grüße aus Zürich",
    "你好,世界",
    "שלום עולם \u202eabc\u202c",
    "नमस्ते दुनिया",
    "e\u0301 is not é",
    "👩‍👩‍👧‍👦 family 🇨🇭",
    "tab\tand\r\nlines\u2028and\u0001 controls",
    "\ufeffbom and \uffff noncharacter \U0010ffff",
    "x" * 100_000,
    " leading and trailing ",
]


def test_text_of_every_script_comes_back_as_it_was_sent(served: Served) -> None:
    served.ingest(make_day("n1", 0, [make_session("s1", UNICODE)]))
    for text in UNICODE:
        assert text in served.find("n1", text[:1000], 0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40), max_size=6))
def test_whatever_is_said_survives_the_wire_and_the_disk(tmp_path: Path, texts: list[str]) -> None:
    """Law: what was ingested is found again word for word, by the same process and by the next."""
    texts = [f"#{text}" for text in texts]
    for restarted in (False, True):
        with serve(Verbatim(), tmp_path) as served:
            if not restarted:
                served.reset("n1")
                served.ingest(make_day("n1", 0, [make_session("s1", texts)]))
            assert served.find("n1", "#", 0) == texts
