"""Tests the defences against backends that cheat for a better figure: each is refused or marked, an honest one is not.

``Remembers`` is the honest backend; each other class is a copy of it with one cheat.
"""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import grpc
import pytest
from memarena.cli.main import app
from memarena.evaluation import evaluate
from memarena.execution.audit.life_audit import BEYOND, NEVER_INGESTED
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.log.records import Problem, QuestionAsked
from memarena.log.store import read_records
from memarena.scoring.results import RowScores
from memarena_dataset.io.reading import open_dataset
from memarena_proto import memory_backend_pb2 as pb
from typer.testing import CliRunner

from .capture import CapturingBackend

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@dataclass(frozen=True)
class Kept:
    """A turn of a namespace."""

    text: str
    session: str
    turn: str


class Remembers(CapturingBackend):
    """Honest: returns the ten turns that share most words with the question, each with its own session."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: defaultdict[str, list[Kept]] = defaultdict(list)

    def Ingest(self, request_iterator: Iterator[pb.IngestRequest], context: grpc.ServicerContext) -> pb.IngestResponse:
        day, namespace = 0, ""
        for frame in request_iterator:
            if frame.HasField("header"):
                day, namespace = frame.header.day_index, frame.header.namespace
            self.kept[namespace] += (
                Kept(turn.text, frame.session.session_id, turn.turn_id) for turn in frame.session.turns
            )
        return pb.IngestResponse(visible_through_day=day)

    def best(self, request: pb.SearchRequest) -> list[Kept]:
        words = set(request.text.casefold().split())
        turns = self.kept[request.namespace]
        return sorted(turns, key=lambda turn: -len(words & set(turn.text.casefold().split())))[:10]

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        """Return the items for a query, best first."""
        return [
            pb.MemoryItem(text=k.text, source_session_ids=[k.session], source_turn_ids=[k.turn])
            for k in self.best(request)
        ]

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        return pb.SearchResponse(items=self.items(request), visible_through_day=request.as_of_day)

    def prompt(self, request: pb.SearchRequest, items: Sequence[pb.MemoryItem]) -> str:
        """Return the prompt for the reader from the items and the question."""
        context = "\n- ".join(item.text for item in items)
        return f"Context:\n- {context}\n\nQuestion: {request.text}"

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        items = self.items(request.search)
        yield pb.AnswerEvent(retrieved=pb.Retrieved(items=items, visible_through_day=request.search.as_of_day))
        text = read(request, self.prompt(request.search, items))
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text=text))
        yield pb.AnswerEvent(completed=pb.Completed(text=text, finish_reason=pb.FINISH_REASON_STOP))


def read(request: pb.AnswerRequest, prompt: str) -> str:
    """Ask the reader through the gateway and return its answer."""
    access = request.search.model_access
    body = {"model": request.reading.model, "messages": [{"role": "user", "content": prompt}]}
    call = urllib.request.Request(
        f"{access.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call, timeout=30) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


class NamesEverySession(Remembers):
    """Claims every session of the namespace as source of every item."""

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        all_sessions = dict.fromkeys(turn.session for turn in self.kept[request.namespace])
        return [pb.MemoryItem(text=k.text, source_session_ids=list(all_sessions)) for k in self.best(request)]


class NamesEverySessionInItsOwnWords(NamesEverySession):
    """Quotes no turn in its items, so that no claimed source can be checked against their text."""

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        words = "The memory holds a number of remarks by several people about what is being asked for here."
        return [pb.MemoryItem(text=words, source_session_ids=i.source_session_ids) for i in super().items(request)]


class WritesBeforeTheReader(Remembers):
    """Starts its answer before the reader has answered."""

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        items = self.items(request.search)
        yield pb.AnswerEvent(retrieved=pb.Retrieved(items=items, visible_through_day=request.search.as_of_day))
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text="{"))
        # A model takes longer than the extractive reader, whose first byte may overtake this delta on a busy machine.
        time.sleep(0.1)
        text = read(request, self.prompt(request.search, items))
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text=text[1:]))
        yield pb.AnswerEvent(completed=pb.Completed(text="{" + text[1:], finish_reason=pb.FINISH_REASON_STOP))


class Smuggles(Remembers):
    """Adds a turn to its prompt that is not among its items, in the form that ``change`` gives it."""

    def change(self, text: str) -> str:
        return text

    def prompt(self, request: pb.SearchRequest, items: Sequence[pb.MemoryItem]) -> str:
        item_texts = {item.text for item in items}
        smuggled = max((k.text for k in self.kept[request.namespace] if k.text not in item_texts), key=len, default="")
        return f"Read closely. {self.change(smuggled)}\n{super().prompt(request, items)}"


class SmugglesInCapitals(Smuggles):
    def change(self, text: str) -> str:
        return text.upper()


class SmugglesInAnotherOrder(Smuggles):
    def change(self, text: str) -> str:
        words = text.split()
        random.Random(7).shuffle(words)
        return " ".join(words)


class KnowsOtherLives(Remembers):
    """Appends an item with a turn of the data set that this namespace never ingested."""

    def __init__(self) -> None:
        super().__init__()
        with open_dataset(EXAMPLE) as dataset:
            days = range(dataset.day_count)
            self.lives = {
                ego: {t.text for day in days for s in dataset.day_sessions(ego, day) for t in s.turns}
                for ego in dataset.egos
            }

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        ingested = {turn.text for turn in self.kept[request.namespace]}
        others = sorted(set().union(*self.lives.values()) - ingested, key=lambda text: (-len(text), text))
        return [*super().items(request)[:9], *(pb.MemoryItem(text=text) for text in others[:1])]


CHEATS: dict[str, tuple[type[Remembers], str]] = {
    "other-lives": (KnowsOtherLives, f"Search: CONTRACT: an item {NEVER_INGESTED}: turn "),
    "early": (WritesBeforeTheReader, "Answer: CONTRACT: text of the answer came "),
    "smuggles": (Smuggles, f"Answer: CONTRACT: {BEYOND}: turn "),
    "capitals": (SmugglesInCapitals, f"Answer: CONTRACT: {BEYOND}: turn "),
    "shuffled": (SmugglesInAnotherOrder, f"Answer: CONTRACT: {BEYOND}: turn "),
}
"""Cheats that fail their question: (backend class, beginning of the recorded cause) by name."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cheats") / "run"
    kinds = {"sound": Remembers, "every": NamesEverySession, "unsaid": NamesEverySessionInItsOwnWords}
    kinds |= {name: kind for name, (kind, _) in CHEATS.items()}
    with ExitStack() as stack:
        backends = {name: stack.enter_context(kind()) for name, kind in kinds.items()}
        values = {
            "dataset": EXAMPLE,
            "backends": [f"{name}={backend.address}" for name, backend in backends.items()],
            "readers": [{"spec": "extractive"}],
            "meters": ["none"],
            "floor_samples": 0,
            "limit": 16,
        }
        execute(RunRequest(out=out, config=parse_config(values, "test")))
    return out


