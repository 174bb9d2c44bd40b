"""Lists answers for `memarena show`, one line per question: the wrong and failed ones, or all that a figure counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from memarena.log.records import BehaviourLabel, Bucket, Outcome
from memarena.report.layout import Document, Section
from memarena.scoring.breakdowns import interference_bucket, lag_bucket
from memarena.scoring.permission import kept_because
from memarena.scoring.results import QuestionScore, Stage
from memarena.scoring.run_facts import RunFacts

ANSWER_WIDTH = 60
"""Characters of an answer that a line shows, at most."""


@dataclass(frozen=True)
class Filter:
    """Which questions to list; None does not filter.

    The figures of a report are over such selections, so that a command can list the answers behind each.
    """

    cells: frozenset[str] | None = None
    family: str | None = None
    dimension: str | None = None
    outcome: str | None = None
    stage: str | None = None
    """Stage at which a wrong answer went wrong, or ``any``."""
    action: str | None = None
    """Right action on a D6 item: ``deny``, ``allow``, or, in no figure, ``self`` (asked by the owner), ``control``."""
    label: str | None = None
    """Behaviour on a D6 item: ``disclosed`` if flag or label says so; every other label is also ``kept``."""
    ground: str | None = None
    """Reason why the fact of a DENY item was withheld, such as ``no_access``."""
    lag: str | None = None
    difficulty: str | None = None
    tier: str | None = None
    interference: str | None = None
    wording: str | None = None

    def admits(self, question: QuestionScore) -> bool:
        """Whether the filter selects this question."""
        return (self.cells is None or question.cell_id in self.cells) and all(
            value is None or value in values_of(question, name) for name, value in self._values().items()
        )

    def _values(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in FILTERS}


FILTERS = (
    "family", "dimension", "outcome", "stage", "action", "label", "ground", "lag", "difficulty", "tier", "interference",
    "wording",
)  # fmt: skip
"""Names of the filters other than the cell."""
WORDS: dict[str, tuple[str, ...]] = {
    "outcome": (*(outcome.value for outcome in Outcome), "failed"),
    "stage": (*get_args(Stage), "any"),
    "action": ("deny", "allow", "self", "control"),
    "label": ("disclosed", "kept", *(label for label in get_args(BehaviourLabel) if label != "disclose_correct")),
    "ground": get_args(Bucket),
}
"""All valid values of some filters: a value that no answer has gives an empty list, not an error."""


def values_of(question: QuestionScore, name: str) -> tuple[str, ...]:
    """Return a question's values for a filter: first the specific one, then the broader ones, such as ``failed``."""
    value: str | None
    if name in _SEVERAL:
        return _SEVERAL[name](question)
    if name == "lag":
        value = lag_bucket(question.lag_days)
    elif name == "interference":
        value = interference_bucket(question.interference)
    elif name == "ground":
        value = kept_because(question)
    else:
        value = getattr(question, "context_tier" if name == "tier" else name)
    return () if value is None else (str(value),)


def _outcome(question: QuestionScore) -> tuple[str, ...]:
    if question.outcome is None:
        return ()
    failed = question.outcome not in (Outcome.CORRECT, Outcome.WRONG)
    return (question.outcome.value, *(("failed",) if failed else ()))


def _stage(question: QuestionScore) -> tuple[str, ...]:
    return (question.stage, "any") if question.stage else ()


def _action(question: QuestionScore) -> tuple[str, ...]:
    if question.dimension != "D6" or question.allowed is None:
        return ()
    if question.outside_f1:
        return ("self",) if question.self_item else ("control",)
    return ("allow",) if question.allowed else ("deny",)


def _behaviour(question: QuestionScore) -> tuple[str, ...]:
    if question.disclosure is None:
        return ()
    return ("disclosed",) if question.disclosure.disclosed else (question.disclosure.label, "kept")


_SEVERAL: dict[str, Callable[[QuestionScore], tuple[str, ...]]] = {
    "outcome": _outcome,
    "stage": _stage,
    "action": _action,
    "label": _behaviour,
}
"""Filters for which a question may have several values."""


