"""Reads periods of the calendar from a text: "the week before 6 July 2023", "early May", "9-10 September".

:mod:`memarena_dataset.values.dates` reads single days for typed golds. This module reads any wording by which an
annotator or a model says *when*, as first and last day, so that two wordings of one period can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memarena_dataset.values.calendar import MONTHS, weekday_number
from memarena_dataset.values.numbers import digits_for_words
from memarena_dataset.values.words import tidy

_NO_YEAR = 2000
"""The year in which a date without a year is computed: a leap year, so that 29 February exists."""

_MONTH_NAMES = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?"
)
_MONTH = rf"(?:{_MONTH_NAMES})\b\.?"
"""``July``, ``Sept.``"""
_YEAR = r"(?:19|20|21)\d\d(?!\d)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?![\d:])"
_UNIT = r"(?:day|night|weekend|week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_PART = (
    r"(?:early(?:\sin)?|mid(?:dle)?(?:\sof)?|late(?:\sin)?|"
    r"(?:the\s)?(?:(?:very\s)?(?:beginning|start|middle|end|first\shalf|second\shalf|first\sdays|last\sdays))\sof|"
    r"(?:the\s)?(?:first|second|third|last)\s(?:week|weekend)\s(?:of|in))"
)
"""``early``, ``the beginning of``, ``the last week of``."""
_SEASON = r"(?:spring|summer|autumn|fall|winter)"

_PATTERN = re.compile(
    rf"""
    # iso: 2023-07-06; range: 9-10 September 2023; backrange: September 9 to 10; dmy: 6th of July 2023;
    # mdy: July 6, 2023; monthnumber: 7/2023; numeric: 7/6/2023; month: early May 2023; season: summer of 2023;
    # lone: in May; only: May; year: mid 2023. A group within a form begins with its letter: ry, the year of a range.
    (?P<iso>(?<!\d)(?P<iy>\d{{4}})-(?P<im>\d\d)-(?P<id>\d\d)(?!\d))
  | (?P<range>(?<!\d)(?P<ra>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:-|to|and|or|&)\s*(?P<rb>\d{{1,2}})(?:st|nd|rd|th)?
      \s+(?:of\s+)?(?P<rm>{_MONTH})(?:,?\s*(?P<ry>{_YEAR}))?)
  | (?P<backrange>\b(?P<bm>{_MONTH})\s+(?P<ba>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:-|to|and|or|&|through)\s*
      (?P<bb>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])(?:,?\s*(?P<by>{_YEAR}))?)
  | (?P<dmy>(?<![\d.:])(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?[\s-]*(?P<dm>{_MONTH})(?:,?[\s-]*(?P<dy>{_YEAR}))?)
  | (?P<mdy>\b(?P<mm>{_MONTH})[\s-]*(?:the\s+)?(?P<md>{_DAY})(?:,?\s*(?P<myr>{_YEAR}))?)
  | (?P<monthnumber>(?<![\d/.])(?P<xm>\d{{1,2}})/(?P<xy>{_YEAR})(?![\d/]))
  | (?P<numeric>(?<![\d/.])(?P<na>\d{{1,2}})/(?P<nb>\d{{1,2}})/(?P<ny>\d{{4}})(?![\d/]))
  | (?P<month>\b(?P<part>{_PART}\s*-?\s*)?(?P<mo>{_MONTH}),?\s*(?:of\s+)?(?P<moy>{_YEAR}))
  | (?P<season>\b(?P<sn>{_SEASON})(?:\s+of)?,?\s+(?P<sy>{_YEAR}))
  | (?P<lone>\b(?P<lpart>(?:{_PART}|in|during|since|until|till|by|around|throughout|of)\s*-?\s*)
      (?P<lmo>{_MONTH})(?!\s*\d))
  | (?P<only>^\W*(?P<omo>{_MONTH})\W*$)
  | (?P<year>(?<![\d$€£.,:/-])\b(?P<ypart>(?:{_PART})\s*-?\s*)?(?P<y>{_YEAR})(?![\d%€:/]|[.,]\d))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MOVED = re.compile(
    rf"\b(?:(?P<count>\d{{1,2}}|a few|a couple(?: of)?|some|several|an?)\s+)?(?P<what>{_UNIT})s?\s+"
    r"(?:just\s+|right\s+|directly\s+|immediately\s+|shortly\s+)?"
    r"(?P<side>before|prior to|preceding|leading up to|after|following|of)\s+(?:the\s+)?"
    r"(?:(?:week|conversation|session|chat|talk|date)\s+(?:of|on)\s+)?(?:\w+day,?\s+)?$",
    re.IGNORECASE,
)
"""Words before a date that refer to another period: ``two weekends before``, ``the week of``, ``a few days after``."""
_GLUED = re.compile(r"(?<=\d)(?=[A-Za-z]{3,})(?!(?:st|nd|rd|th)\b)")
"""Position between a number and a word without a blank: in ``6July``, but not in ``6th``."""
_MONTH_SLIP = re.compile(r"(?<=\d )[a-z]{4,9}\b|\b[a-z]{4,9}(?=,? (?:19|20)\d\d)", re.IGNORECASE)
"""A word in the position of a month, which may be a misspelled month: ``6 Setpember``, ``Janury 2023``."""
_FEW_MOST = 6
"""Maximum of days, weeks or months that "a few" means."""
_PARTS = {
    "first half": (0, 0.5),
    "second half": (0.5, 1),
    "first days": (0, 0.3),
    "last days": (0.7, 1),
    "early": (0, 0.4),
    "begin": (0, 0.4),
    "start": (0, 0.4),
    "mid": (0.25, 0.75),
    "late": (0.6, 1),
    "end": (0.6, 1),
}
"""Parts of a month or year by their first words: begin and end as shares of its length."""
_SEASONS = {  # first and last month; winter ends in the next year
    "spring": (3, 5),
    "summer": (6, 8),
    "autumn": (9, 11),
    "fall": (9, 11),
    "winter": (12, 2),
}


@dataclass(frozen=True)
class Period:
    """A period of days, both ends included.

    Attributes:
        first, last: its first and last day; in the year 2000 if ``yearless``.
        yearless: whether the text names no year.
        start, end: offsets in the text as :func:`periods` reads it.
        vague: whether its ends are not exact ("early May", "the week before").
    """

    first: date
    last: date
    yearless: bool
    start: int
    end: int
    vague: bool = False
    relation: str = ""
    """Its relation to a date, such as ``week before``, ``friday before``; empty if it has none."""
    anchor: date | None = None
    """The date that the relation refers to; None without a relation."""

    @property
    def days(self) -> int:
        """Length in days."""
        return (self.last - self.first).days + 1

    def states(self, gold: Period) -> bool:
        """Whether this period, as an answer, agrees with ``gold``: it is within it, or nearly the same."""
        mine, other = _in_one_year(self, gold)
        if self.relation and self.relation == gold.relation and not self.yearless and not gold.yearless:
            return self.anchor == gold.anchor
        if mine.first >= other.first and mine.last <= other.last:
            return True
        if other.days == 1:
            return mine.days <= 2 and mine.first <= other.first <= mine.last
        shared = (min(mine.last, other.last) - max(mine.first, other.first)).days + 1
        return shared > 0 and 2 * shared >= mine.days and mine.days <= other.days + 7

    def overlaps(self, other: Period) -> bool:
        """Whether the two periods share a day."""
        mine, theirs = _in_one_year(self, other)
        return mine.first <= theirs.last and theirs.first <= mine.last


def readable(text: str) -> str:
    """Prepare a text for :func:`periods`: tidied, numbers as digits, months separated from digits and spelled right."""
    text = _GLUED.sub(" ", digits_for_words(tidy(text)))
    return _MONTH_SLIP.sub(lambda m: _right_month(m.group()), text)


def periods(text: str) -> list[Period]:
    """Return the periods of a text prepared by :func:`readable`, in order."""
    result = []
    for match in _PATTERN.finditer(text):
        if (
            match.group("lone")
            and match.group("lmo").lower() in ("may", "mar", "march")
            and match.group("lmo").islower()
        ):
            continue
        base = _base(match)
        if base is not None:
            result.append(_moved(text, match, base))
    return _joined(text, result)


def _joined(text: str, parts: list[Period]) -> list[Period]:
    """Join ``between A and B`` and ``from A to B`` to one period."""
    result: list[Period] = []
    for period in parts:
        before = result[-1] if result else None
        if (
            before is not None
            and re.fullmatch(r"\s*(?:and|to|until|through|-|—)\s*", text[before.end : period.start])
            and re.search(r"\b(?:between|from)\s+(?:the\s+)?$", text[: before.start], re.IGNORECASE)
        ):
            start, last = _in_one_year(before, period)
            if start.first <= last.last:
                result[-1] = replace(period, first=start.first, last=last.last, start=before.start)
                continue
        result.append(period)
    return result


def _right_month(word: str) -> str:
    lowered = word.lower()
    if lowered in MONTHS:
        return word
    close = [m for m in MONTHS if m[0] == lowered[0] and abs(len(m) - len(lowered)) <= 1 and _one_slip(m, lowered)]
    return close[0].capitalize() if len(close) == 1 else word


def _one_slip(right: str, spelling: str) -> bool:
    """Whether one letter is omitted, added, swapped with the next, or replaced."""
    head = 0
    while head < min(len(right), len(spelling)) and right[head] == spelling[head]:
        head += 1
    tails = ((1, 0), (0, 1), (1, 1), (2, 2))
    return head >= 2 and any(right[head + a :] == spelling[head + b :] for a, b in tails)


def _base(match: re.Match[str]) -> Period | None:
    groups = match.groupdict()
    try:
        days = _days(groups)
    except ValueError:
        return None
    if days is None:
        return None
    first, last, yearless, vague = days
    return Period(first, last, yearless, match.start(), match.end(), vague)


Days = tuple[date, date, bool, bool]
"""First day, last day, whether the year is missing, whether the ends are vague."""
Groups = Mapping[str, str | None]


def _days(groups: Groups) -> Days | None:
    """Return the days of the form that matched. Raises ValueError for a day that does not exist."""
    return next((read(groups) for form, read in _FORMS.items() if groups[form]), None)


def _iso(groups: Groups) -> Days:
    day = date(_int(groups["iy"]), _int(groups["im"]), _int(groups["id"]))
    return day, day, False, False


def _month_by_number(groups: Groups) -> Days:
    month, year = _int(groups["xm"]), _int(groups["xy"])
    return date(year, month, 1), _month_end(year, month), False, False


def _numeric(groups: Groups) -> Days:
    a, b = _int(groups["na"]), _int(groups["nb"])
    month, day = (a, b) if a <= 12 else (b, a)
    only = date(_int(groups["ny"]), month, day)
    return only, only, False, a <= 12 and b <= 12 and a != b


def _season(groups: Groups) -> Days:
    low, high = _SEASONS[(groups["sn"] or "").lower()]
    year = _int(groups["sy"])
    return date(year, low, 1), _month_end(year + (high < low), high), False, True


def _year(groups: Groups) -> Days:
    year = _int(groups["y"])
    return (*_part(groups["ypart"], date(year, 1, 1), date(year, 12, 31)), False, bool(groups["ypart"]))


def _month(groups: Groups) -> Days:
    year = _int(groups["moy"]) if groups["moy"] else _NO_YEAR
    month = _month_number(groups["mo"] or groups["lmo"] or groups["omo"] or "")
    end = _month_end(year, month)
    first, last = _part(groups["part"] or groups["lpart"], date(year, month, 1), end)
    return first, last, not groups["moy"], (first.day, last) != (1, end)


def _span(name: str | None, low: str | None, high: str | None, year: str | None) -> tuple[date, date, bool, bool]:
    month, number = _month_number(name or ""), _int(year) if year else _NO_YEAR
    first, last = date(number, month, _int(low)), date(number, month, _int(high))
    if last < first:
        raise ValueError("ends before it begins")
    return first, last, year is None, False


_FORMS: Mapping[str, Callable[[Groups], Days]] = {
    "iso": _iso,
    "range": lambda g: _span(g["rm"], g["ra"], g["rb"], g["ry"]),
    "backrange": lambda g: _span(g["bm"], g["ba"], g["bb"], g["by"]),
    "dmy": lambda g: _span(g["dm"], g["dd"], g["dd"], g["dy"]),
    "mdy": lambda g: _span(g["mm"], g["md"], g["md"], g["myr"]),
    "monthnumber": _month_by_number,
    "numeric": _numeric,
    "season": _season,
    "year": _year,
    "month": _month,
    "lone": _month,
    "only": _month,
}
"""The function that reads the days of a match, by form of the pattern."""


def _part(part: str | None, first: date, last: date) -> tuple[date, date]:
    """Return first and last day of a part (``early``, ``the last week of``) of a month or year."""
    word = (part or "").lower().removeprefix("the ")
    days = (last - first).days + 1
    if "week" in word:
        index = {"first": 0, "second": 1, "third": 2}.get(word.split()[0])
        if index is None:
            return last - timedelta(days=7), last
        return first + timedelta(days=7 * index), first + timedelta(days=7 * index + 7)
    for start, (low, high) in _PARTS.items():
        if word.removeprefix("very ").startswith(start):
            return first + timedelta(days=round(days * low)), first + timedelta(days=round(days * high) - 1)
    return first, last


def _moved(text: str, match: re.Match[str], base: Period) -> Period:
    """Return the period of ``the week before DATE``, ``two weekends before DATE``, ``a few days after DATE``."""
    moved = _MOVED.search(text[: match.start()])
    if moved is None:
        return base
    unit, side, count = moved.group("what").lower(), moved.group("side").lower(), (moved.group("count") or "").lower()
    back = side not in ("after", "following", "of")
    anchor = base.first if back else base.last
    if side == "of":
        days = _around(unit, base)
    elif count.startswith(("a few", "some", "several", "a couple")):
        days = _few(unit, anchor, back)
    else:
        days = _counted(unit, int(count) if count.isdigit() else 1, anchor, back, exact=count.isdigit())
    if days is None:
        return base
    relation = f"{count} {unit} {side}".strip()
    vague = days[0] != days[1]
    return replace(
        base, first=days[0], last=days[1], start=moved.start(), vague=vague, relation=relation, anchor=anchor
    )


def _around(what: str, base: Period) -> tuple[date, date] | None:
    """Return the days of ``the week of DATE``, ``the weekend of DATE``; None for other units, which add nothing."""
    monday = base.first - timedelta(days=base.first.weekday())
    if what == "week":
        return min(monday, base.first), max(monday + timedelta(days=6), base.last)
    if what == "weekend":
        saturday = monday + timedelta(days=5)
        if base.first.weekday() < 3:  # a weekend "of" a Monday is the one just before
            saturday -= timedelta(days=7)
        return min(saturday, base.first), max(saturday + timedelta(days=1), base.last)
    return None


def _few(what: str, anchor: date, back: bool) -> tuple[date, date]:
    """Return the days of ``a few weeks before DATE``: one to six units before it, or after it if not ``back``."""
    length = {"week": 7, "weekend": 7, "month": 30, "year": 365}.get(what, 1)
    near, far = timedelta(days=length), timedelta(days=length * _FEW_MOST)
    return (anchor - far, anchor - near) if back else (anchor + near, anchor + far)


def _counted(what: str, count: int, anchor: date, back: bool, exact: bool) -> tuple[date, date]:
    """Return the days of ``two days before DATE``, ``the Friday after DATE``; ``exact``: a number is stated."""
    sign = -1 if back else 1
    if what in ("day", "night"):
        day = anchor + timedelta(days=sign * count)
        return day, day
    if what == "weekend":
        return _weekend(anchor, count, back)
    if what.endswith("day"):
        step = (anchor.weekday() - weekday_number(what)) % 7 or 7
        day = anchor - timedelta(days=step) if back else anchor + timedelta(days=7 - step or 7)
        return day, day
    if what == "week":
        return _weeks(anchor, count if exact else 1, back)
    if what == "month":
        months = anchor.year * 12 + anchor.month - 1 + sign * count
        return date(months // 12, months % 12 + 1, 1), _month_end(months // 12, months % 12 + 1)
    year = anchor.year + sign * count
    return date(year, 1, 1), date(year, 12, 31)


def _weekend(anchor: date, count: int, back: bool) -> tuple[date, date]:
    """Return Friday and Sunday of the nth weekend before or after a day."""
    step = (anchor.weekday() - 5) % 7 or 7
    saturday = anchor - timedelta(days=step) if back else anchor + timedelta(days=7 - step or 7)
    saturday += timedelta(days=(-7 if back else 7) * (count - 1))
    return saturday - timedelta(days=1), saturday + timedelta(days=1)


def _weeks(anchor: date, count: int, back: bool) -> tuple[date, date]:
    """Return the week before or after a day, seven days or the calendar week; for more weeks, days around a day."""
    if count > 1:
        day = anchor + timedelta(days=(-7 if back else 7) * count)
        return day - timedelta(days=4), day + timedelta(days=4)
    monday = anchor - timedelta(days=anchor.weekday())
    if back:
        return min(anchor - timedelta(days=7), monday - timedelta(days=7)), anchor - timedelta(days=1)
    return anchor + timedelta(days=1), max(anchor + timedelta(days=7), monday + timedelta(days=13))


def _in_one_year(a: Period, b: Period) -> tuple[Period, Period]:
    """Return both unchanged, or both without their years if either has none."""
    if a.yearless == b.yearless:
        return a, b
    return _without_year(a), _without_year(b)


def _without_year(period: Period) -> Period:
    shift = period.first.year - _NO_YEAR
    try:
        first, last = (d.replace(year=d.year - shift) for d in (period.first, period.last))
    except ValueError:  # 29 February in a year that follows a leap year
        return period
    return replace(period, first=first, last=last)


def _month_end(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _month_number(name: str) -> int:
    return [month[:3] for month in MONTHS].index(name[:3].lower()) + 1


def _int(digits: str | None) -> int:
    return int(re.sub(r"\D", "", digits or ""))
