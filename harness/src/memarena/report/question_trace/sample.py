"""Traces of single questions, and which questions a page samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memarena.log.records import (
    AnswerSpan,
    EvidenceSession,
    GatewayCall,
    Outcome,
    Question,
    QuestionAsked,
    Verdict,
)
from memarena.report.question_trace.parts import (
    Decided,
    ItemShown,
    JudgeSaid,
    StepShown,
    TurnShown,
    asked_facts,
    call_words,
    failure_words,
    items_shown,
    judges_said,
    prompt_places,
    read_words,
    search_words,
    settled_words,
    steps_shown,
    telling_calls,
    turns_shown,
)
from memarena.report.question_trace.trace import messages_of
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
    turns: tuple[TurnShown, ...]
    other_turns: int


@dataclass(frozen=True)
class CallShown:
    """A model call: its messages and what came back."""

    head: str
    texts: tuple[Text, ...]


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
    steps: tuple[StepShown, ...]


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
    settled: tuple[Decided, ...]
    """How it was decided."""
    question: str
    asked: tuple[tuple[str, str], ...]
    """Names and values."""
    evidence: tuple[EvidenceShown, ...]
    attempts: tuple[AttemptShown, ...]
    judges: tuple[JudgeSaid, ...]


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
        settled=settled_words(score),
        question=question.question_text,
        asked=(*asked_facts(question), ("right answer", question.instance.gold.described)),
        evidence=tuple(_evidence(evidence[s], marked) for s in question.instance.evidence_session_ids if s in evidence),
        attempts=tuple(_attempt(question, attempts, place, calls) for place in range(len(attempts))),
        judges=tuple(judges_said(verdicts, score, attempts[-1].attempt if attempts else 0)),
    )


def _evidence(session: EvidenceSession, marked: set[str]) -> EvidenceShown:
    shown = ([t for t in session.turns if t.turn_id in marked] or list(session.turns))[:TURNS]
    return EvidenceShown(
        session_id=session.session_id,
        when=session.started_at,
        turns=tuple(
            replace(turn, text=_front(" ".join(turn.text.split()), TURN_CHARACTERS))
            for turn in turns_shown(shown, marked)
        ),
        other_turns=len(session.turns) - len(shown),
    )


def _attempt(
    question: Question, attempts: Sequence[QuestionAsked], place: int, calls: Sequence[GatewayCall]
) -> AttemptShown:
    attempt = attempts[place]
    later = "" if place == len(attempts) - 1 else " (a later one counts)"
    own = [c for c in calls if c.call_id in attempt.gateway_call_ids]
    telling = telling_calls(own, attempt)
    items = attempt.search.items if attempt.search else ()
    return AttemptShown(
        title=f"Attempt {place + 1} of {len(attempts)}{later}" if len(attempts) > 1 else "",
        settled=failure_words(attempt),
        search=search_words(attempt.search),
        items=tuple(
            items_shown(question, items[:ITEMS], prompt_places(attempt.answer), ITEM_CHARACTERS, one_line=True)
        ),
        more_items=max(0, len(items) - ITEMS),
        calls=tuple(_call(call) for call in telling[:CALLS]),
        more_calls=max(0, len(telling) - CALLS),
        answer=_answer(attempt.answer),
        read=read_words(attempt.answer),
        steps=steps_shown(attempt.search, attempt.answer, own),
    )


def _call(call: GatewayCall) -> CallShown:
    messages = messages_of(call.prompt)
    # Instructions come first and the question last: of a long conversation the middle is left out.
    if len(messages) > MESSAGES:
        cut = len(messages) - MESSAGES
        messages = [*messages[: MESSAGES // 2], ("…", f"{cut} more messages"), *messages[-(MESSAGES - MESSAGES // 2) :]]
    texts = [_cut(role, content) for role, content in messages]
    if call.output:
        texts.append(_cut("output", call.output))
    return CallShown(call_words(call), tuple(texts))


def _answer(answer: AnswerSpan | None) -> tuple[Text, ...]:
    if answer is None:
        return ()
    texts = [_cut("answer", answer.answer or "(empty)")]
    if answer.reason:
        texts.append(_cut("reason", answer.reason))
    if answer.raw != answer.answer:
        texts.append(_cut("raw output", answer.raw))
    return tuple(texts)


def _front(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


def _cut(name: str, text: str) -> Text:
    """A text without its middle, since instructions are at its start and the question at its end."""
    if len(text) <= TEXT_CHARACTERS:
        return Text(name, text)
    front = TEXT_CHARACTERS * 2 // 3
    back = TEXT_CHARACTERS - front
    return Text(name, text[:front], len(text) - TEXT_CHARACTERS, text[-back:])
