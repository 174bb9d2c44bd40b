"""Models by rules in place of real ones: an extractor that answers as Mem0's prompt asks, and an embedder.

A small OpenAI-compatible server. The extractor reads the part ``## New Messages`` of the prompt (recorded_prompt.txt)
and keeps what somebody says as ``My … is (called) …``; of any other conversation it says that nothing is to be kept.

python scripted_models.py    prints its base URL, then serves until it is killed
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

EXTRACTOR, EMBEDDER = "scripted-extractor", "scripted-embedder"
DIMENSIONS = 64

_NEW = re.compile(r"^## New Messages\n(.*?)^## Observation Date\n(\S+)", re.DOTALL | re.MULTILINE)
_SAID = re.compile(r"^(user|assistant): (.*)$")
_FACT = re.compile(r"\bmy ([\w' ]{1,40}?) is (?:called |named )?([^.!?;\[\]]+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")

Reply = Callable[[str, str], str | int]
"""From system and user message to what the model says, or to an HTTP status in its place."""


def reply_of(system: str, user: str) -> str:
    """The facts of a conversation, as JSON. Raises ValueError for a prompt that is none of Mem0's."""
    parts = _NEW.search(user)
    if parts is None or '"memory"' not in system:
        raise ValueError("the prompt is not the one of Mem0 2.2")
    memories: list[dict[str, str]] = []
    for line in parts.group(1).splitlines():
        said = _SAID.match(line)
        for what, value in _FACT.findall(said.group(2)) if said else ():
            text = f"User's {what.strip().lower()} is called {value.strip()}"
            memories.append({"id": str(len(memories)), "text": text, "attributed_to": said.group(1) if said else ""})
    return json.dumps({"memory": memories})


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[place % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


class ScriptedModels:
    """Serves from construction until :meth:`close`. ``reply`` and ``embedding_status`` may be replaced."""

    def __init__(self, reply: Reply = reply_of) -> None:
        self.reply = reply
        self.embedding_status = 200
        self.before_embedding: Callable[[list[str]], None] = lambda texts: None
        """Called before texts are embedded; may take its time, or set ``embedding_status``."""
        self.prompts: list[str] = []
        """User messages that the extractor was sent, newest last."""
        self.embedded: list[str] = []
        self.tokens: list[str] = []
        """What each request was authorized with."""
        models = self

        class Handler(_Handler):
            endpoint = models

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: ScriptedModels

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named by the base class)
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": EXTRACTOR, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.tokens.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if self.path.endswith("/embeddings"):
            self._embed(body["input"])
        else:
            self._chat({message["role"]: message["content"] for message in body["messages"]})

    def _embed(self, texts: list[str]) -> None:
        self.endpoint.before_embedding(texts)
        if self.endpoint.embedding_status != 200:
            self._fail(self.endpoint.embedding_status, "as the test wants it")
            return
        self.endpoint.embedded += texts
        data = [{"object": "embedding", "index": n, "embedding": embed(text)} for n, text in enumerate(texts)]
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        self._send(200, {"object": "list", "model": EMBEDDER, "data": data, "usage": usage})

    def _chat(self, told: dict[str, str]) -> None:
        self.endpoint.prompts.append(told["user"])
        try:
            said = self.endpoint.reply(told.get("system", ""), told["user"])
        except ValueError as error:
            self._fail(422, str(error))
            return
        if isinstance(said, int):
            self._fail(said, "as the test wants it")
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 31, "completion_tokens": 7, "total_tokens": 38}
        head = {"id": "e1", "object": "chat.completion", "created": 0, "model": EXTRACTOR}
        self._send(200, {**head, "choices": [choice], "usage": usage})

    def _fail(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "scripted", "code": status}})

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True  # the caller may hang up whenever it likes


if __name__ == "__main__":
    served = ScriptedModels()
    sys.stdout.write(f"{served.base_url}\n")
    sys.stdout.flush()
    served.join()
