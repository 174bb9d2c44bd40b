"""Values that an answer mentions beside the gold's, where their type can be told from other words.

A rival stands where the answer stands; an invented value is in neither question nor evidence. What merely says who was
speaking, when, and how many things the answer speaks about is neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memarena.dataset.values import AmountValue, DateValue
from memarena.judge.value_case import EXTRA_VALUES, Case
from memarena.judge.value_names import by_line, names_nothing, tells_source
from memarena.judge.value_stands import refused_place
from memarena.text.amounts import canonical_unit, is_known_unit
from memarena.text.lexicon import word_list
from memarena.text.mentions import AmountMention, DateMention, DurationMention, Kind, Mention, WeekdayMention
from memarena.text.reading import ReadText
from memarena.text.stating import Place, ScalarValue, is_value, kinds_of, places
from memarena.text.words import Clause, content_words, stem, words

_FEW = 4
"""So many accounts or sources an answer may count with an adjective between."""
_WELL_ABOVE = 12
"""A gold count above this has no near value among the few that ways of speaking count."""
_OFFERS = re.compile(
    r"\b(?:help|assist|do for you|anything|something|support|serve|look up|remind|question|here for you|"
    r"have a)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_TO_THIS_DAY = re.compile(
    r"\b(?:stands?|stood|holds?|until|till|to|still|unchanged|valid|as of)\s+(?:\w+\s+)?$", re.IGNORECASE
)
"""``that note still stands today``"""
_NUMBERS_A_THING = re.compile(
    r"(?:#|\b(?:no\.|step|item|entry|session|memory|message|line|page|turn|chat|conversation|record|note|id|chunk|"
    r"document))\s?#?$",
    re.IGNORECASE,
)
_THE_TWO_OF = re.compile(r"\b(?:you|we|us|those|these|they|them)\s+$", re.IGNORECASE)
"""``you two were talking``"""
_BETWEEN_TWO = re.compile(r"\b(?:between|of|both|either|neither) (?:the|these|those|them)\s+$", re.IGNORECASE)
_IDIOM_AHEAD = re.compile(
    r"\w+ (?:for|in|of|per|just|such|quite|wait|hold on|after|many|give me|take|took|back|times|once|twice)\s+$",
    re.IGNORECASE,
)
"""Before an article and a unit: ``take you back for a second``; ``for a second`` alone is an answer."""
_MORE_THAN_BEFORE = re.compile(r"\s+(?:more|fewer|less|extra|additional)\b(?! than)", re.IGNORECASE)
"""A difference from another number (``three more had signed up``)."""
_HOLLOW = frozenset(
    stem(w) for w in ("answer", "date", "day", "time", "name", "place", "amount", "week", "every", "each")
)
_CONJUNCTIONS = re.compile(
    r"[\s,/&]*(?:(?:(?:and|or|and/or|maybe|perhaps|either|then|also|possibly)\b[\s,]*)+(?:(?:the|on)\s+)?)?",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\s+(?:plus|along with|together with|as well as)\s+(?:the\s+)?", re.IGNORECASE)
"""Without a comma: behind one, what is added is another matter (``50 euros, plus 20 for parking``)."""
_WITH = re.compile(r"\b(?:with|from|to|between|you and|me and)\s+$", re.IGNORECASE)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b(?:\s+the\b)?", re.IGNORECASE)
_REPORTS = re.compile(
    r"\b(?:said|says?|told|tells?|mention(?:s|ed)?|ask(?:s|ed)?|stated|talk(?:s|ed)?|spoke|came up|comes up|brought up|"
    r"discuss(?:ed|ing|ion|ions)?|conversations?|chat(?:s|ted|ting)?|talking|speaking|spoken|noted|heard|learned|"
    r"recorded|"
    r"wrote|comes? from|came from|raised|shared|remark(?:s|ed)?|passages?|"
    r"(?:goes|went|gone|going) (?:into|over)|exchange[sd]?|dated|according to|recall(?:s|ed)?|"
    r"(?:go|goes|going|went) by)\b",
    re.IGNORECASE,
)
_ASKS_TO_RECALL = re.compile(r"\b(?:help me|can you|do you|please) recall\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?\n]+(?=\s|$)")


def other_mentions(case: Case) -> str:
    """Values of the gold's own type, which can be told from other words."""
    for kind in _kinds(case):
        gold = [v for v in case.required if kind in kinds_of(v)]
        others = _beside(case, kind)
        own_question = case.question.of_kind(kind)
        gold_is_asked = any(is_value(v, m, case.answer.today) for v in gold for m in own_question)
        for mention in others:
            known = any(mention.same(m) for m in own_question)
            if (not known or gold_is_asked) and _in_answering_place(case, mention, kind):
                return f"also gives {_quote(case, mention)} for the same"
            if not known and not _in_evidence(case, mention) and not _is_small_count(case, mention):
                return f"names {_quote(case, mention)}, which is in neither question nor evidence"
        extra = [m for m in others if not any(m.same(q) for q in own_question)]
        if _distinct(extra) > EXTRA_VALUES:
            return f"names {_distinct(extra)} more values than the gold has"
    return ""


