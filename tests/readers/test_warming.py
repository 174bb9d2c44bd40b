"""Tests warm-up requests: lengths from short to the longest, all different, and a failure is reported."""

from __future__ import annotations

import pytest
from memarena.gateway import Gateway
from memarena.log.records import GatewayCall, ReaderRef
from memarena.readers.errors import ReaderError
from memarena.readers.types import RunningReader
from memarena.readers.warming import lengths, warm_up

from tests.support.model_script import Script
from tests.support.model_server import ModelServer


def running(reader: ModelServer) -> RunningReader:
    ref = ReaderRef(name="null", kind="url", model="null-reader", context_window_tokens=16384)
    return RunningReader(ref, reader.upstream())


def test_lengths_grow_geometrically_from_64_to_the_longest() -> None:
    assert lengths(4, 4096) == [64, 256, 1024, 4096]
    assert lengths(1, 500) == [500]
    assert lengths(3, 10) == [10, 10, 10]


def test_every_length_is_sent_once_with_a_different_beginning() -> None:
    calls: list[GatewayCall] = []
    with ModelServer() as reader, Gateway([reader.upstream()], calls.append) as gateway:
        warm_up(running(reader), gateway, 5, 2000)
    sizes = [call.prompt_tokens or 0 for call in calls]
    assert sizes == sorted(sizes)
    for size, length in zip(sizes, lengths(5, 2000), strict=True):
        assert size == pytest.approx(length, rel=0.15, abs=12)
    assert len({call.prompt[:60] for call in calls}) == 5
    assert {call.phase for call in calls} == {"probe"}


def test_a_failed_warm_up_names_its_length() -> None:
    with (
        ModelServer(Script(status=500)) as reader,
        Gateway([reader.upstream()], lambda call: None) as gateway,
        pytest.raises(ReaderError, match="warm-up of about 64 tokens"),
    ):
        warm_up(running(reader), gateway, 2, 2000)
