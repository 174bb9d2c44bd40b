"""The rules by which an answer states typed values: which are missing, denied, hedged, contradicted or invented."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from memarena.dataset.values import DateValue, NameValue, OrderValue, PlaceValue, SetValue, TermValue, Value
from memarena.judge.value_terms import Beside, rival_term
from memarena.log.records import EvidenceSession
from memarena.text.amounts import is_known_unit
from memarena.text.lexicon import word_list
from memarena.text.mentions import AmountMention, DateMention, Kind, Mention, PartialDate, WeekdayMention
from memarena.text.reading import ReadText, read_text
from memarena.text.stating import Place, ScalarValue, denied, hedged, is_value, kinds_of, places
from memarena.text.words import Clause, content_words, stem, words

FIRST_WORDS = 60
"""An answer has to come to the point within so many words."""
_FEW = 4
"""So many accounts or sources an answer may count with an adjective between."""
EXTRA_VALUES = 2
"""So many values of a type beyond the gold's may be named."""

Evidence = Callable[[], Sequence[EvidenceSession]]


@dataclass(frozen=True)
class Case:
    """One answer beside what it is held against. ``answer`` holds its first 60 words."""

    answer: ReadText
    question: ReadText
    evidence: Sequence[EvidenceSession]
    required: tuple[ScalarValue, ...]
    """Every scalar value that a right answer states."""
    barred: tuple[ScalarValue, ...] = ()
    """Values that a right answer may mention only to deny them (the premise of a counterfactual)."""
    versions: bool = False
    """Whether the values are versions of one thing: then ``one of them said`` tells them apart and hedges nothing."""

    @cached_property
    def evidence_mentions(self) -> tuple[Mention, ...]:
        """Values in the evidence: those said, and the days on which they were said."""
        found: list[Mention] = []
        for session in self.evidence:
            found += read_text(f"{session.started_at} {session.place or ''} {session.group or ''}").mentions
            for turn in session.turns:
                said_at = turn.said_at or session.started_at
                said = read_text(turn.text, day_of(said_at))
                found += [*said.mentions, *_days_meant(said)]
                found += read_text(f"{said_at} {turn.speaker}").mentions
        return tuple(found)


def _days_meant(said: ReadText) -> list[DateMention]:
    """Bare weekdays as the days they can mean: those within a week of the day on which they were said."""
    if said.today is None:
        return []
    near = [said.today + timedelta(days=offset) for offset in range(-7, 8)]
    return [
        DateMention(m.start, m.end, frozenset(PartialDate.of(day) for day in near if day.weekday() == m.weekday))
        for m in said.mentions
        if isinstance(m, WeekdayMention)
    ]


def day_of(moment: str) -> date | None:
    """The day of an RFC 3339 moment; None where it is none."""
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None


def first_words(text: str, count: int = FIRST_WORDS) -> str:
    """The text up to its ``count``-th word."""
    ends = [m.end() for m in re.finditer(r"\S+", text)]
    return text if len(ends) <= count else text[: ends[count - 1]]


def fault(case: Case) -> str:
    """Why the answer is wrong, in one line; empty if it states all required values and no rule is broken."""
    for value in case.required:
        if problem := unstated(case.answer, value, versions=case.versions):
            return problem
    for value in case.barred:
        if problem := _affirmed(case, value):
            return problem
    return _other_values(case)


def unstated(answer: ReadText, value: ScalarValue, *, versions: bool = False) -> str:
    """Why the answer does not state the value; empty if it does, plainly and at least once.

    With ``versions`` a phrase such as ``one of them`` tells versions apart and is no hedge.
    """
    found = places(value, answer)
    if not found:
        return f"does not state {describe(value)}"
    # What was said before a change was said, whatever holds now ("not three any more").
    changed = versions and _TELLS_CHANGE.search(" ".join(words(answer.text))) is not None
    affirmed = [p for p in found if changed or not denied(answer, p)]
    if not affirmed:
        return f"denies {describe(value)}"
    hedges = [hedged(answer, p) for p in affirmed]
    if versions:
        hedges = ["" if _TELLS_APART.match(h) else h for h in hedges]
    return "" if "" in hedges else f"hedges {describe(value)} away ({hedges[0]!r})"


_TELLS_CHANGE = re.compile(
    r"\b(?:any ?more|any longer|no longer|at first|first|originally|initially|earlier|before|previously|formerly|"
    r"beforehand|until|used to|instead|anew|changed|switched|replaced|moved|corrected|revised|updated|"
    r"took (?:it|that) back|had (?:said|claimed|told|been)|but now|by now|now)\b"
)
_TELLS_APART = re.compile(r"(?:one|some|most) of (?:them|these|those)$")


