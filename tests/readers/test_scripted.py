"""The null reader does what its script says."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping

import pytest
from memarena.readers.scripted import EMBEDDING_DIMENSIONS, NullReader, Script
from pydantic import JsonValue


def post(reader: NullReader, route: str, body: dict[str, object]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(reader.base_url.split("/")[2], timeout=10)
    try:
        connection.request("POST", route, json.dumps(body))
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


CHAT: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("delay_s", [0.01, 0.05, 0.2])
def test_the_first_token_never_comes_before_its_time(delay_s: float) -> None:
    with NullReader(Script(first_token_delay_s=delay_s)) as reader:
        began = time.monotonic()
        post(reader, "/v1/chat/completions", CHAT | {"stream": True})
        assert time.monotonic() - began >= delay_s


def test_a_script_can_depend_on_the_request() -> None:
    def echo(body: Mapping[str, JsonValue]) -> Script:
        return Script(tokens=(str(body["model"]),))

    with NullReader(echo) as reader:
        _, raw = post(reader, "/v1/chat/completions", CHAT | {"model": "echoed"})
        assert json.loads(raw)["choices"][0]["message"]["content"] == "echoed"


def test_requests_are_kept_for_the_test_to_see() -> None:
    with NullReader() as reader:
        post(reader, "/v1/chat/completions", CHAT)
        (received,) = reader.received
        assert (received.route, received.body) == ("/v1/chat/completions", CHAT)


def test_embeddings_depend_on_the_text_alone() -> None:
    with NullReader() as reader:
        _, raw = post(reader, "/v1/embeddings", {"model": "m", "input": ["a", "b", "a"]})
        first, second, third = (each["embedding"] for each in json.loads(raw)["data"])
        assert first == third != second
        assert len(first) == EMBEDDING_DIMENSIONS


def test_unknown_routes_and_side_doors_of_others_are_closed() -> None:
    with NullReader() as reader:
        assert post(reader, "/tokenize", {"content": "a"})[0] == 404
        assert post(reader, "/nonesuch", {})[0] == 404


def test_stopping_twice_is_fine() -> None:
    reader = NullReader()
    reader.start()
    reader.stop()
    reader.stop()
