"""A stand-in for a Memobase server where none can be had: the part of its HTTP API that the backend uses, in memory.

It is held to the real one by ``recordings/``: exchanges that were recorded from a server, which ``test_double.py``
makes again with the double and compares. It extracts like the real one, by three questions to a chat model, and embeds
with an embedder; both are reached through the same endpoint, configured once, with one key. Like the real one it
answers most errors with status 200 and a number in the body.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.memobase.scripted_models import scripted_models

BUFFER_TOKENS = 1024
"""An insert flushes the buffer if it then has more tokens than this (estimated as UTF-8 bytes / 4)."""
START_TRY_S = 0.2
TOKEN = "memobase-double-token"

Json = Any
"""What JSON can hold: the API's replies are built and compared as they are."""


class ApiError(Exception):
    """A reply with an error number in its body; most of them have status 200."""

    def __init__(self, errno: int, message: str, status: int = 200) -> None:
        super().__init__(message)
        self.errno, self.message, self.status = errno, message, status


class ModelError(Exception):
    """A model could not be asked; the message is that of the client library of the real server."""


@dataclass(frozen=True)
class Models:
    """An OpenAI-compatible endpoint, as the server is configured with it."""

    base_url: str
    key: str = "none"
    chat_model: str = "extractor"
    embedding_model: str = "embedder"

    def complete(self, system: str, user: str, max_tokens: int = 1024) -> str:
        """The chat model's reply. Raises ModelError."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        body = {"model": self.chat_model, "messages": messages, "temperature": 0.2, "max_tokens": max_tokens}
        return str(self._post("/chat/completions", body)["choices"][0]["message"]["content"])

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector per text. Raises ModelError."""
        body = {"model": self.embedding_model, "input": list(texts), "encoding_format": "float"}
        return [row["embedding"] for row in self._post("/embeddings", body)["data"]]

    def _post(self, path: str, body: Json) -> Json:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base_url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                raise ModelError(
                    f"Error code: {error.code} - {json.loads(error.read())['error']['message']}"
                ) from error
        except OSError as error:
            raise ModelError("Connection error.") from error


def now() -> str:
    """The time as the server writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass
class _Row:
    """A stored record with its times; ``order`` ranks changes, the latest highest."""

    data: Json
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: str = field(default_factory=now)
    updated_at: str = field(default_factory=now)
    order: int = 0

    def touched(self, order: int) -> None:
        self.updated_at, self.order = now(), order

    def times(self) -> dict[str, str]:
        return {"created_at": self.created_at, "updated_at": self.updated_at}


@dataclass
class _Gist:
    """A line of an event's log, which Memobase stores and embeds separately; without a vector it is not searched."""

    row: _Row
    event_id: str
    vector: list[float] | None


@dataclass
class _User:
    """What the server stores of one user.

    ``blobs`` are conversations that wait for a flush, and ``status`` has their state (``idle``, ``processing`` or
    ``failed``) by blob id. ``profile`` holds a row for each topic and sub-topic, ``events`` a row for each flush, and
    ``vectors`` the events' vectors by event id, None where the embedder failed.
    """

    data: Json
    blobs: list[_Row] = field(default_factory=list)
    status: dict[str, str] = field(default_factory=dict)
    profile: list[_Row] = field(default_factory=list)
    events: list[_Row] = field(default_factory=list)
    vectors: dict[str, list[float] | None] = field(default_factory=dict)
    gists: list[_Gist] = field(default_factory=list)


