"""Backends that answer oddly: what the contract forbids is their failure, what a later contract adds is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import BackendDescribed, Problem, QuestionAsked
from memarena.log.store import read_records
from memarena_proto import memory_backend_pb2 as pb

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


class OddItems(CapturingBackend):
    """Returns one item as told, from Search or from Answer."""

    def __init__(self, item: pb.MemoryItem, *, in_answer: bool) -> None:
        super().__init__()
        self._item = item
        self._in_answer = in_answer

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        response = super().Search(request, context)
        return response if self._in_answer else pb.SearchResponse(items=[self._item])

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        _, *rest = super().Answer(request, context)
        yield pb.AnswerEvent(retrieved=pb.Retrieved(items=[self._item]))
        yield from rest


class TooMuch(CapturingBackend):
    """Returns more than was asked for: too many items, or too many tokens."""

    def __init__(self, items: list[str]) -> None:
        super().__init__()
        self._items = [pb.MemoryItem(text=text) for text in items]

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        super().Search(request, context)
        return pb.SearchResponse(items=self._items, visible_through_day=request.as_of_day)


class OddWords(CapturingBackend):
    """Streams deltas that are empty, or not what it completes with."""

    def __init__(self, deltas: list[str]) -> None:
        super().__init__()
        self._deltas = deltas

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        retrieved, _, completed = super().Answer(request, context)
        yield retrieved
        for text in self._deltas:
            yield pb.AnswerEvent(text_delta=pb.TextDelta(text=text))
        yield completed


class FewItems(CapturingBackend):
    """Declares that it returns at most three items."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        response.limits.max_items = 3
        return response


class FromTheFuture(CapturingBackend):
    """Declares what no contract names yet."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        unknown = pb.DescribeResponse.FromString(
            pb.DescribeResponse(capabilities=[99], preferred_prompt_style=77, retention=66).SerializeToString()  # type: ignore[list-item,arg-type]
        )
        response.MergeFrom(unknown)
        response.contract_version = "1.7"
        return response


class OtherDay(CapturingBackend):
    """Names day 0 as the last that it holds, in one of three replies, whatever was sent to it."""

    def __init__(self, rpc: str) -> None:
        super().__init__()
        self._rpc = rpc

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        response = super().Ingest(request_iterator, context)
        return pb.IngestResponse() if self._rpc == "Ingest" else response

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        response = super().Search(request, context)
        return pb.SearchResponse(items=response.items) if self._rpc == "Search" else response

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        retrieved, *rest = super().Answer(request, context)
        yield pb.AnswerEvent(retrieved=pb.Retrieved()) if self._rpc == "Retrieved" else retrieved
        yield from rest


def run_of(backend: CapturingBackend, out: Path, **more: object) -> list[QuestionAsked]:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"odd={backend.address}"],
        "readers": [{"spec": "extractive"}],
        "limit": 2,
        "floor_samples": 0,
        **more,
    }
    with backend:
        assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "completed"
    return [r for r in read_records(out, "asked") if isinstance(r, QuestionAsked)]


@pytest.mark.parametrize("in_answer", [False, True])
@pytest.mark.parametrize(
    ("item", "named"),
    [
        (pb.MemoryItem(text="x", score=float("nan")), "items[0].score"),
        (pb.MemoryItem(text="x", score=float("inf")), "items[0].score"),
        (pb.MemoryItem(text="", score=1.0), "items[0].text"),
    ],
)
def test_an_item_that_the_contract_forbids_is_the_backends_failure(
    tmp_path: Path, item: pb.MemoryItem, named: str, in_answer: bool
) -> None:
    """And the log can still be read, although JSON has no such numbers."""
    asked = run_of(OddItems(item, in_answer=in_answer), tmp_path / "run")
    assert [r.status for r in asked] == ["backend_failed"] * 2
    assert all("CONTRACT" in r.cause and named in r.cause for r in asked)
    assert len(list(read_records(tmp_path / "run"))) > 2


def test_a_backend_of_a_later_minor_version_takes_part(tmp_path: Path) -> None:
    asked = run_of(FromTheFuture(), tmp_path / "run")
    assert [r.status for r in asked] == ["answered"] * 2
    (described,) = [r for r in read_records(tmp_path / "run") if isinstance(r, BackendDescribed)]
    assert described.capabilities == ("answer", "unknown_99")
    assert described.retention == "unknown_66"
    assert described.preferred_prompt_style == "text_sessions"


@pytest.mark.parametrize(
    ("items", "bounds", "reason"),
    [
        (["a"] * 4, {"max_items": 3}, "4 items where max_items is 3"),
        (
            ["word " * 40, "word " * 40],
            {"max_context_tokens": 64},
            "100 tokens of items where max_context_tokens is 64",
        ),
    ],
)
def test_more_than_was_asked_for_is_the_backends_failure(
    tmp_path: Path, items: list[str], bounds: dict[str, object], reason: str
) -> None:
    with TooMuch(items) as backend:
        results = run_of(backend, tmp_path / "run", **bounds)
    assert {(r.status, r.cause) for r in results} == {("backend_failed", f"Search: CONTRACT: {reason}")}


def test_as_much_as_was_asked_for_is_fine(tmp_path: Path) -> None:
    with TooMuch(["word", "words"]) as backend:
        results = run_of(backend, tmp_path / "run", max_items=2, max_context_tokens=16)
    assert {r.status for r in results} == {"answered"}


@pytest.mark.parametrize(
    ("deltas", "reason"),
    [
        (["", "I do not know."], "without text"),
        (["I do ", "know."], "not that of the text_deltas"),
        ([], "not that of"),
    ],
)
def test_words_that_do_not_add_up_are_the_backends_failure(tmp_path: Path, deltas: list[str], reason: str) -> None:
    with OddWords(deltas) as backend:
        results = run_of(backend, tmp_path / "run")
    assert all(r.status == "backend_failed" and reason in r.cause for r in results)


def test_words_in_pieces_that_add_up_are_fine(tmp_path: Path) -> None:
    with OddWords(["I do ", "not know", "."]) as backend:
        results = run_of(backend, tmp_path / "run")
    assert {r.status for r in results} == {"answered"}


def test_a_backend_that_the_harness_cannot_serve_is_refused_before_the_run(tmp_path: Path) -> None:
    with FewItems() as backend, pytest.raises(RunError, match="at most 3 items"):
        run_of(backend, tmp_path, max_items=4)
    assert not (tmp_path / "run.sqlite").exists()


class ShortDays(CapturingBackend):
    """Takes days of at most 100 bytes."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        assert request.caller_minor_version == 2
        response = super().Describe(request, context)
        response.limits.max_day_bytes = 100
        return response


