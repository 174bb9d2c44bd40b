"""Calls the Memobase server over HTTP: typed requests with timeouts, and a distinct error for each kind of failure.

Connection, address, token and the form of blobs come from the memobase client. The requests are made here and not by
its methods, because those drop the results of a flush, the number of an error and the counts of a profile, put queries
into URLs unescaped, and wait a minute regardless of the caller's deadline.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Literal, TypeVar

import httpx
from memarena_backend import Call, CallError, ServeError, failed_precondition, unavailable
from memobase import ChatBlob, MemoBaseClient  # type: ignore[import-untyped]
from memobase.core.type import BaseResponse  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

CONNECT_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 60.0
"""Timeout of requests that call no extracting model."""
ALL = 1_000_000
"""A limit above any number of events: asks for all of them."""
EVER_DAYS = 36_500
"""A range of 100 years, to turn off the server's filter by the time of insertion, which is not a day of the life."""

_POLL_S = 0.02
_MISSING_ERRNO = 404
_THREADS = 32

Status = Literal["idle", "processing", "failed", "done"]
T = TypeVar("T")


class ServerFaultError(Exception):
    """The server answered a request with an error. ``errno`` is its number, 0 if it had none."""

    def __init__(self, what: str, errno: int, message: str) -> None:
        super().__init__(f"{what}: Memobase says {errno}: {' '.join(message.split())[:300]}")
        self.errno = errno
        self.message = message


class _Wire(BaseModel):
    """Base of the server's replies; fields of later versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Extraction(_Wire):
    """The result of one flush: ids of the event and of the profile slots that it added, changed and removed."""

    event_id: str | None
    add_profiles: tuple[str, ...] | None = ()
    update_profiles: tuple[str, ...] | None = ()
    delete_profiles: tuple[str, ...] | None = ()

    @property
    def empty(self) -> bool:
        """Whether nothing was extracted."""
        return not (self.event_id or self.add_profiles or self.update_profiles or self.delete_profiles)


class Slot(_Wire):
    """An entry of a user's profile."""

    id: str
    content: str
    attributes: dict[str, JsonValue]


class EventContent(_Wire):
    """The content of an event. ``event_tip`` is the log of a conversation, one line per fact."""

    event_tip: str | None = None


class StoredEvent(_Wire):
    """An event. ``similarity`` (cosine) is None unless the event is the result of a search."""

    id: str
    event_data: EventContent
    similarity: float | None = None


class GistContent(_Wire):
    """One line of an event's log."""

    content: str


class Gist(_Wire):
    """One line of an event's log as the result of a search. It does not name its event."""

    id: str
    gist_data: GistContent
    similarity: float


_EXTRACTIONS = TypeAdapter(tuple[Extraction, ...])
_SLOTS = TypeAdapter(tuple[Slot, ...])
_EVENTS = TypeAdapter(tuple[StoredEvent, ...])
_GISTS = TypeAdapter(tuple[Gist, ...])
_IDS = TypeAdapter(tuple[str, ...])


