"""The value judge: typed gold values against the words of an answer, without any model.

An answer is right if it states every required value, asserts no rival for it, invents no value of its type, comes to
the point within 60 words without listing more than two values beyond the gold's, and does not hedge it away. Where the
gold is text only, :mod:`memarena.judge.token_f1` decides, and the route says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeGuard

from memarena.dataset.gold import ConflictGold, CounterfactualGold, Gold
from memarena.dataset.values import DurationValue, OrderValue, SetValue, TermValue, Value
from memarena.judge.addressing import cleared
from memarena.judge.errors import JudgeError
from memarena.judge.ruling import Route, Ruling, right, wrong
from memarena.judge.token_f1 import rule_by_token_f1
from memarena.judge.value_case import (
    FIRST_WORDS,
    Case,
    OpenGold,
    day_of,
    describe,
    first_words,
    required_values,
    scalars,
)
from memarena.judge.value_declining import read_declining
from memarena.judge.value_denying import denies_in_the_end
from memarena.judge.value_lists import extra_members
from memarena.judge.value_markers import without_markers
from memarena.judge.value_mentions import mentions_beside, speaks_of_talk
from memarena.judge.value_orders import rule_order
from memarena.judge.value_rules import fault, is_doubtful, may_be_outweighed, unstated
from memarena.judge.value_settling import settles, without_denied
from memarena.judge.value_standing import is_affirmation, stands_wrongly
from memarena.judge.value_weighing import Shape, tells_of_matter, weigh
from memarena.judge.value_wording import known_stems, raw_words, signed
from memarena.log.records import EvidenceSession, Question
from memarena.text.mentions import ProperMention
from memarena.text.numbers import digits_for_words
from memarena.text.reading import ReadText, read_text
from memarena.text.stating import Place, denied, places
from memarena.text.words import tidy, words

JUDGE_NAME = "value"


def is_judged(gold: Gold) -> TypeGuard[OpenGold]:
    """Whether a gold is this judge's business: open answers, not options, abstention or permission."""
    return isinstance(gold, OpenGold)


