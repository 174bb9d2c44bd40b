"""Tests odd answers of backends: a violation of the contract is the backend's failure, an unknown new field is not."""

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
    """Returns this one item, from Search or from Answer."""

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
    """Returns these items, more than requested in number or tokens."""

    def __init__(self, items: list[str]) -> None:
        super().__init__()
        self._items = [pb.MemoryItem(text=text) for text in items]

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        super().Search(request, context)
        return pb.SearchResponse(items=self._items, visible_through_day=request.as_of_day)


class OddWords(CapturingBackend):
    """Streams these text deltas and completes with a fixed text."""

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
    """Declares values that no version of the contract defines yet."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        unknown = pb.DescribeResponse.FromString(
            pb.DescribeResponse(capabilities=[99], preferred_prompt_style=77, retention=66).SerializeToString()  # type: ignore[list-item,arg-type]
        )
        response.MergeFrom(unknown)
        response.contract_version = "1.7"
        return response


class OtherDay(CapturingBackend):
    """Reports day 0 as ``visible_through_day`` in the replies of one RPC."""

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
    ("item", "field_path"),
    [
        (pb.MemoryItem(text="x", score=float("nan")), "items[0].score"),
        (pb.MemoryItem(text="x", score=float("inf")), "items[0].score"),
        (pb.MemoryItem(text="", score=1.0), "items[0].text"),
    ],
)
def test_an_item_that_the_contract_forbids_is_the_backends_failure(
    tmp_path: Path, item: pb.MemoryItem, field_path: str, in_answer: bool
) -> None:
    """The log stays readable, although JSON has no number for NaN or infinity."""
    questions = run_of(OddItems(item, in_answer=in_answer), tmp_path / "run")
    assert [r.status for r in questions] == ["backend_failed"] * 2
    assert all("CONTRACT" in r.cause and field_path in r.cause for r in questions)
    assert len(list(read_records(tmp_path / "run"))) > 2


def test_a_backend_of_a_later_minor_version_takes_part(tmp_path: Path) -> None:
    questions = run_of(FromTheFuture(), tmp_path / "run")
    assert [r.status for r in questions] == ["answered"] * 2
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
def test_more_items_or_tokens_than_requested_are_the_backends_failure(
    tmp_path: Path, items: list[str], bounds: dict[str, object], reason: str
) -> None:
    with TooMuch(items) as backend:
        results = run_of(backend, tmp_path / "run", **bounds)
    assert {(r.status, r.cause) for r in results} == {("backend_failed", f"Search: CONTRACT: {reason}")}


def test_exactly_as_much_as_requested_is_accepted(tmp_path: Path) -> None:
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
def test_deltas_that_do_not_join_to_the_completed_text_are_the_backends_failure(
    tmp_path: Path, deltas: list[str], reason: str
) -> None:
    with OddWords(deltas) as backend:
        results = run_of(backend, tmp_path / "run")
    assert all(r.status == "backend_failed" and reason in r.cause for r in results)


def test_deltas_that_join_to_the_completed_text_are_accepted(tmp_path: Path) -> None:
    with OddWords(["I do ", "not know", "."]) as backend:
        results = run_of(backend, tmp_path / "run")
    assert {r.status for r in results} == {"answered"}


def test_a_backend_that_the_harness_cannot_serve_is_refused_before_the_run(tmp_path: Path) -> None:
    with FewItems() as backend, pytest.raises(RunError, match="at most 3 items"):
        run_of(backend, tmp_path, max_items=4)
    assert not (tmp_path / "run.sqlite").exists()


class ShortDays(CapturingBackend):
    """Declares that it accepts days of at most 100 bytes."""

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        assert request.caller_minor_version == 2
        response = super().Describe(request, context)
        response.limits.max_day_bytes = 100
        return response


def test_a_day_above_the_declared_limit_ends_the_run_with_a_one_line_error(tmp_path: Path) -> None:
    backend = ShortDays()
    with pytest.raises(RunError, match=r"odd: takes days of at most 100 bytes, and on day 0 of \w+ it has "):
        run_of(backend, tmp_path / "run")
    assert backend.of("Ingest") == []


class ShortTexts(CapturingBackend):
    """Declares a limit of a few bytes for the kind of text that ``limit`` names."""

    def __init__(self, limit: str) -> None:
        super().__init__()
        self._limit = limit

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        response = super().Describe(request, context)
        setattr(response.limits, self._limit, 20)
        return response


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("max_turn_text_bytes", r"odd: takes turns and events of at most 20 bytes, and on day \d of \w+ the longest"),
        ("max_query_text_bytes", r"odd: takes questions of at most 20 bytes, and \w+ has "),
    ],
)
def test_a_text_above_the_declared_limit_ends_the_run_with_a_one_line_error(
    tmp_path: Path, limit: str, message: str
) -> None:
    backend = ShortTexts(limit)
    with pytest.raises(RunError, match=message):
        run_of(backend, tmp_path / "run")
    assert backend.of("Ingest" if "turn" in limit else "Search") == []


@pytest.mark.parametrize("rpc", ["Ingest", "Search", "Retrieved"])
def test_a_wrong_visible_through_day_is_logged_as_a_problem(tmp_path: Path, rpc: str) -> None:
    questions = run_of(OtherDay(rpc), tmp_path / "run")
    problems = [r.message for r in read_records(tmp_path / "run", "problem") if isinstance(r, Problem)]
    last = max(question.day for question in questions)
    assert last > 0
    expected = {
        "Ingest": "Ingest of day 1 says visible_through_day 0",
        "Search": f"Search saw through day 0, the last committed is {last}",
        "Retrieved": f"Retrieved saw through day 0, the last committed is {last}",
    }
    assert any(expected[rpc] in message for message in problems), problems
    assert not [m for m in problems for other_rpc, line in expected.items() if other_rpc != rpc and line in m]
    if rpc == "Ingest":
        assert sum("Ingest of day" in message for message in problems) == len({question.ego for question in questions})
