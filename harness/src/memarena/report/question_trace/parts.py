"""Parts of a question's trace, in records and words that the HTML report, the viewer and ``memarena show`` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena.log.records import (
    AnswerSpan,
    EvidenceTurn,
    GatewayCall,
    Question,
    QuestionAsked,
    RetrievedItem,
    SearchSpan,
)
from memarena.report.layout import counted
from memarena.report.question_trace.judging import JudgeRecord
from memarena.scoring.results import QuestionScore

OUTCOMES = {
    "correct": ("✓", "right"),
    "wrong": ("✗", "wrong"),
    "backend_failed": ("▲", "memory failed"),
    "infra_failed": ("?", "failed on our side"),
    "reader_not_applicable": ("?", "reader could not read it"),
}
"""Sign and word of every outcome."""
TURNS_NAMED = 6
"""Turns of an item that are named, at most."""


@dataclass(frozen=True)
class TurnShown:
    """A turn of an evidence session; ``marked``: it is evidence itself."""

    marked: bool
    speaker: str
    text: str


@dataclass(frozen=True)
class ItemShown:
    """An item of Search, its text perhaps cut."""

    rank: int
    score: float
    sources: str
    time: str
    holds_evidence: bool
    in_prompt: bool | None
    """Whether it fitted into the prompt; None where that is not known."""
    text: str
    left_out: int
    held: str
    """What the harness measured its text to hold; empty where it was not audited."""


@dataclass(frozen=True)
class Decided:
    """One thing about how an outcome came about; ``stage``: it says where the answer went wrong."""

    text: str
    stage: bool = False


@dataclass(frozen=True)
class StepShown:
    """A span of time in milliseconds; None: did not happen, or was not read."""

    part: Literal["search", "prefill", "handing", "rest", ""]
    """Its part of the bar of times; empty for one that overlaps with others."""
    name: str
    ms: float | None


@dataclass(frozen=True)
class JudgeSaid:
    """What a judge said; ``reason`` may tell the right answer."""

    judge: str
    said: str
    reason: str


# ------------------------------------------------------------------ asking, searching, answering


def asked_facts(question: Question) -> tuple[tuple[str, str], ...]:
    """How the question was asked, as names and values; without its gold."""
    instance = question.instance
    kind = f"{instance.family.value} ({instance.dimension.value}), difficulty {instance.difficulty or 'n/a'}"
    return (
        ("asked by", f"{asker(question)}, to the assistant of {question.ego_name}"),
        ("asked at", f"{question.asked_at}, after day {question.day}; {_lag(question)}"),
        ("kind", kind),
    )


def asker(question: Question) -> str:
    """Who asks, in words."""
    known = f"{question.asker_name or 'a person'} ({question.relationship or 'no relation known'})"
    kinds = {"owner": f"{question.ego_name}, the owner", "anonymous": "an unknown person"}
    return kinds.get(question.requester_kind, known)


def _lag(question: Question) -> str:
    lag = question.lag_days
    return "no evidence" if lag is None else f"{counted(lag, 'day')} after the latest evidence"


def search_words(search: SearchSpan | None) -> str:
    """What Search gave back, in a sentence."""
    if search is None:
        return "No search was made."
    if search.code != "OK":
        return f"Search failed: {search.code}: {search.message}"
    through = search.visible_through_day
    held = "" if through is None else f", from a memory that holds days up to {through}"
    return f"Search returned {counted(len(search.items), 'item')}{held}."


def items_shown(
    question: Question,
    items: Sequence[RetrievedItem],
    in_prompt: Sequence[int] | None,
    characters: int,
    *,
    one_line: bool = False,
) -> Iterator[ItemShown]:
    """Items in the order of their rank.

    Args:
        question: whose evidence is marked.
        items: the best first.
        in_prompt: places, from 0, of those that fitted into the prompt; None where that is not known.
        characters: of a text that are shown.
        one_line: with blanks for line feeds.
    """
    evidence = set(question.instance.evidence_session_ids)
    for rank, item in enumerate(items, 1):
        text = " ".join(item.text.split()) if one_line else item.text
        yield ItemShown(
            rank=rank,
            score=item.score,
            sources=", ".join(item.session_ids) or "source not given",
            time=item.time,
            holds_evidence=bool(evidence & set(item.session_ids)),
            in_prompt=None if in_prompt is None else rank - 1 in in_prompt,
            text=text[:characters],
            left_out=max(0, len(text) - characters),
            held=held_words(item),
        )


def held_words(item: RetrievedItem) -> str:
    """Which turns an item's text holds, as the harness audited it; empty where it did not."""
    held = item.held
    if held is None:
        return ""
    turns, left = held.turn_ids[:TURNS_NAMED], len(held.turn_ids) - TURNS_NAMED
    named = ", ".join(turns) + (f" and {left} more" if left > 0 else "")
    what = f"turns {named}" if turns else f"words of {', '.join(held.session_ids)}" if held.session_ids else "no turn"
    return f"holds {what}; {100 * held.verbatim_share:.0f}% of its words are from the life"


