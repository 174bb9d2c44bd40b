"""Traces of single questions, and which questions a page samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena.log.records import (
    AnswerSpan,
    EvidenceSession,
    GatewayCall,
    Outcome,
    Question,
    QuestionAsked,
    SearchSpan,
    Verdict,
)
from memarena.report.question_trace.trace import asker, describe_gold, messages_of, rest_of_answer_ns, telling
from memarena.scoring.results import QuestionScore, RowScores

AT_MOST = 160
"""Traces in a whole report; each row has its share."""
MOST_OF_A_ROW = 18
TEXT_CHARACTERS = 2400
"""Characters of a prompt or an output that are kept, two thirds from its start; ``memarena show --full`` shows all."""
ITEM_CHARACTERS = 320
TURN_CHARACTERS = 600
ITEMS = 10
TURNS = 12
CALLS = 4
"""Model calls of an attempt that are shown; the texts of a call are cut like all others."""
MESSAGES = 8


# ------------------------------------------------------------------ what a trace holds


@dataclass(frozen=True)
class Text:
    """A shortened text: its start, how many characters were left out, and its end."""

    name: str
    text: str
    left_out: int = 0
    end: str = ""


@dataclass(frozen=True)
class EvidenceShown:
    """An evidence session: its marked turns, or the first ones where none is marked."""

    session_id: str
    when: str
    turns: tuple[tuple[bool, str, str], ...]
    """Whether it is marked as evidence, who spoke, the text."""
    other_turns: int


@dataclass(frozen=True)
class ItemShown:
    """An item of the search."""

    rank: int
    score: float
    sources: str
    holds_evidence: bool
    text: str


@dataclass(frozen=True)
class CallShown:
    """A model call: its messages and what came back."""

    head: str
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class TimeShown:
    """A span in milliseconds; None: did not happen."""

    name: str
    ms: float | None


@dataclass(frozen=True)
class AttemptShown:
    """One attempt: search, model calls, answer, times."""

    title: str
    settled: str
    """What failed; empty where it was answered."""
    search: str
    items: tuple[ItemShown, ...]
    more_items: int
    calls: tuple[CallShown, ...]
    more_calls: int
    answer: tuple[Text, ...]
    read: str
    times: tuple[TimeShown, ...]


@dataclass(frozen=True)
class VerdictShown:
    """A judge's verdict."""

    judge: str
    attempt: int
    right: bool
    text: str


@dataclass(frozen=True)
class QuestionTrace:
    """A question with everything that happened, from asking to verdict."""

    row: str
    """Label of the row that it belongs to."""
    cell_id: str
    instance_id: str
    family: str
    dimension: str
    outcome: Literal["correct", "wrong", "backend_failed", "infra_failed", "reader_not_applicable"]
    why: str
    settled: tuple[str, ...]
    """How it was decided, one line each."""
    question: str
    asked: tuple[tuple[str, str], ...]
    """Names and values."""
    evidence: tuple[EvidenceShown, ...]
    attempts: tuple[AttemptShown, ...]
    verdicts: tuple[VerdictShown, ...]


# ------------------------------------------------------------------ which ones


