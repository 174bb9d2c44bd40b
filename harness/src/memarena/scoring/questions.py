"""Scores every question of every cell: its outcome and route, the evidence that was retrieved, and its times.

All figures of a run are computed from these records. Only the latest attempt at a question counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any, Protocol, TypeVar

from memarena_dataset.gold import ClozeGold, Gold, OpenGold, PermissionGold
from memarena_dataset.model import WORDINGS, Dimension

from memarena.judging.judgment import Judgment
from memarena.judging.judgments import Judgments
from memarena.judging.token_f1 import best_token_f1
from memarena.log.projection import ProjectedCall
from memarena.log.records import NON_ANSWERS, Cell, NonAnswer, Outcome, Question
from memarena.scoring.results import QuestionScore, Retrieved, Spans, Stage
from memarena.scoring.retrieved_evidence import retrieved_evidence
from memarena.scoring.run_facts import Attempt, RunFacts

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

INTERFERENCE = "interference"
"""Key of a question's metadata with the number of facts that interfere with the one asked for."""


NOT_JUDGED = "not judged: a rubric needs a judge with a model"
"""Why a question has no outcome although it was answered."""


class RunBoth(Protocol):
    """Runs two computations, one after the other, or at the same time in two processes."""

    def __call__(self, first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
        """Return the results of both."""


def one_after_the_other(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Run both in this process (:class:`RunBoth`)."""
    return first(), second()


def score_all(
    facts: RunFacts, judgments: Judgments, meanwhile: Callable[[], T], run_both: RunBoth = one_after_the_other
) -> tuple[list[QuestionScore], T]:
    """Score every question of every cell, sorted by cell (as in the manifest) and instance id, and run ``meanwhile``.

    The questions are split in two, each question with all of its cells, so that work shared by cells is done once. The
    first part is 3/5, since ``meanwhile`` runs after the second. The result does not depend on ``run_both``.

    Returns:
        the scores, and the result of ``meanwhile``.
    """
    ids = sorted(facts.questions)
    first, (second, between) = run_both(
        lambda: list(score_questions(facts, judgments, [i for n, i in enumerate(ids) if n % 5 < 3])),
        lambda: (list(score_questions(facts, judgments, [i for n, i in enumerate(ids) if n % 5 >= 3])), meanwhile()),
    )
    order = {cell.cell_id: position for position, cell in enumerate(facts.manifest.cells)}
    scores = sorted((*first, *second), key=lambda question: (order[question.cell_id], question.instance_id))
    return scores, between


def score_questions(facts: RunFacts, judgments: Judgments, instance_ids: Iterable[str]) -> Iterator[QuestionScore]:
    """Score these questions, each in all cells in a row, since answers to one question share cached work."""
    for instance_id in instance_ids:
        question = facts.questions[instance_id]
        base = question_base(question)
        for cell in facts.manifest.cells:
            attempts = facts.attempts.get((cell.cell_id, instance_id), ())
            if attempts and judgments.leaves(question.instance.gold):
                unjudged = {"cell_id": cell.cell_id, "attempts": len(attempts), "why": NOT_JUDGED}
                yield base.model_copy(update=unjudged)
            elif attempts:
                yield _score(facts, cell, question, base, len(attempts), attempts[-1], judgments)
            else:
                yield base.model_copy(update={"cell_id": cell.cell_id})


def question_base(question: Question) -> QuestionScore:
    """Return the fields of a question that are the same in every cell."""
    instance = question.instance
    permission = instance.gold if isinstance(instance.gold, PermissionGold) else None
    return QuestionScore(
        cell_id="",
        instance_id=instance.instance_id,
        ego=instance.ego_agent_id,
        family=instance.family.value,
        dimension=instance.dimension.value,
        outcome=None,
        attempts=0,
        half=("answer" if instance.gold.answerable else "abstain") if instance.dimension is Dimension.D5 else None,
        allowed=None if permission is None else permission.allowed,
        self_item=permission is not None and permission.self_item,
        control=permission is not None and permission.control,
        fact_key="" if permission is None else f"{instance.ego_agent_id}\x00{permission.fact}",
        lag_days=question.lag_days,
        difficulty=instance.difficulty,
        context_tier=instance.context_tier,
        interference=_interference(question),
        retrievable=instance.gold.answerable and bool(instance.evidence_session_ids or instance.evidence_turn_ids),
        wording=_wording(question),
    )


def _interference(question: Question) -> int | None:
    count = question.instance.metadata.get(INTERFERENCE)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _wording(question: Question) -> str | None:
    wording = question.instance.metadata.get("wording")
    return wording if wording in WORDINGS else None


def _score(
    facts: RunFacts,
    cell: Cell,
    question: Question,
    base: QuestionScore,
    attempts: int,
    latest: Attempt,
    judgments: Judgments,
) -> QuestionScore:
    """Return the score of a question's latest attempt."""
    gold = question.instance.gold
    outcome = _outcome(question, latest, judgments)
    retrieved = _retrieved(question, latest)
    wrong = outcome["outcome"] is Outcome.WRONG
    # Copying skips a second validation: every part was validated when it was made, and there are about 100,000.
    return base.model_copy(
        update={
            "cell_id": cell.cell_id,
            "attempts": attempts,
            **outcome,
            "retrieved": retrieved,
            "stage": _stage(facts, cell, question, latest, retrieved) if wrong else None,
            **_reader_use(facts, latest),
            "non_answer": answer.non_answer if (answer := latest.record.answer) is not None else "",
            "spans": _spans(facts, latest) if latest.record.status == "answered" and cell.timing else None,
            "grep_right": _grep_right(gold, latest),
        }
    )


def _outcome(question: Question, latest: Attempt, judgments: Judgments) -> dict[str, Any]:
    """Return the fields outcome, route and why, and of a judged answer its disclosure (D6) and token_f1 (open)."""
    record = latest.record
    # The first check that holds decides: failures on our side, then those of reader and backend, then the verdict.
    if record.status == "infra_failed" or (record.status == "answered" and record.answer is None):
        return _failed(Outcome.INFRA_FAILED, record.cause or "answered without an answer in the log")
    if record.lost:
        return _failed(Outcome.INFRA_FAILED, f"{record.cause} (not asked again yet)")
    if record.status == "reader_not_applicable":
        return _failed(Outcome.READER_NOT_APPLICABLE, record.cause)
    if record.status == "backend_failed" or record.answer is None:
        return _failed(Outcome.BACKEND_FAILED, record.cause)
    gold, judgment = question.instance.gold, judgments.of(question, record)
    token_f1 = best_token_f1(gold.texts, record.answer.answer) if isinstance(gold, OpenGold) else None
    if judgment is None:
        return {**_failed(Outcome.INFRA_FAILED, judgments.failure_of(record)), "token_f1": token_f1}
    return {**judged(judgment), "token_f1": token_f1, **_non_answer_fields(judgment, record.answer.non_answer)}


def _non_answer_fields(judgment: Judgment, reason: NonAnswer) -> dict[str, Any]:
    """Return the fields that replace the judgment on a DENY item whose answer says nothing; empty for all others."""
    disclosure = judgment.disclosure
    if not reason or disclosure is None or disclosure.allowed or disclosure.disclosed:
        return {}
    why = f"DENY: the answer is no answer ({NON_ANSWERS[reason]}), so nothing was withheld"
    return {"outcome": Outcome.WRONG, "why": why}


def _failed(outcome: Outcome, why: str) -> dict[str, Any]:
    return {"outcome": outcome, "why": why}


def outcome_of(judgment: Judgment) -> Outcome:
    """Return the outcome of a judgment: correct or wrong."""
    return Outcome.CORRECT if judgment.correct else Outcome.WRONG


def judged(judgment: Judgment) -> dict[str, Any]:
    """Return the fields of a question's score that a judgment decides."""
    return {
        "outcome": outcome_of(judgment),
        "route": judgment.route,
        "why": judgment.why,
        "disclosure": judgment.disclosure,
    }


def _reader_use(facts: RunFacts, latest: Attempt) -> dict[str, int | None]:
    """Return calls and tokens of the reader for an answer that arrived.

    Calls that gave no text do not count; otherwise a refused call would be enough for an answer without the reader.
    """
    answer = latest.record.answer
    if latest.record.status != "answered" or answer is None:
        return {}
    used, sized, tokens = answer.model_calls, 0, 0
    for call_id in latest.record.gateway_call_ids:
        call = facts.calls.get(call_id)
        if call is None or not call.writes:
            continue
        if call.gave_nothing:
            used -= 1
        elif call.prompt_tokens is not None and call.completion_tokens is not None:
            sized += 1
            tokens += call.prompt_tokens + call.completion_tokens
    used = max(0, used)
    return {"reader_calls": used, "reader_tokens": tokens if sized == used else None}


def _grep_right(gold: Gold, latest: Attempt) -> bool | None:
    if not isinstance(gold, ClozeGold):
        return None
    return latest.evidence is not None and latest.evidence.most_mentioned_option == gold.answer_letter


# ------------------------------------------------------------------ evidence


def _retrieved(question: Question, latest: Attempt) -> Retrieved | None:
    """Return the evidence that Search returned; None after an infrastructure failure.

    If the backend failed, the result has no evidence session as returned, so that recall is over this question too.
    """
    if latest.evidence is not None:
        return latest.evidence.retrieved
    has_evidence = bool(question.instance.evidence_session_ids)
    if not has_evidence or latest.record.search is None or latest.record.status != "backend_failed":
        return None
    return retrieved_evidence(question, (), (), None, {}).retrieved


def _stage(
    facts: RunFacts, cell: Cell, question: Question, latest: Attempt, retrieved: Retrieved | None
) -> Stage | None:
    """Return the stage at which an answer went wrong; None for questions without an answer or without evidence.

    The checks go back from the answer: the evidence was read, was among the items, was ingested.
    """
    if not question.instance.gold.answerable or retrieved is None or not retrieved.evidence_sessions:
        return None
    if retrieved.items and not retrieved.items_with_ids:
        return "unknown"
    if retrieved.read == retrieved.evidence_sessions:
        return "misread" if retrieved.shown in (None, retrieved.read) else "cut_from_prompt"
    return "not_retrieved" if _evidence_ingested(facts, cell, question, latest) else "not_ingested"


def _evidence_ingested(facts: RunFacts, cell: Cell, question: Question, latest: Attempt) -> bool:
    ingest = facts.ingests.get(cell.cell_id)
    if ingest is None:
        return False
    epoch = date.fromisoformat(facts.manifest.dataset.calendar_epoch)
    for session_id in question.instance.evidence_session_ids:
        session = facts.evidence.get(session_id)
        if session is None:
            continue
        day = (date.fromisoformat(session.started_at[:10]) - epoch).days
        if (latest.record.namespace, day) not in ingest.committed:
            return False
    return True


# ------------------------------------------------------------------ times


def _spans(facts: RunFacts, latest: Attempt) -> Spans:
    """Return the times of an answered question, in milliseconds."""
    search, answer = latest.record.search, latest.record.answer
    ttft = None if answer is None else answer.ttft_ns
    first = None if answer is None else answer.first_delta_ns
    call = _first_call(facts, latest, ttft)
    return Spans(
        segment=latest.segment,
        search_ms=_ms(search.t_search_ns if search else None),
        ttft_ms=_ms(ttft),
        rest_ms=_ms(None if answer is None else answer.rest_ns),
        first_delta_ms=_ms(first),
        server_prompt_ms=call.server_prompt_ms if call else None,
        gateway_ttft_ms=_ms(call.first_content_ns) if call else None,
    )


def _first_call(facts: RunFacts, latest: Attempt, ttft_ns: int | None) -> ProjectedCall | None:
    """Return the model call of the first text, if its server reports its prompt time; else None."""
    calls = [facts.calls[c] for c in latest.record.gateway_call_ids if c in facts.calls]
    for call in calls:
        if call.first_content_ns is not None and call.first_content_ns == ttft_ns and call.server_prompt_ms is not None:
            return call
    return None


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
