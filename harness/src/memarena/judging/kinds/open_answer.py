"""Open answers: typed gold values against the claims of an answer, without any language model.

The answer is unwrapped (``plain_text``), read into claims (``claims``) and compared with the gold (``compare``). Where
the gold is text only, :mod:`memarena.judging.token_f1` decides, and the route says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from memarena_dataset.gold import OpenGold
from memarena_dataset.values import OrderValue, SetValue
from memarena_dataset.values.reading import ReadText, read_text

from memarena.judging.judgment import Code, Judgment, wrong
from memarena.judging.kinds.kind import Kind
from memarena.judging.token_f1 import rule_by_token_f1
from memarena.judging.too_much import is_too_much
from memarena.judging.typed_value import compare
from memarena.judging.typed_value.claims import read_statement
from memarena.judging.typed_value.commitment import Wording
from memarena.judging.typed_value.orders import rule_order
from memarena.judging.typed_value.plain_text import plain_text, without_speaker
from memarena.judging.typed_value.question import Asked, asked_of, day_of, scalars
from memarena.judging.typed_value.sets import rule_set
from memarena.log.records import EvidenceSession, Question

Open = TypeVar("Open", bound=OpenGold)


class OpenAnswer(Kind[Open]):
    """Base of the kinds with an open answer."""

    decided_by = "verdict"
    task = "answer"
    shows_evidence = True

    def judge(
        self, question: Question, gold: Open, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """By the gold's typed values; by its text where it is not fully typed. People in the evidence are known."""
        required = gold.required_values
        if not answer.strip():
            return wrong("value" if required else "token_f1", Code.NO_ANSWER)
        if not required:
            return rule_by_token_f1(question, gold, answer, day_of(question.asked_at))
        asked = asked_of(question, tuple(evidence))
        if is_too_much(answer, asked.turns):
            return wrong("value", Code.TOO_MUCH, said=f"{len(answer.split())} words")
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

    def constant(self, gold: Open) -> str:
        """The first right text."""
        return gold.texts[0]


def wording_of(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> Wording | None:
    """What the model of commitment sees of an answer; None where it is settled without the model."""
    gold = question.instance.gold
    if not isinstance(gold, OpenGold) or not answer.strip() or not scalars(gold.required_values):
        return None
    asked = asked_of(question, tuple(evidence))
    statement = read_statement(asked, _read(asked, answer))
    return None if compare.fault_of(asked, statement) else compare.wording_of(asked, statement)


def _read(asked: Asked, answer: str) -> ReadText:
    text = without_speaker(plain_text(answer, asked.text), asked.people)
    return read_text(text, asked.today)