def describe(value: Value) -> str:
    """A value in a few words, for reasons."""
    if isinstance(value, SetValue):
        return " + ".join(describe(m) for m in value.members)
    if isinstance(value, OrderValue):
        return " → ".join(i.text for i in value.items)
    fields = value.model_dump(exclude={"type", "aliases"}, exclude_none=True)
    return f"{value.type} {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in fields.values())}"


# ------------------------------------------------------------------ values beside the gold


def _other_values(case: Case) -> str:
    """Rules (a) to (c): a rival in the gold's own place, an invented value, too many values."""
    return _left_open(case) or _rival_terms(case) or _other_mentions(case)


def _left_open(case: Case) -> str:
    match = None if case.versions else _LEAVES_OPEN.search(case.answer.text)
    return f"leaves open which ({match.group().strip()!r})" if match else ""


def _other_mentions(case: Case) -> str:
    """Values of the gold's own type, which can be told from other words."""
    for kind in dict.fromkeys(kind for v in case.required for kind in kinds_of(v)):
        gold = [v for v in case.required if kind in kinds_of(v)]
        others = [
            m
            for m in case.answer.of_kind(kind)
            if not _accounted_for(case, m) and not _counts_talk(case.answer, m) and not _tells_versions_apart(case, m)
        ]
        own_question = case.question.of_kind(kind)
        gold_is_asked = any(is_value(v, m, case.answer.today) for v in gold for m in own_question)
        for mention in others:
            known = any(mention.same(m) for m in own_question)
            if (not known or gold_is_asked) and _in_answering_place(case, mention, kind):
                return f"also gives {_quote(case, mention)} for the same"
            if not known and not _in_evidence(case, mention):
                return f"names {_quote(case, mention)}, which is in neither question nor evidence"
        extra = [m for m in others if not any(m.same(q) for q in own_question)]
        if _distinct(extra) > EXTRA_VALUES:
            return f"names {_distinct(extra)} more values than the gold has"
    return ""


def _accounted_for(case: Case, mention: Mention) -> bool:
    """Whether a mention is a gold or barred value, or is denied. More than the gold's date needs the evidence."""
    today = case.answer.today
    stated = [v for v in (*case.required, *case.barred) if is_value(v, mention, today)]
    if stated:
        return not any(_says_more(v, mention) for v in stated) or _in_evidence(case, mention)
    inside = [p for v in (*case.required, *case.barred) for p in places(v, case.answer)]
    if any(p.start < mention.end and mention.start < p.end for p in inside):
        return True
    return denied(case.answer, Place(mention.start, mention.end))


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


