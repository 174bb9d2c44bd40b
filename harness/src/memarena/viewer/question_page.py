"""One question as its page shows it: from asking to verdict in one cell or several side by side, read from the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.gold import PermissionGold

from memarena.evaluation import AnswerRecords, answer_records
from memarena.judging import verdicts_to_add
from memarena.log.records import (
    AnswerSpan,
    EvidenceSession,
    GatewayCall,
    Question,
    QuestionAsked,
    RetrievedItem,
    Verdict,
)
from memarena.log.store import LogReader
from memarena.report.charts.svg import Drawing
from memarena.report.question_trace.judging import JudgeRecord
from memarena.report.question_trace.trace import asker, describe_gold, messages_of, rest_of_answer_ns, telling
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
class TurnView:
    """A turn of an evidence session."""

    marked: bool
    speaker: str
    text: str
    said_at: str


@dataclass(frozen=True)
class SessionView:
    """An evidence session in full."""

    session_id: str
    started_at: str
    place: str
    turns: tuple[TurnView, ...]


@dataclass(frozen=True)
class ItemView:
    """An item of Search."""

    rank: int
    score: float
    source: str
    time: str
    evidence: bool
    in_prompt: bool | None
    """Whether it fitted into the prompt; None where that is not known."""
    text: CutText


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
class JudgeView:
    """What a judge said; ``reason`` may tell the right answer."""

    judge: str
    said: str
    reason: str


@dataclass(frozen=True)
class CellView:
    """A question in one cell."""

    cell_id: str
    outcome: str
    stage: str
    route: str
    why: str
    attempts: int
    failed: str
    """What failed in the latest attempt; empty where it was answered."""
    answer: CutText
    reason: CutText
    raw: CutText | None
    """The whole output where it is more than the answer."""
    parse: str
    judges: tuple[JudgeView, ...]
    way: tuple[StepView, ...]
    search: str
    items: tuple[ItemView, ...]
    more_items: int
    calls: tuple[CallView, ...]
    more_calls: int
    timing: str
    """A bar as SVG; empty without times."""
    times: tuple[tuple[str, str, str], ...]
    """Part of the bar (or an empty text), name and value of each span."""
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


def read_cells(folder: Path, source: Source, scores: dict[str, QuestionScore], judge: str) -> list[CellView]:
    """The question in each of the cells, in their order. Raises LogError."""
    instance_id = source.question.instance.instance_id
    records = answer_records(folder, [(cell, instance_id) for cell in scores])
    with LogReader(folder) as log:
        judged: list[JudgeRecord] = [
            record
            for record in log.records("verdict", "bucket", "judging_failed", instance_id=instance_id)
            if isinstance(record, JudgeRecord)
        ]
    return [
        _cell(source, cell, score, records[cell, instance_id], [r for r in judged if r.cell_id == cell], judge)
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
    for place, call in enumerate(_telling(kept.calls, attempt), 1):
        texts[f"output-{place}"] = call.output
        for number, (_, text) in enumerate(messages_of(call.prompt), 1):
            texts[f"message-{place}-{number}"] = text
    return texts.get(part)


def sessions_of(source: Source) -> list[SessionView]:
    """Evidence sessions in the order in which they took place, every turn of them."""
    marked = set(source.question.instance.evidence_turn_ids)
    found = sorted(source.evidence.values(), key=lambda session: session.started_at)
    return [
        SessionView(
            session.session_id,
            session.started_at,
            ", ".join(part for part in (session.place, session.group, session.modality) if part),
            tuple(TurnView(t.turn_id in marked, t.speaker, t.text, t.said_at) for t in session.turns),
        )
        for session in found
    ]


def facts_of(source: Source) -> list[tuple[str, str]]:
    """How the question was asked, as names and values; without its gold."""
    question = source.question
    instance = question.instance
    lag = "no evidence"
    if question.lag_days is not None:
        lag = f"{question.lag_days} {'day' if question.lag_days == 1 else 'days'} after the latest evidence"
    return [
        ("asked by", f"{asker(question)}, to the assistant of {question.ego_name}"),
        ("asked at", f"{question.asked_at}, after day {question.day}; {lag}"),
        ("kind", f"{instance.family.value} ({instance.dimension.value}), difficulty {instance.difficulty or 'n/a'}"),
    ]


def gold_of(source: Source) -> str:
    """The right answer in words."""
    return describe_gold(source.question.instance.gold)


# ------------------------------------------------------------------ one cell


def _cell(
    source: Source,
    cell_id: str,
    score: QuestionScore,
    kept: AnswerRecords,
    judged: Sequence[JudgeRecord],
    judge: str,
) -> CellView:
    attempt = kept.asked[-1]
    answer, search = attempt.answer, attempt.search
    items = search.items if search is not None else ()
    calls = _telling(kept.calls, attempt)
    passages = _passages(source)
    raw = answer.raw if answer is not None and answer.raw != answer.answer else None
    return CellView(
        cell_id=cell_id,
        outcome=score.outcome.value if score.outcome else "",
        stage=score.stage or "",
        route=(score.route or "").replace("_", " "),
        why=score.why,
        attempts=len(kept.asked),
        failed="" if attempt.status == "answered" else f"{attempt.status.replace('_', ' ')}: {attempt.cause}",
        answer=cut(answer.answer if answer else ""),
        reason=cut(answer.reason if answer else ""),
        raw=None if raw is None else cut(raw),
        parse=_parse(answer),
        judges=tuple(_judges(source, attempt, judged, judge)) + tuple(_disclosed(score)),
        way=tuple(_way(source, attempt, score)),
        search=_search(attempt),
        items=tuple(_item(source, attempt, rank, item) for rank, item in enumerate(items[:MOST_ITEMS], 1)),
        more_items=max(0, len(items) - MOST_ITEMS),
        calls=tuple(_call(call, place, passages) for place, call in enumerate(calls[:MOST_CALLS], 1)),
        more_calls=max(0, len(calls) - MOST_CALLS),
        timing=_timing_bar(attempt),
        times=tuple(_times(attempt, calls)),
        notices=search.notices if search is not None else (),
    )


def _telling(calls: Sequence[GatewayCall], attempt: QuestionAsked) -> list[GatewayCall]:
    """Calls of the latest attempt that have something to show."""
    own = [call for call in calls if call.call_id in attempt.gateway_call_ids]
    return [call for call in own if call.prompt or call.output or call.first_content_ns is not None]


def _passages(source: Source) -> list[str]:
    marked = set(source.question.instance.evidence_turn_ids)
    turns = [turn for session in source.evidence.values() for turn in session.turns]
    chosen = [turn for turn in turns if turn.turn_id in marked] or turns
    return [turn.text for turn in chosen if len(turn.text.strip()) >= LEAST_MARKED]


def _parse(answer: AnswerSpan | None) -> str:
    if answer is None:
        return ""
    how = {"backend": "by the memory's own Answer", "central": "by the harness over the items of Search"}[answer.route]
    parsed = {
        "json": "the output is JSON as asked for",
        "lenient_json": "the output is JSON with faults that could be read over",
        "text": "the output is plain text and was taken whole",
        "empty": "the output is empty",
    }[answer.parse]
    code = "" if answer.code == "OK" else f"; {answer.code}: {answer.message}"
    return f"Read {how}; {parsed}; ended by {answer.finish_reason}{code}."


def _judges(source: Source, attempt: QuestionAsked, judged: Sequence[JudgeRecord], judge: str) -> Iterator[JudgeView]:
    instance_id = source.question.instance.instance_id
    own = [r for r in judged if isinstance(r, Verdict)]
    computed = verdicts_to_add({instance_id: source.question}, source.evidence, own, [attempt])
    for record in sorted([*judged, *computed], key=lambda r: (r.judge != judge, r.judge, r.attempt, r.repeat)):
        again = f", repeat {record.repeat}" if record.repeat else ""
        place = "" if record.attempt == attempt.attempt else f", attempt {record.attempt + 1}"
        if record.kind == "judging_failed":
            yield JudgeView(record.judge, f"failed{again}{place}: {record.cause.replace('_', ' ')}", record.message)
        elif record.kind == "bucket":
            yield JudgeView(record.judge, f"withheld because: {record.bucket.replace('_', ' ')}{place}", record.reason)
        else:
            label = f", {record.label.replace('_', ' ')}" if record.label else ""
            word = "right" if record.correct else "wrong"
            handed = f" (decided by the {record.handed_over})" if record.handed_over else ""
            said = f"{word} by {record.route.replace('_', ' ')}{label}{again}{place}{handed}"
            yield JudgeView(record.judge, said, record.reason)


def _disclosed(score: QuestionScore) -> Iterator[JudgeView]:
    if score.disclosure is not None:
        label = score.disclosure.label.replace("_", " ")
        yield JudgeView("behaviour", f"{label}, labelled by {score.disclosure.labelled_by}", telling(score.disclosure))


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
        noun = "session" if found.evidence_sessions == 1 else "sessions"
        total = f"{found.found} of {found.evidence_sessions} evidence {noun}"
        yield StepView(every, f"Search returned {total}{first}, in {found.items} items.")
        if found.shown is not None:
            yield StepView(found.shown == found.found, f"The prompt held {found.shown} of the {found.found} found.")
    outcome = score.outcome.value if score.outcome else ""
    ended = {"correct": "Answered right.", "wrong": "Answered wrong."}.get(outcome, "No answer.")
    stage = f" It went wrong here: {score.stage.replace('_', ' ')}." if score.stage else ""
    yield StepView(outcome == "correct", ended + stage)
    if isinstance(question.instance.gold, PermissionGold):
        yield StepView(None, "A question of permission: what is right depends on who asks.")


def _search(attempt: QuestionAsked) -> str:
    search = attempt.search
    if search is None:
        return "No search was made."
    if search.code != "OK":
        return f"Search failed: {search.code}: {search.message}"
    items = f"{len(search.items):,} {'item' if len(search.items) == 1 else 'items'}"
    seen = (
        ""
        if search.visible_through_day is None
        else f", from a memory that holds days up to {search.visible_through_day}"
    )
    return f"Search returned {items}{seen}."


def _item(source: Source, attempt: QuestionAsked, rank: int, item: RetrievedItem) -> ItemView:
    evidence = set(source.question.instance.evidence_session_ids)
    answer = attempt.answer
    shown = answer.shown_items if answer is not None and answer.searched_items else None
    return ItemView(
        rank=rank,
        score=item.score,
        source=", ".join(item.session_ids) or "source not given",
        time=item.time,
        evidence=bool(evidence & set(item.session_ids)),
        in_prompt=None if shown is None else rank - 1 in shown,
        text=cut(item.text, ITEM_CHARACTERS),
    )


def _call(call: GatewayCall, place: int, passages: list[str]) -> CallView:
    tokens = " + ".join("n/a" if n is None else f"{n:,}" for n in (call.prompt_tokens, call.completion_tokens))
    error = f"; {call.error}" if call.error else ""
    messages = []
    for number, (role, text) in enumerate(messages_of(call.prompt), 1):
        shown = cut(text)
        pieces = tuple(marked_pieces(shown.text, passages))
        messages.append(MessageView(role, pieces, shown.left_out, f"message-{place}-{number}"))
    return CallView(
        head=f"{call.phase}: {call.model or 'model'}, status {call.status}, {tokens} tokens{error}",
        messages=tuple(messages),
        output=cut(call.output, CUT_CHARACTERS),
        part=f"output-{place}",
        kept=bool(call.prompt) or not call.prompt_sha256,
    )


# ------------------------------------------------------------------ times


def _times(attempt: QuestionAsked, calls: Sequence[GatewayCall]) -> Iterator[tuple[str, str, str]]:
    search, answer = attempt.search, attempt.answer
    yield "search", "Search", _ms(search.t_search_ns if search else None)
    if answer is not None:
        yield "prefill", "time to the first token, at the gateway", _ms(answer.ttft_ns)
        yield "", "more until the harness had the first text", _ms(rest_of_answer_ns(answer))
        yield "rest", "from asking to the end of the answer", _ms(answer.completed_ns)
    for call in calls:
        if call.server_prompt_ms is not None:
            yield "", "prompt, as the model server says", f"{call.server_prompt_ms:,.1f} ms"


def _timing_bar(attempt: QuestionAsked) -> str:
    """Search, prefill and the rest of the answer on one axis."""
    search, answer = attempt.search, attempt.answer
    spans = [("search", "Search", search.t_search_ns if search else None)]
    if answer is not None and answer.completed_ns is not None:
        ttft = answer.ttft_ns
        spans += [("prefill", "time to the first token", ttft), ("rest", "the rest", answer.completed_ns - (ttft or 0))]
    known = [(kind, name, max(span, 0)) for kind, name, span in spans if span is not None]
    total = sum(span for *_, span in known)
    if not total:
        return ""
    said = ", ".join(f"{name} {_ms(span)}" for _, name, span in known)
    drawing = Drawing("timing", 600, 18, "Where the time went", f"{said}.")
    left = 0.0
    for kind, name, span in known:
        width = 600 * span / total
        drawing.rect(left, 2, max(width, 0.8), 14, f"bar {kind}", f"{name}: {_ms(span)}")
        left += width
    parts = "".join(drawing.parts)
    return f'<svg class="timing" viewBox="0 0 600 18" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'


def _ms(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "n/a"
    value = nanoseconds / 1e6
    return f"{value:,.2f} ms" if value < 10 else f"{value:,.0f} ms"
