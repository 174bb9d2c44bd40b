"""Tests a run with an embedder: the backend gets access to it, and each of its calls is logged with its phase."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from memarena.execution.engine import execute
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.execution.planning.request import RunRequest
from memarena.log.records import AnyRecord, GatewayCall, RunStarted
from memarena.log.store import read_records

from tests.support.model_server import ModelServer

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parent.parent / "data" / "example"


def test_calls_of_an_embedder_are_metered_by_phase(tmp_path: Path) -> None:
    with ModelServer(model="nomic-embed-text") as server:
        config = RunConfig(
            dataset=EXAMPLE,
            backends=("memsearch",),
            readers=(ReaderConfig(spec="extractive"),),
            embedder=HelperConfig(spec=server.base_url),
            limit=2,
            floor_samples=0,
        )
        outcome = execute(RunRequest(out=tmp_path / "run", config=config))
    assert outcome.reason == "completed"
    records = list(read_records(tmp_path / "run"))
    (started,) = [record for record in records if isinstance(record, RunStarted)]
    assert {role: ref.model for role, ref in started.manifest.helpers.items()} == {"embedder": "nomic-embed-text"}
    phases = Counter(call.phase for call in embeddings(records))
    assert phases["search"] == 2
    assert phases["answer"] == 2
    assert phases["ingest"] >= 2
    assert set(phases) == {"search", "answer", "ingest"}
    assert {call.status for call in embeddings(records)} == {200}


def embeddings(records: list[AnyRecord]) -> list[GatewayCall]:
    return [record for record in records if isinstance(record, GatewayCall) and record.route == "/v1/embeddings"]