def own_items(answer: AnswerSpan | None) -> tuple[RetrievedItem, ...]:
    """Items of the search that a memory made itself for its Answer; none where it read those of Search."""
    return answer.items if answer is not None and not answer.searched_items else ()


def telling_calls(calls: Iterable[GatewayCall], attempt: QuestionAsked) -> list[GatewayCall]:
    """Model calls of an attempt that have something to show."""
    own = [call for call in calls if call.call_id in attempt.gateway_call_ids]
    return [call for call in own if call.prompt or call.output or call.first_content_ns is not None]


def failure_words(attempt: QuestionAsked) -> str:
    """What failed in an attempt; empty where it was answered."""
    return "" if attempt.status == "answered" else f"{attempt.status.replace('_', ' ')}: {attempt.cause}"


def prompt_places(answer: AnswerSpan | None) -> tuple[int, ...] | None:
    """Places, from 0, of the items of Search that fitted into the prompt; None where that is not known."""
    return answer.shown_items if answer is not None and answer.searched_items else None


def turns_shown(turns: Iterable[EvidenceTurn], evidence_turn_ids: Iterable[str]) -> Iterator[TurnShown]:
    """Turns of a session, those that are evidence marked."""
    marked = set(evidence_turn_ids)
    return (TurnShown(turn.turn_id in marked, turn.speaker, turn.text) for turn in turns)


def call_words(call: GatewayCall) -> str:
    """A call of a model: what for, which one, how it ended, how much it read and wrote."""
    read, wrote = ("n/a" if n is None else f"{n:,}" for n in (call.prompt_tokens, call.completion_tokens))
    error = f"; {call.error}" if call.error else ""
    model = call.model or "model"
    return f"{call.phase}: {model}, status {call.status}, {read} prompt tokens, {wrote} completion tokens{error}"


def read_words(answer: AnswerSpan | None) -> str:
    """Who had the answer made, how the output was parsed, and how it ended; empty without an answer."""
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


def steps_shown(
    search: SearchSpan | None, answer: AnswerSpan | None, calls: Iterable[GatewayCall]
) -> tuple[StepShown, ...]:
    """Where the time of a question went; the parts of the bar follow each other and do not overlap."""
    steps = [StepShown("search", "Search", _ms(search.t_search_ns if search else None))]
    if answer is not None:
        first, end = answer.first_delta_ns, answer.completed_ns
        steps += [
            StepShown("prefill", "time to the first token, at the gateway", _ms(answer.ttft_ns)),
            StepShown("handing", "from there until the harness had the first text", _ms(rest_of_answer_ns(answer))),
            StepShown("rest", "from the first text to the end", _ms(_between(first, end))),
            StepShown("", "Answer, from its request to its end", _ms(end)),
        ]
    told = [call.server_prompt_ms for call in calls if call.server_prompt_ms is not None]
    return (*steps, *(StepShown("", "reading the prompt, as the model server says", ms) for ms in told))


def rest_of_answer_ns(answer: AnswerSpan) -> int | None:
    """What remains of Answer until its first text, without the model call that made it; None if either is missing."""
    return _between(answer.ttft_ns, answer.first_delta_ns)


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


# ------------------------------------------------------------------ judging


def settled_words(score: QuestionScore) -> tuple[Decided, ...]:
    """How the outcome came about, without anything that tells the right answer."""
    found = []
    if score.route:
        found.append(Decided(f"decided by {score.route.replace('_', ' ')}"))
    if score.stage:
        found.append(Decided(f"went wrong: {score.stage.replace('_', ' ')}", stage=True))
    if score.token_f1 is not None:
        found.append(Decided(f"token-F1 {score.token_f1:.2f}"))
    return tuple(found)


def judges_said(records: Iterable[JudgeRecord], score: QuestionScore, latest_attempt: int) -> Iterator[JudgeSaid]:
    """What each judge said of a question in a cell, and what its raw output did with the fact of a D6 item."""
    for record in records:
        yield _said(record, "" if record.attempt == latest_attempt else f", attempt {record.attempt + 1}")
    if score.disclosure is not None:
        label = score.disclosure.label.replace("_", " ")
        said = f"{label}, labelled by {score.disclosure.labelled_by}"
        yield JudgeSaid("behaviour", said, f"the raw output {score.disclosure.telling}")


def _said(record: JudgeRecord, attempt: str) -> JudgeSaid:
    place = (f", repeat {record.repeat}" if record.repeat else "") + attempt
    if record.kind == "judging_failed":
        return JudgeSaid(record.judge, f"failed{place}: {record.cause.replace('_', ' ')}", record.message)
    if record.kind == "bucket":
        return JudgeSaid(record.judge, f"withheld because: {record.bucket.replace('_', ' ')}{place}", record.reason)
    label = f", {record.label.replace('_', ' ')}" if record.label else ""
    word = "right" if record.correct else "wrong"
    handed = f" (decided by the {record.handed_over})" if record.handed_over else ""
    said = f"{word} by {record.route.replace('_', ' ')}, score {record.score:.2f}{label}{place}{handed}"
    return JudgeSaid(record.judge, said, record.reason)