def failures_document(facts: RunFacts, questions: Sequence[QuestionScore], chosen: Filter) -> Document:
    """Return a document of the wrong and failed questions that the filter selects, in the order of ``questions``."""
    questions_asked = [q for q in questions if q.outcome is not None and chosen.admits(q)]
    not_right = [q for q in questions_asked if q.outcome is not Outcome.CORRECT]
    summary = f"{len(not_right):,} of {len(questions_asked):,} questions asked were not answered right"
    return Document("Failures", (Section(summary, _lines(facts, not_right), one_line_each=True),))


def answers_document(facts: RunFacts, questions: Sequence[QuestionScore], chosen: Filter) -> Document:
    """Return a document of all questions that the filter selects; the count in its title is the figure of the report.

    D6 items asked by the owner, controls and extensions are in no share of a report: they are listed, but counted
    separately.
    """
    selected = [q for q in questions if q.outcome is not None and chosen.admits(q)]
    counted = [q for q in selected if not q.outside_f1 and q.dimension != "X1"]
    if not counted or chosen.outcome or chosen.stage or (chosen.label and not chosen.action):
        counted = selected
    right = sum(q.correct for q in counted)
    share = f" ({100 * right / len(counted):.1f}%)" if counted else ""
    infra = sum(q.outcome is Outcome.INFRA_FAILED for q in counted)
    infra_note = f", {infra:,} with infrastructure failures, which count as neither" if infra else ""
    uncounted_note = (
        f"; also {len(selected) - len(counted):,} in no share: the owner's own D6 items, controls, extensions"
    )
    summary = f"{right:,} of {len(counted):,} questions asked were answered right{share}{infra_note}"
    summary += uncounted_note if len(counted) < len(selected) else ""
    return Document("Answers", (Section(summary, _lines(facts, selected), one_line_each=True),))


def answers_json(facts: RunFacts, questions: Sequence[QuestionScore], chosen: Filter, *, failures: bool) -> str:
    """Return the selected questions as a JSON list of score records, each with the question's text and the full answer.

    ``failures``: only those without a right answer.
    """
    records = []
    for question in questions:
        if question.outcome is None or not chosen.admits(question) or (failures and question.correct):
            continue
        attempts = facts.attempts.get((question.cell_id, question.instance_id), [])
        answer = attempts[-1].record.answer if attempts else None
        wording = facts.questions[question.instance_id].question_text
        extra = {"question": wording, "answer": answer.answer if answer else None}
        records.append({**question.model_dump(mode="json"), **extra})
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"


def _lines(facts: RunFacts, questions: Sequence[QuestionScore]) -> tuple[str, ...]:
    table = [_columns(facts, q) for q in questions]
    widths = [max(len(row[i]) for row in table) for i in range(4)] if table else []
    return tuple(_line(row, widths) for row in table)


def _columns(facts: RunFacts, question: QuestionScore) -> tuple[str, ...]:
    outcome = question.outcome.value.replace("_", " ") if question.outcome else ""
    stage = f"{question.stage.replace('_', ' ')}: " if question.stage else ""
    answer = _answer(facts, question)
    without_reader = "§ no call of the reader: " if question.reader_calls == 0 else ""
    reason = " ".join(f"{without_reader}{stage}{question.why}".split())
    return outcome, question.cell_id, question.instance_id, question.family, reason, f"“{answer}”" if answer else ""


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    columns = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
    return "  ".join([*columns, *row[len(widths) :]]).rstrip()


def _answer(facts: RunFacts, question: QuestionScore) -> str:
    attempts = facts.attempts.get((question.cell_id, question.instance_id), [])
    answer = attempts[-1].record.answer if attempts else None
    text = " ".join(answer.answer.split()) if answer else ""
    return text if len(text) <= ANSWER_WIDTH else text[: ANSWER_WIDTH - 1] + "…"