def sample_questions(
    rows: Sequence[RowScores], questions: Iterable[QuestionScore], runs: int = 1
) -> list[tuple[str, QuestionScore]]:
    """Row labels and questions to trace: of each row failures first, by outcome and family in turn, and a few right.

    The ``runs`` of a report share the traces it has room for, and the rows of a run its share; every row has at least
    one. The order within a family is by a hash of the instance id, so that the same log gives the same traces, and rows
    trace the same questions where they can.
    """
    if not rows:
        return []
    quota = min(max(AT_MOST // (len(rows) * runs), 1), MOST_OF_A_ROW)
    by_cell: dict[str, list[QuestionScore]] = {}
    for question in questions:
        if question.outcome is not None:
            by_cell.setdefault(question.cell_id, []).append(question)
    chosen = []
    for row in rows:
        cells = [c.cell_id for c in row.cells if c.seed_label in row.headline_seeds]
        asked = [q for cell in cells for q in by_cell.get(cell, ())]
        wrong = _in_turn([q for q in asked if q.outcome is not Outcome.CORRECT])
        right = _in_turn([q for q in asked if q.outcome is Outcome.CORRECT])
        few = min(len(right), max(quota // 4, quota - len(wrong)))
        chosen += [(row.label, q) for q in (*wrong[: quota - few], *right[:few])]
    return chosen


_OUTCOMES = (
    Outcome.INFRA_FAILED,
    Outcome.READER_NOT_APPLICABLE,
    Outcome.BACKEND_FAILED,
    Outcome.WRONG,
    Outcome.CORRECT,
)


def _in_turn(questions: Iterable[QuestionScore]) -> list[QuestionScore]:
    """One of each outcome and family, then the next of each, and so on; no instance twice before all had a turn."""
    strata: dict[tuple[int, str], list[QuestionScore]] = {}
    for question in sorted(questions, key=lambda q: (_hash(q.instance_id), q.cell_id)):
        place = _OUTCOMES.index(question.outcome) if question.outcome else len(_OUTCOMES)
        strata.setdefault((place, question.family), []).append(question)
    ordered = [strata[key] for key in sorted(strata)]
    depth = max(map(len, ordered), default=0)
    found = [group[i] for i in range(depth) for group in ordered if i < len(group)]
    by_instance: dict[str, QuestionScore] = {}
    for question in found:
        by_instance.setdefault(question.instance_id, question)
    first = list(by_instance.values())
    told = {(q.cell_id, q.instance_id) for q in first}
    return first + [q for q in found if (q.cell_id, q.instance_id) not in told]


def _hash(instance_id: str) -> str:
    return hashlib.sha256(instance_id.encode()).hexdigest()


# ------------------------------------------------------------------ making a trace


def trace_question(
    row: str,
    score: QuestionScore,
    question: Question,
    evidence: Mapping[str, EvidenceSession],
    attempts: Sequence[QuestionAsked],
    calls: Sequence[GatewayCall],
    verdicts: Sequence[Verdict],
) -> QuestionTrace:
    """The trace of a question, long texts cut."""
    assert score.outcome is not None
    marked = set(question.instance.evidence_turn_ids)
    return QuestionTrace(
        row=row,
        cell_id=score.cell_id,
        instance_id=score.instance_id,
        family=score.family,
        dimension=score.dimension,
        outcome=score.outcome.value,
        why=score.why,
        settled=_settled(score),
        question=question.question_text,
        asked=_asked(question),
        evidence=tuple(_evidence(evidence[s], marked) for s in question.instance.evidence_session_ids if s in evidence),
        attempts=tuple(_attempt(question, attempts, place, calls) for place in range(len(attempts))),
        verdicts=tuple(VerdictShown(v.judge, v.attempt + 1, v.correct, _why_verdict(v)) for v in verdicts),
    )


def _why_verdict(verdict: Verdict) -> str:
    again = f", repeat {verdict.repeat}" if verdict.repeat else ""
    handed = f"; decided instead by the {verdict.handed_over}" if verdict.handed_over else ""
    return f"{verdict.route}{again}, score {verdict.score:.2f}: {verdict.reason}{handed}"


def _settled(score: QuestionScore) -> tuple[str, ...]:
    lines = [f"{score.outcome.value.replace('_', ' ') if score.outcome else ''}: {score.why}".removesuffix(": ")]
    if score.route:
        lines.append(f"decided by {score.route.replace('_', ' ')}")
    if score.stage:
        lines.append(f"went wrong: {score.stage.replace('_', ' ')}")
    if score.token_f1 is not None:
        lines.append(f"token-F1 {score.token_f1:.2f}")
    if score.disclosure is not None:
        lines.append(f"raw output {telling(score.disclosure)}; behaviour: {score.disclosure.label.replace('_', ' ')}")
    return tuple(lines)


def _asked(question: Question) -> tuple[tuple[str, str], ...]:
    instance = question.instance
    days = "n/a: no evidence" if question.lag_days is None else f"{question.lag_days} days after the latest evidence"
    return (
        ("asked by", f"{asker(question)}, to the assistant of {question.ego_name}"),
        ("asked at", f"{question.asked_at}, after day {question.day}; {days}"),
        ("kind", f"{instance.family.value}, difficulty {instance.difficulty or 'n/a'}"),
        ("right answer", describe_gold(instance.gold)),
    )


def _evidence(session: EvidenceSession, marked: set[str]) -> EvidenceShown:
    shown = [t for t in session.turns if t.turn_id in marked] or list(session.turns)
    shown = shown[:TURNS]
    return EvidenceShown(
        session_id=session.session_id,
        when=session.started_at,
        turns=tuple((t.turn_id in marked, t.speaker, _front(" ".join(t.text.split()), TURN_CHARACTERS)) for t in shown),
        other_turns=len(session.turns) - len(shown),
    )


def _attempt(
    question: Question, attempts: Sequence[QuestionAsked], place: int, calls: Sequence[GatewayCall]
) -> AttemptShown:
    attempt = attempts[place]
    later = "" if place == len(attempts) - 1 else " (a later one counts)"
    own = [c for c in calls if c.call_id in attempt.gateway_call_ids]
    telling = [c for c in own if c.prompt or c.output or c.first_content_ns is not None]
    items = attempt.search.items if attempt.search else ()
    evidence = set(question.instance.evidence_session_ids)
    return AttemptShown(
        title=f"Attempt {place + 1} of {len(attempts)}{later}" if len(attempts) > 1 else "",
        settled="" if attempt.status == "answered" else f"{attempt.status.replace('_', ' ')}: {attempt.cause}",
        search=_search(attempt.search),
        items=tuple(
            ItemShown(
                rank,
                item.score,
                ", ".join(item.session_ids) or "source not given",
                bool(evidence & set(item.session_ids)),
                _front(" ".join(item.text.split())),
            )
            for rank, item in enumerate(items[:ITEMS], 1)
        ),
        more_items=max(0, len(items) - ITEMS),
        calls=tuple(_call(call) for call in telling[:CALLS]),
        more_calls=max(0, len(telling) - CALLS),
        answer=_answer(attempt.answer),
        read=_read(attempt.answer),
        times=_times(attempt.search, attempt.answer, own),
    )


def _search(search: SearchSpan | None) -> str:
    if search is None:
        return "no search was made"
    if search.code != "OK":
        return f"{search.code}: {search.message}"
    return f"{len(search.items)} items, visible through day {search.visible_through_day}"


def _call(call: GatewayCall) -> CallShown:
    tokens = f"{_count(call.prompt_tokens)} prompt tokens, {_count(call.completion_tokens)} completion tokens"
    messages = messages_of(call.prompt)
    # Instructions come first and the question last: of a long conversation the middle is left out.
    if len(messages) > MESSAGES:
        cut = len(messages) - MESSAGES
        messages = [*messages[: MESSAGES // 2], ("…", f"{cut} more messages"), *messages[-(MESSAGES - MESSAGES // 2) :]]
    texts = [_cut(role, content) for role, content in messages]
    if call.output:
        texts.append(_cut("output", call.output))
    error = f"; {call.error}" if call.error else ""
    return CallShown(f"{call.phase}: {call.model or 'model'}, status {call.status}, {tokens}{error}", tuple(texts))


def _answer(answer: AnswerSpan | None) -> tuple[Text, ...]:
    if answer is None:
        return ()
    texts = [_cut("answer", answer.answer or "(empty)")]
    if answer.reason:
        texts.append(_cut("reason", answer.reason))
    if answer.raw != answer.answer:
        texts.append(_cut("raw output", answer.raw))
    return tuple(texts)


def _read(answer: AnswerSpan | None) -> str:
    if answer is None:
        return ""
    how = {"backend": "by the backend's own Answer", "central": "by the harness over Search's items"}[answer.route]
    code = "" if answer.code == "OK" else f"; {answer.code}: {answer.message}"
    return f"read {how}, finished by {answer.finish_reason}, parsed as {answer.parse}{code}"


def _times(search: SearchSpan | None, answer: AnswerSpan | None, calls: Sequence[GatewayCall]) -> tuple[TimeShown, ...]:
    found = [TimeShown("search", _ms(search.t_search_ns if search else None))]
    if answer is not None:
        found += [
            TimeShown("TTFT at the gateway", _ms(answer.ttft_ns)),
            TimeShown("rest of Answer until its first text", _ms(rest_of_answer_ns(answer))),
            TimeShown("first text, from the request of Answer", _ms(answer.first_delta_ns)),
            TimeShown("answer complete", _ms(answer.completed_ns)),
        ]
    found += [TimeShown("prompt, by the server", c.server_prompt_ms) for c in calls if c.server_prompt_ms is not None]
    return tuple(found)


def _front(text: str, most: int = ITEM_CHARACTERS) -> str:
    return text if len(text) <= most else text[:most] + " …"


def _cut(name: str, text: str) -> Text:
    """A text without its middle, since instructions are at its start and the question at its end."""
    if len(text) <= TEXT_CHARACTERS:
        return Text(name, text)
    front = TEXT_CHARACTERS * 2 // 3
    back = TEXT_CHARACTERS - front
    return Text(name, text[:front], len(text) - TEXT_CHARACTERS, text[-back:])


def _count(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
