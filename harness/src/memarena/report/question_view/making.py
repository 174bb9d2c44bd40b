"""Builds the view of a question from records of a log, which the caller has read; no input or output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from memarena.log.records import (
    AnswerSpan,
    Cell,
    EvidenceSession,
    GatewayCall,
    JudgeRecord,
    Question,
    QuestionAsked,
    RetrievedItem,
    SearchSpan,
)
from memarena.report.layout import counted
from memarena.report.question_view.deciding import decisions, judgments, way_of
from memarena.report.question_view.records import (
    AnswerView,
    AttemptView,
    CallView,
    ItemView,
    QuestionView,
    SessionView,
    StepView,
    TurnView,
)
from memarena.scoring.results import QuestionScore

TURNS_NAMED = 6
"""Turns of an item whose ids are shown, at most."""


def question_view(
    question: Question, evidence: Mapping[str, EvidenceSession], answers: Iterable[AnswerView] = ()
) -> QuestionView:
    """Return the view of a question; ``evidence``: sessions by id, perhaps with sessions of other questions."""
    instance = question.instance
    evidence_turns = set(instance.evidence_turn_ids)
    sessions = [evidence[name] for name in instance.evidence_session_ids if name in evidence]
    return QuestionView(
        instance_id=instance.instance_id,
        family=instance.family.value,
        dimension=instance.dimension.value,
        text=question.question_text,
        facts=_asked(question),
        gold=instance.gold.described,
        sessions=tuple(
            _session(session, evidence_turns) for session in sorted(sessions, key=lambda session: session.started_at)
        ),
        missing_sessions=tuple(name for name in instance.evidence_session_ids if name not in evidence),
        answers=tuple(answers),
    )


def answer_view(
    question: Question,
    evidence: Mapping[str, EvidenceSession],
    cell: Cell,
    score: QuestionScore,
    attempts: Sequence[QuestionAsked],
    calls: Sequence[GatewayCall],
    judge_records: Iterable[JudgeRecord],
) -> AnswerView:
    """Return the view of the answer to a question in a cell.

    Args:
        question: the question.
        evidence: sessions by id.
        cell: the cell, with the limits of Search.
        score: score of the question in the cell.
        attempts: at least one, in the order of the log.
        calls: model calls of all attempts.
        judge_records: verdicts, causes and failures; those of the judge whose verdicts count come first.
    """
    return AnswerView(
        cell_id=cell.cell_id,
        outcome=score.outcome.value if score.outcome else "",
        why=score.why,
        decisions=tuple(decisions(score)),
        way=tuple(way_of(question, evidence, score)),
        judgments=tuple(judgments(judge_records, score, attempts[-1].attempt)),
        attempts=tuple(
            attempt_view(question, cell, attempt, calls, number=n, latest=n == len(attempts))
            for n, attempt in enumerate(attempts, 1)
        ),
    )


def attempt_view(
    question: Question, cell: Cell, attempt: QuestionAsked, calls: Iterable[GatewayCall], *, number: int, latest: bool
) -> AttemptView:
    """Return the view of an attempt; ``calls`` may contain calls of other attempts, which are ignored."""
    search, answer = attempt.search, attempt.answer
    own_calls = [call for call in calls if call.call_id in attempt.gateway_call_ids]
    logged_calls = [call for call in own_calls if call.prompt or call.output or call.first_content_ns is not None]
    other_calls = Counter(call.route for call in own_calls if call not in logged_calls)
    in_prompt = None if answer is None else answer.shown_items
    reads_search_items = answer is not None and answer.searched_items
    own_items = () if answer is None or reads_search_items else answer.items
    return AttemptView(
        number=number,
        latest=latest,
        failed="" if attempt.status == "answered" else f"{attempt.status.replace('_', ' ')}: {attempt.cause}",
        namespace=attempt.namespace,
        request=_request(question, cell) if search is not None else "",
        search=_search(search),
        notices=tuple(notice.text for notice in search.notices) if search is not None else (),
        items=tuple(
            _items(question, search.items if search is not None else (), in_prompt if reads_search_items else None)
        ),
        own_items=tuple(_items(question, own_items, in_prompt)),
        calls=tuple(_call(call) for call in logged_calls),
        other_calls=tuple(f"{count} × {route}" for route, count in sorted(other_calls.items())),
        answer=answer.answer if answer is not None else "",
        reason=answer.reason if answer is not None else "",
        raw=answer.raw if answer is not None and answer.raw != answer.answer else "",
        read=_read(answer),
        steps=tuple(_steps(search, answer, own_calls)),
    )


# ------------------------------------------------------------------ question and evidence


def _asked(question: Question) -> tuple[tuple[str, str], ...]:
    instance, lag = question.instance, question.lag_days
    since = "no evidence" if lag is None else f"{counted(lag, 'day')} after the latest evidence"
    kind = f"{instance.family.value} ({instance.dimension.value}), difficulty {instance.difficulty or 'n/a'}"
    return (
        ("asked by", f"{asker_of(question)}, to the assistant of {question.ego_name}"),
        ("asked at", f"{question.asked_at}, after day {question.day}; {since}"),
        ("kind", kind),
    )


def asker_of(question: Question) -> str:
    """Return the name of the asker, with the relation to the ego."""
    name = f"{question.asker_name or 'a person'} ({question.relationship or 'no relation known'})"
    kinds = {"owner": f"{question.ego_name}, the owner", "anonymous": "an unknown person"}
    return kinds.get(question.requester_kind, name)


def _session(session: EvidenceSession, evidence_turns: set[str]) -> SessionView:
    return SessionView(
        session.session_id,
        session.started_at,
        ", ".join(part for part in (session.place, session.group, session.modality) if part),
        tuple(TurnView(turn.turn_id in evidence_turns, turn.speaker, turn.text) for turn in session.turns),
    )


# ------------------------------------------------------------------ search


def _request(question: Question, cell: Cell) -> str:
    reading = cell.reading
    items = f"{counted(reading.max_items, 'item')} of " if reading.max_items is not None else ""
    return (
        f"Searched for the question as it was asked, on behalf of {asker_of(question)}, "
        f"for at most {items}{counted(reading.max_context_tokens, 'token')}."
    )


def _search(search: SearchSpan | None) -> str:
    if search is None:
        return "No search was made."
    if search.code != "OK":
        return f"Search failed: {search.code}: {search.message}"
    through = search.visible_through_day
    horizon = "" if through is None else f", from a memory that holds days up to {through}"
    return f"Search returned {counted(len(search.items), 'item')}{horizon}."


def _items(question: Question, items: Iterable[RetrievedItem], in_prompt: Sequence[int] | None) -> Iterator[ItemView]:
    """Yield the views of items, best first; ``in_prompt``: indices of the items in the prompt, None if unknown."""
    evidence = set(question.instance.evidence_session_ids)
    for position, item in enumerate(items):
        yield ItemView(
            rank=position + 1,
            score=item.score,
            sources=", ".join(item.session_ids) or "source not given",
            time=item.time,
            holds_evidence=bool(evidence & set(item.session_ids)),
            in_prompt=None if in_prompt is None else position in in_prompt,
            text=item.text,
            held=_held(item),
        )


def _held(item: RetrievedItem) -> str:
    """Return in words which turns or sessions an item's text was found to contain; empty if it was not audited."""
    origins = item.held
    if origins is None:
        return ""
    turns, more = origins.turn_ids[:TURNS_NAMED], len(origins.turn_ids) - TURNS_NAMED
    turn_names = ", ".join(turns) + (f" and {more} more" if more > 0 else "")
    content = (
        f"turns {turn_names}"
        if turns
        else f"words of {', '.join(origins.session_ids)}"
        if origins.session_ids
        else "no turn"
    )
    return f"holds {content}; {100 * origins.verbatim_share:.0f}% of its words are from the life"