class Server:
    """One Memobase server. Safe to share between threads.

    Methods raise CallError: UNAVAILABLE if the server cannot be reached, FAILED_PRECONDITION if it refuses the token,
    the error of ``call.check()`` if the caller no longer waits; and :class:`ServerFaultError` if the server reports an
    error.
    """

    def __init__(self, url: str, token: str, flush_timeout_s: float) -> None:
        self._client = MemoBaseClient(project_url=url, api_key=token)
        self._http = self._client.client
        self._http.timeout = httpx.Timeout(REQUEST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        self._flush_timeout = httpx.Timeout(flush_timeout_s, connect=CONNECT_TIMEOUT_S)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="memobase")

    def close(self) -> None:
        """Close the connections without waiting for requests under way."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._http.close()

    def await_start(self, timeout_s: float) -> None:
        """Return once the server is healthy. Raises ServeError after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self._ask("healthcheck", "GET", "/healthcheck")
                # Health needs no token, so ask for something that does.
                self._ask("project", "GET", "/project/profile_config")
                return
            except (CallError, ServerFaultError) as error:
                final = isinstance(error, CallError) and error.code.name == "FAILED_PRECONDITION"
                if final or time.monotonic() > deadline:
                    self.close()
                    raise ServeError(f"MEMOBASE_URL {self._client.project_url}: {error}") from error
            time.sleep(0.2)

    # -------------------------------------------------------------- users

    def create_user(self, user: str) -> None:
        """Create a user, which must not exist."""
        self._ask("add user", "POST", "/users", json={"id": user, "data": None})

    def delete_user(self, user: str) -> None:
        """Delete a user with all data; does nothing if there is no such user."""
        try:
            self._ask("delete user", "DELETE", f"/users/{user}")
        except ServerFaultError as error:
            if error.errno != _MISSING_ERRNO:
                raise

    # -------------------------------------------------------------- what a user said

    def insert(self, user: str, blob: ChatBlob, call: Call) -> tuple[Extraction, ...]:
        """Add a blob to the user's buffer; return the extractions if that filled the buffer and flushed it."""
        data = self._wait(call, "insert", "POST", f"/blobs/insert/{user}", json=blob.to_request())
        results = data.get("chat_results") if isinstance(data, dict) else None
        return _parsed("insert", _EXTRACTIONS, results or [])

    def flush(self, user: str, call: Call) -> tuple[Extraction, ...]:
        """Extract from the blobs in the buffer, wait, and return the results; empty for an empty buffer."""
        data = self._wait(call, "flush", "POST", f"/users/buffer/{user}/chat")
        return _parsed("flush", _EXTRACTIONS, data or [])

    def buffered(self, user: str, status: Status) -> int:
        """Return how many blobs of the buffer have a status."""
        data = self._ask("buffer", "GET", f"/users/buffer/capacity/{user}/chat", params={"status": status})
        return len(_parsed("buffer", _IDS, _member("buffer", data, "ids")))

    def drop_blobs(self, user: str) -> None:
        """Delete all blobs that the server still has, and so empty the buffer."""
        while True:
            page = {"page": 0, "page_size": 100}
            data = self._ask("blobs", "GET", f"/users/blobs/{user}/chat", params=page)
            ids = _parsed("blobs", _IDS, _member("blobs", data, "ids"))
            if not ids:
                return
            for blob in ids:
                self._ask("delete blob", "DELETE", f"/blobs/{user}/{blob}")

    # -------------------------------------------------------------- what is remembered

    def profile(self, user: str) -> tuple[Slot, ...]:
        """Return the whole profile, the latest change first."""
        data = self._ask("profile", "GET", f"/users/profile/{user}")
        return _parsed("profile", _SLOTS, _member("profile", data, "profiles"))

    def events(self, user: str) -> tuple[StoredEvent, ...]:
        """Return all events, by the request for tags; the one for events returns only 21 days of the server's clock."""
        data = self._ask("events", "GET", f"/users/event_tags/search/{user}", params={"topk": ALL})
        return _parsed("events", _EVENTS, _member("events", data, "events"))

    def search_events(self, user: str, query: str, topk: int, threshold: float) -> tuple[StoredEvent, ...]:
        """Return the events most similar to the query, best first."""
        data = self._ask("event search", "GET", f"/users/event/search/{user}", params=_like(query, topk, threshold))
        return _parsed("event search", _EVENTS, _member("event search", data, "events"))

    def search_gists(self, user: str, query: str, topk: int, threshold: float) -> tuple[Gist, ...]:
        """Return the lines of events most similar to the query, best first."""
        path = f"/users/event_gist/search/{user}"
        data = self._ask("gist search", "GET", path, params=_like(query, topk, threshold))
        return _parsed("gist search", _GISTS, _member("gist search", data, "gists"))

    # -------------------------------------------------------------- taking back

    def delete_event(self, user: str, event: str) -> None:
        """Delete an event and its lines."""
        self._ask("delete event", "DELETE", f"/users/event/{user}/{event}")

    def delete_slot(self, user: str, slot: str) -> None:
        """Delete an entry of the profile."""
        self._ask("delete profile", "DELETE", f"/users/profile/{user}/{slot}")

    def write_slot(self, user: str, slot: Slot) -> None:
        """Set content and attributes of the profile entry ``slot.id``."""
        body: JsonValue = {"content": slot.content, "attributes": slot.attributes}
        self._ask("update profile", "PUT", f"/users/profile/{user}/{slot.id}", json=body)

    def add_slot(self, user: str, content: str, attributes: Mapping[str, JsonValue]) -> str:
        """Add an entry to the profile; return its id."""
        body: JsonValue = {"content": content, "attributes": dict(attributes)}
        data = self._ask("add profile", "POST", f"/users/profile/{user}", json=body)
        return str(_member("add profile", data, "id"))

    # -------------------------------------------------------------- asking

    def _wait(self, call: Call, what: str, method: str, path: str, json: JsonValue = None) -> JsonValue:
        """Send a request that may run a model; stop waiting when the caller has gone (the server goes on)."""
        call.check()
        response: Future[JsonValue] = self._pool.submit(
            self._ask, what, method, path, {"wait_process": "true"}, json, self._flush_timeout
        )
        while not wait([response], timeout=_POLL_S).done:
            call.check()
        return response.result()

    def _ask(
        self,
        what: str,
        method: str,
        path: str,
        params: Mapping[str, str | int | float] | None = None,
        json: JsonValue = None,
        timeout: httpx.Timeout | None = None,
    ) -> JsonValue:
        """Send a request and return the data of the answer. Raises as the class describes."""
        try:
            reply = self._http.request(method, path, params=params, json=json, timeout=timeout or self._http.timeout)
        except httpx.TimeoutException as error:
            raise unavailable(f"{what}: the Memobase server did not answer in time") from error
        except httpx.HTTPError as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise unavailable(f"{what}: the Memobase server cannot be reached: {reason}") from error
        if reply.status_code in {401, 403}:
            raise failed_precondition(f"{what}: the Memobase server refuses MEMOBASE_TOKEN")
        if reply.status_code >= 500:
            raise unavailable(f"{what}: the Memobase server answered {reply.status_code}: {reply.text[:200]}")
        try:
            answer = BaseResponse.model_validate(reply.json())
        except ValueError as error:
            raise ServerFaultError(what, reply.status_code, reply.text[:300]) from error
        if answer.errno != 0:
            raise ServerFaultError(what, answer.errno, answer.errmsg)
        data: JsonValue = answer.data
        return data


def _like(query: str, topk: int, threshold: float) -> dict[str, str | int | float]:
    return {"query": query, "topk": topk, "similarity_threshold": threshold, "time_range_in_days": EVER_DAYS}


def _member(what: str, data: JsonValue, key: str) -> JsonValue:
    if not isinstance(data, dict) or key not in data:
        raise ServerFaultError(what, 0, f"a reply without {key}")
    return data[key]


def _parsed(what: str, form: TypeAdapter[T], value: JsonValue) -> T:
    try:
        return form.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ServerFaultError(what, 0, f"a reply of another form: {field}: {first['msg']}") from error
