"""Makes small realistic run logs for tests, with the real record types and the real writer.

Tests of judges, scores and reports need logs with certain answers and failures, which no real run produces on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from memarena.log.records import (
    AnswerSpan,
    AnyRecord,
    BackendDescribed,
    Cell,
    DatasetRef,
    EvidenceSession,
    EvidenceText,
    EvidenceTurn,
    FloorMeasured,
    GatewayCall,
    IngestDone,
    Manifest,
    NamespaceOpened,
    Question,
    QuestionAsked,
    ReaderRef,
    Reading,
    RetrievedItem,
    RunEnded,
    RunResumed,
    RunStarted,
    SearchSpan,
    Versions,
)
from memarena.log.store import LogWriter
from memarena_dataset.gold import (
    AbstainGold,
    AnaphoraGold,
    ClozeGold,
    ConflictGold,
    CounterfactualGold,
    Gold,
    PermissionGold,
    TextGold,
)
from memarena_dataset.model import Family, Instance

EPOCH = "2025-01-01"
ASKED_AT = "2025-01-09T00:00:00Z"
MS = 1_000_000
VERSIONS = Versions(memarena="0.1.0", python="3.11.0", platform="test")


def make_question(
    instance_id: str,
    family: Family,
    gold: Gold,
    text: str,
    *,
    evidence: Sequence[str] = (),
    ego: str = "ines_okafor",
    asker: str | None = "ines_okafor",
    asker_name: str = "",
    asked_at: str = ASKED_AT,
    day: int = 7,
    lag_days: int | None = None,
    difficulty: str | None = "medium",
    tier: str | None = "single_session",
) -> Question:
    """Return a question record; its owner is Ines Okafor by default."""
    kind: Literal["owner", "known_person", "anonymous"] = (
        "owner" if asker == ego else "anonymous" if asker is None else "known_person"
    )
    return Question(
        instance=Instance(
            instance_id=instance_id,
            family=family,
            query=text,
            gold=gold,
            difficulty=difficulty,
            asker_agent_id=asker,
            ego_agent_id=ego,
            evidence_session_ids=tuple(evidence),
            context_tier=tier,
        ),
        question_text=text,
        day=day,
        asked_at=asked_at,
        requester_kind=kind,
        lag_days=lag_days,
        ego_name="Ines Okafor",
        asker_name=asker_name,
    )


def make_evidence(
    session_id: str, *turns: tuple[str, str], started_at: str = "2025-01-06T10:00:00Z"
) -> EvidenceSession:
    """Return a session with turns ``(speaker, text)``, all at the time at which it starts."""
    return EvidenceSession(
        session_id=session_id,
        started_at=started_at,
        turns=tuple(
            EvidenceTurn(turn_id=f"{session_id}_t{n:02d}", speaker=speaker, text=text, said_at=started_at)
            for n, (speaker, text) in enumerate(turns, 1)
        ),
    )


def make_item(text: str, *session_ids: str, score: float = 1.0) -> RetrievedItem:
    """Return an item of a search result."""
    return RetrievedItem(
        text=text, score=score, session_ids=session_ids, turn_ids=tuple(f"{s}_t01" for s in session_ids)
    )


def make_cell(
    backend: str,
    reader: str = "small",
    seed: str = "s1",
    *,
    diagnostic: bool = False,
    timing: bool = True,
    max_context_tokens: int = 512,
) -> Cell:
    """Return a cell with the id that a run would give it."""
    number = int(seed[1:])
    return Cell(
        cell_id=f"{backend}@{reader}/{seed}",
        backend=backend,
        reader=reader,
        seed_label=seed,
        reading=Reading(
            max_answer_tokens=64,
            max_context_tokens=max_context_tokens,
            temperature=0.0 if number == 1 else 0.3,
            seed=number,
        ),
        diagnostic=diagnostic,
        send_evidence=diagnostic,
        timing=timing,
    )


def make_reader(name: str = "small", *, real: bool = True) -> ReaderRef:
    """Return a reader behind a URL, or (``real=False``) the extractive one."""
    return ReaderRef(
        name=name,
        kind="url" if real else "extractive",
        model=f"{name}-model",
        base_url="http://127.0.0.1:1/v1" if real else None,
        context_window_tokens=8192,
        is_real_reader=real,
    )


def make_manifest(cells: Sequence[Cell], readers: Sequence[ReaderRef] = (), *, instances: int = 0) -> Manifest:
    """Return a manifest over a world of eight days."""
    return Manifest(
        dataset=DatasetRef(
            name="harbour",
            path="worlds/harbour",
            sha256="ab" * 32,
            calendar_epoch=EPOCH,
            day_count=8,
            ego_count=1,
            instance_count=instances,
        ),
        protocol="interleaved",
        readers=tuple(readers) or (make_reader(),),
        cells=tuple(cells),
        versions=VERSIONS,
        data_files_sha256={},
        id_key_hex="00" * 32,
        order_seed=0,
        deadlines_s={"search": 30.0},
    )


def make_asked(
    cell: Cell,
    question: Question,
    answer: str = "",
    *,
    attempt: int = 0,
    status: Literal["answered", "backend_failed", "infra_failed"] = "answered",
    cause: str = "",
    raw: str | None = None,
    reason: str = "",
    items: Sequence[RetrievedItem] = (),
    search_ms: float = 1.0,
    ttft_ms: float = 100.0,
    search_ok: bool = True,
    call_ids: Sequence[str] = (),
    namespace: str = "ns",
) -> QuestionAsked:
    """Return one attempt at a question. A failed attempt keeps its search if ``search_ok``."""
    search = SearchSpan(
        t_search_ns=int(search_ms * MS) if search_ok else None,
        code="OK" if search_ok else "UNAVAILABLE",
        items=tuple(items),
        visible_through_day=question.day,
    )
    span = AnswerSpan(
        route="central",
        code="OK" if status == "answered" else "INTERNAL",
        retrieved_ns=0,
        first_delta_ns=int((ttft_ms + 2) * MS),
        completed_ns=int((ttft_ms + 50) * MS),
        ttft_ns=int(ttft_ms * MS),
        model_calls=1,
        raw=answer if raw is None else raw,
        answer=answer,
        reason=reason,
        parse="text" if answer else "empty",
        finish_reason="stop",
        items=tuple(items),
    )
    return QuestionAsked(
        cell_id=cell.cell_id,
        instance_id=question.instance.instance_id,
        ego=question.instance.ego_agent_id,
        namespace=namespace,
        day=question.day,
        attempt=attempt,
        status=status,
        cause=cause,
        asked_mono_ns=1,
        search=search,
        answer=span if status == "answered" else None,
        gateway_call_ids=tuple(call_ids),
    )


def make_call(
    call_id: str, cell: Cell, question: Question, *, ttft_ms: float, server_ms: float, prompt: str = ""
) -> GatewayCall:
    """Return a streamed chat completion whose server reports its own prompt time."""
    return GatewayCall(
        call_id=call_id,
        cell_id=cell.cell_id,
        phase="answer",
        instance_id=question.instance.instance_id,
        ego=question.instance.ego_agent_id,
        day=question.day,
        route="/v1/chat/completions",
        model="small-model",
        stream=True,
        status=200,
        started_mono_ns=1,
        first_byte_ns=int((ttft_ms - 1) * MS),
        first_content_ns=int(ttft_ms * MS),
        done_ns=int((ttft_ms + 40) * MS),
        prompt_tokens=300,
        completion_tokens=12,
        server_prompt_ms=server_ms,
        prompt=prompt,
    )


def make_ingest(
    cell: Cell,
    day: int,
    *,
    sessions: int = 3,
    code: str = "OK",
    seconds: float = 0.5,
    namespace: str = "ns",
    ego: str = "ines_okafor",
) -> IngestDone:
    """Return the record of one ingested day."""
    return IngestDone(
        cell_id=cell.cell_id,
        ego=ego,
        namespace=namespace,
        day=day,
        sessions=sessions,
        turns=sessions * 10,
        events=0,
        payload_bytes=sessions * 20_000,
        duration_ns=int(seconds * 1e9),
        code=code,
    )


def make_described(cell: Cell) -> BackendDescribed:
    """Return a backend's description of itself."""
    return BackendDescribed(
        cell_id=cell.cell_id,
        name=cell.backend,
        version="1.0.0",
        contract_version="1",
        backend_kind="diagnostic" if cell.diagnostic else "competitor",
        capabilities=(),
        token_counting="bytes",
        preferred_prompt_style="json_context",
        retention="verbatim",
    )