# ------------------------------------------------------------------ calls, answer, times


def _call(call: GatewayCall) -> CallView:
    prompt_tokens, completion_tokens = (
        "n/a" if n is None else f"{n:,}" for n in (call.prompt_tokens, call.completion_tokens)
    )
    error = f"; {call.error}" if call.error else ""
    tokens = f"{prompt_tokens} prompt tokens, {completion_tokens} completion tokens"
    return CallView(
        head=f"{call.phase}: {call.model or 'model'}, status {call.status}, {tokens}{error}",
        route=call.route,
        messages=tuple(_messages(call.prompt)),
        output=call.output,
        kept=bool(call.prompt) or not call.prompt_sha256,
    )


def _messages(prompt: str) -> list[tuple[str, str]]:
    """Return (role, text) of each message of a logged prompt; ("prompt", text) if it is not a list of messages."""
    try:
        messages = json.loads(prompt) if prompt else []
    except json.JSONDecodeError:
        return [("prompt", prompt)]
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return [("prompt", prompt)]
    return [(str(m.get("role", "?")), str(m.get("content", ""))) for m in messages]


def _read(answer: AnswerSpan | None) -> str:
    """Return in words by whom the answer was read, how it was parsed, and how it ended; empty without an answer."""
    if answer is None:
        return ""
    reading_by = {"backend": "by the memory's own Answer", "central": "by the harness over the items of Search"}[
        answer.route
    ]
    parse_text = {
        "json": "the output is JSON as asked for",
        "lenient_json": "the output is JSON with faults that could be read over",
        "text": "the output is plain text and was taken whole",
        "empty": "the output is empty",
    }[answer.parse]
    code = "" if answer.code == "OK" else f"; {answer.code}: {answer.message}"
    return f"Read {reading_by}; {parse_text}; ended by {answer.finish_reason}{code}."


def _steps(search: SearchSpan | None, answer: AnswerSpan | None, calls: Iterable[GatewayCall]) -> Iterator[StepView]:
    """Yield the spans of time of an attempt; those with a ``part`` follow each other without overlap."""
    t_search = search.t_search_ns if search else None
    yield _step("search", "Search+floor", t_search)
    if answer is not None:
        first, end, ttft = answer.first_delta_ns, answer.completed_ns, answer.ttft_ns
        yield _step("prefill", "TTFT, at the gateway", ttft)
        yield _step("handing", "from there until the harness had the first text", _between(ttft, first))
        yield _step("rest", "from the first text to the end", _between(first, end))
        yield _step("", "Answer, from its request to its end", end)
        total = None if t_search is None or ttft is None else t_search + ttft
        yield _step("", "S+TTFT: Search+floor and TTFT", total)
    for call in calls:
        if call.server_prompt_ms is not None:
            yield StepView("", "reading the prompt, as the model server says", call.server_prompt_ms)


def _step(part: Literal["search", "prefill", "handing", "rest", ""], name: str, nanoseconds: int | None) -> StepView:
    return StepView(part, name, None if nanoseconds is None else nanoseconds / 1e6)


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start
