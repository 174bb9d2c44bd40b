"""Judges open answers without a language model: typed gold values against the claims of an answer.

The answer is unwrapped (``plain_text``), read into claims (``claims``) and compared with the gold (``compare``). If the
gold is only text, :mod:`memarena.judging.text_gold` decides, and the judgment's route is ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from memarena_dataset.gold import OpenGold
from memarena_dataset.values import AmountValue, OrderValue, SetValue
from memarena_dataset.values.amounts import canonical_unit, is_known_unit
from memarena_dataset.values.match import occurrences
from memarena_dataset.values.mentions import AmountMention
from memarena_dataset.values.reading import ReadText, read_text

from memarena.judging.judgment import Code, Judgment, wrong
from memarena.judging.kinds.kind import Kind
from memarena.judging.text_gold.judge import judge_text
from memarena.judging.too_much import is_too_much
from memarena.judging.typed_value import compare
from memarena.judging.typed_value.claims import read_statement
from memarena.judging.typed_value.commitment import Wording
from memarena.judging.typed_value.orders import rule_order
from memarena.judging.typed_value.plain_text import plain_text, with_antecedents, without_speaker
from memarena.judging.typed_value.question import OpenQuestion, describe, open_question, scalars
from memarena.judging.typed_value.sets import rule_set
from memarena.log.records import EvidenceSession, Question

_IN_BRACKETS = re.compile(
    r"\s*\((?:(?:about|roughly|approximately|approx\.?|around|circa|or|nearly|that is|equals|some|~|≈|=),? ?)*"
    r"[$€£¥]?\d[\d.,]*\s?[a-z€£$¥]*\)",
    re.IGNORECASE,
)
"""An amount in brackets: ``(about 130 dollars)``."""
Open = TypeVar("Open", bound=OpenGold)


class OpenAnswer(Kind[Open]):
    """Base of the kinds with an open answer."""

    decided_by = "verdict"
    task = "answer"
    shows_evidence = True

    def judge(
        self, question: Question, gold: Open, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Judge by the gold's typed values, or by its text if it is not fully typed."""
        required = gold.required_values
        if not answer.strip():
            return wrong("value" if required else "text", Code.NO_ANSWER)
        with_gold = open_question(question, tuple(evidence))
        if is_too_much(answer, with_gold.turns):
            return wrong("value" if required else "text", Code.TOO_MUCH, words=f"{len(answer.split())} words")
        if not required:
            return self.judge_text(question.question_text, gold, answer)
        read = _read_answer(with_gold, answer)
        for value in required:
            if isinstance(value, OrderValue):
                judgment = rule_order(value, with_gold, read.text)
            elif isinstance(value, SetValue):
                judgment = rule_set(value, with_gold, read)
            else:
                continue
            if not judgment.correct or len(required) == 1:
                return judgment
        if with_gold.required and not occurrences(with_gold.required[0], read, with_gold.unit):
            # Nothing in its wording makes up for that; most wrong answers end here.
            return wrong("value", Code.MISSING_VALUE, value=describe(with_gold.required[0]))
        return compare.rule_claims(with_gold, read_statement(with_gold, read))

    def judge_text(self, question: str, gold: Open, answer: str) -> Judgment:
        """Judge by the gold's texts, of which the answer has to state one."""
        return judge_text(question, gold.texts, answer)

    def constant(self, gold: Open) -> str:
        """Return the first right text."""
        return gold.texts[0]


def wording_of(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> Wording | None:
    """Return the wording that the commitment model scores; None if the answer is decided without the model."""
    gold = question.instance.gold
    if not isinstance(gold, OpenGold) or not answer.strip() or not scalars(gold.required_values):
        return None
    with_gold = open_question(question, tuple(evidence))
    statement = read_statement(with_gold, _read_answer(with_gold, answer))
    return None if compare.fault_of(with_gold, statement) else compare.wording_of(with_gold, statement)


def _read_answer(question: OpenQuestion, answer: str) -> ReadText:
    text = with_antecedents(without_speaker(plain_text(answer, question.text), question.people))
    return read_text(_without_conversions(question, text), question.today)


def _without_conversions(question: OpenQuestion, text: str) -> str:
    """Return the text without amounts in another known unit in brackets: ``(about 130 dollars)``.

    No table converts the gold's unit into such a unit.
    """
    units = {value.unit for value in question.required if isinstance(value, AmountValue) and value.unit}

    def converted(match: re.Match[str]) -> str:
        sums = [m for m in read_text(match.group()).mentions if isinstance(m, AmountMention)]
        other = len(sums) == 1 and sums[0].unit is not None and is_known_unit(sums[0].unit)
        gold_units = {canonical_unit(unit) for unit in units}
        return "" if other and sums[0].unit not in gold_units else match.group()

    return _IN_BRACKETS.sub(converted, text) if units else text
