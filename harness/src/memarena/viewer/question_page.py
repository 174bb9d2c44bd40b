"""One question as its page shows it: from asking to verdict in one cell or several side by side, read from the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.gold import PermissionGold

from memarena.evaluation import AnswerRecords, answer_records
from memarena.judging import verdicts_to_add
from memarena.log.records import (
    Cell,
    EvidenceSession,
    GatewayCall,
    Question,
    QuestionAsked,
    Verdict,
)
from memarena.log.store import LogReader
from memarena.report.charts.timing import timing_bar
from memarena.report.layout import counted
from memarena.report.question_trace.judging import JudgeRecord
from memarena.report.question_trace.parts import (
    Decided,
    ItemShown,
    JudgeSaid,
    StepShown,
    TurnShown,
    asker,
    call_words,
    failure_words,
    items_shown,
    judges_said,
    own_items,
    prompt_places,
    read_words,
    search_words,
    settled_words,
    steps_shown,
    telling_calls,
    turns_shown,
)
from memarena.report.question_trace.trace import messages_of
from memarena.scoring.results import QuestionScore
from memarena.viewer.shown_text import CUT_CHARACTERS, CutText, Piece, cut, marked_pieces

ITEM_CHARACTERS = 1_500
LEAST_MARKED = 12
"""Passages shorter than this are not marked in a prompt: they stand there by chance."""
MOST_ITEMS = 30
MOST_CALLS = 6


@dataclass(frozen=True)
class Source:
    """A question with its evidence, from the log."""

    question: Question
    evidence: dict[str, EvidenceSession]


@dataclass(frozen=True)
class SessionView:
    """An evidence session in full."""

    session_id: str
    started_at: str
    place: str
    turns: tuple[TurnShown, ...]


@dataclass(frozen=True)
class MessageView:
    """A message of a prompt, evidence marked."""

    role: str
    pieces: tuple[Piece, ...]
    left_out: int
    part: str
    """Name of the whole text in addresses."""


@dataclass(frozen=True)
class CallView:
    """A call of a model."""

    head: str
    messages: tuple[MessageView, ...]
    output: CutText
    part: str
    kept: bool
    """Whether the run kept the texts."""


@dataclass(frozen=True)
class StepView:
    """A step on the way of the fact: done, not done, or not known."""

    done: bool | None
    text: str


@dataclass(frozen=True)
class CellView:
    """A question in one cell."""

    cell_id: str
    outcome: str
    settled: tuple[Decided, ...]
    """How the outcome came about."""
    why: str
    earlier: tuple[str, ...]
    """How earlier attempts ended."""
    failed: str
    """What failed in the latest attempt; empty where it was answered."""
    answer: CutText
    reason: CutText
    raw: CutText | None
    """The whole output where it is more than the answer."""
    parse: str
    judges: tuple[JudgeSaid, ...]
    way: tuple[StepView, ...]
    request: str
    """What was searched for."""
    search: str
    items: tuple[ItemShown, ...]
    more_items: int
    own_items: tuple[ItemShown, ...]
    """Items of another search, which the memory made itself for its Answer."""
    more_own_items: int
    calls: tuple[CallView, ...]
    more_calls: int
    timing: str
    """A bar as SVG; empty without times."""
    steps: tuple[StepShown, ...]
    notices: tuple[str, ...]


def read_source(folder: Path, instance_id: str) -> Source | None:
    """The question and its evidence; None where the log has no such question. Raises LogError."""
    with LogReader(folder) as log:
        question = next((r for r in log.records("question", instance_id=instance_id) if r.kind == "question"), None)
        if question is None:
            return None
        wanted = set(question.instance.evidence_session_ids)
        evidence: dict[str, EvidenceSession] = {}
        if wanted:
            for record in log.records("evidence"):
                if record.kind == "evidence" and record.session.session_id in wanted:
                    evidence[record.session.session_id] = record.session
                    if len(evidence) == len(wanted):
                        break
    return Source(question, evidence)


def read_cells(
    folder: Path, source: Source, cells: Mapping[str, Cell], scores: Mapping[str, QuestionScore], judge: str
) -> list[CellView]:
    """The question in each of the cells that have a score, in their order. Raises LogError."""
    instance_id = source.question.instance.instance_id
    records = answer_records(folder, [(cell, instance_id) for cell in scores])
    with LogReader(folder) as log:
        judged: list[JudgeRecord] = [
            record
            for record in log.records("verdict", "bucket", "judging_failed", instance_id=instance_id)
            if isinstance(record, JudgeRecord)
        ]
    return [
        _cell(source, cells[cell], score, records[cell, instance_id], [r for r in judged if r.cell_id == cell], judge)
        for cell, score in scores.items()
    ]


def whole_text(folder: Path, source: Source, cell_id: str, part: str) -> str | None:
    """A text that a page shows the start of, whole; None where there is none of this name. Raises LogError."""
    instance_id = source.question.instance.instance_id
    kept = answer_records(folder, [(cell_id, instance_id)])[cell_id, instance_id]
    if not kept.asked:
        return None
    attempt = kept.asked[-1]
    answer = attempt.answer
    texts: dict[str, str] = {}
    if answer is not None:
        texts |= {"answer": answer.answer, "reason": answer.reason, "raw": answer.raw}
    for rank, item in enumerate(attempt.search.items if attempt.search else (), 1):
        texts[f"item-{rank}"] = item.text
    for rank, item in enumerate(own_items(answer), 1):
        texts[f"own-{rank}"] = item.text
    for place, call in enumerate(telling_calls(kept.calls, attempt), 1):
        texts[f"output-{place}"] = call.output
        for number, (_, text) in enumerate(messages_of(call.prompt), 1):
            texts[f"message-{place}-{number}"] = text
    return texts.get(part)


def sessions_of(source: Source) -> list[SessionView]:
    """Evidence sessions in the order in which they took place, every turn of them."""
    marked = source.question.instance.evidence_turn_ids
    found = sorted(source.evidence.values(), key=lambda session: session.started_at)
    return [
        SessionView(
            session.session_id,
            session.started_at,
            ", ".join(part for part in (session.place, session.group, session.modality) if part),
            tuple(turns_shown(session.turns, marked)),
        )
        for session in found
    ]


def gold_of(source: Source) -> str:
    """The right answer in words."""
    return source.question.instance.gold.described


# ------------------------------------------------------------------ one cell


def _cell(
    source: Source,
    cell: Cell,
    score: QuestionScore,
    kept: AnswerRecords,
    judged: Sequence[JudgeRecord],
    judge: str,
) -> CellView:
    attempt = kept.asked[-1]
    answer, search = attempt.answer, attempt.search
    items, own = search.items if search is not None else (), own_items(answer)
    calls = telling_calls(kept.calls, attempt)
    passages = _passages(source)
    steps = steps_shown(search, answer, calls)
    raw = answer.raw if answer is not None and answer.raw != answer.answer else None
    return CellView(
        cell_id=cell.cell_id,
        outcome=score.outcome.value if score.outcome else "",
        settled=settled_words(score),
        why=score.why,
        earlier=tuple(
            f"Attempt {n} of {len(kept.asked)}: {failure_words(each) or 'answered'}"
            for n, each in enumerate(kept.asked[:-1], 1)
        ),
        failed=failure_words(attempt),
        answer=cut(answer.answer if answer else ""),
        reason=cut(answer.reason if answer else ""),
        raw=None if raw is None else cut(raw),
        parse=read_words(answer),
        judges=tuple(judges_said(_voices(source, attempt, judged, judge), score, attempt.attempt)),
        way=tuple(_way(source, attempt, score)),
        request=_request(source.question, cell) if search is not None else "",
        search=search_words(search),
        items=tuple(items_shown(source.question, items[:MOST_ITEMS], prompt_places(answer), ITEM_CHARACTERS)),
        more_items=max(0, len(items) - MOST_ITEMS),
        own_items=tuple(items_shown(source.question, own[:MOST_ITEMS], None, ITEM_CHARACTERS)),
        more_own_items=max(0, len(own) - MOST_ITEMS),
        calls=tuple(_call(call, place, passages) for place, call in enumerate(calls[:MOST_CALLS], 1)),
        more_calls=max(0, len(calls) - MOST_CALLS),
        timing=timing_bar(steps),
        steps=steps,
        notices=tuple(notice.text for notice in search.notices) if search is not None else (),
    )


def _passages(source: Source) -> list[str]:
    marked = set(source.question.instance.evidence_turn_ids)
    turns = [turn for session in source.evidence.values() for turn in session.turns]
    chosen = [turn for turn in turns if turn.turn_id in marked] or turns
    return [turn.text for turn in chosen if len(turn.text.strip()) >= LEAST_MARKED]


def _voices(source: Source, attempt: QuestionAsked, judged: Sequence[JudgeRecord], judge: str) -> list[JudgeRecord]:
    """What judges said, those computed on the way among them; the judge whose verdicts count comes first."""
    own = [r for r in judged if isinstance(r, Verdict)]
    instance_id = source.question.instance.instance_id
    computed = verdicts_to_add({instance_id: source.question}, source.evidence, own, [attempt])
    return sorted([*judged, *computed], key=lambda r: (r.judge != judge, r.judge, r.attempt, r.repeat))


def _request(question: Question, cell: Cell) -> str:
    """What Search was asked for."""
    reading = cell.reading
    items = f"{counted(reading.max_items, 'item')} of " if reading.max_items is not None else ""
    return (
        f"Searched for the question as it was asked, on behalf of {asker(question)}, "
        f"for at most {items}{counted(reading.max_context_tokens, 'token')}."
    )


def _way(source: Source, attempt: QuestionAsked, score: QuestionScore) -> Iterator[StepView]:
    """The fact's way from the life to the answer."""
    question, found = source.question, score.retrieved
    sessions = sorted(source.evidence.values(), key=lambda session: session.started_at)
    if not sessions:
        yield StepView(None, "Nothing was ever said of it, or the log does not hold where.")
    for session in sessions:
        yield StepView(True, f"{session.started_at[:10]}: said in {session.session_id}")
    if sessions and score.stage not in (None, "unknown"):
        lost = score.stage == "not_ingested"
        yield StepView(not lost, "The day did not reach the memory." if lost else "The day was given to the memory.")
    yield StepView(None, f"Asked after day {question.day}.")
    if found is not None and found.evidence_sessions:
        every = found.found == found.evidence_sessions
        first = f", the first as item {found.first_rank}" if found.first_rank is not None else ""
        total = f"{found.found} of {counted(found.evidence_sessions, 'evidence session')}"
        yield StepView(every, f"Search returned {total}{first}, in {counted(found.items, 'item')}.")
        if found.shown is not None:
            yield StepView(found.shown == found.found, f"The prompt held {found.shown} of the {found.found} found.")
    outcome = score.outcome.value if score.outcome else ""
    ended = {"correct": "Answered right.", "wrong": "Answered wrong."}.get(outcome, "No answer.")
    stage = f" It went wrong here: {score.stage.replace('_', ' ')}." if score.stage else ""
    yield StepView(outcome == "correct", ended + stage)
    if isinstance(question.instance.gold, PermissionGold):
        yield StepView(None, "A question of permission: what is right depends on who asks.")


def _call(call: GatewayCall, place: int, passages: list[str]) -> CallView:
    messages = []
    for number, (role, text) in enumerate(messages_of(call.prompt), 1):
        shown = cut(text)
        pieces = tuple(marked_pieces(shown.text, passages))
        messages.append(MessageView(role, pieces, shown.left_out, f"message-{place}-{number}"))
    return CallView(
        head=call_words(call),
        messages=tuple(messages),
        output=cut(call.output, CUT_CHARACTERS),
        part=f"output-{place}",
        kept=bool(call.prompt) or not call.prompt_sha256,
    )
