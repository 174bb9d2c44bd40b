"""Tests every named configuration on the example, with the extractive reader and scripted models."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.configs import Configuration, named_configurations, read_file, read_named
from memarena.execution.engine import execute
from memarena.execution.planning.request import RunRequest
from memarena.log.records import BackendDescribed, Cell, GatewayCall, IngestDone, QuestionAsked, RunStarted
from memarena.log.store import read_records
from memarena_answering import control_text
from memarena_dataset.io.reading import open_dataset

from tests.memobase.double import TOKEN, Double, Models
from tests.memobase.scripted_models import scripted_models
from tests.support.model_server import EMBEDDER, EXTRACTOR, ModelServer

from .harnessing import EXAMPLE

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

CELL_TOKEN = "the-key-the-server-was-given"


@dataclass(frozen=True)
class Played:
    """A run of a configuration, read from its log."""

    configuration: Configuration
    started: RunStarted
    attempts: list[QuestionAsked]
    calls: list[GatewayCall]
    ingests: list[IngestDone]
    described: list[BackendDescribed]
    embedded: list[str]
    """Texts that were sent to Memobase's embedder."""

    @property
    def cells(self) -> dict[str, Cell]:
        return {cell.backend: cell for cell in self.started.manifest.cells}

    def of(self, backend: str) -> list[QuestionAsked]:
        """Return the attempts at questions of one backend's cell."""
        return [attempt for attempt in self.attempts if attempt.cell_id == self.cells[backend].cell_id]

    def routes(self, backend: str) -> Counter[str]:
        cell = self.cells[backend].cell_id
        return Counter(call.route for call in self.calls if call.cell_id == cell and call.status == 200)


