"""Runs the null reader: an OpenAI-compatible server that answers any chat at once, to measure a machine's floor.

The floor is the time that harness and gateway themselves take on this machine: null backend and null reader do no work.
"""

from __future__ import annotations

import json
from typing import Self

from aiohttp import web

from memarena.gateway import Upstream
from memarena.readers import wire
from memarena.readers.serving import ThreadedServer

MODEL = "null-reader"
TOKENS = ('{"answer": "', "as scripted", '", "reason": "', "it is in the script", '"}')


class NullReader:
    """A server on loopback, in a thread of this process, that streams the same tokens for each chat."""

    def __init__(self) -> None:
        self._server = ThreadedServer(self._handle, "memarena-null-reader")

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT/v1`` once started."""
        return f"http://127.0.0.1:{self._server.port}/v1"

    def upstream(self) -> Upstream:
        """Return this reader as a model behind a gateway."""
        return Upstream(MODEL, self.base_url, MODEL, context_window_tokens=16_384, tokenizer="bytes")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream the role with the first token, then the other tokens one by one, then the counts."""
        messages = wire.chat_messages(json.loads(await request.content.read()))
        role, first, *later = ({"role": "assistant", "content": ""}, *({"content": token} for token in TOKENS))
        usage = wire.token_usage(wire.bytes_tokens([message.content for message in messages]), len(TOKENS), 0)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"".join(wire.sse(wire.chat_chunk(MODEL, delta)) for delta in (role, first)))
        for delta in later:
            await response.write(wire.sse(wire.chat_chunk(MODEL, delta)))
        closing = wire.sse(wire.chat_chunk(MODEL, {}, "stop")) + wire.sse(wire.usage_chunk(MODEL, usage)) + wire.DONE
        await response.write(closing)
        await response.write_eof()
        return response
