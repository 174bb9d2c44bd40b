"""Helpers for the tests of kit and backends: makes days as messages, serves a memory, and parses errors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from memarena_backend import (
    BackendServer,
    Call,
    Capability,
    Day,
    Description,
    Item,
    Memory,
    Notice,
    Query,
    SearchResult,
    Security,
    fit_ranked,
)
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto import memory_backend_pb2_grpc as pb_grpc
from memarena_proto.digest import DayDigest

OWNER = pb.Participant(participant_id="p-own", display_name="Maya Chen", role=pb.PARTICIPANT_ROLE_OWNER)
FRIEND = pb.Participant(participant_id="p-fri", display_name="Omar Haddad", role=pb.PARTICIPANT_ROLE_PERSON)
CALL_TIMEOUT_S = 20.0
PLAIN = Security()

# ------------------------------------------------------------------ days


def moment(day: int, minute: int = 0) -> str:
    """A time of a day of the simulated life, which begins on 2025-01-01."""
    return (datetime(2025, 1, 1, 9, tzinfo=UTC) + timedelta(days=day, minutes=minute)).isoformat()


def make_turn(turn_id: str, text: str, *, day: int = 0, minute: int = 0, speaker: str = "p-own") -> pb.Turn:
    return pb.Turn(turn_id=turn_id, speaker_id=speaker, text=text, said_at=moment(day, minute))


def make_session(
    session_id: str,
    texts: Sequence[str],
    *,
    day: int = 0,
    minute: int = 0,
    place: str = "",
    group: str = "",
    modality: str = "",
) -> pb.Session:
    """A session of the owner and a friend, who take turns, a minute each. Turn ids are ``<session>.<number>``."""
    turns = [
        make_turn(
            f"{session_id}.{number}",
            text,
            day=day,
            minute=minute + number,
            speaker=(OWNER, FRIEND)[number % 2].participant_id,
        )
        for number, text in enumerate(texts)
    ]
    return pb.Session(
        session_id=session_id,
        participants=[OWNER, FRIEND],
        started_at=moment(day, minute),
        ended_at=moment(day, minute + len(texts)),
        place=place,
        group=group,
        modality=modality,
        turns=turns,
    )


def make_event(event_id: str, text: str, *, day: int = 0) -> pb.Event:
    return pb.Event(event_id=event_id, happened_at=moment(day), text=text, category="community")


def make_header(namespace: str, day: int, batch_id: str | None = None) -> pb.DayHeader:
    return pb.DayHeader(
        namespace=namespace,
        day_index=day,
        date=moment(day)[:10],
        batch_id=batch_id or f"b-{namespace}-{day}",
        owner=OWNER,
    )


def sealed(frames: Iterable[pb.IngestRequest]) -> list[pb.IngestRequest]:
    """The frames, followed by the trailer (counts and digest) that fits them."""
    digest = DayDigest()
    whole = []
    for frame in frames:
        digest.add(frame)
        whole.append(frame)
    return [*whole, pb.IngestRequest(trailer=digest.trailer())]


def make_day(
    namespace: str,
    day: int,
    sessions: Iterable[pb.Session] = (),
    events: Iterable[pb.Event] = (),
    batch_id: str | None = None,
) -> list[pb.IngestRequest]:
    """All frames of a day."""
    return sealed(
        [
            pb.IngestRequest(header=make_header(namespace, day, batch_id)),
            *(pb.IngestRequest(session=session) for session in sessions),
            *(pb.IngestRequest(event=event) for event in events),
        ]
    )


def make_query(namespace: str, text: str, as_of_day: int, **fields: object) -> pb.SearchRequest:
    request = pb.SearchRequest(
        namespace=namespace,
        query_id="q-1",
        text=text,
        asked_at=moment(as_of_day + 1),
        as_of_day=as_of_day,
        requester=pb.Requester(kind=pb.REQUESTER_KIND_OWNER),
    )
    request.MergeFrom(pb.SearchRequest(**fields))  # type: ignore[arg-type]
    return request


# ------------------------------------------------------------------ a served memory


class Verbatim(Memory):
    """A whole memory in a few lines: returns the turns that contain the text of the question verbatim.

    ``before_commit`` runs in ``commit_day`` after the day was added: tests make it fail or wait there.
    """

    def __init__(self, capabilities: frozenset[Capability] = frozenset({Capability.PROVENANCE})) -> None:
        self._days: dict[str, list[Day]] = {}
        self._capabilities = capabilities
        self.before_commit: Callable[[str, Day, Call], None] = lambda *_: None
        self.restored: list[str] = []

    def describe(self) -> Description:
        return Description("verbatim", "1", capabilities=self._capabilities)

    def commit_day(self, namespace: str, day: Day, call: Call) -> Sequence[Notice]:
        self._days.setdefault(namespace, []).append(day)
        self.before_commit(namespace, day, call)
        return ()

    def restore(self, namespace: str, days: Iterable[Day], call: Call) -> None:
        self.restored.append(namespace)
        self._days[namespace] = list(days)

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        items = [
            Item(turn.text, 1.0, (session.session_id,), (turn.turn_id,), turn.said_at.isoformat())
            for day in self._days[namespace]
            if day.index <= query.as_of_day
            for session in day.sessions
            for turn in session.turns
            if query.text in turn.text
        ]
        return fit_ranked(items, query.max_items, query.max_context_tokens)

    def forget(self, namespace: str) -> None:
        self._days.pop(namespace, None)


@dataclass
class Served:
    """A memory behind gRPC, and a client of it."""

    address: str
    channel: grpc.Channel
    stub: pb_grpc.MemoryBackendStub = field(init=False)

    def __post_init__(self) -> None:
        self.stub = pb_grpc.MemoryBackendStub(self.channel)

    def ingest(self, frames: Iterable[pb.IngestRequest], timeout_s: float = CALL_TIMEOUT_S) -> pb.IngestResponse:
        return self.stub.Ingest(iter(frames), timeout=timeout_s)

    def search(self, request: pb.SearchRequest, timeout_s: float = CALL_TIMEOUT_S) -> pb.SearchResponse:
        return self.stub.Search(request, timeout=timeout_s)

    def find(self, namespace: str, text: str, as_of_day: int, **fields: object) -> list[str]:
        """Return the texts of the items that a search returns."""
        return [item.text for item in self.search(make_query(namespace, text, as_of_day, **fields)).items]

    def reset(self, namespace: str) -> None:
        self.stub.Reset(pb.ResetRequest(namespace=namespace), timeout=CALL_TIMEOUT_S)


@contextmanager
def connect(address: str) -> Iterator[Served]:
    options = (("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1))
    with grpc.insecure_channel(address, options=options) as channel:
        yield Served(address, channel)


@contextmanager
def serve(memory: Memory, data_dir: Path, security: Security = PLAIN) -> Iterator[Served]:
    """Serve a memory in this process on a free port."""
    server = BackendServer(lambda _: memory, data_dir, "127.0.0.1:0", security)
    try:
        with connect(server.address) as served:
            yield served
    finally:
        server.stop()


@dataclass
class BackendProcess:
    """A backend that runs as its own process."""

    process: subprocess.Popen[bytes]
    address: str
    log_path: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def launch(module: str, work_dir: Path, *arguments: str, data_dir: Path | None = None) -> Iterator[BackendProcess]:
    """Start a backend's module and wait for its address; kill it at the end if it still runs."""
    address_file = work_dir / "address"
    address_file.unlink(missing_ok=True)
    log_path = work_dir / "stderr.log"
    command = [
        *(sys.executable, "-m", module, *arguments),
        *("--listen", "127.0.0.1:0", "--address-file", str(address_file)),
        *("--data-dir", str(data_dir or work_dir / "data")),
    ]
    with log_path.open("ab") as log:
        process = subprocess.Popen(command, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        give_up_at = time.monotonic() + 30
        while not address_file.exists():
            assert process.poll() is None, log_path.read_text()
            assert time.monotonic() < give_up_at, "the backend did not write its address"
            time.sleep(0.02)
        yield BackendProcess(process, address_file.read_text().strip(), log_path)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=10)


# ------------------------------------------------------------------ errors


def code_of(error: grpc.RpcError) -> grpc.StatusCode:
    return cast(grpc.Call, error).code()


def message_of(error: grpc.RpcError) -> str:
    return cast(grpc.Call, error).details() or ""


def bad_fields(error: grpc.RpcError) -> list[str]:
    """Fields that the error's BadRequest names."""
    status = rpc_status.from_call(error)
    fields: list[str] = []
    for detail in status.details if status is not None else ():
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request):
            fields += [violation.field for violation in bad_request.field_violations]
    return fields


def retry_delay_s(error: grpc.RpcError) -> float | None:
    """Delay of the error's RetryInfo, None without one."""
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else ():
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return float(retry.retry_delay.ToTimedelta().total_seconds())
    return None