def play(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Run a configuration over two questions with one seed and scripted models on loopback."""
    configuration = read_file(Path(name)) if name.endswith(".toml") else read_named(name)
    embedded: list[str] = []
    with ExitStack() as stack:
        settings: dict[str, object] = {
            "dataset": EXAMPLE, "reader": "extractive", "seeds": "s1", "limit": 2, "floor_samples": 0, "meter": "none"
        }  # fmt: skip
        backends = str(configuration.run["backends"])
        if "memobase" in backends:
            more, embedded = memobase(stack, monkeypatch)
            settings |= more
        elif "BM25_VECTORS" in str(configuration.run):
            embedder = stack.enter_context(ModelServer(model="bge-m3"))
            settings["embedder"] = embedder.base_url
        if "reranker" in configuration.needs:
            reranker = stack.enter_context(ModelServer(model="reranker"))
            settings["reranker"] = reranker.base_url
        config, named_configuration = run_settings(RunFlags(name=name, settings=settings))
        request = RunRequest(out=out, config=config, configuration=named_configuration, cell_token=CELL_TOKEN)
        assert execute(request).reason == "completed"
    records = list(read_records(out))
    return Played(
        configuration,
        next(r for r in records if isinstance(r, RunStarted)),
        [r for r in records if isinstance(r, QuestionAsked)],
        [r for r in records if isinstance(r, GatewayCall)],
        [r for r in records if isinstance(r, IngestDone)],
        [r for r in records if isinstance(r, BackendDescribed)],
        embedded,
    )


def memobase(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, object], list[str]]:
    """Start a double of the Memobase server; return settings for the run and the list of texts that it embeds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    models = stack.enter_context(scripted_models())
    server_models = Models(f"http://127.0.0.1:{port}/v1", CELL_TOKEN, "extractor", "embedder")
    double = stack.enter_context(Double(server_models))
    monkeypatch.setenv("MEMOBASE_URL", double.url)
    monkeypatch.setenv("MEMOBASE_TOKEN", TOKEN)
    settings = {
        "extractor": models.base_url,
        "extractor_model": EXTRACTOR,
        "embedder": models.base_url,
        "embedder_model": EMBEDDER,
        "gateway_port": port,
    }
    return settings, models.embedded


# Configurations of the systems need environments of their backends: tests/systems runs them.
PLAYED = [name for each in named_configurations() if not (name := each.name).startswith("systems")]


@pytest.fixture(params=PLAYED)
def played(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    yield play(str(request.param), tmp_path / "run", monkeypatch)


def test_a_named_configuration_runs_and_the_manifest_says_which_it_was(played: Played) -> None:
    """The function of this file with the configuration's name then checks the effect of its settings."""
    manifest = played.started.manifest
    assert manifest.configuration is not None
    assert (manifest.configuration.name, manifest.configuration.sha256) == (
        played.configuration.name,
        played.configuration.sha256,
    )
    backends = played.configuration.run["backends"]
    assert isinstance(backends, list)
    assert list(played.cells) == [str(text).partition("=")[0] for text in backends]
    assert Counter(each.status for each in played.attempts) == {"answered": 2 * len(backends)}
    CHECKS[played.configuration.name](played)


def test_random_distractors_differ_from_the_latest_ones_in_a_small_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example fits into 8,192 tokens, so that only a smaller budget makes the random choice visible."""
    smaller = Path(read_named_file("distractors-random")).read_text(encoding="utf-8").replace('"8192"', '"1600"')
    (tmp_path / "smaller.toml").write_text(smaller, encoding="utf-8")
    played = play(str(tmp_path / "smaller.toml"), tmp_path / "run", monkeypatch)
    recent, random = (sessions_found(played, name) for name in ("recent", "random"))
    assert all(len(sessions) > 1 for sessions in (*recent, *random))
    assert recent != random
    assert tokens(played, "recent") <= 1600
    assert tokens(played, "random") <= 1600


def read_named_file(name: str) -> str:
    """Return the path of a named configuration's file."""
    return str(files("memarena.configs").joinpath(f"{name}.toml"))


def texts(played: Played, backend: str) -> list[list[str]]:
    """Return the texts of the items of each Search of a row."""
    return [[item.text for item in question.search.items] for question in played.of(backend) if question.search]


def sessions_found(played: Played, backend: str) -> list[list[str]]:
    """Return the session ids that the items of each Search name."""
    item_lists = [question.search.items for question in played.of(backend) if question.search]
    return [[session for item in items for session in item.session_ids] for items in item_lists]


def tokens(played: Played, backend: str) -> int:
    """Return the largest size of a Search's items in tokens (UTF-8 bytes / 4)."""
    return max(sum(len(text.encode()) for text in item_texts) // 4 for item_texts in texts(played, backend))


def distractors(played: Played) -> None:
    for evidence, all_sessions in zip(sessions_found(played, "oracle"), sessions_found(played, "recent"), strict=True):
        assert set(evidence) < set(all_sessions)
    assert tokens(played, "oracle") < tokens(played, "recent") <= 8192


def distractors_random(played: Played) -> None:
    for recent, random in zip(sessions_found(played, "recent"), sessions_found(played, "random"), strict=True):
        assert len(recent) == len(random) > 1


def vanilla_budget(played: Played) -> None:
    assert 0 < tokens(played, "vanilla_512") <= 512 < tokens(played, "vanilla") <= 8192


def retrieval_depth(played: Played) -> None:
    sizes = {name: {len(item_texts) for item_texts in texts(played, name)} for name in played.cells}
    assert sizes == {"k4": {4}, "k8": {8}, "k16": {16}, "k32": {32}}


def dense_depth(played: Played) -> None:
    depths = {"k4": {4}, "k8": {8}, "k16": {16}, "k32": {32}}
    sizes = {name: {len(item_texts) for item_texts in texts(played, name)} for name in played.cells}
    assert sizes == {**depths, **{f"headers_{name}": count for name, count in depths.items()}}
    for name in played.cells:
        assert played.routes(name)["/v1/embeddings"] > 2
        has_header = [text.startswith("(conversation ") for item_texts in texts(played, name) for text in item_texts]
        assert set(has_header) == {name.startswith("headers")}


def session_passages(played: Played) -> None:
    turns = {
        name: {len(item.turn_ids) for question in played.of(name) if question.search for item in question.search.items}
        for name in played.cells
    }
    assert turns["turns"] == {1}
    assert min(turns["sessions"]) > 1


def cross_encoder(played: Played) -> None:
    assert played.routes("rerank")["/v1/rerank"] == 4, "a Search and the search of an Answer, of two questions"
    assert not played.routes("bm25")["/v1/rerank"]
    for best, reranked in zip(texts(played, "bm25"), texts(played, "rerank"), strict=True):
        assert (len(best), len(reranked)) == (10, 5)
        assert set(reranked) < set(best)
    styles = {
        name: {question.answer.prompt_style for question in played.of(name) if question.answer} for name in played.cells
    }
    assert styles == {"bm25": {"json_context"}, "rerank": {"text_sessions"}}


def main_grid(played: Played) -> None:
    assert [name for name, cell in played.cells.items() if cell.diagnostic] == ["oracle"]
    assert all(0 < tokens(played, name) <= 8192 for name in played.cells)


def written(played: Played) -> None:
    """The model that --extractor names writes the facts, the reader the answers."""
    for name in played.cells:
        if name == "oracle":
            continue
        cell = played.cells[name].cell_id
        chats = [c for c in played.calls if c.cell_id == cell and c.route == "/v1/chat/completions"]
        by_phase = {phase: {c.model for c in chats if c.phase == phase} for phase in ("ingest", "search")}
        writing = "search" if name == "structured" else "ingest"
        assert by_phase == {"ingest": set(), "search": set(), writing: {EXTRACTOR}}
        assert played.started.manifest.readers[0].model not in by_phase[writing]


def memobase_oracle(played: Played) -> None:
    written(played)
    for alone, structured in zip(sessions_found(played, "oracle"), sessions_found(played, "structured"), strict=True):
        assert structured
        assert set(structured) <= set(alone)
    assert {name: cell.diagnostic for name, cell in played.cells.items()} == {
        "oracle": True,
        "memobase": False,
        "structured": True,
    }


def question_time(played: Played) -> None:
    """One row embeds the bare text of each question, the other the text after its time."""
    written(played)
    timed = [text for text in played.embedded if re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d", text)]
    bare = {text.partition("] ")[2] for text in timed}
    assert len(bare) == 2
    assert bare <= set(played.embedded)
    assert "".join(bare)


def dense_and_rerank(played: Played) -> None:
    assert not played.routes("bm25_k5")["/v1/embeddings"]
    assert played.routes("dense_k5")["/v1/embeddings"] > 2
    assert played.routes("rerank_k5")["/v1/rerank"] == 4, "a Search and the search of an Answer, of two questions"
    sizes = {
        name: {len(question.search.items) for question in played.of(name) if question.search} for name in played.cells
    }
    assert sizes["dense_k5"] == sizes["rerank_k5"] == sizes["hybrid_k5"] == sizes["bm25_k5"] == {5}
    assert played.routes("hybrid_k5")["/v1/embeddings"] > 2
    assert played.routes("hybrid_k5")["/v1/rerank"] == 4
    assert max(sizes["bm25_k10"]) > 5


def stronger_retrieval(played: Played) -> None:
    for name in ("rrf", "dense", "recent_0.25", "recent_0.5", "recent_1"):
        assert played.routes(name)["/v1/embeddings"] > 2
    for name in ("bm25", "names"):
        assert not played.routes(name)["/v1/embeddings"]


def headers(played: Played) -> None:
    texts = [item.text for question in played.of("headers") if question.search for item in question.search.items]
    assert texts
    assert all(text.startswith("(conversation ") for text in texts)


def omniscient(played: Played) -> None:
    assert all(cell.diagnostic for cell in played.cells.values())
    assert [cell.projection for cell in played.cells.values()] == ["ego", "whole_corpus", "whole_corpus"]
    turns = Counter[str]()
    for day in played.ingests:
        turns[day.cell_id] += day.turns
    assert turns[played.cells["all_14k"].cell_id] > turns[played.cells["oracle"].cell_id]
    assert {description.backend_kind for description in played.described} == {"diagnostic"}


def d6_inferred(played: Played) -> None:
    assert {cell.reading.d6_rules for cell in played.cells.values()} == {"inferred"}
    prompts = [call.prompt for name in played.cells for call in reading(played, name)]
    assert prompts
    assert not [prompt for prompt in prompts if "colleagues of the owner" in prompt]
    assert all("judge from the context" in prompt for prompt in prompts)
    assert "memarena_answering/prompts/inferred.v1.toml" in played.started.manifest.data_files_sha256


def evidence_sessions(played: Played) -> None:
    every = played.cells["every"]
    assert (every.projection, every.send_evidence, every.diagnostic) == ("evidence_sessions", True, True)
    with open_dataset(EXAMPLE) as data:
        evidence = data.evidence_session_ids
        session_ids = {s.session_id for day in range(data.day_count) for s in data.day_sessions(None, day)}
        egos = {day.namespace for day in played.ingests if day.cell_id == every.cell_id}
    sessions = sum(day.sessions for day in played.ingests if day.cell_id == every.cell_id)
    assert 0 < sessions <= len(egos) * len(evidence) < len(egos) * len(session_ids)


def markers(played: Played) -> None:
    words = control_text()
    first = {
        name: {
            item.text.split("\n")[0]
            for question in played.of(name)
            if question.search
            for item in question.search.items
        }
        for name in played.cells
    }
    assert first["marked"] <= {words.access_denied, words.access_allowed}
    assert first["marked"]
    assert not any(line.startswith("[sharing:") for line in first["oracle"])


def policy(played: Played) -> None:
    header = control_text().policy_header.splitlines()[0][:40]
    has_header = {name: any(header in call.prompt for call in reading(played, name)) for name in played.cells}
    assert has_header == {"oracle": False, "policy": True, "policy_marked": True}


def identity(played: Played) -> None:
    has_asker = {name: any("Asked by: " in call.prompt for call in reading(played, name)) for name in played.cells}
    assert has_asker == {"l0": False, "l1": True, "l2": True}


def reading(played: Played, backend: str) -> list[GatewayCall]:
    cell = played.cells[backend].cell_id
    return [c for c in played.calls if c.cell_id == cell and c.route == "/v1/chat/completions"]


def wrap(played: Played) -> None:
    styles = {
        name: {question.answer.prompt_style for question in played.of(name) if question.answer} for name in played.cells
    }
    assert styles == {"vanilla": {"text_sessions"}, "json": {"json_context"}, "text": {"text_sessions"}}


CHECKS = {
    "main-grid": main_grid,
    "vanilla-budget": vanilla_budget,
    "retrieval-depth": retrieval_depth,
    "dense-depth": dense_depth,
    "session-passages": session_passages,
    "cross-encoder": cross_encoder,
    "distractors": distractors,
    "distractors-random": distractors_random,
    "memobase-writer": written,
    "memobase-closed-writer": written,
    "mistral-structured": written,
    "memobase-oracle": memobase_oracle,
    "memobase-question-time": question_time,
    "dense-and-rerank": dense_and_rerank,
    "stronger-retrieval": stronger_retrieval,
    "provenance-headers": headers,
    "omniscient": omniscient,
    "d6-inferred": d6_inferred,
    "evidence-sessions": evidence_sessions,
    "access-markers": markers,
    "policy-header": policy,
    "identity": identity,
    "prompt-wrap": wrap,
}
