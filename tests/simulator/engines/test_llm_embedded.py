"""Tests the LLM engine with a real, very small model: hardly any of its text is usable, and no statement is lost."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from memarena.readers.starting import start_reader
from memarena_dataset.validate import Profile, validate
from memarena_masim.config import WorldConfig
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.output.generate import generate

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

from .llm_worlds import said, total, unsaid
from .scripted_llm import as_json, perfect, read, small_talk

CONFIG = WorldConfig(name="test", agents=4, days=2, density=0.02, question_share=1.0, seed=114)
"""About the smallest world: four sessions of ten to fifteen turns."""
REAL_REPLIES = {"session": 1, "turn": 1, "question": 1}
"""Number of requests of each kind that the model answers; all of them would take minutes."""
MOST_TOKENS = 48
"""A reply is cut here: longer ones are not better, and every token takes time."""


class PartlyReal:
    """Replies of a model behind ``url`` to the first requests of each kind, byte for byte; the others by rule.

    By rule every later session comes without its statements: whatever the model made of the first ones, turns are asked
    for again.
    """

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url, model
        self.real: Counter[str] = Counter()
        self.tokens: list[int] = []

    def __call__(self, body: Body) -> Script:
        kind = read(body).kind
        if self.real[kind] == REAL_REPLIES[kind]:
            return Script(without_statements(body)) if kind == "session" else Script(perfect(body))
        self.real[kind] += 1
        cut = {**body, "model": self._model, "max_tokens": MOST_TOKENS}
        data = json.dumps(cut).encode()
        request = urllib.request.Request(f"{self._url}/chat/completions", data, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=170) as reply:
            raw = reply.read().decode()
        self.tokens.append(json.loads(raw)["usage"]["completion_tokens"])
        return Script(body=raw)


def without_statements(body: Body) -> str:
    """Return a session's reply that holds none of the planned statements."""
    request = read(body)
    return as_json(
        [
            {"speaker": speaker, "text": small_talk(request.user, index)}
            for index, (speaker, _) in enumerate(request.turns)
        ]
    )


@pytest.mark.llm
@pytest.mark.timeout(600)
def test_a_tiny_world_partly_by_the_embedded_model(tmp_path: Path) -> None:
    """Every statement is in its turn, through repair or offline where need be, and the data set is valid."""
    reader = start_reader("embedded", work_dir=tmp_path)
    try:
        model = PartlyReal(reader.upstream.base_url, reader.upstream.upstream_model)
        with (
            ModelServer(model) as server,
            LlmEngine(EndpointConfig(server.base_url, "partly-real", concurrency=1)) as engine,
        ):
            generate(CONFIG, tmp_path / "w", engine=engine)
    finally:
        reader.stop()
    assert model.real == REAL_REPLIES
    assert all(tokens > 0 for tokens in model.tokens)
    report: dict[str, Any] = json.loads((tmp_path / "w" / "pipeline_report.json").read_text())["engine"]
    planned = total(report, "planned")
    assert planned == said(tmp_path / "w") > 0
    assert planned == total(report, "at_once") + total(report, "repaired") + total(report, "offline")
    assert report["turns"].get("from_model", 0) > 0
    assert unsaid(tmp_path / "w") == []
    assert [str(finding.problem) for finding in validate(tmp_path / "w", Profile.FULL).errors] == []
