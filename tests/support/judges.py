"""A judge that follows a script: an OpenAI-compatible server whose replies a test writes."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memarena.judging.llm.prompts import decoy

_CHECK = re.compile(r'"check": the text ([0-9a-f]+)')
_FENCED = re.compile(r"(?m)^(-----[0-9a-f]{16}-----)\n(.*?)\n\1$", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """One call as the judge sees it."""

    system: str
    user: str
    answer: str
    """What stands between the fences."""
    check: str
    response_format: str
    """``json_schema``, ``json_object`` or empty."""
    number: int
    """Counts calls from 1."""
    roles: tuple[str, ...] = ()
    """Of the messages, in order."""
    limit: str = ""
    """The name under which the longest reply was given."""

    @property
    def sentences(self) -> dict[str, str]:
        """The sentences of a rubric by their numbers; empty where none is shown."""
        listed = self.user.partition("\nSentences:\n")[2].partition("\n\nWhat the assistant said:")[0]
        return dict(line.split(". ", 1) for line in listed.splitlines())

    @property
    def task(self) -> str:
        if self.sentences:
            return "rubric"
        return "behaviour" if "disclose_wrong" in self.system else "bucket" if "no_access" in self.system else "answer"


@dataclass(frozen=True)
class Says:
    """What the judge replies. ``status`` other than 200 sends ``text`` as an error."""

    text: str
    status: int = 200
    finish_reason: str = "stop"
    delay_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    usage: bool = True
    body: object = None
    """Sent as it is with status 200, in place of a chat completion."""
    content: object = None
    """The message's content, in place of the text."""


Script = Callable[[Asked], Says]


def rules(asked: Asked, *, correct: object = True, **fields: Any) -> Says:
    """A reply in good form. Beside the decoy's key nothing is right but what tells it: this judge does judge."""
    if decoy().gold in asked.user:
        label = "disclose_correct" if decoy().told in asked.answer else "other"
        correct, fields = False, {**fields, "label": label, "score": 0.0}
    if asked.task == "rubric":
        met = {n: "no" if decoy().told in s or not correct else "yes" for n, s in asked.sentences.items()}
        return Says(json.dumps({"check": asked.check, "sentences": met, "reason": "as scripted", **fields}))
    by_task: dict[str, dict[str, Any]] = {
        "answer": {"correct": correct, "score": float(correct is True)},
        "behaviour": {"label": "refuse"},
        "bucket": {"bucket": "no_access"},
    }
    decides = by_task[asked.task]
    return Says(json.dumps({"check": asked.check, **decides, "quote": asked.answer, "reason": "as scripted", **fields}))


@dataclass
class ScriptedJudge:
    """A running server with what it was asked."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0


@contextmanager
def scripted_judge(script: Script) -> Iterator[ScriptedJudge]:
    """Serve a script on the loopback until the block ends."""
    lock = threading.Lock()
    busy = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal busy
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            system, user = (m["content"] for m in body["messages"][:2])
            check, fenced = _CHECK.search(system), _FENCED.search(user)
            with lock:
                busy += 1
                judge.most_at_once = max(judge.most_at_once, busy)
                asked = Asked(
                    system=system,
                    user=user,
                    answer=fenced.group(2) if fenced else "",
                    check=check.group(1) if check else "",
                    response_format=body.get("response_format", {}).get("type", ""),
                    number=len(judge.asked) + 1,
                    roles=tuple(m["role"] for m in body["messages"]),
                    limit=" ".join(sorted({"max_tokens", "max_completion_tokens"} & set(body))),
                )
                judge.asked.append(asked)
            says = script(asked)
            time.sleep(says.delay_s)
            with lock:
                busy -= 1
            self._send(says, body["model"])

        def _send(self, says: Says, model: str) -> None:
            message = {"role": "assistant", "content": says.text if says.content is None else says.content}
            reply: Any = {"error": {"message": says.text}}
            if says.body is not None:
                reply = says.body
            elif says.status == 200:
                reply = {"model": model, "choices": [{"message": message, "finish_reason": says.finish_reason}]}
                if says.usage:
                    reply["usage"] = {"prompt_tokens": 100, "completion_tokens": 20}
            data = json.dumps(reply).encode()
            try:
                self.send_response(says.status)
                for name, value in says.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the caller went away: a timeout under test

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    judge = ScriptedJudge(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield judge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