def make_run(
    cells: Sequence[Cell],
    questions: Sequence[Question],
    evidence: Sequence[EvidenceSession],
    rest: Sequence[AnyRecord],
    *,
    readers: Sequence[ReaderRef] = (),
    ended: Literal["completed", "incomplete", "interrupted", "aborted"] | None = "completed",
    floor: bool = True,
) -> list[AnyRecord]:
    """Return the records of a run in the order in which a harness writes them."""
    head: list[AnyRecord] = [
        RunStarted(
            run_id="run-test",
            started_at="2026-01-01T00:00:00+00:00",
            manifest=make_manifest(cells, readers, instances=len(questions)),
        ),
        *(EvidenceText(session=s) for s in evidence),
        *questions,
        *(make_described(cell) for cell in cells),
        *(NamespaceOpened(cell_id=c.cell_id, ego="ines_okafor", namespace="ns", attempt=0) for c in cells),
    ]
    if floor:
        head.append(
            FloorMeasured(
                search_ns=tuple(range(300_000, 320_000, 1000)), gateway_hop_ns=tuple(range(900_000, 920_000, 1000))
            )
        )
    tail: list[AnyRecord] = [RunEnded(ended_at="2026-01-01T01:00:00+00:00", reason=ended)] if ended else []
    return [*head, *rest, *tail]


