"""Backends that try to buy a figure: each is refused or marked, and the one that does not cheat is left alone.

``Remembers`` keeps the turns that it ingests and searches them by shared words; the others are it with one cheat each.
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
    """Sound: the ten turns that share most words with the question, each with its own session."""

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
        return sorted(turns, key=lambda kept: -len(words & set(kept.text.casefold().split())))[:10]

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        return [
            pb.MemoryItem(text=k.text, source_session_ids=[k.session], source_turn_ids=[k.turn])
            for k in self.best(request)
        ]

    def Search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        return pb.SearchResponse(items=self.items(request), visible_through_day=request.as_of_day)

    def prompt(self, request: pb.SearchRequest, items: Sequence[pb.MemoryItem]) -> str:
        context = "\n- ".join(item.text for item in items)
        return f"Context:\n- {context}\n\nQuestion: {request.text}"

    def Answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        items = self.items(request.search)
        yield pb.AnswerEvent(retrieved=pb.Retrieved(items=items, visible_through_day=request.search.as_of_day))
        text = read(request, self.prompt(request.search, items))
        yield pb.AnswerEvent(text_delta=pb.TextDelta(text=text))
        yield pb.AnswerEvent(completed=pb.Completed(text=text, finish_reason=pb.FINISH_REASON_STOP))


def read(request: pb.AnswerRequest, prompt: str) -> str:
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
    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        every = dict.fromkeys(kept.session for kept in self.kept[request.namespace])
        return [pb.MemoryItem(text=k.text, source_session_ids=list(every)) for k in self.best(request)]


class NamesEverySessionInItsOwnWords(NamesEverySession):
    """Nothing that was said is in its items, so that no claim can be checked."""

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        words = "The memory holds a number of remarks by several people about what is being asked for here."
        return [pb.MemoryItem(text=words, source_session_ids=i.source_session_ids) for i in super().items(request)]


class WritesBeforeTheReader(Remembers):
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
    """Its prompt holds a turn more than its items: as ``change`` makes it."""

    def change(self, text: str) -> str:
        return text

    def prompt(self, request: pb.SearchRequest, items: Sequence[pb.MemoryItem]) -> str:
        shown = {item.text for item in items}
        more = max((k.text for k in self.kept[request.namespace] if k.text not in shown), key=len, default="")
        return f"Read closely. {self.change(more)}\n{super().prompt(request, items)}"


class SmugglesInCapitals(Smuggles):
    def change(self, text: str) -> str:
        return text.upper()


class SmugglesInAnotherOrder(Smuggles):
    def change(self, text: str) -> str:
        words = text.split()
        random.Random(7).shuffle(words)
        return " ".join(words)


class KnowsOtherLives(Remembers):
    """Its items end with a turn that this person never heard: from the data set, or from another namespace."""

    def __init__(self) -> None:
        super().__init__()
        with open_dataset(EXAMPLE) as dataset:
            days = range(dataset.day_count)
            self.lives = {
                ego: {t.text for day in days for s in dataset.day_sessions(ego, day) for t in s.turns}
                for ego in dataset.egos
            }

    def items(self, request: pb.SearchRequest) -> list[pb.MemoryItem]:
        own = {kept.text for kept in self.kept[request.namespace]}
        others = sorted(set().union(*self.lives.values()) - own, key=lambda text: (-len(text), text))
        return [*super().items(request)[:9], *(pb.MemoryItem(text=text) for text in others[:1])]


CHEATS: dict[str, tuple[type[Remembers], str]] = {
    "other-lives": (KnowsOtherLives, f"Search: CONTRACT: an item {NEVER_INGESTED}: turn "),
    "early": (WritesBeforeTheReader, "Answer: CONTRACT: text of the answer came "),
    "smuggles": (Smuggles, f"Answer: CONTRACT: {BEYOND}: turn "),
    "capitals": (SmugglesInCapitals, f"Answer: CONTRACT: {BEYOND}: turn "),
    "shuffled": (SmugglesInAnotherOrder, f"Answer: CONTRACT: {BEYOND}: turn "),
}
"""Cheats that fail their question, with how its cause begins."""


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


def test_a_life_that_is_too_large_to_be_compared_is_a_problem_of_the_run(
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


def test_the_sound_one_is_believed(run: Path, rows: dict[str, RowScores]) -> None:
    assert {record.status for record in asked(run, "sound")} == {"answered"}
    found = rows["sound"].retrieval
    assert found is not None
    assert (found.basis, found.unsupported_claims, rows["sound"].marks) == ("text", 0.0, ())
    assert found.recall_at_k == found.claimed_recall_at_k
    assert 0 < (found.recall_at_k or 0) < 1


def test_an_item_that_names_every_session_counts_for_what_it_holds(rows: dict[str, RowScores]) -> None:
    sound, every = rows["sound"].retrieval, rows["every"].retrieval
    assert sound is not None
    assert every is not None
    assert every.claimed_recall_at_k == 1.0
    assert every.recall_at_k == sound.recall_at_k
    assert every.unsupported_claims is not None
    assert every.unsupported_claims > 0.5
    assert rows["every"].marks == ("unsupported_sources",)


def test_claims_that_nothing_can_check_count_within_a_bound_and_are_called_claimed(rows: dict[str, RowScores]) -> None:
    found = rows["unsaid"].retrieval
    assert found is not None
    assert found.basis == "claimed"
    assert found.recall_at_k is not None
    assert found.recall_at_k < (found.claimed_recall_at_k or 0)
    assert "unsupported_sources" in rows["unsaid"].marks


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_fails_its_question_and_the_cause_names_it(run: Path, name: str) -> None:
    causes = {record.cause for record in asked(run, name) if record.status == "backend_failed"}
    assert causes
    assert all(cause.startswith(CHEATS[name][1]) for cause in causes), causes
    # All that could cheat did: a life that is in the items as a whole leaves nothing to add.
    assert len([r for r in asked(run, name) if r.status == "answered"]) <= 2


@pytest.mark.parametrize("form", ["table", "html", "json"])
def test_every_form_of_the_report_says_so(run: Path, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"report.{form}"
    full = ["--full"] if form == "table" else []
    done = CliRunner().invoke(app, ["report", str(run), "--format", form, *full, "--out", str(file)])
    assert done.exit_code == 0, done.output
    shown = " ".join(unescape(file.read_text(encoding="utf-8")).split())
    assert ("unsupported_sources" if form == "json" else "※ sources that the items' text does not bear out") in shown
    assert NEVER_INGESTED in shown
    assert "before the reader's first text at the gateway" in shown