def mentions_beside(case: Case) -> list[Mention]:
    """Every mention of the gold's own type, denied or not, that is neither the gold's nor talk about sources."""
    every = [m for kind in _kinds(case) for m in by_line(case.answer, case.answer.of_kind(kind))]
    return [m for m in every if not _is_stated(case, m) and not _is_talk(case, m)]


def _kinds(case: Case) -> list[Kind]:
    return list(dict.fromkeys(kind for v in case.required for kind in kinds_of(v)))


def _beside(case: Case, kind: Kind) -> list[Mention]:
    return [
        m
        for m in by_line(case.answer, case.answer.of_kind(kind))
        if not _accounted_for(case, m) and not _is_talk(case, m)
    ]


def _is_talk(case: Case, mention: Mention) -> bool:
    return (
        _counts_talk(case, mention)
        or _is_idiom(case, mention)
        or _tells_versions_apart(case, mention)
        or _no_value(case, mention)
    )


def _no_value(case: Case, mention: Mention) -> bool:
    """Whether a mention is a heading, the opener of a sentence, or says where what is told comes from."""
    if names_nothing(case.answer, mention, case.evidence, known=_is_known(case, mention)):
        return True
    if _is_courtesy(case.answer, mention):
        return True
    gold = [p for v in case.required for p in places(v, case.answer)]
    if any(_joined(case.answer, mention, p, by_comma=False) for p in gold):
        return False
    return tells_source(case.answer, mention, case.evidence)


def _is_courtesy(answer: ReadText, mention: Mention) -> bool:
    """``Anything else I can help you with today?``"""
    if answer.text[mention.start : mention.end].lower() not in ("today", "tonight", "tomorrow"):
        return False
    clause = answer.clause_at(mention.start)
    if _TO_THIS_DAY.search(answer.text[clause.start : mention.start]):
        return True
    return _OFFERS.search(answer.text[: mention.start]) is not None or {"i", "you"} & set(words(clause.text)) != set()


def _is_known(case: Case, mention: Mention) -> bool:
    return any(mention.same(m) for m in (*case.question.of_kind("proper"), *case.evidence_mentions))


def _accounted_for(case: Case, mention: Mention) -> bool:
    """Whether a mention is a gold or barred value, or is denied."""
    place = Place(mention.start, mention.end)
    return _is_stated(case, mention) or bool(refused_place(case.answer, place, versions=case.versions))


def _is_stated(case: Case, mention: Mention) -> bool:
    """Whether a mention is (part of) a gold or barred value. More than the gold's date needs the evidence."""
    today = case.answer.today
    stated = [v for v in (*case.required, *case.barred) if is_value(v, mention, today)]
    if stated:
        return not any(_says_more(v, mention) for v in stated) or _in_evidence(case, mention)
    inside = [p for v in (*case.required, *case.barred) for p in places(v, case.answer)]
    return any(p.start < mention.end and mention.start < p.end for p in inside)


