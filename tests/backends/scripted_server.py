"""An OpenAI-compatible server whose chat model answers by rules, and whose embedder counts words.

Usage holds estimates: UTF-8 bytes / 4, rounded up for each text, as ``count_by_bytes`` of the answering engine.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from memarena_answering import count_by_bytes

EXTRACTOR, EMBEDDER = "scripted-extractor", "scripted-embedder"
DIMENSIONS = 64

_WORD = re.compile(r"\w+")

Body = Mapping[str, Any]
"""A request for a chat."""
Message = dict[str, Any]
Reply = Callable[[Body], "str | Message | bytes | int"]
"""From a request to the text or the message of the reply, to its whole body, or to an HTTP status in its place."""


class UnknownPromptError(ValueError):
    """A prompt that the rules are not made for; the message is one line."""


def text_of(body: Body, role: str | None = None) -> str:
    """The messages of a request, of one role or of all, with a line break between them."""
    wanted = (message for message in body["messages"] if role in (None, message["role"]))
    return "\n".join(str(message["content"]) for message in wanted)


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[place % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


class ScriptedServer:
    """Serves from construction until :meth:`close`. What it does may be replaced while it serves.

    A prompt for which ``reply`` raises :class:`UnknownPromptError` is answered with 422 and a line on stderr.
    ``models`` are those that it lists; any name is answered.
    """

    def __init__(
        self, reply: Reply, host: str = "127.0.0.1", port: int = 0, models: Sequence[str] = (EXTRACTOR,)
    ) -> None:
        self._by_rules, self.models = reply, models
        self.rehearse()
        scripted = self

        class Handler(_Handler):
            endpoint = scripted

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://{host}:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def rehearse(self) -> None:
        """Answer by the rules from now on, and forget what was asked."""
        self.reply = self._by_rules
        self.finish_reason: str | None = None
        """Of the next replies; None: ``tool_calls`` where there are some, else ``stop``."""
        self.chat_status = 200
        self.embedding_status = 200
        self.before_chat: Callable[[], object] = lambda: None
        """Called when a chat has arrived and before it is answered: may take its time, or set a status."""
        self.before_embedding: Callable[[list[str]], object] = lambda texts: None
        """As ``before_chat``, with the texts that are to be embedded."""
        self.asked: list[Body] = []
        """Requests for a chat, newest last, whatever became of them."""
        self.embedded: list[str] = []
        """Texts that were embedded, newest last."""
        self.authorizations: list[str] = []
        """What each request was authorized with, as in its header: ``Bearer TOKEN``."""

    @property
    def prompts(self) -> list[str]:
        """What the user says in each request for a chat, newest last."""
        return [text_of(body, "user") for body in self.asked]

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: ScriptedServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named by the base class)
        """Requests are not logged."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.endpoint.models]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.authorizations.append(self.headers.get("Authorization", ""))
        if self.path.endswith("/embeddings"):
            self._embed(body)
        elif self.path.endswith("/chat/completions"):
            self._chat(body)
        else:
            self._fail(404, f"no such path: {self.path}")

    def _embed(self, body: Mapping[str, Any]) -> None:
        given = body["input"]
        texts = [given] if isinstance(given, str) else list(map(str, given))
        self.endpoint.before_embedding(texts)
        if self.endpoint.embedding_status != 200:
            self._fail(self.endpoint.embedding_status, "as scripted")
            return
        self.endpoint.embedded += texts
        data = [{"object": "embedding", "index": number, "embedding": embed(text)} for number, text in enumerate(texts)]
        tokens = sum(count_by_bytes(texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        self._send(200, {"object": "list", "model": body.get("model"), "data": data, "usage": usage})

    def _chat(self, body: Body) -> None:
        self.endpoint.asked.append(body)
        self.endpoint.before_chat()
        if self.endpoint.chat_status != 200:
            self._fail(self.endpoint.chat_status, "as scripted")
            return
        try:
            said = self.endpoint.reply(body)
        except UnknownPromptError as error:
            sys.stderr.write(f"{error}\n")
            self._fail(422, str(error))
            return
        if isinstance(said, int):
            self._fail(said, "as scripted")
        elif isinstance(said, bytes):
            self._send_bytes(200, said)
        else:
            self._send(200, self._completion(body, said))

    def _completion(self, body: Body, said: str | Message) -> Message:
        message = {"role": "assistant", "content": said} if isinstance(said, str) else said
        calls = message.get("tool_calls") or ()
        usual = "tool_calls" if calls else "stop"
        choice = {"index": 0, "message": message, "finish_reason": self.endpoint.finish_reason or usual}
        head = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body.get("model")}
        return {**head, "choices": [choice], "usage": _usage(body, message)}

    def _fail(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "scripted", "code": status}})

    def _send(self, status: int, value: Mapping[str, Any]) -> None:
        self._send_bytes(status, json.dumps(value).encode())

    def _send_bytes(self, status: int, data: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True  # the caller was killed, or hangs up whenever it likes


def _usage(body: Body, message: Message) -> dict[str, int]:
    """Tokens of messages and tools, and of what is said and called."""
    sent = [str(each["content"] or "") for each in body["messages"]]
    sent += [json.dumps(tool) for tool in body.get("tools") or ()]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    said = [message.get("content") or "", *(function["name"] + function["arguments"] for function in functions)]
    prompt, completion = sum(count_by_bytes(sent)), sum(count_by_bytes(said))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
