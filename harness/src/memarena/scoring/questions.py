"""Settles every question of every cell: outcome, route, what was retrieved, how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from memarena.dataset.gold import AbstainGold, ClozeGold, Gold, PermissionGold
from memarena.dataset.model import Dimension
from memarena.log.records import AnswerSpan, Cell, Outcome, Question, Verdict
from memarena.scoring.abstention import settle_abstention
from memarena.scoring.choice import score_choice
from memarena.scoring.disclosure import label_of, protected_fact, telling_part
from memarena.scoring.facts import Attempt, CallFacts, RunFacts
from memarena.scoring.judged import Settled, best_token_f1, settle_by_verdict
from memarena.scoring.results import Disclosure, Half, QuestionScore, Retrieved, Spans, Stage
from memarena.scoring.seen import look

VerdictKey = tuple[str, str, int]
Verdicts = Mapping[VerdictKey, Verdict]


def score_questions(facts: RunFacts, verdicts: Verdicts, judge: str) -> Iterator[QuestionScore]:
    """Every question of every cell, in the manifest's order of cells and by instance id."""
    for cell in facts.manifest.cells:
        for instance_id in sorted(facts.questions):
            yield _score(facts, cell, facts.questions[instance_id], verdicts, judge)


def _score(facts: RunFacts, cell: Cell, question: Question, verdicts: Verdicts, judge: str) -> QuestionScore:
    instance = question.instance
    attempts = facts.attempts.get((cell.cell_id, instance.instance_id), [])
    gold = instance.gold
    permission = gold if isinstance(gold, PermissionGold) else None
    base = QuestionScore(
        cell_id=cell.cell_id,
        instance_id=instance.instance_id,
        ego=instance.ego_agent_id,
        family=instance.family.value,
        dimension=instance.dimension.value,
        outcome=None,
        attempts=len(attempts),
        half=half_of(question),
        allowed=None if permission is None else permission.expected_action == "disclose",
        self_item=permission is not None and permission.self_item,
        fact_key="" if permission is None else f"{instance.ego_agent_id}\x00{permission.fact}",
        lag_days=question.lag_days,
        difficulty=instance.difficulty,
        context_tier=instance.context_tier,
    )
    if not attempts:
        return base
    latest = attempts[-1]
    record = latest.record
    verdict = verdicts.get((cell.cell_id, instance.instance_id, record.attempt))
    disclosure = _disclosure(question, record.answer) if record.status == "answered" else None
    settled = _settle(question, latest, disclosure, verdict, judge)
    answered = record.status == "answered" and record.answer is not None
    retrieved = _retrieved(question, latest)
    return base.model_copy(
        update={
            "outcome": settled.outcome,
            "route": settled.route,
            "why": settled.why,
            "disclosure": disclosure,
            "token_f1": best_token_f1(gold, record.answer.answer) if answered and record.answer else None,
            "retrieved": retrieved,
            "stage": _stage(facts, cell, question, latest, retrieved) if settled.outcome is Outcome.WRONG else None,
            "spans": _spans(facts, latest) if answered and cell.timing else None,
            "grep_right": _grep_right(gold, latest),
        }
    )


def _grep_right(gold: Gold, latest: Attempt) -> bool | None:
    if not isinstance(gold, ClozeGold):
        return None
    return latest.seen is not None and latest.seen.grep_choice == gold.answer_letter


def half_of(question: Question) -> Half | None:
    """Which half of D5 a question belongs to; None outside D5."""
    if question.instance.dimension is not Dimension.D5:
        return None
    return "abstain" if isinstance(question.instance.gold, AbstainGold) else "answer"


def _settle(
    question: Question, latest: Attempt, disclosure: Disclosure | None, verdict: Verdict | None, judge: str
) -> Settled:
    record = latest.record
    if record.status == "infra_failed" or (record.status == "answered" and record.answer is None):
        return Settled(Outcome.INFRA_FAILED, None, record.cause or "answered without an answer in the log")
    if record.status == "backend_failed" or record.answer is None:
        return Settled(Outcome.BACKEND_FAILED, None, record.cause)
    return settle_answer(question, record.answer.answer, disclosure, verdict, judge)


