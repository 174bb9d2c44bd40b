"""The null reader: an OpenAI-compatible server that follows a script instead of a model, faults included.

It gives the floor of a machine (a reader that answers at once), and stands in for servers that are slow or misbehave.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from aiohttp import web
from pydantic import JsonValue

from memarena.gateway import Upstream
from memarena.gateway.types import Role
from memarena.readers import wire
from memarena.readers.serving import ThreadedServer

Fault = Literal["none", "status", "malformed", "error_event", "disconnect", "break", "cut", "stall", "endless"]
"""What goes wrong: ``status`` answers with that status; ``malformed`` sends a body or chunk that is no JSON;
``error_event`` reports an error inside the stream; ``disconnect`` closes before answering, ``break`` after the first
token, ``cut`` ends a stream cleanly but without its end; ``stall`` never goes on after the first token; ``endless``
repeats the last token until the caller goes away.
"""

EMBEDDING_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Script:
    """One reply. Delays count from the moment at which the request has been read."""

    tokens: tuple[str, ...] = ('{"answer": "', "as scripted", '", "reason": "', "it is in the script", '"}')
    first_token_delay_s: float = 0.0
    token_delay_s: float = 0.0
    finish_reason: wire.Finish = "stop"
    prompt_tokens: int | None = None
    """None: UTF-8 bytes / 4 of the messages."""
    cached_tokens: int | None = 0
    """None is sent as null."""
    reports_usage: bool = True
    reasoning: tuple[str, ...] = ()
    """Sent as ``reasoning_content`` before the tokens, without delay between them."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """llama.cpp's ``timings`` of the closing chunk."""
    fault: Fault = "none"
    status: int = 500
    message: str = "scripted failure"

    @property
    def text(self) -> str:
        """The whole reply."""
        return "".join(self.tokens)


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    route: str
    headers: Mapping[str, str]
    body: Mapping[str, JsonValue]


async def _pause(until_s: float) -> None:
    """Sleep until a moment of the monotonic clock, never shorter; a timer may wake a little early."""
    while (left := until_s - time.monotonic()) > 0:
        await asyncio.sleep(left)


