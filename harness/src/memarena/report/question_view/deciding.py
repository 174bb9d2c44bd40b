"""Builds the parts of a question view that explain an outcome: decisions, steps of the fact, verdicts of judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memarena_dataset.gold import PermissionGold

from memarena.log.records import BucketNamed, EvidenceSession, JudgeRecord, Question, Verdict
from memarena.report.layout import counted
from memarena.report.question_view.records import Decision, JudgmentView, WayStep
from memarena.scoring.results import QuestionScore


def decisions(score: QuestionScore) -> Iterator[Decision]:
    """Yield route, stage and token-F1, as far as known; none of them reveals the right answer."""
    if score.route:
        yield Decision(f"decided by {score.route.replace('_', ' ')}")
    if score.stage:
        yield Decision(f"went wrong: {score.stage.replace('_', ' ')}", stage=True)
    if score.token_f1 is not None:
        yield Decision(f"token-F1 {score.token_f1:.2f}")


def way_of(question: Question, evidence: Mapping[str, EvidenceSession], score: QuestionScore) -> Iterator[WayStep]:
    """Yield the steps of a fact from the conversation to the answer, each with whether it succeeded.

    The steps: stated in a session, ingested, asked for, returned by Search, in the prompt, answered. The first step
    that failed is where the memory or its reader lost the fact.

    Args:
        question: the question, with the ids of its evidence sessions and its gold.
        evidence: sessions by id; those missing are skipped.
        score: score of the answer.
    """
    names = question.instance.evidence_session_ids
    sessions = sorted((evidence[name] for name in names if name in evidence), key=lambda session: session.started_at)
    if not sessions:
        yield WayStep(None, "Nothing was ever said of it, or the log does not hold where.")
    for session in sessions:
        yield WayStep(True, f"{session.started_at[:10]}: said in {session.session_id}")
    if sessions and score.stage not in (None, "unknown"):
        ingested = score.stage != "not_ingested"
        yield WayStep(ingested, "The day was given to the memory." if ingested else "The day did not reach the memory.")
    yield WayStep(None, f"Asked after day {question.day}.")
    retrieved = score.retrieved
    if retrieved is not None and retrieved.evidence_sessions:
        all_retrieved = retrieved.found == retrieved.evidence_sessions
        first = f", the first as item {retrieved.first_rank}" if retrieved.first_rank is not None else ""
        total = f"{retrieved.found} of {counted(retrieved.evidence_sessions, 'evidence session')}"
        yield WayStep(all_retrieved, f"Search returned {total}{first}, in {counted(retrieved.items, 'item')}.")
        if retrieved.shown is not None:
            text = f"The prompt held {retrieved.shown} of the {retrieved.found} found."
            yield WayStep(retrieved.shown == retrieved.found, text)
    outcome = score.outcome.value if score.outcome else ""
    verdict_text = {"correct": "Answered right.", "wrong": "Answered wrong."}.get(outcome, "No answer.")
    stage = f" It went wrong here: {score.stage.replace('_', ' ')}." if score.stage else ""
    yield WayStep(outcome == "correct", verdict_text + stage)
    if isinstance(question.instance.gold, PermissionGold):
        yield WayStep(None, "A question of permission: what is right depends on who asks.")


def judgments(records: Iterable[JudgeRecord], score: QuestionScore, latest_attempt: int) -> Iterator[JudgmentView]:
    """Yield the verdict of each judge, and for a D6 item the label of behaviour of the raw output."""
    for record in records:
        attempt_note = "" if record.attempt == latest_attempt else f", attempt {record.attempt + 1}"
        attempt_note += f", repeat {record.repeat}" if record.repeat else ""
        yield _judgment(record, attempt_note)
    if score.disclosure is not None:
        label = score.disclosure.label.replace("_", " ")
        result = f"{label}, labelled by {score.disclosure.labelled_by}"
        yield JudgmentView("behaviour", "", result, f"the raw output {score.disclosure.telling}")


def _judgment(record: JudgeRecord, at: str) -> JudgmentView:
    """Convert a record of a judge; ``at`` names its attempt and repeat unless they are those that count."""
    if record.kind == "judging_failed":
        result = f"failed ({record.task}){at}: {record.cause.replace('_', ' ')}"
        reply = (f"its reply: {record.reply}",) if record.reply else ()
        return JudgmentView(record.judge, record.judge_version, result, record.message, reply)
    if record.kind == "bucket":
        result = f"withheld because: {record.bucket.replace('_', ' ')}{at}"
    else:
        label = f", behaviour {record.label.replace('_', ' ')}" if record.label else ""
        word = "right" if record.correct else "wrong"
        result = f"{word} by {record.route.replace('_', ' ')}, score {record.score:.2f}{label}{at}"
    decided_by = (f"decided instead by the {record.handed_over}",) if record.handed_over else ()
    model = (f"model {_model(record)}",) if record.model else ()
    return JudgmentView(record.judge, record.judge_version, result, record.reason, (*decided_by, *model))


def _model(record: Verdict | BucketNamed) -> str:
    parts = [record.model]
    if record.kind == "verdict":
        parts += [f"T = {record.temperature:g}"] if record.temperature is not None else []
        parts += [f"seed {record.seed}"] if record.seed is not None else []
    if (use := record.usage) is not None:
        parts.append(counted(use.calls, "call"))
        if use.prompt_tokens is not None:
            parts.append(f"{use.prompt_tokens:,} + {use.completion_tokens or 0:,} tokens")
        if use.usd is not None:
            parts.append(f"${use.usd:.5f}")
    return ", ".join(parts)