_MORE_THAN_BEFORE = re.compile(r"\s+(?:more|fewer|less|extra|additional)\b(?! than)", re.IGNORECASE)
"""A difference from another number (``three more had signed up``)."""
_HOLLOW = frozenset(stem(w) for w in ("answer", "date", "day", "time", "name", "place", "amount"))
_CONJUNCTIONS = re.compile(
    r"[\s,/&]*(?:(?:and|or|and/or|maybe|perhaps|either|then)[\s,]*)*",
    re.IGNORECASE,
)
_ADDS = re.compile(r"\s+(?:plus|along with|together with|as well as)\s+(?:the\s+)?", re.IGNORECASE)
"""Without a comma: behind one, what is added is another matter (``50 euros, plus 20 for parking``)."""
_WITH = re.compile(r"\b(?:with|from|to|between|you and|me and)\s+$", re.IGNORECASE)
_LEAVES_OPEN = re.compile(
    r"\b(?:alternatively|or else|or alternatively|or rather|one or the other|partly\b.*\bpartly)\b|"
    r"(?:^|[.;,(]\s*)otherwise\b",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b(?:\s+the\b)?", re.IGNORECASE)
_REPORTS = re.compile(
    r"\b(?:said|says?|told|tells?|mention(?:s|ed)?|ask(?:s|ed)?|stated|talk(?:s|ed)?|spoke|came up|comes up|brought up|"
    r"discuss(?:ed|ing|ion|ions)?|conversations?|chat(?:s|ted|ting)?|talking|speaking|spoken|noted|heard|learned|recorded|"
    r"wrote|comes? from|came from|raised|shared|remark(?:s|ed)?|passages?|"
    r"(?:goes|went|gone|going) (?:into|over)|exchange[sd]?|dated|according to|recall(?:s|ed)?|"
    r"(?:go|goes|going|went) by)\b",
    re.IGNORECASE,
)
_ASKS_TO_RECALL = re.compile(r"\b(?:help me|can you|do you|please) recall\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?\n]+(?=\s|$)")


def _joined(answer: ReadText, mention: Mention, place: Place) -> bool:
    """Whether nothing but a conjunction, a comma or a date's own weekday lies between the two."""
    low, high = sorted(((mention.start, mention.end), (place.start, place.end)))
    between = (
        _WEEKDAY.sub("", answer.text[low[1] : high[0]]) if mention.kind == "date" else answer.text[low[1] : high[0]]
    )
    return _CONJUNCTIONS.fullmatch(between) is not None or _ADDS.fullmatch(between) is not None


def _in_evidence(case: Case, mention: Mention) -> bool:
    dated = isinstance(mention, DateMention)
    if any(mention.same(m) for m in case.evidence_mentions if not (dated and isinstance(m, WeekdayMention))):
        return True
    if mention.kind != "proper":
        return False
    said = {w for s in case.evidence for t in s.turns for w in words(f"{t.speaker} {t.text}")}
    return set(mention.name) <= said | set(words(case.question.text))


def _counts_talk(answer: ReadText, mention: Mention) -> bool:
    """``two accounts``, ``two incompatible stories``: a number of things that an answer speaks about, and no value."""
    if not isinstance(mention, AmountMention):
        return False
    if _MORE_THAN_BEFORE.match(answer.text[mention.end :]) or (mention.unit in ("more", "fewer", "less", "extra")):
        return True
    talk = {stem(w) for w in word_list("talk_words.v1.txt")}
    behind = words(answer.text[mention.end :])[:1]
    qualified = mention.amount <= _FEW and mention.unit is not None and not is_known_unit(mention.unit)
    return mention.unit in talk or (qualified and bool({stem(w) for w in behind} & talk))


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
    rivals = _listed_beside(case, terms)
    if terms and len(rivals) > EXTRA_VALUES:
        return f"lists {len(rivals)} more values than the gold has"
    thing = rival_term(Beside(case.answer, case.question.text, case.evidence, case.required, case.barred))
    return f"also gives {thing!r} for the same" if thing else ""


def _holds_or(values: Sequence[ScalarValue]) -> bool:
    return any("or" in words(v.text) for v in values if isinstance(v, TermValue))


def _listed_beside(case: Case, terms: Sequence[ScalarValue]) -> list[str]:
    """Members of lists in which a term stands that are none of the required values."""
    found = []
    for sentence in re.split(r"[.!?\n]+", case.answer.text):
        if sentence.count(",") + len(re.findall(r"\band\b", sentence)) < EXTRA_VALUES:
            continue
        read = ReadText(sentence, case.answer.today)
        if any(places(t, read) for t in terms):
            found += extra_members(read, case.required, case.question)
    return found


def extra_members(answer: ReadText, wanted: Sequence[ScalarValue], question: ReadText) -> list[str]:
    """Short list members (``a, b and c``) of an answer that are no wanted value and no word of the question."""
    asked = set(content_words(question.text))
    grammar = word_list("function_words.v1.txt")
    found = []
    for piece in re.split(r",|;|\band\b|&|\n", answer.text):
        read = ReadText(piece, answer.today)
        news = set(content_words(piece)) - asked - {stem(w) for w in grammar}
        if news and len(words(piece)) <= 4 and not any(places(v, read) for v in wanted):
            found.append(piece.strip())
    return found


# ------------------------------------------------------------------ counterfactuals


_CORRECTS = re.compile(
    r"n't\b|\b(?:not|cannot|no|never|nobody|nowhere|none|stop you|off|yet|impression|misunderstanding|but|"
    r"actually|rather|instead|incorrect|wrong|wrongly|mistake|mistaken|false|contrary|however|though|"
    r"although|whereas|really|correct(?:ed|ing|ion)|replaced?|replacing|chang(?:e|ed|ing)|fix|swap|confus(?:e|ed|ing)|"
    r"mix(?:ed|ing)?|for granted|ought to|should be|premise|"
    r"assum(?:e[sd]?|ing|ptions?)|contradict(?:s|ed)?|error|untrue|inaccurate|in (?:fact|truth|reality))\b"
)


def _affirmed(case: Case, value: ScalarValue) -> str:
    """Whether the barred value is said without being corrected in its own or a neighbouring clause."""
    for place in places(value, case.answer):
        if denied(case.answer, place):
            continue
        clause = case.answer.clause_at(place.start)
        position = case.answer.clauses.index(clause) if clause in case.answer.clauses else 0
        around = " ".join(c.text.lower() for c in case.answer.clauses[max(0, position - 1) : position + 2])
        if not _CORRECTS.search(around):
            return f"affirms {describe(value)}, which the question only supposes"
    return ""


def _quote(case: Case, mention: Mention) -> str:
    return repr(case.answer.text[mention.start : mention.end])
