"""Fixtures for tests of the gateway: it runs in front of a scripted reader and is called by plain HTTP."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from memarena.gateway import CallContext, Gateway
from memarena.log.records import GatewayCall

from tests.support.model_server import ModelServer


@dataclass
class Reply:
    """A complete HTTP reply."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """Return the events of a stream as JSON values, and ``[DONE]`` as a string."""
        data_lines = [line.removeprefix("data: ") for line in self.body.decode().split("\n\n") if line]
        return [event if event == "[DONE]" else json.loads(event) for event in data_lines]

    def text(self) -> str:
        """Return the joined text deltas of a stream."""
        chunks = [event for event in self.events() if isinstance(event, dict)]
        return "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk.get("choices", ()))


@dataclass
class Harness:
    """A reader, the gateway in front of it, and the records that the gateway made."""

    reader: ModelServer
    gateway: Gateway
    records: list[GatewayCall] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.gateway.base_url.split(":")[2].split("/")[0])

    def call(self, route: str, body: object, token: str | None, method: str = "POST") -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        try:
            connection.request(method, route, data, headers)
            reply = connection.getresponse()
            return Reply(reply.status, reply.read())
        finally:
            connection.close()

    def recorded(self, count: int) -> GatewayCall:
        """Wait until there are exactly ``count`` records and return the last.

        A record is made after the caller has its reply.
        """
        deadline = time.monotonic() + 30
        while len(self.records) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        assert len(self.records) == count
        return self.records[-1]

    def chat(self, token: str | None, **more: object) -> Reply:
        body = {"model": self.reader.model, "messages": [{"role": "user", "content": "Where?"}], **more}
        return self.call("/v1/chat/completions", body, token)

    def one_chat(self, **more: object) -> tuple[Reply, GatewayCall]:
        """Call a chat with its own token; return the reply and its only record."""
        token = self.gateway.grant(CallContext("answer", "cell", "instance", "ego", 3))
        reply = self.chat(token, **more)
        (record,) = self.gateway.revoke(token)
        return reply, record


@pytest.fixture
def make_harness() -> Iterator[Callable[..., Harness]]:
    """Return a function that starts a harness; arguments are the reader and options of the gateway."""
    running: list[Harness] = []

    def make(reader: ModelServer | None = None, **options: Any) -> Harness:
        reader = reader or ModelServer()
        records: list[GatewayCall] = []
        upstreams = options.pop("upstreams", None) or [reader.upstream()]
        gateway = Gateway(upstreams, options.pop("record", records.append), **options)
        gateway.start()
        harness = Harness(reader, gateway, records)
        running.append(harness)
        return harness

    yield make
    for harness in running:
        try:
            harness.gateway.stop()
        finally:
            harness.reader.stop()


@pytest.fixture
def harness(make_harness: Callable[..., Harness]) -> Harness:
    return make_harness()