class NullReader:
    """A scripted reader on loopback, in a thread of this process. ``script`` may be replaced at any time.

    A script may also be a function of the request's body, for replies that depend on the prompt. ``dialect`` adds the
    side doors by which llama.cpp and SGLang are known; both count one token per word.
    """

    def __init__(
        self,
        script: Script | Callable[[Mapping[str, JsonValue]], Script] = Script(),
        *,
        model: str = "null-reader",
        dialect: Literal["plain", "llama.cpp", "sglang"] = "plain",
        window_tokens: int = 16_384,
        api_key: str | None = None,
    ) -> None:
        self.script = script
        self.model = model
        self.dialect = dialect
        self.window_tokens = window_tokens
        self._api_key = api_key
        self._received: list[Received] = []
        self._lock = threading.Lock()
        self._server = ThreadedServer(self.handle, "memarena-null-reader")

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT/v1`` once started."""
        return f"http://127.0.0.1:{self._server.port}/v1"

    @property
    def received(self) -> tuple[Received, ...]:
        """All requests so far, in order of arrival."""
        with self._lock:
            return tuple(self._received)

    def upstream(self, *, name: str | None = None, role: Role = "reader") -> Upstream:
        """This reader as a model behind a gateway."""
        return Upstream(
            model=name or self.model,
            base_url=self.base_url,
            upstream_model=self.model,
            role=role,
            api_key=self._api_key,
            context_window_tokens=self.window_tokens,
            tokenizer="bytes" if self.dialect == "plain" else self.dialect,
        )

    def start(self) -> None:
        """Listen on a free port of the loopback."""
        self._server.start()

    def stop(self) -> None:
        """Stop. Calling it twice is fine."""
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------ in the server's thread

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, in whichever server."""
        raw = await request.content.read()
        arrived_s = time.monotonic()
        body: JsonValue = json.loads(raw) if raw else {}
        assert isinstance(body, dict)
        with self._lock:
            self._received.append(Received(request.path, dict(request.headers), body))
        if self._api_key is not None and request.headers.get("Authorization") != f"Bearer {self._api_key}":
            return web.json_response(wire.error("wrong key", "invalid_api_key"), status=401)
        script = self.script(body) if callable(self.script) else self.script
        match request.path:
            case "/v1/models":
                return web.json_response(wire.model_list(self.model))
            case "/v1/chat/completions" | "/v1/completions":
                return await self._complete(request, body, script, arrived_s)
            case "/v1/embeddings" | "/v1/rerank":
                make = _embeddings if request.path == "/v1/embeddings" else _ranking
                return await self._at_once(make(body, self.model), script, arrived_s)
        side_door = self._side_door(request.path, body)
        if side_door is None:
            return web.json_response(wire.error("no such route", "not_found"), status=404)
        return web.json_response(side_door)

    async def _at_once(self, reply: Mapping[str, JsonValue], script: Script, arrived_s: float) -> web.StreamResponse:
        if script.fault == "status":
            return web.json_response(wire.error(script.message, "scripted"), status=script.status)
        await _pause(arrived_s + script.first_token_delay_s)
        if script.fault == "malformed":
            return web.Response(text="{not json", content_type="application/json")
        return web.json_response(reply)

    def _side_door(self, path: str, body: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
        if self.dialect == "llama.cpp" and path == "/props":
            return {"default_generation_settings": {"n_ctx": self.window_tokens}, "build_info": "null"}
        if self.dialect == "llama.cpp" and path == "/tokenize":
            return {"tokens": _llama_tokens(body.get("content"))}
        if self.dialect == "sglang" and path == "/server_info":
            return {"version": "null", "context_length": self.window_tokens, "model_path": self.model}
        if self.dialect == "sglang" and path == "/tokenize":
            prompts = body.get("prompt")
            texts = prompts if isinstance(prompts, list) else [prompts]
            return {"count": [len(str(text).split()) for text in texts], "tokens": []}
        return None

    async def _complete(
        self, request: web.BaseRequest, body: Mapping[str, JsonValue], script: Script, arrived_s: float
    ) -> web.StreamResponse:
        if script.fault == "status":
            return web.json_response(wire.error(script.message, "scripted"), status=script.status)
        chat = request.path == "/v1/chat/completions"
        opening = self._opening(script, chat=chat)  # made beforehand: nothing but sending comes after the delay
        await _pause(arrived_s + script.first_token_delay_s)
        if script.fault == "disconnect":
            assert request.transport is not None
            request.transport.abort()
            raise ConnectionResetError
        if body.get("stream") is True:
            return await self._stream(request, body, script, opening, chat=chat)
        if script.fault == "malformed":
            return web.Response(text="{this is no JSON", content_type="application/json")
        for _ in script.tokens[1:]:
            await asyncio.sleep(script.token_delay_s)
        usage = self._usage(body, script)
        message: dict[str, JsonValue] = {"content": script.text}
        if script.reasoning:
            message["reasoning_content"] = "".join(script.reasoning)
        whole = wire.chat_completion(self.model, message, script.finish_reason, usage)
        if not chat:
            whole["choices"] = [{"index": 0, "text": script.text, "finish_reason": script.finish_reason}]
        if script.timings:
            whole["timings"] = dict(script.timings)
        return web.json_response(whole)

    def _usage(self, body: Mapping[str, JsonValue], script: Script) -> dict[str, JsonValue] | None:
        if not script.reports_usage:
            return None
        counted = script.prompt_tokens
        if counted is None:
            prompt = body.get("prompt")
            texts = [m.content for m in wire.chat_messages(body)] if "messages" in body else [str(prompt)]
            counted = wire.bytes_tokens(texts)
        return wire.token_usage(counted, len(script.tokens), script.cached_tokens)

    def _chunk(self, text: str, finish: str | None = None, *, chat: bool) -> bytes:
        if chat:
            return wire.sse(wire.chat_chunk(self.model, {"content": text} if text else {}, finish))
        return wire.sse({"choices": [{"index": 0, "text": text, "finish_reason": finish}], "model": self.model})

    def _opening(self, script: Script, *, chat: bool) -> tuple[bytes, ...]:
        """What is sent first: the role, any reasoning, and the first token; the role in one piece with what follows."""
        said = [wire.sse(wire.chat_chunk(self.model, {"reasoning_content": thought})) for thought in script.reasoning]
        said += [self._chunk(token, chat=chat) for token in script.tokens[:1]]
        role = wire.sse(wire.chat_chunk(self.model, {"role": "assistant", "content": ""})) if chat else b""
        return (role + said[0], *said[1:]) if said else (role,)

    async def _stream(
        self,
        request: web.BaseRequest,
        body: Mapping[str, JsonValue],
        script: Script,
        opening: Sequence[bytes],
        *,
        chat: bool,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        assert request.transport is not None
        for piece in opening:
            await response.write(piece)
        if script.tokens and script.fault != "none":
            await self._misbehave(request, response, script, chat=chat)
            return response
        for token in script.tokens[1:]:
            if script.token_delay_s:
                await asyncio.sleep(script.token_delay_s)
            await response.write(self._chunk(token, chat=chat))
        closing = self._chunk("", script.finish_reason, chat=chat)
        usage = self._usage(body, script)
        options = body.get("stream_options")
        if usage is not None and isinstance(options, dict) and options.get("include_usage") is True:
            last = wire.usage_chunk(self.model, usage)
            if script.timings:
                last["timings"] = dict(script.timings)
            closing += wire.sse(last)
        await response.write(closing + wire.DONE)
        await response.write_eof()
        return response

    async def _misbehave(
        self, request: web.BaseRequest, response: web.StreamResponse, script: Script, *, chat: bool
    ) -> None:
        """Go wrong in the middle of a stream."""
        assert request.transport is not None
        match script.fault:
            case "malformed":
                await response.write(b"data: {this is no JSON\n\n")
            case "error_event":
                await response.write(wire.sse(wire.error(script.message, "scripted")))
            case "break":
                await asyncio.sleep(0.01)  # let the first token out
                request.transport.abort()
                raise ConnectionResetError
            case "stall":
                await asyncio.Event().wait()
            case "endless":
                while True:
                    await response.write(self._chunk(script.tokens[-1], chat=chat))
                    await asyncio.sleep(max(script.token_delay_s, 0.001))
        await response.write_eof()


def _llama_tokens(content: JsonValue) -> list[JsonValue]:
    """llama.cpp's mixed tokenize: texts give one id per word, ids stay as they are."""
    tokens: list[JsonValue] = []
    for part in content if isinstance(content, list) else [content]:
        tokens += [part] if isinstance(part, int) else [len(word) for word in str(part).split()]
    return tokens


def _embeddings(body: Mapping[str, JsonValue], model: str) -> dict[str, JsonValue]:
    """Deterministic vectors that depend on the text alone."""
    given = body.get("input")
    texts = given if isinstance(given, list) else [given]
    data: list[JsonValue] = []
    for index, text in enumerate(texts):
        digest = hashlib.sha256(str(text).encode()).digest()
        vector: list[JsonValue] = [byte / 255 for byte in digest[:EMBEDDING_DIMENSIONS]]
        data.append({"object": "embedding", "index": index, "embedding": vector})
    tokens = wire.bytes_tokens([str(text) for text in texts])
    usage: dict[str, JsonValue] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _ranking(body: Mapping[str, JsonValue], model: str) -> dict[str, JsonValue]:
    """Documents by the share of the query's words that they hold, best first; ties in the order given."""
    words = set(str(body.get("query", "")).lower().split())
    documents = body.get("documents")
    shares = [
        len(words & set(str(document).lower().split())) / max(1, len(words))
        for document in (documents if isinstance(documents, list) else [])
    ]
    top = body.get("top_n")
    order = sorted(range(len(shares)), key=lambda index: -shares[index])[: top if isinstance(top, int) else None]
    results: list[JsonValue] = [{"index": index, "relevance_score": shares[index]} for index in order]
    return {"object": "list", "model": model, "results": results}
