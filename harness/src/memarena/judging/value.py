"""The value judge: typed gold values against the claims of an answer, without any language model.

The answer is unwrapped (``plain_text``), read into claims (``claims``) and compared with the gold (``compare``). Where
the gold is text only, :mod:`memarena.judging.token_f1` decides, and the route says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from memarena_dataset.gold import ConflictGold, CounterfactualGold, Gold
from memarena_dataset.values import OrderValue, SetValue, Value
from memarena_dataset.values.reading import ReadText, read_text

from memarena.judging.errors import JudgeError
from memarena.judging.judgment import Judgment, OpenGold, wrong
from memarena.judging.reasons import ReasonCode
from memarena.judging.token_f1 import rule_by_token_f1
from memarena.judging.too_much import is_too_much
from memarena.judging.typed_value import compare
from memarena.judging.typed_value.claims import read_statement
from memarena.judging.typed_value.commitment import Wording
from memarena.judging.typed_value.orders import rule_order
from memarena.judging.typed_value.plain_text import plain_text, without_speaker
from memarena.judging.typed_value.question import Asked, day_of, scalars
from memarena.judging.typed_value.sets import rule_set
from memarena.log.records import EvidenceSession, Question

JUDGE_NAME = "value"


def is_judged(gold: Gold) -> TypeGuard[OpenGold]:
    """Whether a gold is this judge's business: open answers, not options, abstention or permission."""
    return isinstance(gold, OpenGold)


def judge_answer(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> Judgment:
    """Judge one answer. Pure: the same input gives the same judgment.

    Args:
        question: with its gold, which must be of an open family (D2, D3, D4, the answer half of D5, extensions).
        evidence: the question's evidence sessions; people and words in them are known.
        answer: the parsed answer.

    Raises:
        JudgeError: the gold is not of an open family.
    """
    gold = question.instance.gold
    if not is_judged(gold):
        raise JudgeError(f"{question.instance.instance_id}: the value judge does not judge {gold.kind} questions")
    required = required_values(gold)
    if not answer.strip():
        return wrong("value" if required else "token_f1", ReasonCode.NO_ANSWER)
    if required and is_too_much(answer, asked_of(question, tuple(evidence)).turns):
        return wrong("value", ReasonCode.TOO_MUCH, said=f"{len(answer.split())} words")
    if not required:
        return rule_by_token_f1(question, gold, answer, day_of(question.asked_at))
    asked = asked_of(question, tuple(evidence))
    read = _read(asked, answer)
    for value in required:
        if isinstance(value, OrderValue):
            judgment = rule_order(value, asked, read.text)
        elif isinstance(value, SetValue):
            judgment = rule_set(value, asked, read)
        else:
            continue
        if not judgment.correct or len(required) == 1:
            return judgment
    return compare.rule_claims(asked, read_statement(asked, read))


def wording_of(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> Wording | None:
    """What the model of commitment sees of an answer; None where it is settled without the model."""
    gold = question.instance.gold
    if not is_judged(gold) or not answer.strip() or not scalars(required_values(gold)):
        return None
    asked = asked_of(question, tuple(evidence))
    statement = read_statement(
        asked, read_text(without_speaker(plain_text(answer, asked.text), asked.people), asked.today)
    )
    return None if compare.fault_of(asked, statement) else compare.wording_of(asked, statement)


def _read(asked: Asked, answer: str) -> ReadText:
    text = without_speaker(plain_text(answer, asked.text), asked.people)
    return read_text(text, asked.today)


def required_values(gold: Gold) -> tuple[Value, ...]:
    """Typed values that a right answer states; empty where the gold is not fully typed."""
    if isinstance(gold, ConflictGold):
        return (*gold.values, *gold.changed_values) if gold.values and gold.changed_values else ()
    return gold.values


def asked_of(question: Question, evidence: tuple[EvidenceSession, ...]) -> Asked:
    """A question of an open family as read; the latest are kept, since many cells answer the same question."""
    key = (question.instance.instance_id, question.question_text, id(question), len(evidence))
    known = _READ.get(key)
    if known is not None and known.question is question and known.evidence == evidence:
        return known
    gold = question.instance.gold
    assert is_judged(gold)
    asked = Asked(
        question,
        evidence,
        gold,
        scalars(gold.values),
        scalars(gold.altered_values) if isinstance(gold, CounterfactualGold) else (),
        scalars(gold.changed_values) if isinstance(gold, ConflictGold) else (),
    )
    if len(_READ) >= _KEPT:
        _READ.clear()
    _READ[key] = asked
    return asked


_KEPT = 4096
_READ: dict[tuple[str, str, int, int], Asked] = {}
