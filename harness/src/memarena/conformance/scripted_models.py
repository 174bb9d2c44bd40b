"""Serves the suite's model endpoint: an OpenAI-compatible gateway with scripted models and tokens that are revoked.

It serves chat completions (streaming and not), embeddings, the list of models and token counts, as SPEC.md MOD demands
of a caller, and records every call. The reader replies as the check's script says; the embedder hashes words; the
extractor may be a real model at another endpoint.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance.errors import ConformanceError

READER, EXTRACTOR, EMBEDDER = "suite-reader", "suite-extractor", "suite-embedder"
EMBEDDING_DIMENSIONS = 1024
_SIGNS_PER_WORD = 8  # dimensions of a vector that a word changes, each by +1 or -1
HOLD_TIMEOUT_S = 5.0
_FORWARD_TIMEOUT_S = 120.0
_BEYOND_ASCII = 0x80
_APART_S = 0.01  # between the two parts of a character, so that they arrive apart
_WORD = re.compile(r"\w+")

Phase = Literal["in_call", "after_return", "abandoned", "unknown_token", "not_offered", "no_such_path"]
PATHS = {"/chat/completions": (READER, EXTRACTOR), "/embeddings": (EMBEDDER,), "/tokenize": (READER,), "/models": ("",)}
"""Paths that the gateway serves below base_url, with the models of each."""


@dataclass(frozen=True)
class Dialect:
    """A way to write a stream of server-sent events; all of them are equivalent."""

    colon: str = "data: "
    end: str = "\n"
    before: str = ""
    """Lines before an event: comments, or fields without a meaning here."""
    splits: int = 0
    """How many times the data are continued on a new line, after a comma of their JSON."""

    def event(self, data: str) -> bytes:
        """Return an event with these data."""
        data = data.replace(', "', f',\n{self.colon}"', self.splits)
        return f"{self.before}{self.colon}{data}".replace("\n", self.end).encode() + 2 * self.end.encode()


DIALECTS = (
    Dialect(),
    Dialect(colon="data:"),
    Dialect(end="\r\n"),
    Dialect(before=": waiting\n\n"),
    Dialect(before="event: message\nid: 7\n"),
    Dialect(splits=2),
)


@dataclass
class ReaderScript:
    """How the reader behaves in one call. It waits for ``hold_reply`` before its reply, and for ``hold_rest`` after the
    first piece; ``held_out``: whether a wait timed out.
    """

    pieces: Sequence[str] = ("Yes, ", "that is ", "right.")
    finish: str = "stop"
    prompt_tokens: int | None = 31
    """None: the reader reports no token counts."""
    completion_tokens: int = 7
    status: int = 200
    tokenize_status: int = 200
    breaks: Literal["", "connection", "JSON", "error"] = ""
    """What breaks after the first piece: the connection, as if the model's server died; the JSON of the next event; or
    the stream, with an error as its last event."""
    once: bool = False
    """Whether only the first reply breaks."""
    dialect: Dialect = DIALECTS[0]
    redirect: str = ""
    """URL to which the caller is redirected with status 307; empty: no redirect."""
    hold_reply: threading.Event | None = None
    hold_rest: threading.Event | None = None
    hold_timeout_s: float = HOLD_TIMEOUT_S
    held_out: bool = False
    calls: list[ModelCall] = field(default_factory=list)
    """Requests with the token of the call."""

    def usage(self) -> dict[str, int] | None:
        """Return the token counts that the reader reports; None if it reports none."""
        if self.prompt_tokens is None:
            return None
        prompt, reply = self.prompt_tokens, self.completion_tokens
        return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}

    def hold(self, gate: threading.Event | None) -> None:
        """Wait for an event that the check sets, at most ``hold_timeout_s``."""
        if gate is not None and not gate.wait(self.hold_timeout_s):
            self.held_out = True


@dataclass(frozen=True)
class ModelCall:
    """One request to the endpoint."""

    path: str
    model: str
    phase: Phase
    label: str
    body: Mapping[str, object] = field(repr=False)

    def messages(self) -> list[tuple[str, str]]:
        """Return role and text of each message of a chat."""
        sent = self.body.get("messages")
        returned = []
        for message in sent if isinstance(sent, list) else []:
            if isinstance(message, dict):
                returned.append((str(message.get("role")), _text_of(message.get("content"))))
        return returned


@dataclass
class Access:
    """Model access of one call; a context manager that revokes the token when the call has returned."""

    label: str
    message: pb.ModelAccess
    script: ReaderScript
    revoked: bool = False
    abandoned: bool = False
    """Whether the caller ended the call, by a deadline or by cancelling."""

    def __enter__(self) -> pb.ModelAccess:
        return self.message

    def __exit__(self, *_: object) -> None:
        self.revoked = True


class ScriptedModels:
    """Serves from construction until :meth:`close`. ``base_url`` is what backends get."""

    def __init__(self, advertise: str | None, real: RealModel | None = None, host: str = "127.0.0.1") -> None:
        self._lock = threading.Lock()
        self._grants: dict[str, Access] = {}
        self.calls: list[ModelCall] = []
        self.real = real
        models = self

        class Handler(_Handler):
            endpoint = models

        try:
            self._server = _Server((host if advertise is None else "0.0.0.0", 0), Handler)  # noqa: S104
        except OSError as error:
            raise ConformanceError(f"the model endpoint cannot listen: {error.strerror}") from error
        self.path = f"/{secrets.token_hex(2)}/v1"
        self.base_url = f"http://{advertise or host}:{self._server.server_port}{self.path}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def grant(self, label: str, script: ReaderScript | None = None, models: Sequence[pb.Model] | None = None) -> Access:
        """Access for one call. ``label`` names the call in the record."""
        offered = default_models() if models is None else models
        message = pb.ModelAccess(base_url=self.base_url, token=secrets.token_urlsafe(24), models=offered)
        access = Access(label, message, script or ReaderScript())
        with self._lock:
            self._grants[message.token] = access
        return access

    def tokens(self) -> list[str]:
        """Return every token issued so far."""
        with self._lock:
            return list(self._grants)

    def abandon(self, token: str) -> None:
        """Mark the call of a token as ended by its caller."""
        with self._lock:
            if token in self._grants:
                self._grants[token].abandoned = True

    @contextmanager
    def recording(self) -> Iterator[list[ModelCall]]:
        """Yield a list that contains, after the block, the calls that arrived within it. Late ones of an Ingest or a
        Search are left out: mod.after-return reports them.
        """
        begin = len(self.calls)
        recorded: list[ModelCall] = []
        try:
            yield recorded
        finally:
            with self._lock:
                late = ("after_return", "abandoned")
                recorded += [c for c in self.calls[begin:] if c.phase not in late or c.label == "Answer"]

    def admit(self, path: str, authorization: str, body: Mapping[str, object]) -> tuple[Phase, ReaderScript]:
        """Record a request and return its phase (whether it may be served) and the script of its token."""
        token = authorization.removeprefix("Bearer ") if authorization.startswith("Bearer ") else ""
        model = str(body.get("model", ""))
        with self._lock:
            grant = self._grants.get(token)
            if grant is None:
                phase: Phase = "unknown_token"
            elif grant.revoked:
                phase = "abandoned" if grant.abandoned else "after_return"
            elif path not in PATHS:
                phase = "no_such_path"
            elif model not in PATHS[path] or model not in {"", *(each.name for each in grant.message.models)}:
                phase = "not_offered"
            else:
                phase = "in_call"
            self.calls.append(call := ModelCall(path, model, phase, grant.label if grant else "", body))
            if grant is not None and path == "/chat/completions":
                grant.script.calls.append(call)
        return phase, grant.script if grant else ReaderScript()


def default_models(
    window_tokens: int = 8192, *, no_system_role: bool = False, counts_tokens: bool = True
) -> list[pb.Model]:
    """Return an extractor, a reader and an embedder."""
    return [
        pb.Model(name=EXTRACTOR, role=pb.MODEL_ROLE_EXTRACTOR, context_window_tokens=8192),
        pb.Model(
            name=READER,
            role=pb.MODEL_ROLE_READER,
            context_window_tokens=window_tokens,
            no_system_role=no_system_role,
            counts_tokens=counts_tokens,
        ),
        pb.Model(name=EMBEDDER, role=pb.MODEL_ROLE_EMBEDDER),
    ]


def count_tokens(text: str) -> int:
    """Return the tokens of a text by the scripted models' rule: UTF-8 bytes divided by 4, rounded up."""
    return -(-len(text.encode()) // 4)


def embed(text: str) -> list[float]:
    """Return a unit vector of hashed words: texts that share rare words are near each other. A word counts once, so
    that frequent words do not hide a rare one, and has several signed dimensions, so that words that share one of them
    are not near.
    """
    vector = [0] * EMBEDDING_DIMENSIONS
    for word in set(_WORD.findall(text.lower())):
        for dimension, sign in _signs_of(word):
            vector[dimension] += sign
    norm = math.sqrt(sum(value * value for value in vector))
    return [round(value / norm, 5) if value else 0.0 for value in vector] if norm else [1.0, *map(float, vector[1:])]


@lru_cache(maxsize=20_000)
def _signs_of(word: str) -> tuple[tuple[int, int], ...]:
    hashed = hashlib.blake2b(word.encode(), digest_size=2 * _SIGNS_PER_WORD).digest()
    numbers = struct.unpack(f">{_SIGNS_PER_WORD}H", hashed)
    return tuple((number % EMBEDDING_DIMENSIONS, 1 if number < 1 << 15 else -1) for number in numbers)


class RealModel:
    """A client of an OpenAI-compatible server that extracts instead of the scripted extractor."""

    def __init__(self, base_url: str, model: str | None, api_key: str | None) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        if not self._base_url.startswith(("http://", "https://")):
            raise ConformanceError(f"--model-endpoint {base_url}: expected an http or https URL")
        self.model = model or self._first_model()

    def _first_model(self) -> str:
        try:
            _, body = self._request("/models", None)
            listed = json.loads(body)["data"]
            return str(listed[0]["id"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ConformanceError(f"--model-endpoint {self._base_url}: no list of models: {error}") from error

    def chat(self, body: Mapping[str, object]) -> tuple[int, bytes]:
        """Forward a chat, with the real model's name and without streaming; return status and reply."""
        sent = {**body, "model": self.model, "stream": False}
        sent.pop("stream_options", None)
        try:
            return self._request("/chat/completions", json.dumps(sent).encode())
        except OSError as error:
            return 502, _error(502, f"the model endpoint failed: {error}")

    def _request(self, path: str, data: bytes | None) -> tuple[int, bytes]:
        request = urllib.request.Request(self._base_url + path, data=data, headers=self._headers)  # noqa: S310 (checked)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_FORWARD_TIMEOUT_S) as reply:
                return int(reply.status), bytes(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


REFUSALS: dict[Phase, tuple[int, str]] = {
    "after_return": (403, "the call that this token belonged to has returned"),
    "abandoned": (403, "the call that this token belonged to was ended by its caller"),
    "unknown_token": (401, "unknown token"),
    "not_offered": (404, "no such model for this call"),
    "no_such_path": (404, "the gateway serves nothing there: its paths are below base_url"),
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # more than simultaneous calls, as connections beyond it are reset

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """Ignore that a backend hung up, which it may do; print any other error, which is a fault of the suite."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: ScriptedModels

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named by the base class)
        """Print nothing, since calls are recorded."""

    def do_GET(self) -> None:
        path = self.path.removeprefix(self.endpoint.path).partition("?")[0]
        phase, _ = self.endpoint.admit(path, self.headers.get("Authorization", ""), {})
        if phase in REFUSALS:
            self._refuse(phase)
        else:
            names = [READER, EXTRACTOR, EMBEDDER]
            self._json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    def do_POST(self) -> None:
        path = self.path.removeprefix(self.endpoint.path).partition("?")[0]
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self._send(400, _error(400, "expected a JSON object with a Content-Length"))
            return
        phase, script = self.endpoint.admit(path, self.headers.get("Authorization", ""), body)
        try:
            if phase in REFUSALS:
                self._refuse(phase)
            else:
                self._serve(path, body, script)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the backend stopped waiting, which it may do

    def _serve(self, path: str, body: Mapping[str, object], script: ReaderScript) -> None:
        model = body.get("model")
        if path == "/chat/completions" and model == EXTRACTOR and self.endpoint.real is not None:
            self._send(*self.endpoint.real.chat(body))
        elif path == "/chat/completions":
            self._chat(body, script if model == READER else ReaderScript(pieces=("Noted.",)))
        elif path == "/embeddings":
            sent = body.get("input")
            texts = sent if isinstance(sent, list) else [sent]
            data = [{"object": "embedding", "index": n, "embedding": embed(str(t))} for n, t in enumerate(texts)]
            usage = {"prompt_tokens": sum(count_tokens(str(text)) for text in texts)}
            self._json(200, {"object": "list", "model": EMBEDDER, "data": data, "usage": usage})
        elif script.tokenize_status != 200:
            self._send(script.tokenize_status, _error(script.tokenize_status, "as the check wants it"))
        else:
            sent = body.get("texts")
            counts = [count_tokens(str(text)) for text in sent] if isinstance(sent, list) else []
            self._json(200, {"counts": counts})

    def _chat(self, body: Mapping[str, object], script: ReaderScript) -> None:
        script.hold(script.hold_reply)
        if script.redirect:
            self.send_response(307)
            self.send_header("Location", script.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if script.status != 200:
            self._send(script.status, _error(script.status, "as the check wants it"))
            return
        breaks = "" if script.once and len(script.calls) > 1 else script.breaks
        usage = script.usage()
        head = {"id": "c1", "created": 0, "model": body.get("model")}
        if body.get("stream") is not True:
            message = {"role": "assistant", "content": "".join(script.pieces)}
            choice = {"index": 0, "message": message, "finish_reason": script.finish}
            whole: dict[str, object] = {**head, "object": "chat.completion", "choices": [choice]}
            if usage is not None:
                whole["usage"] = usage
            self._json(200, whole, cut_short=bool(breaks))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        head["object"] = "chat.completion.chunk"
        deltas: list[Mapping[str, object]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in script.pieces]
        for number, delta in enumerate(deltas):
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            data = json.dumps({**head, "choices": [choice]}, ensure_ascii=False)
            self._event(data[:-9] if number == 2 and breaks == "JSON" else data, script.dialect)
            if number == 1:
                if breaks == "connection":
                    self.close_connection = True
                    return
                if breaks == "error":
                    self._event(_error(500, "out of memory").decode(), script.dialect)
                    break
                script.hold(script.hold_rest)
        last = {"index": 0, "delta": {}, "finish_reason": script.finish}
        if breaks != "error":
            self._event(json.dumps({**head, "choices": [last]}), script.dialect)
        options = body.get("stream_options")
        if usage is not None and isinstance(options, dict) and options.get("include_usage"):
            self._event(json.dumps({**head, "choices": [], "usage": usage}), script.dialect)
        self._event("[DONE]", script.dialect)
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: str, dialect: Dialect) -> None:
        """Send an event as one chunk; if it is not ASCII, as two chunks that split a character: networks may split
        anywhere, and a client that decodes each part by itself loses the character.
        """
        whole = dialect.event(data)
        inside = next((index for index, byte in enumerate(whole) if byte >= _BEYOND_ASCII), 0)
        if inside:
            self._chunk(whole[: inside + 1])
            time.sleep(_APART_S)
        self._chunk(whole[inside + 1 :] if inside else whole)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _refuse(self, phase: Phase) -> None:
        status, message = REFUSALS[phase]
        self._send(status, _error(status, message))

    def _json(self, status: int, value: Mapping[str, object], *, cut_short: bool = False) -> None:
        self._send(status, json.dumps(value).encode(), cut_short=cut_short)

    def _send(self, status: int, data: bytes, *, cut_short: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut_short else data)
        self.close_connection = self.close_connection or cut_short


def _error(status: int, message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "conformance", "code": status}}).encode()


def _text_of(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)