def test_a_history_too_large_for_the_audit_is_recorded_as_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memarena.execution.audit.life_audit.MOST_WORDS", 10)
    out = tmp_path / "run"
    with Remembers() as backend:
        values = {
            "dataset": EXAMPLE,
            "backends": [f"sound={backend.address}"],
            "readers": [{"spec": "extractive"}],
            "meters": ["none"],
            "floor_samples": 0,
            "limit": 2,
        }
        execute(RunRequest(out=out, config=parse_config(values, "test")))
    problems = [r for r in read_records(out, "problem") if isinstance(r, Problem)]
    egos = {record.ego for record in asked(out, "sound")}
    assert len(problems) == len(egos) > 0
    assert all("items and prompts are not compared with it" in problem.message for problem in problems)


def asked(run: Path, backend: str) -> list[QuestionAsked]:
    records = (r for r in read_records(run, "asked") if isinstance(r, QuestionAsked))
    return [record for record in records if record.cell_id.startswith(f"{backend}@")]


@pytest.fixture(scope="module")
def rows(run: Path) -> dict[str, RowScores]:
    return {row.backend: row for row in evaluate(run, resamples=0).scores.rows}


def test_the_honest_backend_gets_no_mark_and_its_claims_count(run: Path, rows: dict[str, RowScores]) -> None:
    assert {record.status for record in asked(run, "sound")} == {"answered"}
    retrieval = rows["sound"].retrieval
    assert retrieval is not None
    assert (retrieval.basis, retrieval.unsupported_claims, rows["sound"].marks) == ("text", 0.0, ())
    assert retrieval.recall_at_k == retrieval.claimed_recall_at_k
    assert 0 < (retrieval.recall_at_k or 0) < 1


def test_items_that_claim_every_session_count_only_for_sessions_in_their_text(rows: dict[str, RowScores]) -> None:
    sound, every = rows["sound"].retrieval, rows["every"].retrieval
    assert sound is not None
    assert every is not None
    assert every.claimed_recall_at_k == 1.0
    assert every.recall_at_k == sound.recall_at_k
    assert every.unsupported_claims is not None
    assert every.unsupported_claims > 0.5
    assert rows["every"].marks == ("unsupported_sources",)


def test_claims_that_cannot_be_checked_are_bounded_and_marked(rows: dict[str, RowScores]) -> None:
    retrieval = rows["unsaid"].retrieval
    assert retrieval is not None
    assert retrieval.basis == "claimed"
    assert retrieval.recall_at_k is not None
    assert retrieval.recall_at_k < (retrieval.claimed_recall_at_k or 0)
    assert "unsupported_sources" in rows["unsaid"].marks


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_fails_its_questions_and_the_cause_names_it(run: Path, name: str) -> None:
    causes = {record.cause for record in asked(run, name) if record.status == "backend_failed"}
    assert causes
    assert all(cause.startswith(CHEATS[name][1]) for cause in causes), causes
    # At most two questions are answered: where the items hold the whole history already, nothing is left to smuggle.
    assert len([r for r in asked(run, name) if r.status == "answered"]) <= 2


@pytest.mark.parametrize("form", ["table", "html", "json"])
def test_every_report_format_shows_marks_and_causes(run: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"report.{form}"
    full = ["--full"] if form == "table" else []
    result = CliRunner().invoke(app, ["report", str(run), "--format", form, *full, "--out", str(file)])
    assert result.exit_code == 0, result.output
    report_text = " ".join(unescape(file.read_text(encoding="utf-8")).split())
    assert (
        "unsupported_sources" if form == "json" else "※ sources that the items' text does not bear out"
    ) in report_text
    assert NEVER_INGESTED in report_text
    assert "before the reader's first text at the gateway" in report_text
