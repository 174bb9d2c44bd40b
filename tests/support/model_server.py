"""The OpenAI-compatible server of all tests: chats, vectors and scores by script, in threads of this process.

It replaces readers, extractors, embedders and judges, so that a test decides what a model replies, and when and how it
fails (``model_script.py``).
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from memarena_answering import count_by_bytes

from tests.support.model_script import (
    DONE,
    Answer,
    Body,
    Reply,
    Script,
    UnknownPromptError,
    chunk,
    embed,
    event,
    ranking,
    script_of,
    text_of,
)

EXTRACTOR, EMBEDDER = "scripted-extractor", "scripted-embedder"
USUAL = Script()
_CHATS = ("/v1/chat/completions", "/v1/completions")

Dialect = Literal["plain", "llama.cpp", "sglang"]
Route = object
"""Reply of a path: JSON, text, bytes, a :class:`Script`, or a function from the body to one of these."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    route: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class ModelServer:
    """Serves on loopback from construction until :meth:`stop`; its script may be replaced meanwhile.

    Args:
        script: the reply to every chat, or a function of the request's body. Any model's name is answered. A prompt
            that raises :class:`UnknownPromptError` is answered with 422 and a line on stderr.
        model: the only model that it lists, unless there are ``models``.
        models: all models that it lists.
        dialect: adds the routes by which llama.cpp and SGLang are known; both count one token for each word.
        window_tokens: the context window that these routes report.
        api_key: requests without this key are refused with 401; None accepts all.
        routes: replies by path, which come before the usual ones; None is 404.
    """

    def __init__(
        self,
        script: Answer | Reply = USUAL,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        model: str = "null-reader",
        models: Sequence[str] = (),
        dialect: Dialect = "plain",
        window_tokens: int = 16_384,
        api_key: str | None = None,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        self._by_rules = script
        self.models = tuple(models) or (model,)
        self.dialect, self.window_tokens, self.api_key = dialect, window_tokens, api_key
        self.routes = {**_routes(self), **(routes or {})}
        self.stopping = threading.Event()
        self.on_request: Callable[[str], object] = lambda path: None
        """Called with the path of each request before it is answered."""
        self.lock = threading.Lock()
        self.open: set[socket.socket] = set()
        self.rehearse()
        self._server = _Server((host, port), self)
        self.server_url = f"http://{host}:{self._server.server_port}"
        self.base_url = f"{self.server_url}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def rehearse(self) -> None:
        """Restore the script of the constructor, and delete all records of requests."""
        self.script = self._by_rules
        self.chat_status = 200
        self.embedding_status = 200
        self.before_chat: Callable[[], object] = lambda: None
        """Called when a chat has arrived, before the reply; may sleep, or set a status."""
        self.before_embedding: Callable[[list[str]], object] = lambda texts: None
        """Like ``before_chat``, with the texts to embed."""
        self.vectors: Reply | None = None
        """Script for requests of vectors or scores; None: the chats' script, unless it is a function."""
        self.received: list[Received] = []
        """All requests, in order of arrival."""
        self.asked: list[Body] = []
        """Requests for a chat, newest last, including failed ones."""
        self.embedded: list[str] = []
        """Texts that were embedded, newest last."""
        self.in_flight = self.most_in_flight = self.chats = 0

    @property
    def model(self) -> str:
        """Return the first of the models that it lists."""
        return self.models[0]

    @property
    def prompts(self) -> list[str]:
        """Return the user's text of each request for a chat, newest last."""
        return [text_of(body, "user") for body in self.asked]

    @property
    def authorizations(self) -> list[str]:
        """Return the Authorization header of each POST, as in ``Bearer TOKEN``."""
        return [request.headers.get("Authorization", "") for request in self.received if request.body]

    def upstream(self, *, name: str | None = None, role: str = "reader") -> Any:
        """Return this server as a model behind a gateway (``memarena.gateway.Upstream``)."""
        from memarena.gateway import Upstream

        return Upstream(
            model=name or self.model,
            base_url=self.base_url,
            upstream_model=self.model,
            role=role,  # type: ignore[arg-type]
            api_key=self.api_key,
            context_window_tokens=self.window_tokens,
            tokenizer="bytes" if self.dialect == "plain" else self.dialect,
        )

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def stop(self) -> None:
        """Stop, and close all connections. A second call has no effect."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self.open):
            hang_up(connection)
        self._thread.join(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def chat(self, body: Body) -> Iterator[None]:
        """Number, record and count a chat while it is being answered."""
        with self.lock:
            body.number, self.chats = self.chats, self.chats + 1
            self.asked.append(body)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self.lock:
                self.in_flight -= 1


def hang_up(connection: socket.socket) -> None:
    """Shut a connection down, even while another thread reads from it."""
    with suppress(OSError):  # it may have ended already
        connection.shutdown(socket.SHUT_RDWR)


def _routes(server: ModelServer) -> dict[str, Route]:
    def words(body: Body) -> object:
        """llama.cpp's mixed tokenize: texts give one id for each word, ids stay as they are."""
        content = body.get("content")
        parts = content if isinstance(content, list) else [content]
        tokens = [[each] if isinstance(each, int) else [len(word) for word in str(each).split()] for each in parts]
        return {"tokens": [token for part in tokens for token in part]}

    def counts(body: Body) -> object:
        prompt = body.get("prompt")
        return {"count": [len(str(text).split()) for text in (prompt if isinstance(prompt, list) else [prompt])]}

    def models(body: Body) -> object:
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in server.models]}

    routes: dict[str, Route] = {"/v1/models": models}
    if server.dialect == "llama.cpp":
        settings = {"n_ctx": server.window_tokens}
        return {**routes, "/props": {"default_generation_settings": settings}, "/tokenize": words}
    if server.dialect == "sglang":
        info = {"version": "null", "context_length": server.window_tokens, "model_path": server.model}
        return {**routes, "/server_info": info, "/tokenize": counts}
    return routes


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], scripted: ModelServer) -> None:
        self.scripted = scripted
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that goes away is no failure of the server; anything else is shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.scripted = self.server.scripted
        self.scripted.open.add(self.connection)

    def finish(self) -> None:
        self.scripted.open.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._arrived_s = time.monotonic()
        body = Body(json.loads(raw)) if raw else Body()
        self.route = self.path.partition("?")[0]
        headers = {name.title(): value for name, value in self.headers.items()}
        self.scripted.received.append(Received(self.route, headers, body))
        self.scripted.on_request(self.route)
        key = self.scripted.api_key
        routes = self.scripted.routes
        if key is not None and self.headers.get("Authorization") != f"Bearer {key}":
            self._send(Script(status=401, message="wrong key"))
        elif self.route in routes:
            route = routes[self.route]
            body.number = sum(each.route == self.route for each in self.scripted.received) - 1
            answer = route(body) if callable(route) else route
            self._send(
                answer if isinstance(answer, Script) else Script(body=answer, status=404 if answer is None else 200)
            )
        elif self.route in _CHATS:
            with self.scripted.chat(body):
                self._chat(body)
        elif self.route == "/v1/embeddings":
            self._embed(body)
        elif self.route == "/v1/rerank":
            self._at_once({"object": "list", "model": self.scripted.model, "results": ranking(body)}, body)
        else:
            self._send(Script(status=404, message=f"no such path: {self.route}"))

    do_GET = do_POST = _answer  # noqa: N815

    def _script(self, body: Body) -> Script:
        script = self.scripted.script
        return script_of(script(body) if callable(script) else script)

    def _embed(self, body: Body) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else list(map(str, body["input"]))
        self.scripted.before_embedding(texts)
        if self.scripted.embedding_status != 200:
            self._send(Script(status=self.scripted.embedding_status))
            return
        tokens = sum(count_by_bytes(texts))
        data = [{"object": "embedding", "index": number, "embedding": embed(text)} for number, text in enumerate(texts)]
        counts = {"prompt_tokens": tokens, "total_tokens": tokens}
        reply = {"object": "list", "model": body.get("model"), "data": data, "usage": counts}
        self._at_once(reply, body, texts)

    def _at_once(self, value: object, body: Body, embedded: Sequence[str] = ()) -> None:
        """Send vectors or scores, unless the script fails; texts are recorded before the client has its reply."""
        vectors, script = self.scripted.vectors, self.scripted.script
        if vectors is not None:
            script = script_of(vectors(body))
        else:
            script = script_of(script) if isinstance(script, Script) else Script()
        if script.status != 200:
            self._send(script)
            return
        self._pause(script.delay_s)
        if script.fault == "none":
            self.scripted.embedded += embedded
        self._send(Script(body="{not json" if script.fault == "malformed" else value))

    def _chat(self, body: Body) -> None:
        self.scripted.before_chat()
        if self.scripted.chat_status != 200:
            self._send(Script(status=self.scripted.chat_status))
            return
        try:
            script = self._script(body)
        except UnknownPromptError as error:
            sys.stderr.write(f"{error}\n")
            self._send(Script(status=422, message=str(error)))
            return
        self._pause(script.delay_s)
        if script.fault == "disconnect":
            hang_up(self.connection)
            self.close_connection = True
        elif script.status != 200 or script.body is not None:
            self._send(script)
        elif script.events is not None:
            self._stream(script.events, script.headers)
        elif body.get("stream") is True:
            self._stream(self._chunks(body, script), script.headers)
        elif script.fault == "malformed":
            self._send(Script(body="{this is no JSON"))
        else:
            self._pause(script.token_delay_s * (len(script.pieces) - 1), begins_now=True)
            self._send(Script(body=self._whole(body, script)))

    def _whole(self, body: Body, script: Script) -> dict[str, Any]:
        """Return a completion that is not streamed."""
        says = {"message": script.whole()} if self.route == _CHATS[0] else {"text": script.text}
        choice = {"index": 0, **says, "finish_reason": script.finish()}
        whole = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body.get("model")}
        usage = {"usage": script.usage(body)} if script.reports_usage else {}
        timed = {"timings": dict(script.timings)} if script.timings else {}
        return {**whole, "choices": [choice], **usage, **timed}

    def _chunks(self, body: Body, script: Script) -> Iterator[bytes | float]:
        """Yield the events of a stream: role, reasoning, first token; the role is in the same chunk as what follows."""

        def piece(text: str, finish: str | None = None) -> bytes:
            if self.route == _CHATS[0]:
                return chunk({"content": text} if text else {}, finish)
            return event({"choices": [{"index": 0, "text": text, "finish_reason": finish}]})

        opening = [chunk({"reasoning_content": each}) for each in script.reasoning]
        opening += [piece(each) for each in script.pieces[:1]]
        role = chunk({"role": "assistant", "content": ""}) if self.route == _CHATS[0] else b""
        yield from [role + opening[0], *opening[1:]] if opening else [role]
        match script.fault:
            case "malformed":
                yield b"data: {this is no JSON\n\n"
            case "error_event":
                yield event(_error(script.message))
            case "break":
                time.sleep(0.01)  # let the first token out
                hang_up(self.connection)
            case "stall":
                self.connection.recv(1)  # until the caller goes away
                raise ConnectionResetError
            case "endless":
                while True:
                    yield max(script.token_delay_s, 0.001)
                    yield piece(script.pieces[-1])
            case "none":
                for token in script.pieces[1:]:
                    yield script.token_delay_s
                    yield piece(token)
                yield piece("", script.finish()) + self._closing(body, script) + DONE

    def _closing(self, body: Body, script: Script) -> bytes:
        """Return token counts if the caller requested them."""
        if not script.reports_usage or (body.get("stream_options") or {}).get("include_usage") is not True:
            return b""
        timed = {"timings": dict(script.timings)} if script.timings else {}
        return event({"choices": [], "usage": script.usage(body), **timed})

    def _pause(self, seconds: float, *, begins_now: bool = False) -> None:
        """Wait until ``seconds`` after the request was read, never shorter."""
        until_s = (time.monotonic() if begins_now else self._arrived_s) + seconds
        while (rest_s := until_s - time.monotonic()) > 0 and not self.scripted.stopping.wait(rest_s):
            pass

    def _stream(self, events: Iterator[Any] | Sequence[Any], headers: Mapping[str, str]) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **headers})
        for each in events:
            if isinstance(each, bytes):
                self._part(each)
            elif callable(each):
                while True:
                    self._part(each())
            else:
                self._pause(each, begins_now=True)
        self.wfile.write(b"0\r\n\r\n")

    def _part(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _send(self, script: Script) -> None:
        body = _error(script.message) if script.body is None else script.body
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = "text/html" if data.startswith(b"<") else "application/json"
        self._head(script.status, {"Content-Type": kind, "Content-Length": str(len(data)), **script.headers})
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted", "param": None, "code": "scripted"}}
