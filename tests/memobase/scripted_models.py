"""Models for a Memobase server: a chat model that extracts by rule, and an embedder that counts words.

A small OpenAI-compatible server. Its chat model answers the three questions that a flush of Memobase asks, told apart
by their form: the log of a conversation, the facts in that log, what becomes of each fact. What the owner says as
``My … is (called) …`` becomes a fact; whatever else the owner says becomes a line of the log. A conversation in which
the owner says nothing, or only ``…``, yields an empty log.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

DIMENSIONS = 64
CHAT_MODEL, EMBEDDING_MODEL = "extractor", "embedder"

_LINE = re.compile(r"^\[(?P<time>[^\]]*)\] (?P<name>.*?)\(user\): (?P<text>.*)$")
_FACT = re.compile(r"\bmy (?P<what>[\w' ]{1,40}?) is (?:called |named )?(?P<value>[^.!?;\[\]]+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")

Reply = Callable[[str, str], str]


def log_of(conversation: str) -> str:
    """What the owner said, a line each, with the time at which it was said."""
    lines = []
    for line in conversation.splitlines():
        said = _LINE.match(line)
        if said and _WORD.search(said["text"]):
            lines.append(f"- {said['name']}: {said['text']} [mention {said['time']}] // info")
    return "\n".join(lines)


def facts_of(log: str) -> str:
    """Facts as ``- topic::sub_topic::memo``, a line each."""
    facts = [f"- life::{said['what'].strip().lower()}::{said['value'].strip()}" for said in _FACT.finditer(log)]
    return "\n".join(dict.fromkeys(facts))


def decisions_of(question: str) -> str:
    """For each fact: appended where nothing is known of it, ignored where it is known, else the new value."""
    decided = []
    for number, memo in enumerate(ast.literal_eval(question.strip()), start=1):
        new, current = str(memo["new_info"]), str(memo["current_memo"])
        if not current:
            decided.append(f"{number}. APPEND::APPEND")
        elif new in current:
            decided.append(f"{number}. ABORT::ABORT")
        else:
            decided.append(f"{number}. UPDATE::{new}")
    return "\n".join(decided)


def reply_of(system: str, user: str) -> str:
    """The rule for whichever of the three questions it is."""
    if "memo_id" in user:
        return decisions_of(user)
    conversation = user.partition("### Input Chats")[2]
    return log_of(conversation) if conversation else facts_of(user)


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        vector[place % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


class ScriptedModels:
    """Serves from construction until :meth:`close`. ``reply`` may be replaced; ``status`` and
    ``embedding_status`` other than 200 are faults of both models, and of the embedder."""

    def __init__(self, port: int = 0, reply: Reply = reply_of) -> None:
        self.reply = reply
        self.status = 200
        self.embedding_status = 200
        self.held: Callable[[], None] = lambda: None
        """Called before a request is answered, so that it may take its time."""
        self.questions: list[str] = []
        """What the chat model was asked, newest last."""
        self.embedded: list[str] = []
        """What was embedded, newest last."""
        models = self

        class Handler(_Handler):
            endpoint = models

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

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
        names = [CHAT_MODEL, EMBEDDING_MODEL]
        self._send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        self.endpoint.held()
        embedding = self.path.endswith("/embeddings")
        status = max(self.endpoint.status, self.endpoint.embedding_status if embedding else 0)
        if status != 200:
            self._send(status, {"error": {"message": "as scripted", "type": "scripted", "code": "fault"}})
        elif embedding:
            given = body["input"]
            texts = given if isinstance(given, list) else [given]
            self.endpoint.embedded += [str(text) for text in texts]
            data = [{"object": "embedding", "index": n, "embedding": embed(str(t))} for n, t in enumerate(texts)]
            usage = {"prompt_tokens": sum(len(str(t)) // 4 for t in texts), "total_tokens": 0}
            self._send(200, {"object": "list", "model": body.get("model"), "data": data, "usage": usage})
        else:
            self._chat(body)

    def _chat(self, body: Mapping[str, object]) -> None:
        sent = body["messages"]
        assert isinstance(sent, list)
        system = "\n".join(str(m["content"]) for m in sent if m["role"] == "system")
        user = "\n".join(str(m["content"]) for m in sent if m["role"] == "user")
        self.endpoint.questions.append(user)
        text = self.endpoint.reply(system, user)
        usage = {"prompt_tokens": len(system + user) // 4, "completion_tokens": len(text) // 4, "total_tokens": 0}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        head = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body.get("model")}
        self._send(200, {**head, "choices": [choice], "usage": usage})

    def _send(self, status: int, value: Mapping[str, object]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve on a port of one's choice, for a Memobase server that was set up by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    models = ScriptedModels(parser.parse_args(argv).port)
    models.join()


if __name__ == "__main__":
    main()