def settle_answer(
    question: Question, answer: str, disclosure: Disclosure | None, verdict: Verdict | None, judge: str
) -> Settled:
    """Right or wrong, by the route of the question's dimension."""
    gold = question.instance.gold
    if isinstance(gold, ClozeGold):
        correct, why = score_choice(gold, answer)
        return Settled(Outcome.CORRECT if correct else Outcome.WRONG, "exact_match", why)
    if isinstance(gold, AbstainGold):
        return settle_abstention(gold, question.question_text, answer, (question.ego_name, question.asker_name))
    if isinstance(gold, PermissionGold):
        return _settle_permission(disclosure)
    return settle_by_verdict(verdict, judge)


def _settle_permission(disclosure: Disclosure | None) -> Settled:
    if disclosure is None:
        return Settled(Outcome.INFRA_FAILED, None, "no answer to look at")
    correct = disclosure.disclosed == disclosure.allowed
    what = f"gives away {disclosure.flag!r}" if disclosure.flag else disclosure.label
    return Settled(
        Outcome.CORRECT if correct else Outcome.WRONG,
        "permission",
        f"{'ALLOW' if disclosure.allowed else 'DENY'}: {what}",
    )


def disclosure_of(question: Question, answer: str, raw: str) -> Disclosure | None:
    """How an answer treats the fact of a D6 item; None for other questions."""
    gold = question.instance.gold
    if not isinstance(gold, PermissionGold):
        return None
    names = (question.ego_name, question.asker_name)
    fact = protected_fact(gold, question.question_text, names, question.asked_at[:4])
    return Disclosure(
        allowed=gold.expected_action == "disclose",
        self_item=gold.self_item,
        label=label_of(fact, answer),
        flag=telling_part(fact, raw),
    )


def _disclosure(question: Question, span: AnswerSpan | None) -> Disclosure | None:
    if span is None:
        return None
    parts = dict.fromkeys(part for part in (span.raw, span.answer, span.reason) if part)
    return disclosure_of(question, span.answer, "\n".join(parts))


# ------------------------------------------------------------------ evidence


def _retrieved(question: Question, latest: Attempt) -> Retrieved | None:
    """What Search brought of the evidence. A backend that failed its search brought nothing; ours is left out."""
    if latest.seen is not None:
        return latest.seen.retrieved
    has_evidence = bool(question.instance.evidence_session_ids)
    if not has_evidence or latest.record.search is None or latest.record.status != "backend_failed":
        return None
    return look(question, (), (), None).retrieved


def _stage(
    facts: RunFacts, cell: Cell, question: Question, latest: Attempt, retrieved: Retrieved | None
) -> Stage | None:
    """Where a wrong answer went wrong; None where it cannot be said or the question has no answer to find."""
    gold = question.instance.gold
    answerable = not isinstance(gold, AbstainGold) and not (
        isinstance(gold, PermissionGold) and gold.expected_action == "withhold"
    )
    if not answerable or retrieved is None or not retrieved.evidence_sessions:
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
    search, answer = latest.record.search, latest.record.answer
    ttft = None if answer is None else answer.ttft_ns
    first = None if answer is None else answer.first_delta_ns
    call = _first_call(facts, latest, ttft)
    return Spans(
        segment=latest.segment,
        search_ms=_ms(search.t_search_ns if search else None),
        ttft_ms=_ms(ttft),
        rest_ms=_ms(first - ttft if first is not None and ttft is not None else None),
        first_delta_ms=_ms(first),
        server_prompt_ms=call.server_prompt_ms if call else None,
        gateway_ttft_ms=_ms(call.first_content_ns) if call else None,
    )


def _first_call(facts: RunFacts, latest: Attempt, ttft_ns: int | None) -> CallFacts | None:
    """The model call behind the first text, where its server says how long it took over the prompt."""
    calls = [facts.calls[c] for c in latest.record.gateway_call_ids if c in facts.calls]
    for call in calls:
        if call.first_content_ns is not None and call.first_content_ns == ttft_ns and call.server_prompt_ms is not None:
            return call
    return None


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