def _says_more(value: ScalarValue, mention: Mention) -> bool:
    """Whether a date says a day or month that the gold leaves open."""
    if not isinstance(value, DateValue) or not isinstance(mention, DateMention):
        return False
    said = max(1 + (r.month is not None) + (r.day is not None) for r in mention.readings)
    return said > len(value.date.split("-"))


def _in_answering_place(case: Case, mention: Mention, kind: Kind) -> bool:
    """Whether a mention stands where the answer stands.

    Its clause says nothing but values and the question's words; a name that shares its clause with the gold has to be
    joined to it (``Bob and Tomas``), since people play other parts in a sentence too.
    """
    clause = case.answer.clause_at(mention.start)
    gold = [p for v in case.required if kind in kinds_of(v) for p in places(v, case.answer)]
    if kind == "proper":
        near = [p for v in case.required for p in places(v, case.answer) if clause.start <= p.start < clause.end]
        if near:
            return any(_joined(case.answer, mention, p) for p in near)
        if _takes_part(case.answer, mention):
            return False
    elif any(_joined(case.answer, mention, p) for p in gold):
        return True
    spoken = _without_values(case.answer, clause, kind)
    news = set(content_words(spoken)) - set(content_words(case.question.text)) - _HOLLOW
    if kind in ("date", "weekday"):
        news -= {stem(w) for w in word_list("talk_words.v1.txt")}
    return not news and not _is_report(case, clause, kind)


def _without_values(answer: ReadText, clause: Clause, kind: Kind) -> str:
    """The clause's words apart from values of the kind; a date's weekday belongs to it."""
    kinds: tuple[Kind, ...] = ("date", "weekday") if kind in ("date", "weekday") else (kind,)
    rest = list(answer.text[clause.start : clause.end])
    for other in answer.of_kind(*kinds):
        # An abbreviation's full stop can belong to a date and yet end the clause.
        if clause.start <= other.start < clause.end:
            end = min(other.end, clause.end)
            rest[other.start - clause.start : end - clause.start] = " " * (end - other.start)
    return "".join(rest)


def _takes_part(answer: ReadText, mention: Mention) -> bool:
    """Whether a name is that of somebody in the conversation (``Bob and you``, ``with Bob``), and no answer."""
    ahead, behind = answer.text[: mention.start], answer.text[mention.end :]
    return bool(_WITH.search(ahead) or re.match(r"\s+and (?:you|i|me)\b", behind, re.IGNORECASE))


def speaks_of_talk(answer: ReadText, mention: Mention) -> bool:
    """Whether a name is that of somebody in the conversation and stands in a clause that tells who said something."""
    return _takes_part(answer, mention) or _REPORTS.search(answer.clause_at(mention.start).text) is not None


def _is_report(case: Case, clause: Clause, kind: Kind) -> bool:
    """Whether a clause tells who said something or when it was said: no answer, unless that is what is asked.

    A date may stand apart from the verb (``in one of the talks, on 3 January, you were told``).
    """
    if kind == "proper":
        # "That is what Bob | and you were chatting about": the verb may stand in the next clause.
        behind = next((c.text for c in case.answer.clauses if c.start == clause.end + 1), "")
        return _REPORTS.search(f"{clause.text} {behind}") is not None
    if not case.versions and _REPORTS.search(_ASKS_TO_RECALL.sub(" ", case.question.text)):
        return False
    ends = [m.end() for m in _SENTENCE_END.finditer(case.answer.text)]
    start = max((e for e in ends if e <= clause.start), default=0)
    end = min((e for e in ends if e >= clause.end), default=len(case.answer.text))
    return _REPORTS.search(case.answer.text[start:end]) is not None


def _joined(answer: ReadText, mention: Mention, place: Place, *, by_comma: bool = True) -> bool:
    """Whether nothing but a conjunction, a comma or a date's own weekday lies between the two."""
    low, high = sorted(((mention.start, mention.end), (place.start, place.end)))
    between = (
        _WEEKDAY.sub("", answer.text[low[1] : high[0]]) if mention.kind == "date" else answer.text[low[1] : high[0]]
    )
    if not by_comma and not re.search(r"[\w/&]", between):
        return False
    return _CONJUNCTIONS.fullmatch(between) is not None or _ADDS.fullmatch(between) is not None


