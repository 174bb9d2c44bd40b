"""Every named configuration runs on the example, with the extractive reader and models that are scripted."""

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
from memarena.cli.run_config import settled
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
    """A run of a configuration, read back."""

    configuration: Configuration
    started: RunStarted
    asked: list[QuestionAsked]
    calls: list[GatewayCall]
    ingests: list[IngestDone]
    described: list[BackendDescribed]
    embedded: list[str]
    """Texts that Memobase's embedder was sent."""

    @property
    def cells(self) -> dict[str, Cell]:
        return {cell.backend: cell for cell in self.started.manifest.cells}

    def of(self, backend: str) -> list[QuestionAsked]:
        return [each for each in self.asked if each.cell_id == self.cells[backend].cell_id]

    def routes(self, backend: str) -> Counter[str]:
        cell = self.cells[backend].cell_id
        return Counter(call.route for call in self.calls if call.cell_id == cell and call.status == 200)


def play(name: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Two questions of the example, one seed, whatever models the configuration needs behind loopback."""
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
        config, named = settled(RunFlags(name=name, settings=settings))
        request = RunRequest(out=out, config=config, configuration=named, cell_token=CELL_TOKEN)
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
    """A double of the Memobase server, configured once with the gateway of the run, and what it has embedded."""
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


# Those of the systems need their environments: tests/systems runs them.
PLAYED = [name for each in named_configurations() if not (name := each.name).startswith("systems")]


@pytest.fixture(params=PLAYED)
def played(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    yield play(str(request.param), tmp_path / "run", monkeypatch)


def test_a_named_configuration_runs_and_the_manifest_says_which_it_was(played: Played) -> None:
    """And whatever it is about shows in what its rows were given, found or asked of models."""
    manifest = played.started.manifest
    assert manifest.configuration is not None
    assert (manifest.configuration.name, manifest.configuration.sha256) == (
        played.configuration.name,
        played.configuration.sha256,
    )
    backends = played.configuration.run["backends"]
    assert isinstance(backends, list)
    assert list(played.cells) == [str(text).partition("=")[0] for text in backends]
    assert Counter(each.status for each in played.asked) == {"answered": 2 * len(backends)}
    CHECKS[played.configuration.name](played)


def test_random_distractors_are_not_the_latest_where_not_all_of_them_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example is so small that 8,192 tokens hold all of it: with a smaller budget the draw shows."""
    smaller = Path(read_named_file("distractors-random")).read_text(encoding="utf-8").replace('"8192"', '"1600"')
    (tmp_path / "smaller.toml").write_text(smaller, encoding="utf-8")
    played = play(str(tmp_path / "smaller.toml"), tmp_path / "run", monkeypatch)
    recent, random = (sessions_found(played, name) for name in ("recent", "random"))
    assert all(len(found) > 1 for found in (*recent, *random))
    assert recent != random
    assert tokens(played, "recent") <= 1600
    assert tokens(played, "random") <= 1600


def read_named_file(name: str) -> str:
    return str(files("memarena.configs").joinpath(f"{name}.toml"))


def texts(played: Played, backend: str) -> list[list[str]]:
    """Texts of the items of each Search of a row."""
    return [[item.text for item in each.search.items] for each in played.of(backend) if each.search]


def sessions_found(played: Played, backend: str) -> list[list[str]]:
    """Sessions that the items of each Search name."""
    found = [each.search.items for each in played.of(backend) if each.search]
    return [[session for item in items for session in item.session_ids] for items in found]


def tokens(played: Played, backend: str) -> int:
    """The most that a Search of the row brought, UTF-8 bytes / 4."""
    return max(sum(len(text.encode()) for text in found) // 4 for found in texts(played, backend))


def distractors(played: Played) -> None:
    for alone, among in zip(sessions_found(played, "oracle"), sessions_found(played, "recent"), strict=True):
        assert set(alone) < set(among)
    assert tokens(played, "oracle") < tokens(played, "recent") <= 8192


def distractors_random(played: Played) -> None:
    for recent, random in zip(sessions_found(played, "recent"), sessions_found(played, "random"), strict=True):
        assert len(recent) == len(random) > 1


def vanilla_budget(played: Played) -> None:
    assert 0 < tokens(played, "vanilla_512") <= 512 < tokens(played, "vanilla") <= 8192


def retrieval_depth(played: Played) -> None:
    sizes = {name: {len(found) for found in texts(played, name)} for name in played.cells}
    assert sizes == {"k4": {4}, "k8": {8}, "k16": {16}, "k32": {32}}


def dense_depth(played: Played) -> None:
    depths = {"k4": {4}, "k8": {8}, "k16": {16}, "k32": {32}}
    sizes = {name: {len(shown) for shown in texts(played, name)} for name in played.cells}
    assert sizes == {**depths, **{f"headers_{name}": count for name, count in depths.items()}}
    for name in played.cells:
        assert played.routes(name)["/v1/embeddings"] > 2
        headed = [text.startswith("(conversation ") for shown in texts(played, name) for text in shown]
        assert set(headed) == {name.startswith("headers")}


def session_passages(played: Played) -> None:
    turns = {
        name: {len(item.turn_ids) for each in played.of(name) if each.search for item in each.search.items}
        for name in played.cells
    }
    assert turns["turns"] == {1}
    assert min(turns["sessions"]) > 1


def cross_encoder(played: Played) -> None:
    assert played.routes("rerank")["/v1/rerank"] == 4, "a Search and the search of an Answer, of two questions"
    assert not played.routes("bm25")["/v1/rerank"]
    for best, kept in zip(texts(played, "bm25"), texts(played, "rerank"), strict=True):
        assert (len(best), len(kept)) == (10, 5)
        assert set(kept) < set(best)
    styles = {name: {each.answer.prompt_style for each in played.of(name) if each.answer} for name in played.cells}
    assert styles == {"bm25": {"json_context"}, "rerank": {"text_sessions"}}


def main_grid(played: Played) -> None:
    assert [name for name, cell in played.cells.items() if cell.diagnostic] == ["oracle"]
    assert all(0 < tokens(played, name) <= 8192 for name in played.cells)


def written(played: Played) -> None:
    """Facts come of the model that --extractor names, answers of the reader."""
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
    """Of each question the bare text was embedded for one row, and the text after its time for the other."""
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
    sizes = {name: {len(each.search.items) for each in played.of(name) if each.search} for name in played.cells}
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
    texts = [item.text for each in played.of("headers") if each.search for item in each.search.items]
    assert texts
    assert all(text.startswith("(conversation ") for text in texts)


def omniscient(played: Played) -> None:
    assert all(cell.diagnostic for cell in played.cells.values())
    assert [cell.projection for cell in played.cells.values()] == ["ego", "whole_corpus", "whole_corpus"]
    turns = Counter[str]()
    for day in played.ingests:
        turns[day.cell_id] += day.turns
    assert turns[played.cells["all_14k"].cell_id] > turns[played.cells["oracle"].cell_id]
    assert {each.backend_kind for each in played.described} == {"diagnostic"}


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
        heard = {s.session_id for day in range(data.day_count) for s in data.day_sessions(None, day)}
        egos = {day.namespace for day in played.ingests if day.cell_id == every.cell_id}
    sessions = sum(day.sessions for day in played.ingests if day.cell_id == every.cell_id)
    assert 0 < sessions <= len(egos) * len(evidence) < len(egos) * len(heard)


def markers(played: Played) -> None:
    words = control_text()
    first = {
        name: {item.text.split("\n")[0] for each in played.of(name) if each.search for item in each.search.items}
        for name in played.cells
    }
    assert first["marked"] <= {words.access_denied, words.access_allowed}
    assert first["marked"]
    assert not any(line.startswith("[sharing:") for line in first["oracle"])


def policy(played: Played) -> None:
    header = control_text().policy_header.splitlines()[0][:40]
    shown = {name: any(header in call.prompt for call in reading(played, name)) for name in played.cells}
    assert shown == {"oracle": False, "policy": True, "policy_marked": True}


def identity(played: Played) -> None:
    said = {name: any("Asked by: " in call.prompt for call in reading(played, name)) for name in played.cells}
    assert said == {"l0": False, "l1": True, "l2": True}


def reading(played: Played, backend: str) -> list[GatewayCall]:
    cell = played.cells[backend].cell_id
    return [c for c in played.calls if c.cell_id == cell and c.route == "/v1/chat/completions"]


def wrap(played: Played) -> None:
    styles = {name: {each.answer.prompt_style for each in played.of(name) if each.answer} for name in played.cells}
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
