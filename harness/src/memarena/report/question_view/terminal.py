"""Formats the view of a question for a terminal: ``memarena show RUN --question ID``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memarena.report.layout import Document, Section
from memarena.report.question_view.records import AnswerView, AttemptView, CallView, ItemView, QuestionView, SessionView

SHOWN_CHARACTERS = 1200
"""Characters of a text that are shown without ``--full``."""
ITEM_CHARACTERS = 160
"""Characters of an item's text that are shown without ``--full``, on one line."""


def question_document(view: QuestionView, *, full: bool = False) -> Document:
    """Return for each cell the sections from the question to the verdicts, with all attempts; the last one counts."""
    parts = [part for answer in view.answers for part in _sections(view, answer, full)]
    return Document(view.instance_id, tuple(parts))


def _sections(view: QuestionView, answer: AnswerView, full: bool) -> Iterator[Section]:
    lines = [*(f"{name:<8}  {text}" for name, text in view.facts), *_text("question", view.text, full=True)]
    gold = _text("gold", view.gold, full=True)
    yield Section(f"Question {view.instance_id} in {answer.cell_id}", (*lines, *gold))
    sessions = [line for session in view.sessions for line in _session(session, full)]
    missing = [f"{name}: not in the log" for name in view.missing_sessions]
    yield Section("Evidence", tuple([*sessions, *missing] or ["none"]))
    for attempt in answer.attempts:
        yield from _attempt(attempt, len(answer.attempts), full)
    yield from _judged(answer)


def _session(session: SessionView, full: bool) -> Iterator[str]:
    yield f"{session.session_id}, {session.started_at}" + (f", {session.where}" if session.where else "")
    turns = session.turns if full else session.evidence
    yield from (f"  {'→' if turn.marked else ' '} {turn.speaker}: {_one_line(turn.text)}" for turn in turns)
    if len(turns) < len(session.turns):
        yield f"    … {len(session.turns) - len(turns)} other turns"


def _attempt(attempt: AttemptView, of: int, full: bool) -> Iterator[Section]:
    title = f"Attempt {attempt.number} of {of}" + ("" if attempt.latest else " (a later one counts)")
    yield Section(title, (f"{attempt.failed or 'answered'}; namespace {attempt.namespace}",))
    head = [line for line in (attempt.request, f"{attempt.search} → holds evidence") if line]
    yield Section(
        "Search",
        (*head, *_items(attempt.items, full)),
        notes=tuple(f"notice {notice}" for notice in attempt.notices),
    )
    yield from (_call(call, full) for call in attempt.calls)
    if attempt.other_calls:
        yield Section("Other model calls", attempt.other_calls)
    if attempt.read:
        yield _answer(attempt, full)
        times = (f"{step.name:<47}  {_ms(step.ms)}" for step in attempt.steps)
        yield Section("Time", tuple(times))


def _items(items: Iterable[ItemView], full: bool) -> Iterator[str]:
    for item in items:
        prompt_note = {None: "", True: "", False: "  did not fit into the prompt"}[item.in_prompt]
        yield f"{'→' if item.holds_evidence else ' '} {item.rank:>2}  {item.score:8.3f}  {item.sources}{prompt_note}"
        if item.held:
            yield f"      [{item.held}]"
        line = _one_line(item.text)
        excerpt = line[:ITEM_CHARACTERS] + ("…" if len(line) > ITEM_CHARACTERS else "")
        yield from (f"      {text_line}" for text_line in (item.text if full else excerpt).splitlines())


def _call(call: CallView, full: bool) -> Section:
    lines = [call.head]
    for role, text in (*call.messages, *([("output", call.output)] if call.output else [])):
        lines += _text(role, text, full=full)
    if not call.kept:
        lines.append("the run kept no texts of prompts")
    return Section(f"Model call ({call.route})", tuple(lines))


def _answer(attempt: AttemptView, full: bool) -> Section:
    lines = [attempt.read]
    lines += _text("raw", attempt.raw, full=full) if attempt.raw else []
    lines += _text("answer", attempt.answer or "(empty)", full=True)
    lines += _text("reason", attempt.reason, full=full) if attempt.reason else []
    if attempt.own_items:
        with_evidence = sum(item.holds_evidence for item in attempt.own_items)
        lines.append(f"read from {len(attempt.own_items)} items of its own search, {with_evidence} with evidence")
        lines += _items(attempt.own_items, full)
    return Section("Answer", tuple(lines))


def _judged(answer: AnswerView) -> Iterator[Section]:
    outcome = answer.outcome.replace("_", " ") or "not asked yet"
    behaviour = [
        f"{judgment.judge}: {judgment.result}; {judgment.reason}"
        for judgment in answer.judgments
        if not judgment.version
    ]
    decisions = [decision.text for decision in answer.decisions]
    yield Section("Verdict", tuple(line for line in (outcome, answer.why, *decisions, *behaviour) if line))
    lines: dict[str, list[str]] = {}
    for judgment in answer.judgments:
        if judgment.version:
            reason = f": {_one_line(judgment.reason)}" if judgment.reason else ""
            judge_lines = lines.setdefault(f"Judge {judgment.judge} ({judgment.version[:12]})", [])
            judge_lines += [f"{judgment.result}{reason}", *(f"  {_one_line(detail)}" for detail in judgment.details)]
    yield from (Section(title, tuple(judge_lines)) for title, judge_lines in lines.items())


def _text(name: str, text: str, *, full: bool) -> list[str]:
    """Return the lines of a text with its name, truncated to :data:`SHOWN_CHARACTERS` unless ``full``."""
    excerpt = text if full or len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS]
    lines = excerpt.splitlines() or [""]
    printed_lines = [f"{name:<8}  {lines[0]}", *(f"{'':<8}  {line}" for line in lines[1:])]
    if len(excerpt) < len(text):
        printed_lines.append(f"{'':<8}  … {len(text) - len(excerpt):,} more characters (--full shows them)")
    return printed_lines


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _ms(ms: float | None) -> str:
    return "n/a" if ms is None else f"{ms:,.2f} ms"
