"""Tests the metering of a closed memory that calls models during Ingest: calls, tokens and time are counted outside."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import grpc
import pytest
from memarena.cli.scores import report_run
from memarena.evaluation import load_facts
from memarena.execution.engine import execute
from memarena.execution.planning.call_limits import BudgetConfig
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.planning.request import RunRequest
from memarena.log.records import AnyRecord, GatewayCall, IngestDone
from memarena.log.store import read_records
from memarena.report.rows import rows_of
from memarena.report.tables.ingest import ingest_table
from memarena_proto import memory_backend_pb2 as pb
from pydantic import JsonValue

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

from .capture import CapturingBackend

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
DELAY_S = 0.02
PURPOSES = ("facts", "summary")


class Vendor(CapturingBackend):
    """Sends every session to the offered model in two calls and reports nothing about them."""

    def __init__(self) -> None:
        super().__init__(answers=False)
        self.refused = 0

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        access, day = pb.ModelAccess(), 0
        for frame in request_iterator:
            if frame.HasField("header"):
                access, day = frame.header.model_access, frame.header.day_index
            elif frame.HasField("session"):
                for purpose in PURPOSES:
                    self._ask(access, purpose, " ".join(turn.text for turn in frame.session.turns))
        return pb.IngestResponse(visible_through_day=day)

    def _ask(self, access: pb.ModelAccess, purpose: str, text: str) -> None:
        body = {"model": access.models[0].name, "messages": [{"role": "user", "content": f"{purpose}: {text}"}]}
        request = urllib.request.Request(
            f"{access.base_url}/chat/completions",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 429:
                    raise
                self.refused += 1


def run(out: Path, vendor: Vendor, reader: ModelServer, **more: object) -> list[AnyRecord]:
    config = RunConfig(
        dataset=EXAMPLE,
        backends=(f"vendor={vendor.address}",),
        readers=(ReaderConfig(spec=reader.base_url),),
        limit=2,
        floor_samples=0,
        meters=("none",),
    ).model_copy(update=more)
    assert execute(RunRequest(out=out, config=config)).reason == "completed"
    return list(read_records(out))


@pytest.fixture
def reader() -> Iterator[ModelServer]:
    """A model that takes 20 ms to its first token and reports 100 prompt tokens for the vendor's calls."""

    def script(body: Mapping[str, JsonValue]) -> Script:
        of_vendor = any(f"{purpose}: " in str(body.get("messages")) for purpose in PURPOSES)
        tokens = 100 if of_vendor else None
        return Script(tokens=("a", "b", "c"), prompt_tokens=tokens, delay_s=DELAY_S)

    with ModelServer(script) as server:
        yield server


def test_ingest_cost_counts_calls_tokens_and_time_of_the_vendors_model(tmp_path: Path, reader: ModelServer) -> None:
    with Vendor() as vendor:
        records = run(tmp_path / "run", vendor, reader)
    days = [record for record in records if isinstance(record, IngestDone)]
    calls = [record for record in records if isinstance(record, GatewayCall) and record.phase == "ingest"]
    sessions = sum(day.sessions for day in days)
    assert sessions > 2
    assert len(calls) == 2 * sessions
    assert {(call.cell_id, call.status) for call in calls} == {(days[0].cell_id, 200)}
    assert {(call.ego, call.day) for call in calls} <= {(day.ego, day.day) for day in days}
    (cost,) = [row.ingest for row in report_run(tmp_path / "run").scores.rows]
    assert cost is not None
    assert (cost.model_calls, cost.prompt_tokens, cost.completion_tokens) == (
        len(calls), 100 * len(calls), 3 * len(calls),
    )  # fmt: skip
    assert cost.seconds is not None
    assert cost.model_seconds is not None
    assert DELAY_S * len(calls) <= cost.model_seconds <= cost.seconds


def test_the_report_shows_the_ingest_cost(tmp_path: Path, reader: ModelServer) -> None:
    with Vendor() as vendor:
        run(tmp_path / "run", vendor, reader)
    section = ingest_table(rows_of([report_run(tmp_path / "run")]))
    assert section is not None
    assert section.table is not None
    cell_texts = dict(
        zip([c.title for c in section.table.columns], [c.text for c in section.table.rows[0]], strict=True)
    )
    calls = int(cell_texts["model calls"])
    assert calls > 0
    assert cell_texts["prompt tokens"] == f"{100 * calls:,}"
    assert float(cell_texts["models s"]) >= DELAY_S * calls * 0.99


def test_calls_beyond_the_budget_are_refused_and_counted(tmp_path: Path, reader: ModelServer) -> None:
    with Vendor() as vendor:
        records = run(tmp_path / "run", vendor, reader, budgets={"ingest": BudgetConfig(calls=1)})
        refused = vendor.refused
    days = [record for record in records if isinstance(record, IngestDone) and record.sessions]
    calls = [record for record in records if isinstance(record, GatewayCall) and record.phase == "ingest"]
    assert refused > 0
    assert len(calls) == len(days)
    facts = load_facts(tmp_path / "run")
    assert sum(facts.budget_refusals.values()) == refused
    (row,) = report_run(tmp_path / "run").scores.rows
    assert row.budget_refusals == refused


def test_a_cached_run_calls_no_model_and_reports_no_times(tmp_path: Path, reader: ModelServer) -> None:
    """The second run calls no model and counts the same tokens; neither run has a latency, rate or energy figure."""
    with Vendor() as vendor:
        run(tmp_path / "one", vendor, reader, cache=tmp_path / "cache", meters=("procfs",))
        calls_of_first_run = len([r for r in reader.received if "completions" in r.route])
        run(tmp_path / "two", vendor, reader, cache=tmp_path / "cache", meters=("procfs",))
    assert calls_of_first_run
    assert len([r for r in reader.received if "completions" in r.route]) == calls_of_first_run
    first, second = (report_run(tmp_path / name).scores.rows[0] for name in ("one", "two"))
    for row in (first, second):
        assert not row.timed
        assert row.latency is None
        assert row.ingest is not None
        assert (row.ingest.seconds, row.ingest.model_seconds, row.ingest.sessions_per_s) == (None, None, None)
    assert first.ingest == second.ingest
    assert {phase.rails[0].gross_j.reason for phase in load_facts(tmp_path / "two").phases} == {
        "a cache answers model calls"
    }
    assert not (tmp_path / "two" / "meters").exists()
