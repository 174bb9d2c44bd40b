"""Tests a run over the example with the double: extraction goes through the gateway, is counted, failures are named."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.execution.engine import execute
from memarena.execution.errors import InfraError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.latency.errors import LatencyError
from memarena.latency.growth import read_growth
from memarena.log.records import BackendDescribed, GatewayCall, IngestDone, QuestionAsked
from memarena.log.store import read_records
from typer.testing import CliRunner

from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scripted_models import by, log_of, scripted_models
from tests.support.model_server import EMBEDDER, EXTRACTOR, ModelServer

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
CELL_TOKEN = "the-key-the-server-was-given"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(models: ModelServer, out: Path, monkeypatch: pytest.MonkeyPatch, backend: str = "memobase") -> RunOutcome:
    """A run whose Memobase server was configured before it with the gateway's address, a fixed key and fixed names."""
    port = free_port()
    server_models = Models(f"http://127.0.0.1:{port}/v1", CELL_TOKEN, "extractor", "embedder")
    values = {
        "dataset": EXAMPLE,
        "backends": [backend],
        "readers": [{"spec": "extractive"}],
        "extractor": {"spec": models.base_url, "model": EXTRACTOR},
        "embedder": {"spec": models.base_url, "model": EMBEDDER},
        "limit": 6,
        "floor_samples": 0,
        "gateway_port": port,
    }
    with Double(server_models) as double:
        monkeypatch.setenv("MEMOBASE_URL", double.url)
        monkeypatch.setenv("MEMOBASE_TOKEN", TOKEN)
        return execute(RunRequest(out=out, config=parse_config(values, "test"), cell_token=CELL_TOKEN))


def test_every_call_of_the_server_is_counted_for_the_day_or_question_that_it_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_models() as models:
        assert run(models, tmp_path / "run", monkeypatch).reason == "completed"
        prompt_count, embedded = len(models.prompts), len(models.embedded)
    log = tmp_path / "run"
    calls = [c for c in read_records(log, "gateway_call") if isinstance(c, GatewayCall)]
    extracting = [c for c in calls if c.model == EXTRACTOR and c.phase == "ingest"]
    assert len(extracting) == prompt_count
    assert all(c.inferred and c.day is not None and c.ego and c.status == 200 for c in extracting)
    assert embedded > 0
    assert {c.phase for c in calls if c.model == EMBEDDER} == {"ingest", "search", "answer"}
    assert not [c for c in calls if c.phase in ("after_return", "refused")]
    (described,) = [r for r in read_records(log, "backend_described") if isinstance(r, BackendDescribed)]
    assert "cell_model_access" in described.capabilities
    questions = [r for r in read_records(log, "asked") if isinstance(r, QuestionAsked)]
    assert Counter(q.status for q in questions) == {"answered": 6}
    assert any(item.session_ids for q in questions if q.search for item in q.search.items)


def test_growth_is_measured_through_the_gateway_whose_port_and_token_the_server_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    server_models = Models(f"http://127.0.0.1:{port}/v1", CELL_TOKEN, "extractor", "embedder")
    monkeypatch.setenv("MEMARENA_CELL_TOKEN", CELL_TOKEN)
    monkeypatch.setenv("MEMOBASE_TOKEN", TOKEN)
    with scripted_models() as models, Double(server_models) as double:
        monkeypatch.setenv("MEMOBASE_URL", double.url)
        flags = ["--backend", "memobase", "--days", "1,2", "--searches", "6", "--meter", "none"]
        flags += ["--embedder", models.base_url, "--embedder-model", EMBEDDER]
        flags += ["--extractor", models.base_url, "--extractor-model", EXTRACTOR, "--gateway-port", str(port)]
        result = CliRunner().invoke(
            app, ["latency", "growth", "--dataset", str(EXAMPLE), "--out", str(tmp_path / "run"), *flags]
        )
    assert result.exit_code == 0, result.output
    assert [(p.backend, p.days, p.search.n) for p in read_growth(tmp_path / "run").points] == [
        ("memobase", 1, 6),
        ("memobase", 2, 6),
    ]


def test_where_no_backend_got_as_far_as_a_search_growth_says_where_the_reason_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was given another gateway than the one there is: every Ingest fails."""
    server_models = Models(f"http://127.0.0.1:{free_port()}/v1", CELL_TOKEN, "extractor", "embedder")
    monkeypatch.setenv("MEMOBASE_TOKEN", TOKEN)
    with scripted_models() as models, Double(server_models) as double:
        monkeypatch.setenv("MEMOBASE_URL", double.url)
        flags = ["--backend", "memobase", "--days", "1", "--searches", "6", "--meter", "none"]
        flags += ["--embedder", models.base_url, "--embedder-model", EMBEDDER]
        result = CliRunner().invoke(
            app, ["latency", "growth", "--dataset", str(EXAMPLE), "--out", str(tmp_path / "run"), *flags]
        )
    assert isinstance(result.exception, LatencyError)
    assert "every backend failed before a search was timed; memarena report says why" in str(result.exception)


def test_the_share_of_empty_extractions_can_be_read_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_models() as models:
        models.script = by(lambda system, user: "")
        assert run(models, tmp_path / "run", monkeypatch).reason == "completed"
    days = [r for r in read_records(tmp_path / "run", "ingest") if isinstance(r, IngestDone)]
    session_count = sum(_count(day, "sessions_given") for day in days)
    assert session_count > 10
    assert sum(_count(day, "extraction_empty") for day in days) == session_count
    assert sum(_count(day, "sessions_failed") for day in days) == 0


def test_an_extractor_that_fails_is_a_failure_of_ours_and_never_a_memory_without_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_models() as models:

        def fail_from_now_on(system: str, user: str) -> str:
            models.chat_status = 500
            return log_of(user.partition("### Input Chats")[2])

        models.script = by(fail_from_now_on)
        with pytest.raises(InfraError, match="extractor failed while day 0"):
            run(models, tmp_path / "run", monkeypatch)


def test_the_oracle_variant_extracts_at_the_time_of_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_models() as models:
        assert run(models, tmp_path / "run", monkeypatch, backend="memobase_oracle").reason == "completed"
    calls = [c for c in read_records(tmp_path / "run", "gateway_call") if isinstance(c, GatewayCall)]
    phases = Counter(c.phase for c in calls if c.model == EXTRACTOR)
    assert set(phases) == {"search", "answer"}
    manifest = json.dumps([r.model_dump(mode="json") for r in read_records(tmp_path / "run", "run_started")])
    assert '"diagnostic": true' in manifest


def _count(day: IngestDone, code: str) -> int:
    return sum(notice.count for notice in day.notices if notice.code == code)
