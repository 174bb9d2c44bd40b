"""Tests the cache of untimed runs: the same request gets the same bytes, and its record has no times.

A wrong reply from the cache would be another model's or another question's answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memarena.gateway import CallContext, GatewayError

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from tests.gateway.conftest import Harness

    Make = Callable[..., Harness]


@pytest.mark.parametrize("stream", [False, True])
def test_the_same_request_gets_the_same_bytes_without_the_model(
    make_harness: Make, tmp_path: Path, stream: bool
) -> None:
    harness = make_harness(cache_dir=tmp_path)
    first, original = harness.one_chat(stream=stream, seed=1)
    harness.reader.script = Script(tokens=("something", " else"))
    again, record = harness.one_chat(stream=stream, seed=1)
    assert again.body == first.body
    assert len(harness.reader.received) == 1
    assert (original.from_cache, record.from_cache) == (False, True)
    fields = ("prompt_tokens", "completion_tokens", "output", "output_sha256", "prompt_sha256", "status")
    assert [getattr(record, name) for name in fields] == [getattr(original, name) for name in fields]
    assert {record.first_content_ns, record.done_ns, record.first_byte_ns} == {None}


@pytest.mark.parametrize(
    "other", [{"seed": 2}, {"temperature": 0.3}, {"stream": True}, {"messages": [{"role": "user", "content": "Who?"}]}]
)
def test_every_input_of_a_reply_is_in_its_cache_key(
    make_harness: Make, tmp_path: Path, other: dict[str, object]
) -> None:
    harness = make_harness(cache_dir=tmp_path)
    harness.one_chat(seed=1, temperature=0.0)
    _, record = harness.one_chat(**{"seed": 1, "temperature": 0.0, **other})
    assert not record.from_cache
    assert len(harness.reader.received) == 2


def test_other_weights_under_the_same_name_are_another_model(make_harness: Make, tmp_path: Path) -> None:
    reader = ModelServer()
    for identity in ("a", "b", "a"):
        upstream = dataclasses.replace(reader.upstream(), identity=identity)
        make_harness(reader, upstreams=[upstream], cache_dir=tmp_path).one_chat()
    assert len(reader.received) == 2


def test_the_order_of_fields_does_not_matter(make_harness: Make, tmp_path: Path) -> None:
    harness = make_harness(cache_dir=tmp_path)
    harness.one_chat(seed=1, top_p=1.0)
    _, record = harness.one_chat(top_p=1.0, seed=1)
    assert record.from_cache


@pytest.mark.parametrize("fault", ["status", "malformed", "break", "error_event"])
def test_a_failure_is_never_cached(make_harness: Make, tmp_path: Path, fault: str) -> None:
    harness = make_harness(ModelServer(Script(fault=fault)), cache_dir=tmp_path)  # type: ignore[arg-type]
    harness.one_chat(stream=fault not in ("status", "malformed"))
    harness.reader.script = Script()
    reply, record = harness.one_chat(stream=fault not in ("status", "malformed"))
    assert reply.status == 200
    assert not record.from_cache


def test_a_truncated_cache_file_is_ignored(make_harness: Make, tmp_path: Path) -> None:
    harness = make_harness(cache_dir=tmp_path)
    harness.one_chat()
    (file,) = tmp_path.glob("*/*.json")
    file.write_bytes(file.read_bytes()[:20])
    _, record = harness.one_chat()
    assert not record.from_cache


def test_a_gateway_without_a_cache_calls_the_model_every_time(harness: Harness) -> None:
    harness.one_chat()
    harness.one_chat()
    assert len(harness.reader.received) == 2


def test_a_cache_folder_that_cannot_be_made_is_reported_at_once(make_harness: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GatewayError, match="cache"):
        make_harness(cache_dir=tmp_path / "file" / "cache")


def test_a_late_call_is_refused_even_if_its_reply_is_cached(make_harness: Make, tmp_path: Path) -> None:
    harness = make_harness(cache_dir=tmp_path)
    harness.one_chat()
    token = harness.gateway.grant(CallContext("ingest"))
    harness.gateway.revoke(token)
    assert harness.chat(token).status == 403