def test_a_day_longer_than_the_backend_takes_ends_the_run_with_one_line(tmp_path: Path) -> None:
    backend = ShortDays()
    with pytest.raises(RunError, match=r"odd: takes days of at most 100 bytes, and on day 0 of \w+ it has "):
        run_of(backend, tmp_path / "run")
    assert backend.of("Ingest") == []


class ShortTexts(CapturingBackend):
    """Takes texts of a few bytes, of the kind that ``limit`` names."""

    def __init__(self, limit: str) -> None:
        super().__init__()
        self._limit = limit

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        setattr(response.limits, self._limit, 20)
        return response


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("max_turn_text_bytes", r"odd: takes turns and events of at most 20 bytes, and on day \d of \w+ the longest"),
        ("max_query_text_bytes", r"odd: takes questions of at most 20 bytes, and \w+ has "),
    ],
)
def test_a_text_longer_than_the_backend_takes_ends_the_run_with_one_line(tmp_path: Path, limit: str, told: str) -> None:
    backend = ShortTexts(limit)
    with pytest.raises(RunError, match=told):
        run_of(backend, tmp_path / "run")
    assert backend.of("Ingest" if "turn" in limit else "Search") == []


@pytest.mark.parametrize("rpc", ["Ingest", "Search", "Retrieved"])
def test_a_day_that_was_not_the_last_sent_is_told_by_the_run(tmp_path: Path, rpc: str) -> None:
    asked = run_of(OtherDay(rpc), tmp_path / "run")
    told = [r.message for r in read_records(tmp_path / "run", "problem") if isinstance(r, Problem)]
    last = max(question.day for question in asked)
    assert last > 0
    expected = {
        "Ingest": "Ingest of day 1 says visible_through_day 0",
        "Search": f"Search saw through day 0, the last committed is {last}",
        "Retrieved": f"Retrieved saw through day 0, the last committed is {last}",
    }
    assert any(expected[rpc] in message for message in told), told
    assert not [m for m in told for other, line in expected.items() if other != rpc and line in m]
    if rpc == "Ingest":
        assert sum("Ingest of day" in message for message in told) == len({question.ego for question in asked})
