"""An extracting model by rules, for the conformance suite and the tests, with replies as MemOS's prompt asks for them.

An OpenAI-compatible server of its own, with an embedder that counts words. It reads the conversation at the end of the
prompt and keeps what somebody says as ``My … is (called) …``; for any other conversation there is nothing to keep.

python scripted_extractor.py    prints its base URL, then serves until it is killed
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
from typing import Any

MODEL = "scripted-extractor"
DIMENSIONS = 64

_CONVERSATION = re.compile(r".*\nConversation:\n(.*)\n\nYour Output:", re.DOTALL)
_SAID = re.compile(r"^(?:user|assistant): \[[^\]]+\] ([^:]*): (.*)$")
_FACT = re.compile(r"\bmy ([\w' ]{1,40}?) is (?:called |named )?([^.!?;\[\]]+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")

Reply = Callable[[str], str | int]
"""From the prompt to what the model says, or to an HTTP status in its place."""


def conversation_of(prompt: str) -> str:
    """The conversation in a prompt of MemOS. Raises ValueError for another prompt."""
    found = _CONVERSATION.fullmatch(prompt)
    if found is None or '"memory list"' not in prompt:
        raise ValueError("the prompt is not the one of MemOS 2.0.33")
    return found[1]


def reply_of(prompt: str) -> str:
    """The facts of a conversation, as JSON in a code block, which models like to write around it."""
    memories = []
    for line in conversation_of(prompt).splitlines():
        said = _SAID.match(line)
        for what, value in _FACT.findall(said[2]) if said else ():
            thing = what.strip().lower()
            memories.append(
                {
                    "key": f"Name of {thing}",
                    "memory_type": "UserMemory",
                    "value": f"The {thing} of {said[1] if said else ''} is called {value.strip()}.",
                    "tags": [thing],
                }
            )
    return f"```json\n{json.dumps({'memory list': memories, 'summary': 'As told.'}, indent=2)}\n```"


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[place % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


class ScriptedExtractor:
    """Serves from construction until :meth:`close`. What it does may be replaced while it serves."""

    def __init__(self) -> None:
        self.rehearse()
        model = self

        class Handler(_Handler):
            extractor = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def rehearse(self) -> None:
        """Do as a model should from now on, and forget what was asked."""
        self.reply: Reply = reply_of
        self.embedding_status = 200
        self.finish_reason = "stop"
        self.before_chat: Callable[[], object] = lambda: None
        """Called when a chat has arrived and before it is answered, so that it may take its time."""
        self.prompts: list[str] = []
        """What the chat model was asked, newest last."""
        self.embedded: list[str] = []
        """Texts that were embedded, newest last."""

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    extractor: ScriptedExtractor

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named by the base class)
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        try:
            if self.path.endswith("/embeddings"):
                self._embed(body)
            else:
                self._chat(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the caller was killed, or gave up waiting

    def _embed(self, body: dict[str, Any]) -> None:
        model = self.extractor
        if model.embedding_status != 200:
            self._refuse(model.embedding_status)
            return
        model.embedded += map(str, body["input"])
        data = [{"object": "embedding", "index": n, "embedding": embed(str(t))} for n, t in enumerate(body["input"])]
        self._send(200, {"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 1}})

    def _chat(self, body: dict[str, Any]) -> None:
        model = self.extractor
        (message,) = body["messages"]
        model.prompts.append(message["content"])
        model.before_chat()
        text = model.reply(message["content"])
        if isinstance(text, int):
            self._refuse(text)
            return
        usage = {"prompt_tokens": len(message["content"]) // 4, "completion_tokens": len(text) // 4}
        said = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": said, "finish_reason": model.finish_reason}
        self._send(200, {"id": "scripted", "object": "chat.completion", "choices": [choice], "usage": usage})

    def _refuse(self, status: int) -> None:
        self._send(status, {"error": {"message": "as scripted", "type": "scripted", "code": "fault"}})

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    scripted = ScriptedExtractor()
    sys.stdout.write(f"{scripted.base_url}\n")
    sys.stdout.flush()
    scripted.join()
