"""The value judge: typed gold values against the words of an answer, without any model.

An answer is right if it states every required value, asserts no rival for it, invents no value of its type, comes to
the point within 60 words without listing more than two values beyond the gold's, and does not hedge it away. Where the
gold is text only, :mod:`memarena.judge.token_f1` decides, and the route says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard

from memarena.dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, Gold, TextGold
from memarena.dataset.values import DurationValue, OrderValue, SetValue, TermValue, Value
from memarena.judge.errors import JudgeError
from memarena.judge.ruling import Route, Ruling, right, wrong
from memarena.judge.token_f1 import rule_by_token_f1
from memarena.judge.value_rules import (
    FIRST_WORDS,
    Case,
    day_of,
    describe,
    extra_members,
    fault,
    first_words,
    speaks_of_talk,
    unstated,
)
from memarena.log.records import EvidenceSession, Question
from memarena.text.mentions import ProperMention
from memarena.text.numbers import digits_for_words
from memarena.text.reading import ReadText, read_text
from memarena.text.stance import Stance, read_stance
from memarena.text.stating import Place, ScalarValue, denied, hedge_in, hedged, places
from memarena.text.words import tidy, words

JUDGE_NAME = "value"


OpenGold = TextGold | CounterfactualGold | ConflictGold | AnaphoraGold
"""Gold of open answers, which this judge judges."""


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
    required = _required(gold)
    route: Route = "value" if required else "token_f1"
    if not answer.strip():
        return wrong(route, "no answer")
    stance = read_stance(answer, question.question_text, (question.ego_name, question.asker_name))
    if stance.abstains and not _gold_declines(gold) and not _stated_all_the_same(required, answer, stance, question):
        return wrong(route, f"declines: {stance.declines!r}")
    if not required:
        return rule_by_token_f1(question.instance.family, gold, answer, day_of(question.asked_at))
    return _rule(gold, required, question, evidence, answer, hedge=stance.declines if stance.declines_first else "")


def _required(gold: Gold) -> tuple[Value, ...]:
    """Typed values that a right answer states; empty where the gold is not fully typed."""
    if isinstance(gold, ConflictGold):
        return (*gold.values, *gold.changed_values) if gold.values and gold.changed_values else ()
    return gold.values


def _stated_all_the_same(required: Sequence[Value], answer: str, stance: Stance, question: Question) -> bool:
    """Whether an answer that seems to decline states a required value in a clause that declines nothing."""
    read = read_text(answer, day_of(question.asked_at))
    asked = read_text(question.question_text, day_of(question.asked_at))
    turned = {clause for text in stance.turned for clause in [read_text(text).text]}

    def outside(value: ScalarValue) -> bool:
        return any(not any(read.clause_at(p.start).text in text for text in turned) for p in places(value, read))

    orders = [value for value in required if isinstance(value, OrderValue)]
    if orders:
        return all(outside(item) for order in orders for item in order.items)
    return any(outside(value) for value in _scalars(required) if not places(value, asked))


def _gold_declines(gold: Gold) -> bool:
    """Whether the right answer itself reads like a refusal, as some golds of imported sets do."""
    return isinstance(gold, TextGold) and any(read_stance(answer).abstains for answer in gold.answers)


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
    plain = _without_markers(_without_echo(_without_speaker(answer, question, evidence), question.question_text))
    read = read_text(first_words(plain, _window(required)), today)
    asked = read_text(question.question_text, today)
    scalars = tuple(v for v in required if not isinstance(v, SetValue | OrderValue))
    if hedge and scalars:
        return wrong("value", f"offers it only after {hedge!r}")
    barred = _scalars(gold.altered_values) if isinstance(gold, CounterfactualGold) else ()
    case = Case(read, asked, evidence, scalars, barred, versions=isinstance(gold, ConflictGold))
    problem = fault(case) if scalars or barred else ""
    if problem:
        return wrong("value", problem)
    for value in required:
        if isinstance(value, SetValue):
            ruling = _set(value, read, asked)
        elif isinstance(value, OrderValue):
            ruling = _order(value, read, asked)
        else:
            continue
        if not ruling.correct:
            return ruling
    return right("value", f"states {', '.join(describe(v) for v in required)}")


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
    name, colon, rest = answer.strip().partition(":")
    return rest.strip() if colon and re.search(r"\w", rest) and name.strip() in people else answer


_MARKER = re.compile(r"(?:^|(?<=\s))\(?(\d)[.)]\s+(?=\S)")


def _without_markers(answer: str) -> str:
    """The answer without the numbers of a list (``1) … 2) …``), which are no values."""
    numbers = [m.group(1) for m in _MARKER.finditer(answer)]
    listed = len(numbers) > 1 and numbers == [str(n) for n in range(1, len(numbers) + 1)]
    return _MARKER.sub("; ", answer) if listed else answer


def _window(required: Sequence[Value]) -> int:
    """How many words an answer has to come to the point: more where the gold itself is long."""
    return FIRST_WORDS + max(0, sum(len(words(text)) for text in map(describe, required)) - 10)


def _scalars(values: Sequence[Value]) -> tuple[ScalarValue, ...]:
    flat: list[ScalarValue] = []
    for value in values:
        if isinstance(value, SetValue):
            flat += value.members
        elif isinstance(value, OrderValue):
            flat += value.items
        else:
            flat.append(value)
    return tuple(flat)


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


_TURNS_ROUND = re.compile(r"\b(?:after|following|later than|preceded by|succeeds?|followed)\b")
_KEEPS_ORDER = re.compile(
    r"\b(?:was|were|is|are|being)? ?followed by\b|\bafter (?:that|this|which|it|them)\b|\bafterwards?\b"
)


def _order(value: OrderValue, answer: ReadText, question: ReadText) -> Ruling:
    """Items in their order. Of two, the first alone will do where the question asks for the first."""
    found: list[tuple[int, TermValue, Place]] = []
    every: list[tuple[int, int]] = []
    for position, item in enumerate(_told_apart(value.items)):
        affirmed = [p for p in places(item, answer) if not denied(answer, p)]
        if affirmed:
            found.append((position, item, affirmed[0]))
            every += [(place.start, position) for place in affirmed]
    asks_first = re.search(r"\b(?:first|earlier|before|earliest)\b", question.text, re.IGNORECASE)
    if len(found) == 1 and len(value.items) == 2 and asks_first and found[0][0] == 0:
        return right("value", "names the first")
    missing = [i.text for n, i in enumerate(value.items) if n not in {position for position, _, _ in found}]
    if missing:
        return wrong("value", f"leaves out {', '.join(missing)}")
    hedges = [h for _, _, place in found if (h := hedged(answer, place))]
    # An order spans clauses: a hedge anywhere takes all of it back.
    hedges += [h for clause in answer.clauses if (h := hedge_in(clause.text))]
    if hedges:
        return wrong("value", f"hedges the order away ({hedges[0]!r})")
    said = [position for position, _, _ in sorted(_as_told(answer, found), key=lambda f: f[2].start)]
    if len(value.items) > 2 and not _goes_round(every, len(value.items)):
        return wrong("value", "tells two orders")
    if said == list(range(len(value.items))):
        return right("value", f"tells the order {describe(value)}")
    return wrong("value", f"tells another order than {describe(value)}")


def _goes_round(every: Sequence[tuple[int, int]], count: int) -> bool:
    """Whether what is said after all items were named once tells the same order again, as far as it goes."""
    positions = [position for _, position in sorted(every)]
    whole = next((n for n in range(len(positions) + 1) if len(set(positions[:n])) == count), len(positions))
    rest = positions[whole:]
    return all(p in (0, before + 1) for before, p in zip([-1, *rest], rest, strict=False))


def _told_apart(items: Sequence[TermValue]) -> list[TermValue]:
    """The items without those aliases that another item has too (two people did the same)."""
    forms = [{item.text.lower(), *(a.lower() for a in item.aliases)} for item in items]
    counts = Counter(form for own in forms for form in own)
    return [
        item.model_copy(update={"aliases": tuple(a for a in item.aliases if counts[a.lower()] == 1)}) for item in items
    ]


def _as_told(answer: ReadText, found: Sequence[tuple[int, TermValue, Place]]) -> list[tuple[int, TermValue, Place]]:
    """The items with their places exchanged where the words turn the order round (``B after A``, ``before B, A``)."""
    in_text = sorted(found, key=lambda f: f[2].start)
    if len(in_text) != 2:
        return in_text
    (first, one, here), (second, two, there) = in_text
    between = answer.text[here.end : there.start].lower()
    ahead = answer.text[: here.start].lower()
    opens_before = re.search(r"\bbefore (?:the |a |an |her |his |their )?$", ahead) is not None
    turned = bool(_TURNS_ROUND.search(_KEEPS_ORDER.sub(" ", between)))
    if turned != opens_before:
        return [(first, one, there), (second, two, here)]
    return in_text