def _in_evidence(case: Case, mention: Mention) -> bool:
    dated = isinstance(mention, DateMention)
    if any(mention.same(m) for m in case.evidence_mentions if not (dated and isinstance(m, WeekdayMention))):
        return True
    if mention.kind != "proper":
        return False
    said = {w for s in case.evidence for t in s.turns for w in words(f"{t.speaker} {t.text}")}
    return set(mention.name) <= said | set(words(case.question.text))


def _counts_talk(case: Case, mention: Mention) -> bool:
    """``two accounts``, ``two incompatible stories``: a number of things that an answer speaks about, and no value."""
    answer = case.answer
    if not isinstance(mention, AmountMention):
        return False
    ahead = answer.text[: mention.start]
    if _NUMBERS_A_THING.search(ahead):
        return True
    between = mention.unit is None and _BETWEEN_TWO.search(ahead)
    if mention.amount == 2 and (case.versions or between or _THE_TWO_OF.search(ahead)):
        return True
    units = {v.unit and canonical_unit(v.unit) for v in case.required if isinstance(v, AmountValue)}
    asked = set(content_words(case.question.text))
    if mention.amount <= _FEW and mention.unit is not None and not is_known_unit(mention.unit):
        return mention.unit not in units and mention.unit not in asked
    if _MORE_THAN_BEFORE.match(answer.text[mention.end :]) or (mention.unit in ("more", "fewer", "less", "extra")):
        return True
    talk = {stem(w) for w in word_list("talk_words.v1.txt")}
    behind = words(answer.text[mention.end :])[:1]
    return mention.unit in talk or (mention.amount <= _FEW and bool({stem(w) for w in behind} & talk))


def _is_small_count(case: Case, mention: Mention) -> bool:
    """``go up for one and come down with three``: a small bare number in no clause of a gold value that counts nothing.

    No near value of a gold with a unit, or of a gold well above it, looks like that.
    """
    if not isinstance(mention, AmountMention) or mention.unit is not None or mention.amount > _FEW:
        return False
    clause = case.answer.clause_at(mention.start)
    if any(clause.start <= p.start < clause.end for v in case.required for p in places(v, case.answer)):
        return False
    counted = [v for v in case.required if isinstance(v, AmountValue)]
    return all(v.unit is not None or v.amount > _WELL_ABOVE for v in counted)


def _is_idiom(case: Case, mention: Mention) -> bool:
    """``for a second``, ``in a day``, ``two times``: a way of speaking, in a clause that holds no gold value."""
    answer = case.answer
    clause = answer.clause_at(mention.start)
    if any(clause.start <= p.start < clause.end for v in case.required for p in places(v, answer)):
        return False
    said = answer.text[mention.start : mention.end].lower()
    if isinstance(mention, DurationMention | AmountMention) and said.startswith(("a ", "an ")):
        return _IDIOM_AHEAD.search(answer.text[clause.start : mention.start]) is not None
    asked = words(case.question.text)
    counts = isinstance(mention, AmountMention) and mention.unit in ("time", "times")
    return counts and not {"times", "often", "frequently"} & set(asked)


def _tells_versions_apart(case: Case, mention: Mention) -> bool:
    """Whether it is the ``one`` of ``the one … the other`` or the ``two`` of ``one of the two``."""
    if not case.versions or not isinstance(mention, AmountMention):
        return False
    of_two = mention.amount == 2 and re.search(
        r"\b(?:of|between) (?:the|those|these)\s+$", case.answer.text[: mention.start]
    )
    return bool(of_two) or (mention.amount == 1 and mention.unit is None)


def _distinct(mentions: Sequence[Mention]) -> int:
    kept: list[Mention] = []
    for mention in mentions:
        if not any(mention.same(other) for other in kept):
            kept.append(mention)
    return len(kept)


def _quote(case: Case, mention: Mention) -> str:
    return repr(case.answer.text[mention.start : mention.end])
