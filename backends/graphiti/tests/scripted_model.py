"""Models in the place of real ones: a chat model that answers Graphiti by rule, an embedder that counts words.

An OpenAI-compatible server. It knows the steps of Graphiti 0.31 by the name of the reply's form, and reads what it is
asked about from the same tags of the prompt as a real model would. ``My … is called X`` becomes an entity X and a fact
that stands in the place of an earlier one of that kind; whoever speaks becomes an entity.

python scripted_model.py    prints its base URL and serves until it is killed
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

CHAT_MODEL, EMBEDDING_MODEL = "extractor", "embedder"
DIMENSIONS = 64

_LINE = re.compile(r"^(?P<name>[^:\n]{1,60}): (?P<text>.*)$", re.MULTILINE)
_FACT = re.compile(r"\bmy (?P<what>[\w' ]{1,40}?) is called (?P<value>\w+)", re.IGNORECASE)
_KIND = re.compile(r"^The (?P<kind>.+) is called ")
_WORD = re.compile(r"\w+")

Reply = Callable[[str, str], str]
"""From the name of the reply's form and the prompt to the reply."""


def _within(prompt: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return found[1] if found else ""


def _facts(message: str) -> list[tuple[str, str, str]]:
    """Who says it, what is called so, and how it is called."""
    return [
        (line["name"], fact["what"].lower(), fact["value"])
        for line in _LINE.finditer(message)
        for fact in _FACT.finditer(line["text"])
    ]


def entities(prompt: str) -> object:
    """Speakers, and what has a name."""
    message = _within(prompt, "CURRENT MESSAGE")
    names = [line["name"] for line in _LINE.finditer(message)] + [value for _, _, value in _facts(message)]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in dict.fromkeys(names)]}


def facts(prompt: str) -> object:
    """A fact for each name, which holds from the time of the message."""
    since = _within(prompt, "REFERENCE_TIME").partition("#")[0].strip().replace(" ", "T")
    return {
        "edges": [
            {
                "source_entity_name": name,
                "target_entity_name": value,
                "relation_type": "HAS",
                "fact": f"The {what} of {name} is called {value}",
                "valid_at": since,
                "invalid_at": None,
            }
            for name, what, value in _facts(_within(prompt, "CURRENT_MESSAGE"))
        ]
    }


def duplicates(prompt: str) -> object:
    """Of earlier facts of the same kind, the same one is a duplicate, and any other is no longer true."""
    new = _within(prompt, "NEW FACT")
    kind = _KIND.match(new)
    existing = ast.literal_eval(_within(prompt, "EXISTING FACTS") or "[]")
    others = ast.literal_eval(_within(prompt, "FACT INVALIDATION CANDIDATES") or "[]")

    def same_kind(fact: str) -> bool:
        found = _KIND.match(fact)
        return bool(kind and found and kind["kind"] == found["kind"])

    return {
        "duplicate_facts": [each["idx"] for each in existing if each["fact"] == new],
        "contradicted_facts": [
            each["idx"] for each in [*existing, *others] if each["fact"] != new and same_kind(each["fact"])
        ],
    }


def resolutions(prompt: str) -> object:
    """An entity is another one if they have the same name."""
    known = {each["name"]: each["candidate_id"] for each in json.loads(_within(prompt, "EXISTING ENTITIES"))}
    asked = json.loads(_within(prompt, "ENTITIES"))
    return {
        "entity_resolutions": [
            {"id": each["id"], "name": each["name"], "duplicate_candidate_id": known.get(each["name"], -1)}
            for each in asked
        ]
    }


_STEPS: dict[str, Callable[[str], object]] = {
    "ExtractedEntities": entities,
    "ExtractedEdges": facts,
    "EdgeDuplicate": duplicates,
    "NodeResolutions": resolutions,
    "SummarizedEntities": lambda _: {"summaries": []},
    "EdgeTimestamps": lambda _: {"valid_at": None, "invalid_at": None},
}


def reply_of(form: str, prompt: str) -> str:
    """The rule for whichever step it is."""
    return json.dumps(_STEPS[form](prompt))


def embed(text: str) -> list[float]:
    """Hashed words, of length 1: texts that share rare words are near each other."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        vector[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % DIMENSIONS] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else [1.0, *vector[1:]]


class ScriptedModels:
    """Serves from construction until :meth:`close`.

    ``reply`` may be replaced. ``status`` other than 200 is a fault of the chat model, ``embedding_status`` one of the
    embedder. ``held`` is called before a chat is answered, so that it may take its time.
    """

    def __init__(self, reply: Reply = reply_of) -> None:
        self.reply = reply
        self.status = 200
        self.embedding_status = 200
        self.held: Callable[[], object] = lambda: None
        self.asked: list[dict[str, Any]] = []
        """Bodies of the chats, newest last."""
        self.tokens: set[str] = set()
        """Tokens that calls came with."""
        models = self

        class Handler(_Handler):
            endpoint = models

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
    endpoint: ScriptedModels

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": CHAT_MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.tokens.add(self.headers.get("Authorization", ""))
        try:
            if self.path.endswith("/embeddings"):
                self._embed(body)
            else:
                self._chat(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _embed(self, body: dict[str, Any]) -> None:
        if self.endpoint.embedding_status != 200:
            return self._send(self.endpoint.embedding_status, {"error": {"message": "as the test wants it"}})
        rows = [{"object": "embedding", "index": n, "embedding": embed(t)} for n, t in enumerate(body["input"])]
        return self._send(200, {"object": "list", "data": rows, "model": EMBEDDING_MODEL, "usage": {}})

    def _chat(self, body: dict[str, Any]) -> None:
        self.endpoint.asked.append(body)
        self.endpoint.held()
        if self.endpoint.status != 200:
            return self._send(self.endpoint.status, {"error": {"message": "as the test wants it"}})
        prompt = "\n".join(message["content"] for message in body["messages"])
        text = self.endpoint.reply(_form_of(body, prompt), prompt)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return self._send(200, {"object": "chat.completion", "choices": [choice], "usage": {}})

    def _send(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _form_of(body: dict[str, Any], prompt: str) -> str:
    """The name of the form that is asked for; without a schema in the request, by the schema in the prompt."""
    schema = body.get("response_format", {}).get("json_schema")
    if schema:
        return str(schema["name"])
    title = re.search(r'"title": "(\w+)", "type": "object"}\s*$', prompt)
    return title[1] if title else ""


if __name__ == "__main__":
    models = ScriptedModels()
    sys.stdout.write(f"{models.base_url}\n")
    sys.stdout.flush()
    models.join()