class Double:
    """Serves from construction until :meth:`close`; a flush asks ``models``."""

    def __init__(self, models: Models, port: int = 0, token: str = TOKEN, host: str = "127.0.0.1") -> None:
        self.models = models
        self.token = token
        self.users: dict[str, _User] = {}
        self.before_flush: Callable[[], None] = lambda: None
        """Called when a flush has begun, before it asks a model: tests make it wait or fail here."""
        self.after_event: Callable[[], None] = lambda: None
        """Called when a flush has written its event and not yet the profile: tests make it fail halfway here."""
        self.closed = False
        self._changes = 0
        self._lock = threading.RLock()
        double = self

        class Handler(_Handler):
            server_double = double

        self._server = _Server((host, port), Handler)
        self.url = f"http://{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; connections that are still open are closed with their next request."""
        self.closed = True
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=30)

    def join(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def order(self) -> int:
        """A number that rises with every change."""
        with self._lock:
            self._changes += 1
            return self._changes

    # ------------------------------------------------------------ users and blobs

    def add_user(self, body: Json) -> Json:
        name = body.get("id") or str(uuid.uuid4())
        if name in self.users:
            raise ApiError(500, f"Sorry, we have encountered an unknown error: \nKey (id)=({name}) already exists.")
        self.users[name] = _User(body.get("data"))
        return {"id": name}

    def user(self, name: str) -> _User:
        if name not in self.users:
            raise ApiError(404, f"User {name} not found")
        return self.users[name]

    def insert(self, name: str, body: Json) -> Json:
        user = self.user(name)
        row = _Row(body["blob_data"])
        user.blobs.append(row)
        user.status[row.id] = "idle"
        idle = [blob for blob in user.blobs if user.status[blob.id] == "idle"]
        size = sum(len(_conversation(blob.data).encode()) // 4 for blob in idle)
        return {"id": row.id, "chat_results": self.flush(name) if size > BUFFER_TOKENS else []}

    def flush(self, name: str) -> Json:
        user = self.user(name)
        blobs = [blob for blob in user.blobs if user.status[blob.id] == "idle"]
        if not blobs:
            return []
        self._mark(user, blobs, "processing")
        try:
            self.before_flush()
            result = self._extract(user, "\n".join(_conversation(blob.data) for blob in blobs))
        except ApiError:
            self._mark(user, blobs, "failed")
            raise
        for blob in blobs:
            # A blob that was processed is deleted, and with it its entry in the buffer.
            user.status.pop(blob.id, None)
        user.blobs = [blob for blob in user.blobs if blob not in blobs]
        return [result]

    def _mark(self, user: _User, blobs: Sequence[_Row], status: str) -> None:
        for blob in blobs:
            user.status[blob.id] = status

    # ------------------------------------------------------------ extracting

    def _extract(self, user: _User, conversation: str) -> Json:
        log = self._ask("Log what the user says.", f"### Input Chats\n{conversation}\n", 503, "").strip()
        if not log:
            return {"event_id": None, "add_profiles": [], "update_profiles": [], "delete_profiles": []}
        failed = "Failed to process profile or event: "
        facts = _facts(self._ask("List facts.", log, 520, failed))
        known = {(row.data["attributes"]["topic"], row.data["attributes"]["sub_topic"]): row for row in user.profile}
        memos = [
            {"memo_id": n, "new_info": memo, "current_memo": known[key].data["content"] if key in known else ""}
            for n, (key, memo) in enumerate(facts.items(), start=1)
        ]
        decided = self._ask("Decide for each.", repr(memos), 520, failed)
        actions = dict(re.findall(r"^(\d+)\. (\w+)::", decided, re.MULTILINE))
        decisions = [(key, memo, actions.get(str(n))) for n, (key, memo) in enumerate(facts.items(), start=1)]
        changes = [(key, memo, action) for key, memo, action in decisions if action in {"APPEND", "UPDATE"}]
        changes.sort(key=lambda change: change[0] in known)  # what is new stands before what is changed
        event = self._write_event(user, log, changes)
        self.after_event()
        added_ids, updated_ids = [], []
        order = self.order()  # a rank among changes, not a time
        for key, memo, action in changes:
            row = known.get(key)
            if row is None:
                row = _Row({"content": memo, "attributes": {"topic": key[0], "sub_topic": key[1]}})
                row.order = order
                user.profile.append(row)
                added_ids.append(row.id)
                continue
            row.data["content"] = f"{row.data['content']};{memo}" if action == "APPEND" else memo
            attributes = row.data["attributes"]
            attributes["update_hits"] = attributes.get("update_hits", 0) + 1
            row.touched(order)
            user.profile.append(user.profile.pop(user.profile.index(row)))
            updated_ids.append(row.id)
        return {"event_id": event.id, "add_profiles": added_ids, "update_profiles": updated_ids, "delete_profiles": []}

    def _ask(self, system: str, question: str, errno: int, prefix: str) -> str:
        try:
            return self.models.complete(system, question)
        except ModelError as error:
            suffix = ", Promise is ok" if prefix else ""
            raise ApiError(errno, f"{prefix}Error in llm_complete: {error}{suffix}") from error

    def _write_event(self, user: _User, log: str, changes: Sequence[tuple[tuple[str, str], str, str | None]]) -> _Row:
        delta = [{"content": memo, "attributes": {"topic": key[0], "sub_topic": key[1]}} for key, memo, _ in changes]
        event = _Row({"profile_delta": delta, "event_tip": log, "event_tags": None})
        lines = [line.strip() for line in log.split("\n") if line.strip().startswith("-")]
        vectors: Sequence[list[float] | None] = [None] * (len(lines) + 1)
        try:
            fact_text = "\n".join(f"- {'::'.join(key)}: {memo}" for key, memo, _ in changes)
            vectors = self.models.embed([f"{log}\n{fact_text}\n", *lines])
        except ModelError:
            pass  # like the real server, which keeps an event without a vector if it cannot embed it
        event.order = self.order()
        user.events.append(event)
        user.vectors[event.id] = vectors[0]
        for line, vector in zip(lines, vectors[1:], strict=True):
            row = _Row({"content": line}, created_at=event.created_at, updated_at=event.updated_at)
            user.gists.append(_Gist(row, event.id, vector))
        return event

    # ------------------------------------------------------------ reading

    def search_events(self, user: _User, params: Mapping[str, str]) -> Json:
        neighbours = self._nearest(params, [(row, user.vectors[row.id]) for row in user.events])
        return {"events": [_event(row, similarity) for row, similarity in neighbours], "gists": []}

    def search_gists(self, user: _User, params: Mapping[str, str]) -> Json:
        neighbours = self._nearest(params, [(gist.row, gist.vector) for gist in user.gists])
        gists = [
            {"id": row.id, "gist_data": row.data, **row.times(), "similarity": similarity}
            for row, similarity in neighbours
        ]
        return {"gists": gists, "events": []}

    def _nearest(
        self, params: Mapping[str, str], rows: Sequence[tuple[_Row, list[float] | None]]
    ) -> list[tuple[_Row, float]]:
        try:
            (query,) = self.models.embed([params["query"]])
        except ModelError as error:
            raise ApiError(503, f"Error in get_embedding: {error}") from error
        scored = [(row, _cosine(query, vector)) for row, vector in rows if vector is not None]
        threshold = float(params.get("similarity_threshold", 0.2))
        near = sorted((pair for pair in scored if pair[1] > threshold), key=lambda pair: -pair[1])
        return near[: int(params.get("topk", 10))]


def _facts(reply: str) -> dict[tuple[str, str], str]:
    """Facts by (topic, sub-topic); several of the same key are joined."""
    facts: dict[tuple[str, str], str] = {}
    for line in reply.splitlines():
        parts = line.removeprefix("- ").split("::")
        if line.startswith("- ") and len(parts) == 3:
            key = (_unified(parts[0]), _unified(parts[1]))
            facts[key] = f"{facts[key]}; {parts[2].strip()}" if key in facts else parts[2].strip()
    return facts


def _unified(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _event(row: _Row, similarity: float | None = None) -> Json:
    return {"id": row.id, "event_data": row.data, **row.times(), "similarity": similarity}


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / (math.hypot(*first) * math.hypot(*second))


def _conversation(data: Json) -> str:
    lines = []
    for message in data["messages"]:
        name = f"{message['alias']}({message['role']})" if message.get("alias") else message["role"]
        lines.append(f"[{message.get('created_at') or now()[:10]}] {name}: {message['content']}")
    return "\n".join(lines)


# ---------------------------------------------------------------- HTTP


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller may hang up; any other error is a fault of the double and is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_double: Double

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (named by the base class)
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (named by the base class)

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(length)) if length else None
        if self.server_double.closed:
            self.close_connection = True
            return
        split = urlsplit(self.path)
        params = {key: values[-1] for key, values in parse_qs(split.query).items()}
        parts = split.path.removeprefix("/api/v1/").split("/")
        try:
            if parts != ["healthcheck"] and self.headers.get("Authorization") != f"Bearer {self.server_double.token}":
                raise ApiError(
                    401, f"Unauthorized access to {split.path}. CODE 401; ERROR Invalid project id format", 401
                )
            self._reply(200, self._route(self.command, parts, params, body), 0, "")
        except ApiError as error:
            self._reply(error.status, None, error.errno, error.message)

    def _route(  # noqa: PLR0911 (a table of routes)
        self, method: str, parts: Sequence[str], params: Mapping[str, str], body: Json
    ) -> Json:
        double = self.server_double
        match [method, *parts]:
            case ["GET", "healthcheck"]:
                return None
            case ["GET", "project", "profile_config"]:
                return {"profile_config": ""}
            case ["POST", "users"]:
                return double.add_user(body)
            case ["GET", "users", name]:
                user = double.user(name)
                return {"data": user.data, "id": None, "created_at": now(), "updated_at": now()}
            case ["DELETE", "users", name]:
                double.user(name)
                del double.users[name]
                return None
            case ["POST", "blobs", "insert", name]:
                return double.insert(name, body)
            case ["POST", "users", "buffer", name, "chat"]:
                return double.flush(name) if name in double.users else []
        return self._route_of_user(method, parts, params, body)

    def _route_of_user(  # noqa: PLR0911 (a table of routes)
        self, method: str, parts: Sequence[str], params: Mapping[str, str], body: Json
    ) -> Json:
        double = self.server_double
        name = next((part for part in parts if re.fullmatch(r"[0-9a-f-]{36}", part)), "")
        # An unknown user reads as empty and is not stored, like on the real server ("a profile of nobody").
        user = double.users.get(name, _User(None))
        match [method, *(part for part in parts if part != name)]:
            case ["GET", "users", "buffer", "capacity", "chat"]:
                status_filter = params.get("status", "processing")
                waiting = [blob for blob, status in user.status.items() if status == status_filter]
                # An entry of the buffer has its own id, which is not that of its blob.
                return {"ids": [str(uuid.uuid5(uuid.NAMESPACE_OID, blob)) for blob in waiting]}
            case ["GET", "users", "blobs", "chat"]:
                return {"ids": [row.id for row in user.blobs]}
            case ["DELETE", "blobs", blob]:
                user.blobs = [row for row in user.blobs if row.id != blob]
                user.status.pop(blob, None)
                return None
            case ["GET", "users", "profile"]:
                rows = sorted(user.profile, key=lambda row: -row.order)
                return {"profiles": [{"id": row.id, **row.data, **row.times()} for row in rows]}
            case ["POST", "users", "profile"]:
                row = _Row(body, order=double.order())
                user.profile.append(row)
                return {"id": row.id}
            case ["PUT", "users", "profile", slot]:
                row = _found(user.profile, slot, f"Profile {slot} not found for user {name}")
                row.data = body
                row.touched(double.order())
                return None
            case ["DELETE", "users", "profile", slot]:
                user.profile.remove(_found(user.profile, slot, f"Profile {slot} not found for user {name}"))
                return None
            case ["DELETE", "users", "event", event]:
                user.events.remove(_found(user.events, event, f"User event {event} not found"))
                user.gists = [gist for gist in user.gists if gist.event_id != event]
                return None
            case ["GET", "users", "event_tags", "search"]:
                rows = sorted(user.events, key=lambda row: -row.order)[: int(params.get("topk", 10))]
                return {"events": [_event(row) for row in rows], "gists": []}
            case ["GET", "users", "event", "search"]:
                return double.search_events(user, params)
            case ["GET", "users", "event_gist", "search"]:
                return double.search_gists(user, params)
        raise ApiError(404, f"the double does not know {method} {'/'.join(parts)}", 404)

    def _reply(self, status: int, data: Json, errno: int, message: str) -> None:
        raw = json.dumps({"data": data, "errno": errno, "errmsg": message}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _found(rows: Sequence[_Row], name: str, message: str) -> _Row:
    row = next((row for row in rows if row.id == name), None)
    if row is None:
        raise ApiError(404, message)
    return row


def main(argv: Sequence[str] | None = None) -> None:
    """Serve on the address of the flags, with scripted models or those of an endpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    model_options = parser.add_mutually_exclusive_group(required=True)
    model_options.add_argument("--llm-base-url", help="OpenAI-compatible endpoint")
    model_options.add_argument("--scripted", action="store_true", help="models of its own, which extract by rule")
    parser.add_argument("--llm-api-key", default="none")
    arguments = parser.parse_args(argv)
    base_url = scripted_models().base_url if arguments.scripted else arguments.llm_base_url
    double = Double(Models(base_url, arguments.llm_api_key), arguments.port, arguments.token, arguments.host)
    sys.stdout.write(f"{double.url}\n")
    sys.stdout.flush()
    double.join()


if __name__ == "__main__":
    main()
