"""An extractor by rules in place of a model: it makes the tool calls that LangMem's prompt asks for.

A small OpenAI-compatible server. Of a session it keeps what its user says as ``My … is (called) …``: by the tool
Memory, or by PatchDoc where the prompt holds a memory of the same thing and it is to rewrite. Of any other session it
says, without a tool call, that there is nothing to keep. test_days.py holds what it reads to what LangMem 0.0.30 sends.

python scripted_extractor.py    prints its base URL, then serves until it is killed; it rewrites nothing
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "scripted-extractor"
_SESSION = re.compile(r"<session_[0-9a-f-]+>\n(.*)\n</session_", re.DOTALL)
_MESSAGE = re.compile(r"^=+ (Human|Ai) Message =+$", re.MULTILINE)
_FACT = re.compile(r"\bmy ([\w' ]{1,40}?) is (?:called |named )?([^.!?;\[\]\n]+)", re.IGNORECASE)
_INSTANCE = re.compile(r'<instance id=(\S+) schema_type="Memory">\n(.*?)\n</instance>', re.DOTALL)

Message = dict[str, Any]
Body = Mapping[str, Any]
Reply = Callable[[Body], "Message | int | bytes"]
"""From a request to the message of the reply, its whole body, or an HTTP status in its place."""


def tool_call(name: str, args: object, number: int = 0) -> dict[str, Any]:
    """A tool call of the OpenAI API's form; ``args`` as text is taken as it is."""
    text = args if isinstance(args, str) else json.dumps(args)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}


def remember(*contents: str) -> Message:
    """A message that stores memories."""
    calls = [tool_call("Memory", {"content": text}, number) for number, text in enumerate(contents)]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def by_rules(body: Body, *, rewrites: bool = True) -> Message | int | bytes:
    """What this extractor answers. Raises ValueError for a prompt that is none of LangMem's."""
    system, user = (str(message["content"]) for message in body["messages"][:2])
    session = _SESSION.search(user)
    if session is None or not any(tool["function"]["name"] == "Memory" for tool in body["tools"]):
        raise ValueError("the prompt is not the one of LangMem 0.0.30")
    _, *said = _MESSAGE.split(session.group(1))
    known = {text.partition(" is ")[0]: key for key, text in _existing(system) if rewrites}
    calls: list[dict[str, Any]] = []
    for role, text in zip(said[::2], said[1::2], strict=True):
        for what, value in _FACT.findall(text) if role == "Human" else ():
            fact = f"User's {what.strip().lower()}"
            content = f"{fact} is called {value.strip()}"
            calls.append(_kept(known.get(fact), content, len(calls)))
    return {"role": "assistant", "content": None if calls else "Nothing to keep.", "tool_calls": calls or None}


def _existing(system: str) -> list[tuple[str, str]]:
    """Key and text of the memories that a prompt holds."""
    found = _INSTANCE.findall(system)
    return [(key, re.sub(r"^\{'content': ['\"](.*)['\"]\}$", r"\1", held, flags=re.DOTALL)) for key, held in found]


def _kept(key: str | None, content: str, number: int) -> dict[str, Any]:
    if key is None:
        return tool_call("Memory", {"content": content}, number)
    patch = {"op": "replace", "path": "/content", "value": content}
    return tool_call("PatchDoc", {"json_doc_id": key, "planned_edits": "the new value", "patches": [patch]}, number)


class ScriptedExtractor:
    """Serves from construction until :meth:`close`. ``reply`` may be replaced."""

    def __init__(self, reply: Reply = by_rules) -> None:
        self.reply = reply
        self.bodies: list[Body] = []
        """Requests for a chat so far, the newest last."""
        self.tokens: list[str] = []
        self.embeddings_left = 0
        """How many requests for embeddings are answered before they fail."""
        server = self

        class Handler(_Handler):
            extractor = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    extractor: ScriptedExtractor
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            self._embed(len(body["input"]))
            return
        self.extractor.bodies.append(body)
        self.extractor.tokens.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        try:
            message = self.extractor.reply(body)
        except ValueError as error:
            message = 400
            sys.stderr.write(f"{error}\n")
        if isinstance(message, bytes):
            self._send(200, message)
        elif isinstance(message, int):
            self._send(message, json.dumps({"error": {"message": "scripted failure", "type": "scripted"}}).encode())
        else:
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": finish}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            self._send(200, json.dumps({"model": MODEL, "choices": [choice], "usage": usage}).encode())

    def _embed(self, count: int) -> None:
        self.extractor.embeddings_left -= 1
        rows = [{"object": "embedding", "index": number, "embedding": [1.0, 0.5]} for number in range(count)]
        status = 200 if self.extractor.embeddings_left >= 0 else 503
        self._send(status, json.dumps({"object": "list", "data": rows, "model": MODEL}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


if __name__ == "__main__":
    # The suite asks for the first of two values after the second was told.
    with ScriptedExtractor(partial(by_rules, rewrites=False)) as serving:
        sys.stdout.write(f"{serving.base_url}\n")
        sys.stdout.flush()
        threading.Event().wait()
