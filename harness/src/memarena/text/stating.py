"""Does a text state a typed value, and how: plainly, denied, or taken back by a hedge?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from memarena.dataset.values import (
    AmountValue,
    DateValue,
    DurationValue,
    NameValue,
    PlaceValue,
    TermValue,
    TimeValue,
    WeekdayValue,
)
from memarena.text.amounts import canonical_unit
from memarena.text.lexicon import word_list
from memarena.text.mentions import (
    WEEKDAYS,
    AmountMention,
    DateMention,
    DurationMention,
    Kind,
    Mention,
    PartialDate,
    ProperMention,
    TimeMention,
    WeekdayMention,
)
from memarena.text.numbers import digits_for_words
from memarena.text.phrasing import find_phrases
from memarena.text.reading import ReadText
from memarena.text.time_patterns import UNIT_DAYS
from memarena.text.words import Clause, stem, tidy, words

ScalarValue = NameValue | PlaceValue | TermValue | DateValue | WeekdayValue | TimeValue | DurationValue | AmountValue

KIND_OF: dict[str, Kind | None] = {
    "name": "proper",
    "place": "proper",
    "term": None,
    "date": "date",
    "weekday": "weekday",
    "time": "time",
    "duration": "duration",
    "amount": "amount",
}
"""Which kind of mention competes with a value; a term has none that can be told from other words."""

_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "aunt", "uncle"))
_ARTICLES = frozenset(("a", "an", "the"))
_DENIED = re.compile(
    r"\b(?:not|never|no longer|rather than|instead of|other than|except|neither|nor)\b"
    r"(?! only\b| just\b| until\b| later\b| before\b| earlier\b)"
    # Who begins to say something else has left it: `instead of X it should say Y`.
    r"(?:\W+(?!(?:it|he|she|they|you|we) (?:should|must|ought|needs?|says?|said|reads?)\b)[\w']+){0,5}\W*$"
)
_ALL_BUT = re.compile(r"\b(?:(?:any|every)(?:one|body|thing|where| \w+)|all) but\W*(?:the |a |an |on |in |at )?$")
_NEGATED = re.compile(r"\b(?:not|never|no|nobody|nothing)\b")
_NOT_UNTIL = re.compile(r"\bnot (?:\w+ ){1,2}(?=until\b)")
_DENIED_BEHIND = re.compile(r"^\W*(?:is|was|are|were) (?:not|never|wrong|incorrect|false|mistaken)\b")
_SET_ASIDE = re.compile(
    r"(?<!not )(?<!never )\b(?:forget|disregard|ignore|discard|scrap|never mind|cross out|strike(?: out)?)(?: about)?"
    r"(?: the| a| an)?$"
)
"""``Forget X; it was Y``."""
_WITHDRAWN = re.compile(
    r"^(?:\w+\W+){0,3}(?:not sure|not certain|unsure|can not be (?:sure|certain)|not entirely (?:sure|certain)"
    r"|(?:might|could|may) be wrong|do not quote me)\b"
    r"(?!\W+(?:what|when|where|who|why|how|which|about(?! (?:it|that|this)\b)|of)\b)"
)


_SPOT = re.compile(r"(?:in|inside|at) (?:the|a|an|my|her|his|their) (?=\S)", re.IGNORECASE)
_PREPOSITION_AHEAD = re.compile(
    r"\b(?:in|into|inside|at|on|onto|under|underneath|behind|above|below|beneath|beside|near|next to|outside|opposite|"
    r"between|by|over|from)\s+(?:(?:the|a|an|my|your|her|his|their)\s+)?[\"'*_]*$",
    re.IGNORECASE,
)


def kinds_of(value: ScalarValue) -> tuple[Kind, ...]:
    """Kinds of mention that compete with a value. An amount of minutes or years is told as a length of time too."""
    kind = KIND_OF[value.type]
    if kind is None:
        return ()
    return (kind, "duration") if _length_of(value) is not None else (kind,)


def _length_of(value: ScalarValue) -> DurationMention | None:
    """An amount of a unit of time as a length; None for other values."""
    if not isinstance(value, AmountValue) or value.unit is None:
        return None
    unit = value.unit.lower().removesuffix("s")
    unit = {"sec": "second", "min": "minute", "hr": "hour"}.get(unit, unit)
    return DurationMention(0, 0, value.amount * UNIT_DAYS[unit], 0.0) if unit in UNIT_DAYS else None


@dataclass(frozen=True)
class Place:
    """Where a value stands in a text."""

    start: int
    end: int


def places(value: ScalarValue, text: ReadText) -> list[Place]:
    """Everywhere that the text says the value, in whatever form; empty if it does not."""
    if isinstance(value, NameValue):
        return _name_places(value, text)
    if isinstance(value, PlaceValue | TermValue):
        named = isinstance(value, PlaceValue)
        forms = (value.name if isinstance(value, PlaceValue) else value.text, *value.aliases)
        found = [place for form in forms for place in phrase_places(form, text, str if named else stem)]
        return _merged([*found, *(place for form in forms for place in _spots(form, text))])
    if isinstance(value, AmountValue) and value.amount == 1:
        spoken = [Place(*m.span()) for m in re.finditer(r"\b(?:one|once|a single)\b", text.text, re.IGNORECASE)]
        return _merged([*spoken, *_mention_places(value, text)])
    return _mention_places(value, text)


def is_value(value: ScalarValue, mention: Mention, today: date | None) -> bool:
    """Whether a mention means the value."""
    if isinstance(value, NameValue | PlaceValue | TermValue):
        forms = (value.text if isinstance(value, TermValue) else value.name, *value.aliases)
        return isinstance(mention, ProperMention) and any(set(mention.name) <= set(words(form)) for form in forms)
    if isinstance(value, DateValue):
        return _is_date(value.date, mention, today)
    length = _length_of(value)
    if length is not None and isinstance(mention, DurationMention):
        return length.same(mention)
    if isinstance(value, AmountValue) and value.unit is None and isinstance(mention, TimeMention):
        # `One put it at 4`, `aside from fourteen`: a bare number that reads like an hour.
        return value.amount * 60 in mention.minutes
    return _wanted(value).same(mention)


def _wanted(value: WeekdayValue | TimeValue | DurationValue | AmountValue) -> Mention:
    """The mention that a value would make."""
    if isinstance(value, WeekdayValue):
        return WeekdayMention(0, 0, WEEKDAYS.index(value.weekday))
    if isinstance(value, TimeValue):
        hours, minutes = value.time.split(":")
        return TimeMention(0, 0, frozenset({int(hours) * 60 + int(minutes)}))
    if isinstance(value, DurationValue):
        return DurationMention(0, 0, value.days, 0.0)
    return AmountMention(0, 0, value.amount, canonical_unit(value.unit) if value.unit else None)


def denied(text: ReadText, place: Place) -> bool:
    """Whether the clause denies what stands there (``not on Tuesday``, ``Tuesday is wrong``)."""
    clause = text.clause_at(place.start)
    before = " ".join(words(text.text[clause.start : place.start]))
    behind = " ".join(words(text.text[place.end : clause.end]))
    if _ALL_BUT.search(before):
        return not _NEGATED.search(before)
    before = _NOT_UNTIL.sub("", before)
    if _SET_ASIDE.search(before):
        return True
    return bool(_DENIED.search(before)) or bool(_DENIED_BEHIND.match(behind))


def hedged(text: ReadText, place: Place) -> str:
    """The hedge that takes back what stands there: in its own clause, or right behind as a withdrawal. Else empty."""
    clause = text.clause_at(place.start)
    own = hedge_in(clause.text)
    if own:
        return own
    behind = next((c for c in text.clauses if c.start >= clause.end), None)
    if behind is not None and _WITHDRAWN.match(" ".join(words(behind.text))):
        return behind.text
    # Two clauses ahead: a weekday before its date stands between ("I am guessing, Friday, the 3rd").
    ahead = [c for c in text.clauses if c.end <= clause.start][-2:]
    return next((hedge_in(c.text) for c in ahead if _is_bare_hedge(c)), "")


def phrase_places(phrase: str, text: ReadText, form: Callable[[str], str] = stem) -> list[Place]:
    """Where the words of a phrase stand one behind the other; articles do not count.

    ``form`` says which words are the same: by their stems unless told otherwise.
    """
    wanted = [form(w) for w in _phrase_words(phrase)]
    tokens = [(m.start(), m.end(), _bare(m.group())) for m in _WORD.finditer(text.text)]
    kept = [(start, end, form(word)) for start, end, word in tokens if word not in _ARTICLES]
    width = len(wanted)
    said = [word for _, _, word in kept]
    starts = (i for i in range(len(kept) - width + 1) if said[i : i + width] == wanted) if width else ()
    return [Place(kept[i][0], kept[i + width - 1][1]) for i in starts]


def _spots(form: str, text: ReadText) -> list[Place]:
    """Where ``in the umbrella stand`` is said as ``the umbrella stand``, with no other preposition before it."""
    opening = _SPOT.match(form)
    if opening is None:
        return []
    bare = form[opening.end() :]
    return [p for p in phrase_places(bare, text) if not _PREPOSITION_AHEAD.search(text.text[: p.start])]


# ------------------------------------------------------------------ how the kinds are matched


def _name_places(value: NameValue, text: ReadText) -> list[Place]:
    """Full name, aliases, or the first name alone unless another surname follows it."""
    forms = (value.name, *value.aliases)
    found = [p for form in forms for p in phrase_places(form, text, str) if _is_name_there(form, text, p)]
    parts = [w for w in _phrase_words(value.name) if w not in _TITLES]
    if len(parts) > 1:
        for place in phrase_places(parts[0], text, str):
            follower = re.match(r"\s+([A-Z][\w'-]+)", text.text[place.end :])
            other_surname = follower and _bare(follower.group(1)) not in (parts[-1], *_grammar())
            if not other_surname and _is_name_there(parts[0], text, place):
                found.append(place)
        for place in phrase_places(parts[-1], text, str):
            title = re.search(r"(\w+)\.?\s+$", text.text[: place.start])
            if title and title.group(1).lower() in _TITLES:
                found.append(place)
    return _merged(found)


def _is_name_there(form: str, text: ReadText, place: Place) -> bool:
    """A name that is also an everyday word (``Will``, ``Rose``) has to be written as a name."""
    bare = _phrase_words(form)
    everyday = len(bare) == 1 and (bare[0] in _grammar() or bare[0] in word_list("common_words.v1.txt"))
    return not everyday or text.text[place.start].isupper()


def _grammar() -> frozenset[str]:
    return word_list("function_words.v1.txt")


def _mention_places(value: ScalarValue, text: ReadText) -> list[Place]:
    return [Place(m.start, m.end) for m in text.mentions if is_value(value, m, text.today)]


def _is_date(wanted: str, mention: Mention, today: date | None) -> bool:
    year, month, day = (*(int(part) for part in wanted.split("-")), None, None)[:3]
    gold = PartialDate(year, month, day)
    if isinstance(mention, WeekdayMention):
        return gold.whole is not None and today is not None and _near_weekday(gold.whole, mention.weekday, today)
    if not isinstance(mention, DateMention):
        return False
    return any(_says(reading, gold) for reading in mention.readings)


def _says(reading: PartialDate, gold: PartialDate) -> bool:
    """Whether a reading says all of the gold; the year may go without saying where a month is said."""
    if not reading.agrees(gold):
        return False
    if gold.day is not None:
        return reading.day is not None
    if gold.month is not None:
        return reading.month is not None
    return reading.year is not None


def _near_weekday(day: date, weekday: int, today: date) -> bool:
    """A bare weekday means the day of that name within a week before or after the question."""
    return day.weekday() == weekday and abs(day - today) <= timedelta(days=7)


# ------------------------------------------------------------------ small helpers


@lru_cache(maxsize=4096)
def _phrase_words(phrase: str) -> tuple[str, ...]:
    # The forms of a gold value are looked for in every answer.
    found = (_bare(m.group()) for m in _WORD.finditer(digits_for_words(tidy(phrase.replace("_", " ")))))
    return tuple(w for w in found if w not in _ARTICLES)


@lru_cache(maxsize=16_384)
def _bare(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.lower().removesuffix("'s"))
    return "".join(c for c in plain if c not in "'." and not unicodedata.combining(c))


def _merged(found: Sequence[Place]) -> list[Place]:
    kept: list[Place] = []
    for place in sorted(set(found), key=lambda p: (p.start, -p.end)):
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept


def hedge_in(clause: str) -> str:
    """The phrase of a clause that offers what it says as a mere possibility; empty if there is none."""
    spoken = words(clause)
    # What `you might be` is said of the listener.
    found = [h for h in find_phrases("hedges.v1.txt", "strong", clause) if spoken[h.at - 1 : h.at] != ["you"]]
    return found[0].text if found else ""


def _is_bare_hedge(clause: Clause) -> bool:
    """A clause such as ``maybe`` or ``I am not sure`` that says nothing of its own."""
    spoken = words(clause.text)
    # `Not sure why you forgot` doubts something else.
    return len(spoken) <= 5 and not {"you", "why"} & set(spoken) and bool(hedge_in(clause.text))
