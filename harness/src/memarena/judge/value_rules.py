"""The rules by which an answer states typed values: which are missing, denied, hedged, contradicted or invented."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena.dataset.values import NameValue, PlaceValue, TermValue
from memarena.judge.value_case import EXTRA_VALUES, Case, describe
from memarena.judge.value_lists import announces_several, counts_more_versions, listed_beside, rival_item
from memarena.judge.value_mentions import other_mentions
from memarena.judge.value_premise import affirmed
from memarena.judge.value_stands import asked_back, refused_place, supposed, uncommitted
from memarena.judge.value_terms import Beside, answered_twice, rival_term
from memarena.text.mentions import DateMention
from memarena.text.reading import ReadText
from memarena.text.stating import ScalarValue, hedged, places
from memarena.text.words import words


def fault(case: Case) -> str:
    """Why the answer is wrong, in one line; empty if it states all required values and no rule is broken."""
    for value in case.required:
        if problem := unstated(case.answer, value, versions=case.versions):
            return problem
        if _only_in_day(case, value):
            return f"does not state {describe(value)}, only a day of the conversation"
    for value in case.barred:
        if affirmed(case.answer, value, case.required):
            return f"affirms {describe(value)}, which the question only supposes"
    return _other_values(case)


def _only_in_day(case: Case, value: ScalarValue) -> bool:
    """Whether a month that is gold as a term stands only in the day of a conversation (``on January 2 you said …``)."""
    if not isinstance(value, TermValue):
        return False
    dates = (m for m in case.answer.of_kind("date") if isinstance(m, DateMention) and any(r.day for r in m.readings))
    days = [m for m in dates if any(m.same(day) for day in case.evidence_days)]
    found = places(value, case.answer) if days else ()
    return bool(found) and all(any(d.start <= p.start and p.end < d.end for d in days) for p in found)


_DOUBTFUL = re.compile(
    r"also gives |affirms |leaves open |does not stand by it |gives several |lists \d|"
    r"offers it only after |names .*(?:neither|more values)"
)


def may_be_outweighed(problem: str) -> bool:
    """Whether the wording of an answer may decide against what a rule found: not where a value is missing.

    Args:
        problem: what :func:`fault` found.
    """
    return not problem.startswith("does not state ")


def is_doubtful(problem: str, kind: str) -> bool:
    """Whether what a rule found is often said of answers that do give their value, so that their wording decides.

    Args:
        problem: what :func:`fault` found.
        kind: of the gold.
    """
    # What denies a premise stands near its correction.
    return _DOUBTFUL.match(problem) is not None or (kind == "counterfactual" and problem.startswith("denies "))


def unstated(answer: ReadText, value: ScalarValue, *, versions: bool = False) -> str:
    """Why the answer does not state the value; empty if it does, plainly and at least once.

    With ``versions`` a phrase such as ``one of them`` tells versions apart and is no hedge.
    """
    found = places(value, answer)
    if not found:
        return f"does not state {describe(value)}"
    # What was said before a change was said, whatever holds now ("not three any more").
    changed = versions and _TELLS_CHANGE.search(" ".join(words(answer.text))) is not None
    refusals = ["" if changed else refused_place(answer, p, versions=versions) for p in found]
    stated = [p for p, reason in zip(found, refusals, strict=True) if not reason]
    if not stated:
        return f"denies {describe(value)}" if refusals[0] == "denied" else f"{refusals[0]}: {describe(value)}"
    if not versions and refusals[-1] == "denied" and _LAST_WORD.search(answer.text[: found[-1].start]):
        return f"denies {describe(value)} in the end"
    if all(asked_back(answer, p, versions=versions) for p in stated):
        return f"only asks whether {describe(value)}"
    hedges = [hedged(answer, p) or supposed(answer, p) for p in stated]
    hedges = ["" if _MONTH_OF_MAY.match(h) else h for h in hedges]
    if versions:
        hedges = ["" if _TELLS_APART.match(h) else h for h in hedges]
    return "" if "" in hedges else f"hedges {describe(value)} away ({hedges[0]!r})"


_MONTH_OF_MAY = re.compile(r"may (?:\d|(?:it|this|that|he|she|you|i) (?:should|is|was|must|will|has|would)\b)")
"""``May 25 had been named``: a month, and no hedge."""
_LAST_WORD = re.compile(
    r"\b(?:correction|disregard|ignore|scratch|wait|actually|definitely|garbled|sorry|retract\w*|withdraw\w*|mistaken?|"
    r"on reflection|after all|in fact)\b",
    re.IGNORECASE,
)
"""What announces that a denial which comes last holds (``X. Correction: … it's definitely not X``)."""
_TELLS_CHANGE = re.compile(
    r"\b(?:any ?more|any longer|no longer|at first|first|originally|initially|earlier|before|previously|formerly|"
    r"beforehand|until|used to|instead|anew|changed|switched|replaced|moved|corrected|revised|updated|"
    r"took (?:it|that) back|had (?:said|claimed|told|been)|but now|by now|now)\b"
)
_TELLS_APART = re.compile(
    r"(?:one|some|most) of (?:them|these|those)$|or (?:it|was|is)$|either$|uncertain$|unsure$|not (?:sure|certain)$"
)


# ------------------------------------------------------------------ values beside the gold


def _other_values(case: Case) -> str:
    """Rules (a) to (c): a rival in the gold's own place, an invented value, too many values."""
    return _left_open(case) or _rival_terms(case) or other_mentions(case)


def _left_open(case: Case) -> str:
    if phrase := uncommitted(case.answer, versions=case.versions):
        return f"does not stand by it ({phrase!r})"
    if case.versions:
        more = counts_more_versions(case.answer)
        return f"counts more versions ({more!r})" if more else ""
    match = _LEAVES_OPEN.search(case.answer.text)
    if match:
        return f"leaves open which ({match.group().strip()!r})"
    several = announces_several(case.answer) if len(case.required) == 1 else ""
    return f"gives several for one ({several!r})" if several else ""


_LEAVES_OPEN = re.compile(
    r"\b(?:alternatively|or else|or alternatively|or rather|one or the other|partly\b.*\bpartly)\b|"
    r"(?:^|[.;,(]\s*)otherwise\b|(?<![:./\d])\b\d+ or (?:even |maybe |perhaps |possibly )?\d+\b(?![:./]\d)",
    re.IGNORECASE,
)


def _rival_terms(case: Case) -> str:
    """Alternatives beside a term, which no type gives away: ``X or Y``, or a list of many."""
    terms = [v for v in case.required if isinstance(v, TermValue | PlaceValue | NameValue)]
    for term in terms:
        for place in places(term, case.answer):
            clause = case.answer.clause_at(place.start)
            spoken = words(clause.text)
            if (
                not case.versions
                and "or" in spoken
                and "or" not in words(case.question.text)
                and not _holds_or(case.required)
            ):
                return f"leaves open whether {describe(term)} or another"
            if not case.versions and _OR_LIST.match(case.answer.text[place.end :]):
                return f"leaves open whether {describe(term)} or another"
    rivals = listed_beside(case, terms)
    if terms and len(rivals) > EXTRA_VALUES:
        return f"lists {len(rivals)} more values than the gold has"
    beside = Beside(case.answer, case.question.text, case.evidence, case.required, case.barred)
    if second := answered_twice(beside):
        return f"answers twice, also {second!r}"
    thing = rival_term(beside) or (rival_item(beside) if terms else "")
    return f"also gives {thing!r} for the same" if thing else ""


_OR_LIST = re.compile(
    r"[\s\"'*_]*,\s*(?!if\b|as\b|whether\b|which\b|who\b|when\b|so\b|and\b|but\b)(?:[\w\"'*-]+\s+){1,5}?or\s",
    re.IGNORECASE,
)


def _holds_or(values: Sequence[ScalarValue]) -> bool:
    return any("or" in words(v.text) for v in values if isinstance(v, TermValue))
