"""Tests that gold never crosses the wire: all bytes that a backend receives and a reader reads are searched for it.

*Gold* is the right answer that a data set knows; a backend that saw it could answer without memory.
"""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import GatewayCall
from memarena.log.store import read_records
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family
from memarena_proto import memory_backend_pb2 as pb

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
KEY = "ab" * 32


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def run_captured(dataset: Path, out: Path, *, answers: bool, port: int = 0, **more: object) -> list[tuple[str, bytes]]:
    """Run all questions of a data set against CapturingBackend; return (RPC, bytes) as received."""
    diagnostic = bool(more.pop("diagnostic_backend", False))
    kind = pb.BACKEND_KIND_DIAGNOSTIC if diagnostic else pb.BACKEND_KIND_COMPETITOR
    with CapturingBackend(answers=answers, kind=kind) as backend:
        values: dict[str, object] = {
            "dataset": dataset,
            "backends": [f"capture={backend.address}"],
            "readers": [{"spec": "extractive"}],
            "id_key": KEY,
            "gateway_port": port,
            "floor_samples": 0,
            "diagnostic": ["capture"] if diagnostic else [],
        }
        outcome = execute(RunRequest(out=out, config=parse_config({**values, **more}, "test")))
        assert outcome.reason == "completed"
        return backend.received


def alter_gold(dataset: Path, copy: Path) -> None:
    """Copy a data set with the same questions and other ids, families, difficulties and gold."""
    shutil.copytree(dataset, copy)
    folder = copy / "eval_instances"
    rows: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(folder.glob("*.jsonl")):
        rows += [(path.stem, json.loads(line)) for line in path.read_text().splitlines() if line.strip()]
        path.unlink()
    files: dict[str, list[str]] = {}
    for number, (family, row) in enumerate(rows):
        metadata = row.get("metadata") or {}
        row["metadata"] = {k: v for k, v in metadata.items() if k == "query_timestamp"}
        row["instance_id"] = f"altered-{len(rows) - number}"
        row["difficulty"] = "easy" if row.get("difficulty") != "easy" else "hard"
        if family == Family.QA.value:
            new, row["ground_truth"] = Family.CONFABULATION.value, {"expected_response": "abstain"}
        else:
            answer = f"an altered answer, number {number}"
            new, row["ground_truth"] = Family.QA.value, {"rubric": [answer]} if number % 2 else {"answer": answer}
        row["dimension"] = new
        files.setdefault(new, []).append(json.dumps(row))
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(reversed(lines)) + "\n")


def secrets_of(dataset: Path) -> set[str]:
    """Return every id of the data set, the family names, and words that occur only in gold."""
    with open_dataset(dataset) as data:
        words = {f.value for f in Family} | {"expected_action", "expected_response", "ground_truth"}
        words |= {i.instance_id for i in data.instances} | set(data.agents) | set(data.groups) | set(data.locations)
        words |= {e.event_id for e in data.events}
        for ego in data.egos:
            for day in range(data.day_count):
                for session in data.day_sessions(ego, day):
                    words |= {session.session_id} | {t.turn_id for t in session.turns}
        return {w for w in words if w}


@pytest.mark.parametrize("answers", [True, False])
def test_nothing_of_the_gold_is_in_what_a_backend_receives_or_a_reader_reads(tmp_path: Path, answers: bool) -> None:
    received = run_captured(EXAMPLE, tmp_path / "run", answers=answers)
    assert {rpc for rpc, _ in received} == {"Ingest", "Search", "Reset"} | ({"Answer"} if answers else set())
    calls = [r for r in read_records(tmp_path / "run", "gateway_call") if isinstance(r, GatewayCall)]
    prompts = [call.prompt for call in calls]
    assert any(call.phase == "central" for call in calls) != answers
    haystack = b"\n".join(raw for _, raw in received) + "\n".join(prompts).encode()
    leaked = {word for word in secrets_of(EXAMPLE) if word.encode() in haystack}
    assert not leaked


def test_the_search_for_secrets_can_find_something(tmp_path: Path) -> None:
    """The control of the test above: the same search does detect the questions' own words."""
    received = run_captured(EXAMPLE, tmp_path / "run", answers=True)
    with open_dataset(EXAMPLE) as data:
        queries = [i.query for i in data.instances]
    haystack = b"\n".join(raw for _, raw in received)
    assert all(query.encode() in haystack for query in queries)


@pytest.mark.parametrize("answers", [True, False])
def test_altered_gold_puts_the_same_bytes_on_the_wire(tmp_path: Path, answers: bool) -> None:
    """The comparison includes tokens and the gateway's port."""
    altered = tmp_path / "altered"
    alter_gold(EXAMPLE, altered)
    port = free_port()
    original = run_captured(EXAMPLE, tmp_path / "a", answers=answers, port=port)
    after = run_captured(altered, tmp_path / "b", answers=answers, port=port)
    assert len(original) > 50
    assert original == after


def test_altered_questions_put_other_bytes_on_the_wire(tmp_path: Path) -> None:
    """The control of the test above: the comparison does detect a difference."""
    altered = tmp_path / "altered"
    shutil.copytree(EXAMPLE, altered)
    path = sorted((altered / "eval_instances").glob("*.jsonl"))[0]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["query"] += " Please."
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    port = free_port()
    original = run_captured(EXAMPLE, tmp_path / "a", answers=True, port=port)
    after = run_captured(altered, tmp_path / "b", answers=True, port=port)
    assert original != after


def test_only_a_diagnostic_backend_is_sent_evidence(tmp_path: Path) -> None:
    ordinary = run_captured(EXAMPLE, tmp_path / "a", answers=True)
    diagnostic = run_captured(EXAMPLE, tmp_path / "b", answers=True, diagnostic_backend=True)
    refused = run_captured(EXAMPLE, tmp_path / "c", answers=True, diagnostic_backend=True, evidence=False)
    counts = []
    for received in (ordinary, diagnostic, refused):
        searches = [pb.SearchRequest.FromString(raw) for rpc, raw in received if rpc == "Search"]
        counts.append(sum(s.HasField("privileged_evidence") for s in searches))
    assert counts[0] == 0
    assert counts[1] > 0
    assert counts[2] == 0


def test_ids_differ_from_run_to_run_unless_the_key_is_fixed(tmp_path: Path) -> None:
    first = run_captured(EXAMPLE, tmp_path / "a", answers=True, id_key=None, limit=2)
    second = run_captured(EXAMPLE, tmp_path / "b", answers=True, id_key=None, limit=2)
    names = [{pb.ResetRequest.FromString(raw).namespace for rpc, raw in r if rpc == "Reset"} for r in (first, second)]
    assert not names[0] & names[1]
