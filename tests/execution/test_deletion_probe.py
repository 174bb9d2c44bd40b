"""Tests the deletion probe: it detects a Forget that deletes nothing, and one that deletes everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from memarena.cli.main import app
from memarena.execution.cells.deletion import draw_targets
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import DeletionProbed, QuestionAsked
from memarena.log.store import read_records
from memarena_dataset.io.reading import open_dataset
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


class Remembers(CapturingBackend):
    """Returns the turn whose text is the query; Forget reports OK and deletes nothing, or everything."""

    def __init__(self, *, everything: bool) -> None:
        super().__init__(answers=False)
        self._everything = everything
        self._turns: dict[str, list[pb.Turn]] = {}

    def Describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        description = super().Describe(request, context)
        description.capabilities.append(pb.CAPABILITY_FORGET)
        return description

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        frames = list(request_iterator)
        turns = self._turns.setdefault(frames[0].header.namespace, [])
        turns += [turn for frame in frames for turn in frame.session.turns]
        return pb.IngestResponse(visible_through_day=frames[0].header.day_index)

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        turns = [turn for turn in self._turns[request.namespace] if turn.text == request.text]
        items = [pb.MemoryItem(text=f"somebody: {turn.text}") for turn in turns]
        return pb.SearchResponse(items=items, visible_through_day=request.as_of_day)

    def Forget(self, request: pb.ForgetRequest, context: grpc.ServicerContext) -> pb.ForgetResponse:
        if self._everything:
            self._turns[request.namespace] = []
        return pb.ForgetResponse()


def test_a_forget_that_deletes_nothing_or_too_much_shows_in_the_report(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with (
        Remembers(everything=False) as keeps,
        Remembers(everything=True) as loses,
        CapturingBackend(answers=False) as cannot,
    ):
        values = {
            "dataset": EXAMPLE,
            "backends": [
                "bm25",
                f"keeps={keeps.address}",
                f"loses={loses.address}",
                f"cannot={cannot.address}",
            ],
            "readers": [{"spec": "extractive"}],
            "limit": 3,
            "floor_samples": 0,
            "deletions": 2,
        }
        assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "completed"
    records = list(read_records(out, "asked", "deletion_probed"))
    probes = [r for r in records if isinstance(r, DeletionProbed)]
    last_question = {
        r.ego: index for index, r in enumerate(records) if isinstance(r, QuestionAsked) and r.cell_id.startswith("bm")
    }
    for index, record in enumerate(records):
        if isinstance(record, DeletionProbed) and record.cell_id.startswith("bm"):
            assert index > last_question[record.ego], "a question came after what it asks for was deleted"

    file = tmp_path / "report.json"
    assert CliRunner().invoke(app, ["report", str(out), "--format", "json", "--out", str(file)]).exit_code == 0
    rows = {row["backend"]: row for row in json.loads(file.read_text(encoding="utf-8"))["runs"][0]["rows"]}
    for kind in ("session", "subject", "fact"):
        deletions = {
            name: next(d for d in rows[name]["deletion"] if d["target"] == kind) for name in rows if name != "cannot"
        }
        assert all(deletion["forgotten"] and not deletion["failed"] for deletion in deletions.values())
        assert deletions["bm25"]["found_before"] and deletions["keeps"]["found_before"], kind
        assert (
            deletions["bm25"]["found_again"],
            deletions["bm25"]["answered_again"],
            deletions["bm25"]["controls_lost"],
        ) == (0, 0, 0)
        assert deletions["keeps"]["found_again"] == deletions["keeps"]["found_before"]
        assert deletions["keeps"]["answered_again"] is None
    deletions_of_loses = rows["loses"]["deletion"]
    assert sum(d["found_again"] for d in deletions_of_loses) == 0
    assert sum(d["controls_lost"] for d in deletions_of_loses) == sum(d["controls"] for d in deletions_of_loses) > 0
    assert rows["cannot"]["deletion"] == []
    assert {p.code for p in probes} == {"OK"}
    for form in ("table", "html"):
        options = ["--full"] if form == "table" else []
        file = tmp_path / f"report.{form}"
        assert (
            CliRunner().invoke(app, ["report", str(out), *options, "--format", form, "--out", str(file)]).exit_code == 0
        )
        assert "Deletion, apart from every score" in file.read_text(encoding="utf-8")


def test_targets_are_drawn_from_the_days_and_share_no_turn() -> None:
    with open_dataset(EXAMPLE) as dataset:
        ego = dataset.egos[0]
        targets = draw_targets(dataset, ego, 3, "seed")
        assert targets == draw_targets(dataset, ego, 3, "seed")
        assert targets != draw_targets(dataset, ego, 3, "another")
    turns = [turn.turn_id for target in targets for turn in target.turns]
    assert len(turns) == len(set(turns)) and {target.kind for target in targets} == {"session", "subject", "fact"}
    for target in targets:
        if target.kind == "subject":
            assert all(target.value.casefold() in turn.text.casefold() for turn in target.turns)
        if target.control is not None:
            assert target.control.session_id not in {turn.session_id for turn in target.turns}
