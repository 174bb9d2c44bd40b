"""The trace of one question in one cell: asked, retrieved, prompted, answered, judged, and how long each step took."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memarena.log.records import (
    AnswerSpan,
    EvidenceSession,
    GatewayCall,
    Question,
    QuestionAsked,
    RetrievedItem,
    SearchSpan,
)
from memarena.report.layout import Document, Section
from memarena.report.question_trace.judging import JudgeRecord, judge_sections
from memarena.report.question_trace.parts import (
    asked_facts,
    call_words,
    held_words,
    own_items,
    read_words,
    rest_of_answer_ns,
    search_words,
    telling_calls,
)
from memarena.scoring.results import QuestionScore

SHOWN_CHARACTERS = 1200
"""Characters of a long text that are shown without ``--full``."""


def question_trace(
    question: Question,
    evidence: Mapping[str, EvidenceSession],
    attempts: Sequence[QuestionAsked],
    calls: Sequence[GatewayCall],
    score: QuestionScore,
    *,
    judged: Sequence[JudgeRecord] = (),
    full: bool = False,
) -> Document:
    """Sections from the question to the verdicts. Earlier attempts stay visible; the latest one counts.

    ``judged`` is what judges said of the question in this cell, and where they failed, in the order of the log.
    """
    parts = [_asked(question, score), _evidence(question, evidence, full)]
    for position, attempt in enumerate(attempts, 1):
        last = position == len(attempts)
        title = f"Attempt {position} of {len(attempts)}" + ("" if last else " (a later one counts)")
        parts += _attempt(title, question, attempt, [c for c in calls if c.call_id in attempt.gateway_call_ids], full)
    parts += [_verdict(score), *judge_sections(judged)]
    return Document(f"{question.instance.instance_id} in {score.cell_id}", tuple(parts))


# ------------------------------------------------------------------ sections


def _asked(question: Question, score: QuestionScore) -> Section:
    instance = question.instance
    lines = [
        *(f"{name:<8}  {text}" for name, text in asked_facts(question)),
        *_text("question", question.question_text, full=True),
        *_text("gold", instance.gold.described, full=True),
    ]
    return Section(f"Question {instance.instance_id} in {score.cell_id}", tuple(lines))


def _evidence(question: Question, evidence: Mapping[str, EvidenceSession], full: bool) -> Section:
    marked = set(question.instance.evidence_turn_ids)
    lines: list[str] = []
    for session_id in question.instance.evidence_session_ids:
        session = evidence.get(session_id)
        if session is None:
            lines.append(f"{session_id}: not in the log")
            continue
        lines.append(f"{session_id}, {session.started_at}" + (f", {session.place}" if session.place else ""))
        shown = [t for t in session.turns if full or not marked or t.turn_id in marked]
        lines += [f"  {'→' if t.turn_id in marked else ' '} {t.speaker}: {_one_line(t.text)}" for t in shown]
        if len(shown) < len(session.turns):
            lines.append(f"    … {len(session.turns) - len(shown)} other turns")
    return Section("Evidence", tuple(lines or ["none"]))


def _attempt(
    title: str, question: Question, attempt: QuestionAsked, calls: Sequence[GatewayCall], full: bool
) -> Iterator[Section]:
    settled = attempt.status.replace("_", " ") + (f": {attempt.cause}" if attempt.cause else "")
    yield Section(title, (f"{settled}; namespace {attempt.namespace}",))
    if attempt.search is not None:
        yield _search(question, attempt.search, full)
    generating = telling_calls(calls, attempt)
    yield from (_call(call, full) for call in generating)
    if others := [call for call in calls if call not in generating]:
        yield Section("Other model calls", tuple(_counted(call.route for call in others)))
    if attempt.answer is not None:
        yield _answer(question, attempt.answer, full)
        yield _times(attempt.search, attempt.answer, calls)


def _search(question: Question, search: SearchSpan, full: bool) -> Section:
    if search.code != "OK":
        return Section("Search", (search_words(search),))
    evidence = set(question.instance.evidence_session_ids)
    lines = [line for rank, item in enumerate(search.items, 1) for line in _item(rank, item, evidence, full)]
    return Section(
        "Search",
        (f"{search_words(search)} → holds evidence", *lines),
        notes=tuple(f"notice {notice.text}" for notice in search.notices),
    )


def _item(rank: int, item: RetrievedItem, evidence: set[str], full: bool) -> list[str]:
    mark = "→" if evidence & set(item.session_ids) else " "
    source = ", ".join(item.session_ids) or "source not given"
    text = item.text if full else _one_line(item.text)[:160] + ("…" if len(_one_line(item.text)) > 160 else "")
    held = [f"      [{words}]"] if (words := held_words(item)) else []
    return [f"{mark} {rank:>2}  {item.score:8.3f}  {source}", *held, *(f"      {line}" for line in text.splitlines())]


def _call(call: GatewayCall, full: bool) -> Section:
    lines = [call_words(call)]
    for role, content in messages_of(call.prompt):
        lines += _text(role, content, full=full)
    if call.output:
        lines += _text("output", call.output, full=full)
    if not call.prompt and call.prompt_sha256:
        lines.append("the run kept no texts of prompts")
    return Section(f"Model call ({call.route})", tuple(lines))


def _answer(question: Question, answer: AnswerSpan, full: bool) -> Section:
    lines = [read_words(answer)]
    lines += _text("raw", answer.raw, full=full)
    lines += _text("answer", answer.answer or "(empty)", full=True)
    if answer.reason:
        lines += _text("reason", answer.reason, full=full)
    if items := own_items(answer):
        evidence = set(question.instance.evidence_session_ids)
        held = sum(bool(evidence & set(item.session_ids)) for item in items)
        lines.append(f"read from {len(items)} items of its own search, {held} with evidence")
        lines += [line for rank, item in enumerate(items, 1) for line in _item(rank, item, evidence, full)]
    return Section("Answer", tuple(lines))


def _times(search: SearchSpan | None, answer: AnswerSpan, calls: Sequence[GatewayCall]) -> Section:
    t_search = search.t_search_ns if search else None
    rest = rest_of_answer_ns(answer)
    total = None if t_search is None or answer.ttft_ns is None else t_search + answer.ttft_ns
    lines = [
        f"search            {_ms(t_search)}",
        f"TTFT (gateway)    {_ms(answer.ttft_ns)}",
        f"rest of Answer    {_ms(rest)}",
        f"search + TTFT     {_ms(total)}",
        f"first text received   {_ms(answer.first_delta_ns)} after the request of Answer",
        f"answer complete   {_ms(answer.completed_ns)}",
    ]
    lines += [f"server's prompt   {c.server_prompt_ms:.1f} ms" for c in calls if c.server_prompt_ms is not None]
    return Section("Time", tuple(lines))


def _verdict(score: QuestionScore) -> Section:
    outcome = score.outcome.value.replace("_", " ") if score.outcome else "not asked yet"
    lines = [f"{outcome}" + (f" by {score.route}" if score.route else ""), *([score.why] if score.why else [])]
    if score.stage:
        lines.append(f"went wrong: {score.stage.replace('_', ' ')}")
    if score.token_f1 is not None:
        lines.append(f"token-F1 {score.token_f1:.2f}")
    if score.disclosure is not None:
        lines.append(f"raw output {score.disclosure.telling}; behaviour {score.disclosure.label}")
    return Section("Verdict", tuple(lines))


# ------------------------------------------------------------------ small helpers


def _counted(routes: Iterable[str]) -> list[str]:
    return [f"{count} × {route}" for route, count in sorted(Counter(routes).items())]


def messages_of(prompt: str) -> list[tuple[str, str]]:
    """Role and text of each message of a logged prompt; the prompt itself where it is no list of messages."""
    try:
        parsed = json.loads(prompt) if prompt else []
    except json.JSONDecodeError:
        return [("prompt", prompt)]
    if not isinstance(parsed, list) or not all(isinstance(m, dict) for m in parsed):
        return [("prompt", prompt)]
    return [(str(m.get("role", "?")), str(m.get("content", ""))) for m in parsed]


def _text(name: str, text: str, *, full: bool) -> list[str]:
    """A text under its name, cut if long unless all of it is wanted."""
    cut = text if full or len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS]
    lines = cut.splitlines() or [""]
    shown = [f"{name:<8}  {lines[0]}", *(f"{'':<8}  {line}" for line in lines[1:])]
    if len(cut) < len(text):
        shown.append(f"{'':<8}  … {len(text) - len(cut):,} more characters (--full shows them)")
    return shown


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ms(nanoseconds: int | None) -> str:
    return "n/a" if nanoseconds is None else f"{nanoseconds / 1e6:,.2f} ms"