def judge_answer(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> Ruling:
    """Judge one answer. Pure: the same input gives the same ruling.

    Args:
        question: with its gold, which must be of an open family (D2, D3, D4, the answer half of D5, extensions).
        evidence: the question's evidence sessions, against which values beside the gold are checked.
        answer: the parsed answer.

    Raises:
        JudgeError: the gold is not of an open family.
    """
    gold = question.instance.gold
    if not is_judged(gold):
        raise JudgeError(f"{question.instance.instance_id}: the value judge does not judge {gold.kind} questions")
    required = required_values(gold)
    route: Route = "value" if required else "token_f1"
    if not answer.strip():
        return wrong(route, "no answer")
    declining = read_declining(question, gold, answer)
    if declining.clause:
        return wrong(route, f"declines: {declining.clause!r}")
    if not required:
        return rule_by_token_f1(question.instance.family, gold, answer, day_of(question.asked_at))
    return _rule(gold, required, question, evidence, answer, hedge=declining.first)


def _rule(
    gold: Gold,
    required: tuple[Value, ...],
    question: Question,
    evidence: Sequence[EvidenceSession],
    answer: str,
    hedge: str,
) -> Ruling:
    today = day_of(question.asked_at)
    answer = _with_unit(answer, required, question.question_text)
    plain = without_markers(_without_echo(_without_speaker(answer, question, evidence), question.question_text))
    window = _window(required)
    read = read_text(first_words(plain, window), today)
    asked = read_text(question.question_text, today)
    single = tuple(v for v in required if not isinstance(v, SetValue | OrderValue))
    barred = scalars(gold.altered_values) if isinstance(gold, CounterfactualGold) else ()
    case = Case(read, asked, evidence, single, barred, versions=isinstance(gold, ConflictGold))
    problem = fault(case) if single or barred else ""
    if hedge and single:
        offered = f"offers it only after {hedge!r}"
        if problem and not may_be_outweighed(problem):
            return wrong("value", offered)
        problem = offered
    if single and (not problem or may_be_outweighed(problem)):
        # What is said to a marker is no wording of an answer, unless the value stands in it.
        said = read_text(first_words(cleared(plain).kept, window), today)
        # What a rule found may stand in it, too (`X. Correction: please disregard that`): then the whole is weighed.
        worded = replace(case, answer=said) if not problem and all(places(v, said) for v in single) else case
        problem = _by_wording(worded, gold, problem)
    if problem:
        return wrong("value", problem)
    for value in required:
        if isinstance(value, SetValue):
            ruling = _set(value, read, asked)
        elif isinstance(value, OrderValue):
            ruling = rule_order(value, read, asked)
        else:
            continue
        if not ruling.correct:
            return ruling
    return right("value", f"states {', '.join(describe(v) for v in required)}")


# Thresholds were chosen on sets of phrasings by over twenty hands, each judged by weights learned without its hand's
# phrasings (rules had been changed because of most of them, so those rates are no first sight); values were taken at
# which neither kind of error exceeds what is wanted in a family. Below -2, hardly any right answer of typed gold is
# left, and rules see rivals of its type; of gold without a type, wrong answers weigh up to 0, since nothing but wording
# shows their rival.
_GIVES = 1.5
"""So much a wording has to weigh for giving its value to outweigh a rule that doubts it."""
_GIVES_CORRECTION = 1.0
"""The same where a premise is put right, which is worded much like its being affirmed or its correction's denial."""
_GIVES_BESIDE = 3.0
"""The same where another value of the type is named that is no part of the answer."""
_GIVES_AGAINST = 2.0
"""The same where a rule reads a hedge, a belief or a retraction, which other values than the gold's may have."""
_GIVES_AGAINST_AFFIRMATION = 3.0
"""The same where the whole wording seems to affirm a premise, which its correction may do on the way."""
_GIVES_AGAINST_RIVAL = 3.0
"""The same where another value stands where the answer stands."""
_GIVES_VERSIONS = 2.0
"""The same for two versions, whatever a rule found: on unseen sets, nothing wrong weighed half of that."""
_LEAST_WORDS = 5
"""Fewer words beside its values are no wording that could outweigh another value (``Monday. Tuesday.``)."""
_WITHHOLDS = -2.0
"""Below this, a wording does not give its value, though no rule is broken."""
_WITHHOLDS_CORRECTION = -3.5
"""The same where a premise is put right: what affirms it or leaves it open is seen by rules."""
_WITHHOLDS_UNTYPED = 0.0
"""The same where the gold is a term, of which no rule knows what is another of its kind."""
_WITHHOLDS_TELLING = -4.0
"""The same for an answer that tells of the matter in its own words, of which fewer were learned, or that names another
value of the type, which rules see."""
_WITHHOLDS_VERSIONS = -6.0
"""The same for two typed versions: how they stand to each other is seen by rules."""


def _by_wording(case: Case, gold: Gold, problem: str) -> str:
    """What stands against the answer once its wording is weighed: that outweighs a rule's doubt or raises a new one."""
    shape: Shape = gold.kind if isinstance(gold, ConflictGold | CounterfactualGold) else "plain"
    versions = scalars(gold.changed_values) if isinstance(gold, ConflictGold) else ()
    rivals = mentions_beside(case)
    raw, known = raw_words(signed(case, rivals, versions)), known_stems(case)
    if shape != "conflict" and denies_in_the_end(raw):
        return problem or f"denies {', '.join(map(describe, case.required))} in the end"
    weight = weigh(without_denied(raw), known, shape)
    standing = stands_wrongly(raw, shape)
    if standing and not (
        weight > _GIVES_VERSIONS
        if shape == "conflict"
        else weight >= _GIVES_AGAINST_AFFIRMATION and is_affirmation(standing)
    ):
        return problem or standing
    if problem:
        if shape != "conflict" and weight > 0 and settles(raw):
            return ""
        firm = bool(rivals) or not is_doubtful(problem, shape)
        if firm and sum(w[0].isalpha() and not w.startswith("zq") for w in raw) < _LEAST_WORDS:
            return problem
        return "" if weight > _enough(problem, shape, beside=bool(rivals)) else problem
    untyped = any(isinstance(value, TermValue) for value in case.required)
    least = _WITHHOLDS_UNTYPED if untyped and not settles(raw) else _WITHHOLDS
    if shape == "counterfactual":
        least = _WITHHOLDS_CORRECTION
    if shape == "conflict" and not untyped:
        least = _WITHHOLDS_VERSIONS
    if tells_of_matter(raw, known) or (rivals and shape != "conflict"):
        least = _WITHHOLDS_TELLING
    return f"its wording does not give it (weighs {weight:.1f})" if weight < least else ""


def _enough(problem: str, shape: Shape, *, beside: bool) -> float:
    """What a wording has to weigh to outweigh what a rule doubts; ``beside``: another value of the type is named."""
    if shape == "conflict":
        return _GIVES_VERSIONS
    if problem.startswith("names "):
        return _GIVES_BESIDE if beside else _GIVES
    if not is_doubtful(problem, shape):
        return _GIVES_AGAINST
    if problem.startswith("also gives "):
        # Another value where the answer stands is seen, not guessed at: hardly any wording outweighs it.
        return _GIVES_AGAINST_RIVAL
    return _GIVES_CORRECTION if shape == "counterfactual" else _GIVES


_HOW_MANY = re.compile(
    r"\b(?:how many|count|number of)\b.*?\b(minutes|hours|days|weeks|months|years)\b", re.IGNORECASE | re.DOTALL
)
_BARE_NUMBER = re.compile(
    r"\W*(?:it(?: was|'s| is)? |about |exactly |just |only )*([\d.]+|[a-z]+(?:-[a-z]+)?)\W*", re.IGNORECASE
)


def _with_unit(answer: str, required: Sequence[Value], question: str) -> str:
    """A bare number with the unit of time in which the question counts (``How many days …?`` ``Three``)."""
    asked = _HOW_MANY.search(question)
    if asked is None or not all(isinstance(value, DurationValue) for value in required):
        return answer
    said = _BARE_NUMBER.fullmatch(digits_for_words(tidy(answer)))
    return f"{said[1]} {asked[1].lower()}" if said and re.fullmatch(r"\d+(?:\.\d+)?", said[1].rstrip(".")) else answer


def _without_echo(answer: str, question: str) -> str:
    """The answer without the question, where it repeats that word for word: its values are not the answer's."""
    pattern = r"\s+".join(re.escape(word) for word in question.split())
    return re.sub(pattern, " ", answer, flags=re.IGNORECASE) if len(question.split()) > 2 else answer


def _without_speaker(answer: str, question: Question, evidence: Sequence[EvidenceSession]) -> str:
    """The answer without the name of a speaker before it, as small models write it (``Maya Chen: on Tuesday``)."""
    people = {question.ego_name, question.asker_name, *(t.speaker for s in evidence for t in s.turns)}
    people |= {person.partition(" ")[0] for person in people}
    name, colon, rest = answer.strip().partition(":")
    spoken = colon and re.search(r"\w", rest) and name.strip(" >*_\"'-") in people
    return rest.strip() if spoken else answer


def _window(required: Sequence[Value]) -> int:
    """How many words an answer has to come to the point: more where the gold itself is long."""
    items = sum(len(value.items) for value in required if isinstance(value, OrderValue))
    return FIRST_WORDS + max(0, sum(len(words(text)) for text in map(describe, required)) - 10) + 6 * items


def _set(value: SetValue, answer: ReadText, question: ReadText) -> Ruling:
    """Set-F1 over the members: right at 1.0."""
    if _left_open(value, answer, question):
        return wrong("value", "leaves open which of them")
    hits = [m for m in value.members if not unstated(answer, m)]
    extra = _extra_names(value, answer, question) or _extra_terms(value, answer, question)
    f1 = 2 * len(hits) / (len(hits) + len(extra) + len(value.members)) if hits else 0.0
    missing = [describe(m) for m in value.members if m not in hits]
    if missing or extra:
        parts = [f"misses {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(extra)
        return wrong("value", f"set-F1 {f1:.2f}: {'; '.join(parts)}", f1)
    return right("value", "names every member and no other")


def _left_open(value: SetValue, answer: ReadText, question: ReadText) -> bool:
    """Whether members are joined by ``or``, as alternatives."""
    spots = sorted((p.start, p.end) for m in value.members for p in places(m, answer))
    between = (answer.text[end:start] for (_, end), (start, _) in pairwise(spots))
    return "or" not in words(question.text) and any(re.fullmatch(r"\W*or\W*", gap, re.IGNORECASE) for gap in between)


def _extra_names(value: SetValue, answer: ReadText, question: ReadText) -> list[str]:
    """Persons or places named beyond the members, where members are proper names."""
    if not all(m.type in ("name", "place") for m in value.members):
        return []
    spans = [p for m in value.members for p in places(m, answer)]
    asked = question.of_kind("proper")
    extra = []
    for mention in answer.of_kind("proper"):
        inside = any(p.start < mention.end and mention.start < p.end for p in spans)
        if inside or any(mention.same(a) for a in asked) or denied(answer, Place(mention.start, mention.end)):
            continue
        clause = answer.clause_at(mention.start)
        apart = not any(clause.start <= p.start < clause.end for p in spans)
        if apart and speaks_of_talk(answer, mention):
            continue
        if isinstance(mention, ProperMention):
            extra.append(" ".join(mention.name))
    return list(dict.fromkeys(extra))


def _extra_terms(value: SetValue, answer: ReadText, question: ReadText) -> list[str]:
    if all(m.type == "name" for m in value.members):
        return []
    return extra_members(answer, value.members, question)
