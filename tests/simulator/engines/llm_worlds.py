"""Helpers for tests of the LLM engine: generate worlds with a scripted model, and read them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from memarena_dataset.io.reading import open_dataset
from memarena_dataset.values import Value
from memarena_dataset.values.possible import Passage, names_value
from memarena_masim.config import WorldConfig
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.output.generate import generate
from pydantic import TypeAdapter

from tests.support.model_script import Reply
from tests.support.model_server import ModelServer

from .scripted_llm import perfect

CONFIG = WorldConfig(name="test", agents=5, days=2, density=0.14, question_share=2.0, seed=103)
VALUE: TypeAdapter[Value] = TypeAdapter(Value)


def endpoint(server: ModelServer, **more: Any) -> EndpointConfig:
    """Return the engine's configuration for the scripted server, with short waits."""
    return EndpointConfig(server.base_url, "scripted", **{"longest_wait_s": 0.05, "timeout_s": 20.0, **more})


def made(out: Path, behaviour: Reply = perfect, config: WorldConfig = CONFIG, **more: Any) -> dict[str, Any]:
    """Make a data set with the scripted model; return the report's record of the engine."""
    with ModelServer(behaviour) as server, LlmEngine(endpoint(server, **more)) as engine:
        generate(config, out, engine=engine)
    report = json.loads((out / "pipeline_report.json").read_text())
    engine_report = report["engine"]
    assert isinstance(engine_report, dict)
    return engine_report


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def unsaid(out: Path) -> list[str]:
    """Return the statements of ``facts.jsonl`` whose turn has another speaker, or does not name their value."""
    lost = []
    with open_dataset(out) as dataset:
        sessions = {row["session_id"]: row for row in rows(out / "corpus_sessions.jsonl")}
        for fact in rows(out / "facts.jsonl"):
            session = sessions[fact["session_id"]]
            turn = next(row for row in session["turns"] if row["turn_id"] == fact["turn_id"])
            said_on = dataset.calendar_epoch + timedelta(days=int(session["start_time"]))
            value = VALUE.validate_python(fact["value"])
            readable = fact["role"] != "fate" and not fact["attribute"].startswith(("tie", "date"))
            if turn["speaker_id"] != fact["speaker_id"] or (readable and not names_value(value, turn["text"], said_on)):
                lost.append(f"{fact['fact_id']}: {turn['text']}")
            assert Passage(turn["text"], said_on).text
    return lost


def said(out: Path) -> int:
    """Return the number of facts that turns must state: statements, and mentions in passing."""
    counts = json.loads((out / "pipeline_report.json").read_text(encoding="utf-8"))["counts"]
    assert counts["statements"] == len(rows(out / "facts.jsonl"))
    return int(counts["statements"]) + int(counts["mentioned"])


def total(report: Mapping[str, Any], what: str) -> int:
    """Return the count ``what`` of the report, summed over all kinds of statements."""
    return sum(int(counts.get(what, 0)) for counts in report["statements"].values())