def resumed() -> RunResumed:
    """Return the record of a later process that resumes the run."""
    return RunResumed(resumed_at="2026-01-01T02:00:00+00:00", versions=VERSIONS)


def write_log(run_dir: Path, records: Sequence[AnyRecord]) -> Path:
    """Write records to a fresh log and return its folder."""
    with LogWriter(run_dir) as log:
        log.append(*records)
    return run_dir


# ------------------------------------------------------------------ golds in a few words


def cloze(letter: str, *options: str) -> ClozeGold:
    """Return the gold of a multiple choice."""
    return ClozeGold(answer_letter=letter, answer_text=options[ord(letter) - ord("A")], options=options)


def text_gold(*answers: str, values: Sequence[Any] = (), attribute: str | None = None) -> TextGold:
    """Return gold in text, with typed values if there are any."""
    return TextGold(answers=answers, values=tuple(values), attribute=attribute)


def permission(
    fact: str,
    action: Literal["disclose", "withhold"],
    *,
    values: Sequence[Any] = (),
    self_item: bool = False,
    control: bool = False,
) -> PermissionGold:
    """Return the gold of a permission question (D6)."""
    return PermissionGold(fact=fact, expected_action=action, values=tuple(values), self_item=self_item, control=control)


def abstain(adversarial: str | None = None) -> AbstainGold:
    """Return the gold of a question without an answer; ``adversarial`` is its trap."""
    return AbstainGold(adversarial_answer=adversarial)


__all__ = [name for name in dir() if name.startswith(("make_", "write_"))] + [
    "AnaphoraGold",
    "ConflictGold",
    "CounterfactualGold",
    "abstain",
    "cloze",
    "permission",
    "resumed",
    "text_gold",
]
