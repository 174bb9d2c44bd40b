"""Backends that answer oddly: what the contract forbids is their failure, what a later contract adds is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena.log.records import BackendDescribed, QuestionAsked
from memarena.log.store import read_records
from memarena.run.config import parse_config
from memarena.run.engine import execute
from memarena.run.request import RunRequest
from memarena_proto import memory_backend_pb2 as pb

from .capture import CapturingBackend

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


def run_of(backend: CapturingBackend, out: Path) -> list[QuestionAsked]:
    values = {
        "dataset": EXAMPLE,
        "backends": [f"odd={backend.address}"],
        "readers": [{"spec": "extractive"}],
        "limit": 2,
        "floor_samples": 0,
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
