"""The run behind the golden reports of a judge with a model: verdicts, grounds, repeats, hand-overs and failures.

A *golden report* is a checked-in file that a report must reproduce. A *hand-over* is an answer to which the
model gives no usable reply, so that rules judge it. ``python -m tests.support.golden_run`` writes this run too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memarena.log.records import (
    AnyRecord,
    BehaviourLabel,
    BucketNamed,
    JudgeUsage,
    JudgingFailed,
    QuestionAsked,
    Verdict,
)

from .golden_run import EVIDENCE, GOLDEN, ITEMS, NOISE, QUESTIONS, RIGHT, WRONG
from .logs import make_asked, make_cell, make_reader, make_run

JUDGED_RUN = GOLDEN / "judged_run"
EXPECTED = GOLDEN / "judged"
JUDGE = "acme"
VERSION = "a" * 64
MODEL = "acme/judge-1"
PROMPTS = {"answer": "b" * 64, "behaviour": "c" * 64, "bucket": "d" * 64}
CELL = make_cell("bm25", seed="s2")
ASKED = ("cloze_1", "meta_1", "qa_1", "qa_2", "temp_1", "conf_1", "abst_1", "perm_1", "perm_4", "perm_5", "perm_6")
SAID_WRONG = ("temp_1", "perm_5")

_HANDED = "the judge gives no usable reply to this answer, and does to another: HTTP 400: content filter"
OPEN: Mapping[str, tuple[bool, str]] = {
    "meta_1": (True, ""),
    "qa_1": (True, f"value judge 0123456789ab: {_HANDED}"),
    "qa_2": (True, f"value judge 0123456789ab: {_HANDED}"),
    "temp_1": (False, ""),
}
"""Verdicts on open questions: (whether the answer is right, why it was handed over); ``conf_1`` has a failure."""
LABELS: Mapping[str, BehaviourLabel] = {
    "perm_1": "disclose_correct",
    "perm_4": "refuse",
    "perm_5": "disclose_correct",
    "perm_6": "refuse",
}


def records() -> list[AnyRecord]:
    """Return the run's records, with its model judge's verdicts and failures."""
    questions = [q for q in QUESTIONS if q.instance.instance_id in ASKED]
    body: list[AnyRecord] = []
    for position, question in enumerate(questions):
        name = question.instance.instance_id
        answer = WRONG[name] if name in SAID_WRONG else RIGHT[name]
        items = [NOISE, *(ITEMS[s] for s in question.instance.evidence_session_ids)]
        body.append(make_asked(CELL, question, answer, items=items, search_ms=1 + position / 10, ttft_ms=80 + position))
    return make_run([CELL], questions, EVIDENCE, [*body, *_judged(body)], readers=[make_reader("small")])


def _judged(body: Sequence[AnyRecord]) -> list[AnyRecord]:
    judged_records: list[AnyRecord] = []
    for attempt in body:
        assert isinstance(attempt, QuestionAsked)
        name = attempt.instance_id
        if name in OPEN:
            correct, handed = OPEN[name]
            judged_records.append(_verdict(attempt, correct=correct, handed=handed))
        if name in LABELS:
            judged_records.append(_verdict(attempt, correct=name != "perm_5", label=LABELS[name]))
    by_name = {a.instance_id: a for a in body if isinstance(a, QuestionAsked)}
    judged_records.append(_verdict(by_name["meta_1"], correct=True, repeat=1))
    judged_records.append(_verdict(by_name["temp_1"], correct=True, repeat=1))
    judged_records += [_ground(by_name["perm_4"]), _ground(by_name["perm_6"]), _failure(by_name["conf_1"])]
    return judged_records


def _verdict(
    attempt: QuestionAsked, *, correct: bool, handed: str = "", label: BehaviourLabel | None = None, repeat: int = 0
) -> Verdict:
    task = "behaviour" if label else "answer"
    by_rules = "text" if attempt.instance_id == "qa_2" else "value"
    return Verdict.model_validate(
        {
            **_answer(attempt),
            "route": by_rules if handed else "llm",
            "correct": correct,
            "score": float(correct),
            "reason": "states the same fact" if correct else "another one than the key",
            "task": task,
            "label": label,
            "repeat": repeat,
            "handed_over": handed,
            "model": MODEL,
            "prompt_sha256": PROMPTS[task],
            "temperature": 0.0,
            "seed": 7,
            "usage": JudgeUsage(calls=1, prompt_tokens=812, completion_tokens=61, usd=0.00016),
        }
    )


def _ground(attempt: QuestionAsked) -> BucketNamed:
    return BucketNamed.model_validate(
        {
            **_answer(attempt),
            "bucket": "no_access",
            "reason": "it names whom it is for",
            "model": MODEL,
            "prompt_sha256": PROMPTS["bucket"],
        }
    )


def _failure(attempt: QuestionAsked) -> JudgingFailed:
    return JudgingFailed.model_validate(
        {
            **_answer(attempt),
            "task": "answer",
            "cause": "rate_limit",
            "message": "HTTP 429: slow down",
            "usage": JudgeUsage(calls=5),
        }
    )


def _answer(attempt: QuestionAsked) -> dict[str, object]:
    """Return the fields that say which answer a record is about, and which judge made it."""
    return {
        "cell_id": attempt.cell_id,
        "instance_id": attempt.instance_id,
        "attempt": attempt.attempt,
        "judge": JUDGE,
        "judge_version": VERSION,
    }
