"""Does an answer decline, or give its value all the same? What the detector of declining sees, beside the gold.

The detector (:mod:`memarena.text.stance`) reads an answer without knowing what is asked for. An answer that opens with
what it has not got, denies a rival or speaks of its sources may look like declining and yet state the value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memarena.dataset.gold import ConflictGold, CounterfactualGold, Gold, TextGold
from memarena.dataset.values import OrderValue
from memarena.judge.value_case import OpenGold, day_of, required_values, scalars
from memarena.log.records import Question
from memarena.text.reading import ReadText, read_text
from memarena.text.stance import Stance, read_stance
from memarena.text.stating import ScalarValue, places


@dataclass(frozen=True)
class Declining:
    """How far an answer declines.

    Attributes:
        clause: the clause in which it declines and gives no value; empty if it gives one.
        first: the clause in which it declines before it gives a value; empty if there is none that counts.
    """

    clause: str
    first: str = ""


def read_declining(question: Question, gold: OpenGold, answer: str) -> Declining:
    """Whether and where an answer declines, seen with what it is asked for."""
    spoken = _CERTAINLY.sub(" clearly ", answer)
    stance = read_stance(spoken, question.question_text, (question.ego_name, question.asker_name))
    declines = stance.abstains and not _gives_before_asking(gold, answer, stance)
    if declines and not _gold_declines(gold) and not _stated_all_the_same(gold, answer, stance, question):
        return Declining(stance.declines)
    return Declining("", _declined_first(gold, stance, spoken))


_CERTAINLY = re.compile(
    r"\b(?:there(?: is|'s| was) )?(?:no|not a|without(?: a| any)?|beyond(?: a| any| all)?|zero|leav(?:es|ing) no)\s+"
    r"(?:real |reasonable |further |more )?(?:(?:room|need|reason|cause) (?:for|of|to)(?: any)? |shadow of an? )?"
    r"(?:doubts?|questions?|ambiguity|uncertainty|confusion|guessing|guesswork|guess|calculation|wiggle room|"
    r"contradictions?|difficult one|hard one|trick|mystery|surprise|secret)\b(?: about (?:it|that|this)| at all)?"
    r"|\b(?:do(?:es)?|did|wo|will)(?:n't| not) (?:need|have) to "
    r"(?:guess|wonder|speculate|look|search|dig|ask|check|worry|bother)\b"
    r"|\b(?:missing|forgotten)(?= (?:piece|bit|word|name|value|thing|detail|fact|part|answer|information)\b"
    r"[^.;!?]{0,30}(?:\bis\b|:))"
    r"|(?<=\bthing )you(?:'ve)? forg[oe]t(?:ten)?(?= is\b)",
    re.IGNORECASE,
)
"""Phrases of certainty that look like declining for their negation."""
_A_VALUE = 25
"""So many characters behind a clause may belong to the value at its end (``not on Friday | May 14, 2025``)."""
_BUT_GIVES = re.compile(
    r"^(?:but|however|still|yet|though)\b.*\b(?:do|have|has|know|found|see|can|here|there|did|remember|got)\b",
    re.IGNORECASE,
)


def _declined_first(gold: Gold, stance: Stance, answer: str) -> str:
    """The clause in which an answer declines before it gives a value all the same; empty if there is none that counts.

    Whoever puts a premise right denies it first, and of two versions neither has to be chosen.
    """
    if not stance.declines_first or isinstance(gold, ConflictGold):
        return ""
    read = read_text(answer)
    if isinstance(gold, CounterfactualGold):
        at = read.text.find(stance.declines)
        near = ReadText(read.text[at : at + len(stance.declines) + _A_VALUE] if at >= 0 else stance.declines)
        denies_premise = any(places(v, near) for v in scalars(gold.altered_values))
        return "" if denies_premise or _SPEAKS_OF_QUESTION.search(stance.declines) else stance.declines
    if not _LACKS.search(stance.declines):
        return ""
    texts = [c.text for c in read.clauses]
    at = texts.index(stance.declines) if stance.declines in texts else len(texts)
    return "" if any(_BUT_GIVES.match(text) for text in texts[at + 1 : at + 2]) else stance.declines


_LACKS = re.compile(
    r"(?:n't|\b(?:not|no|never|cannot|unable|nothing|nowhere|none|nobody|neither|without|hardly))\b.*\b(?:know|"
    r"sure|certain|"
    r"recall|remember|find|found|confirm|verif\w+|tell|determine|records?|information|info|details?|idea|clue|evidence|"
    r"stored|saved|written|noted|memor\w+|access|answers?|share|disclose|reveal|help|see|mention\w*|contain\w*|context|"
    r"able|clear|positive|exact\w*|data)\b|"
    r"\b(?:un(?:sure|certain|clear|known|able|available)|lack\w*|forg(?:e|o)t\w*|missing|sorry|afraid|unfortunately|"
    r"private|confidential|secret|vague|incomplete|insufficient)\b",
    re.IGNORECASE,
)
"""Words of a clause that says it does not know, has not got or will not tell."""
_SPEAKS_OF_QUESTION = re.compile(
    r"\b(?:question|premise|assum\w*|asked|what you|as you|suppos\w*)\b|(?:n't|\bnot) "
    r"(?:so|the case|true|right|correct|accurate|what (?:was|is|i|he|she|they))\b",
    re.IGNORECASE,
)


def _stated_all_the_same(gold: OpenGold, answer: str, stance: Stance, question: Question) -> bool:
    """Whether an answer that seems to decline states a required value in a clause that declines nothing."""
    required = required_values(gold)
    barred = scalars(gold.altered_values) if isinstance(gold, CounterfactualGold) else ()
    read = read_text(answer, day_of(question.asked_at))
    asked = read_text(question.question_text, day_of(question.asked_at))
    turned = {clause for text in stance.turned for clause in [read_text(text).text]}

    def outside(value: ScalarValue) -> bool:
        clauses = [read.clause_at(p.start).text for p in places(value, read)]
        return any(
            (barred or not _tells_source_of(value, clause))
            and (not _TURNS.search(clause) or premise or not any(clause in text for text in turned))
            for clause, premise in ((c, any(places(v, read_text(c)) for v in barred)) for c in clauses)
        )

    orders = [value for value in required if isinstance(value, OrderValue)]
    if orders:
        return all(outside(item) for order in orders for item in order.items)
    return any(outside(value) for value in scalars(required) if not places(value, asked))


_TURNS = re.compile(
    r"n't\b|\b(?:not|no|never|none|nothing|nobody|nor|neither|cannot|without|unable|unknown|unclear|missing|lacks?|"
    r"private|privacy|confidential|secret|forgot(?:ten)?|unavailable|null|n/a|empty|decline[sd]?)\b",
    re.IGNORECASE,
)
_PEOPLE_BESIDE = re.compile(
    r"\b(?:privacy|private|ask(?:ing)?|contact|check with|consult|concerns?|involv\w+|respect|protect|trust|promised?|"
    r"messages? (?:with|from|to)|conversations? with|did (?:speak|talk|mention|say)|(?:spoke|talked|speaks|"
    r"talks) about|"
    r"log of|chat with|talk with|better|between(?! (?:them|these|those|the (?:two|2)|both)\b)|"
    r"(?:looked|went|searched|scrolled|combed|read) (?:through|over)|"
    r"everything from|"
    r"days around|searched|checked)\b",
    re.IGNORECASE,
)


def _tells_source_of(value: ScalarValue, clause: str) -> bool:
    """Whether a clause names a person or a day only to say with whom or when something was talked about."""
    if value.type not in ("name", "date") or not _PEOPLE_BESIDE.search(clause):
        return False
    return not any(_GIVEN_AS.search(clause[: p.start]) for p in places(value, read_text(clause)))


_GIVEN_AS = re.compile(
    r"(?:\b(?:is|was|has|had|gives?|gave|says?|names?|named|reads|lists?|shows?)|[:=])\s+"
    r"(?:the |an? )?(?:(?:dr|mr|ms|mrs|prof)\.? )?$",
    re.IGNORECASE,
)
"""``the message from January 3 has X``"""


def _gives_before_asking(gold: OpenGold, answer: str, stance: Stance) -> bool:
    """Whether the clause that seems to decline neither denies nor lacks anything, and all values stand outside it.

    ``I can give you a clear reply`` and ``From the messages I have stored`` open an answer.
    """
    clause = stance.declines
    required = required_values(gold)
    if not required or not clause or _LACKS.search(clause) or _TURNS.search(clause) or _REFERS.search(clause):
        return False
    read, said = read_text(answer), read_text(clause)
    return all(places(v, read) and not places(v, said) for v in scalars(required))


_REFERS = re.compile(
    r"\b(?:ask(?:ing)?|check|contact|consult|rather|prefer|better|best|should|would|let|leave|guess|maybe|perhaps|stay|keep|kept|"
    r"between|promised?|who|why|what|which)\b|\?",
    re.IGNORECASE,
)
"""Words of a clause that sends somebody elsewhere, asks back or keeps something to itself."""


def _gold_declines(gold: Gold) -> bool:
    """Whether the right answer itself reads like a refusal, as some golds of imported sets do."""
    return isinstance(gold, TextGold) and any(read_stance(answer).abstains for answer in gold.answers)
