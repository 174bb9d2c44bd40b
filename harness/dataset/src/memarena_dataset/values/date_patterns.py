"""Defines regular expressions of dates, times of day and durations, for text whose numbers are digits."""

from __future__ import annotations

import re

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?!\d|:\d)"
_YEAR = r"(?P<year>(?:1[5-9]|20|21)\d\d)(?!\d)"
_WEEKDAY = (
    r"(?P<weekday>mon(?:days?)?|tue(?:s|sdays?)?|wed(?:s|nesdays?)?|thu(?:rs?|rsdays?)?|fri(?:days?)?|"
    r"sat(?:urdays?)?|sun(?:days?)?)"
)
_FULL_WEEKDAY = r"(?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)days?)"
_PART = r"(?P<part>morning|afternoon|evening|night)"


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Forms of DATES: 2023-07-06; 6th of July 2023; July 6, 2023; July 2023; 6/7/2023, which has two readings.
# The order matters: the first form that matches a part of the text wins, so that July 6 is not read as July.
DATES = (
    _any_case(r"(?<!\d)(?P<year>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)"),
    _any_case(rf"(?<!\d)(?<!\d[.:]){_DAY}(?:\s+of)?[\s-]*{_MONTH}(?:,?[\s-]*{_YEAR})?"),
    _any_case(rf"\b{_MONTH}[\s-]*(?:the\s+)?{_DAY}(?:,?\s*{_YEAR}(?!-\d))?"),
    _any_case(rf"\b{_MONTH},?\s*(?:of\s+)?{_YEAR}"),
    _any_case(r"(?<![\d/.])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<year>\d{4}|\d\d)(?![\d/])"),
)
# A month or year without a day: "in May", a text that is only "May", 2023. A number before a unit is no year.
LONE_MONTH = _any_case(
    r"\b(?:in|of|last|this|next|until|till|since|during|early|late|mid|by|for|from|to|and|around)[\s-]+" + _MONTH
)
MONTH_ONLY = _any_case(rf"^\W*{_MONTH}\W*$")
LONE_YEAR = _any_case(
    rf"(?<![\d$€£.,:/#-])\b{_YEAR}"
    r"(?![\d%€:/]|[.,]\d|\s*(?:%|\w*(?:euro|dollar|pound|usd|eur|gbp|km|mile|people|steps|calorie)))"
)
DOTTED_TIME = re.compile(r"(?<![\d.,:$€£])(?P<h>[01]?\d|2[0-3])\.(?P<m>[0-5]\d)(?!\d|[.,]\d|[:%])(?!\s*[ap]\.?m\b)")
"""``16.10`` may be a time or an amount, and is read as both."""
QUALIFIER = _any_case(
    rf"\b(?P<what>week|weekend|day|night|{_FULL_WEEKDAY}|month|year)"
    r"\s+(?P<side>before|after|prior to|of|following)\s+(?:the\s+)?$"
)
"""Words before a date that refer to another day or period: ``the Sunday before``, ``the week of``."""
RELATIVE = _any_case(
    r"\b(?:(?P<fixed>the day before yesterday|the day after tomorrow|yesterday|today|tonight|"
    r"this (?:morning|afternoon|evening)|last night|tomorrow)|"
    rf"(?P<which>last|this past|past|this|next|this coming|coming)\s+(?:(?P<period>month|year)\b|{_WEEKDAY}\b)|"
    r"(?P<count>\d+|an?|1)\s+(?P<unit>day|week|month|year)s?\s+(?P<way>ago|earlier|before now|from now|later)\b|"
    r"in\s+(?P<ahead>\d+)\s+(?P<aheadunit>day|week|month|year)s?\b(?!\s+(?:time\s+)?(?:of|long)))"
)
BARE_WEEKDAY = _any_case(rf"\b{_WEEKDAY}\b")
# Forms of TIMES: 3 pm; 14:30; half past 3; 5 o'clock; 8 in the evening; 7 30 in the morning; noon; at 8.
# The order matters as in DATES: a form with more words comes before those that match a part of it.
TIMES = (
    _any_case(r"(?<![\d:.])(?P<h>\d{1,2})(?:[:.h](?P<m>\d\d))?\s*(?P<half>[ap])\.?\s?m\b\.?"),
    _any_case(
        r"(?<![\d:])(?P<h>\d{1,2})[:h](?P<m>[0-5]\d)(?::[0-5]\d)?(?!\d)"
        rf"(?:\s+(?:o'clock\s+)?(?:in the|at)\s+{_PART})?"
    ),
    _any_case(
        r"(?<!from )\b(?P<rel>half past|(?:a )?quarter (?:past|after|to)|(?P<mins>\d{1,2})(?: minutes)? (?:past|to))"
        rf"\s+(?P<h>\d{{1,2}})\b(?:\s+in the\s+{_PART})?"
    ),
    _any_case(rf"\b(?P<h>\d{{1,2}})\s+o'?\s?clock(?:\s+(?:in the|at)\s+{_PART})?"),
    _any_case(rf"\b(?P<h>\d{{1,2}})\s+(?:in the|at)\s+{_PART}\b"),
    _any_case(rf"(?<![\d:.])\b(?P<h>\d{{1,2}})\s(?P<m>[0-5]\d)\s+(?:in the|at)\s+{_PART}\b"),
    _any_case(r"\b(?P<word>noon|midday|midnight)\b"),
    _any_case(
        r"(?<!up )(?<!down )\b(?:at|by|until|till|from|around)\s+(?P<h>\d{1,2})"
        r"(?=\s*(?:$|[.,;!?)]|\bon\b|\bsharp\b|\btoday\b|\btomorrow\b))"
    ),
)
_NUMBER = r"(\d+(?:[.,]\d+)?|an?|half an?|half)"
_UNIT = r"(seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|fortnights?|months?|years?|decades?)"
_WHOLE = r"(?:(?:full|whole|entire|complete|straight|consecutive)\s+)?"
_LENGTH = rf"{_NUMBER}([\s-]+and[\s-]+a[\s-]+half)?[\s-]+{_WHOLE}{_UNIT}\b(\s+and\s+a\s+half\b)?"
DURATION = _any_case(
    rf"(?<![\w.,])(?<!\d[./]){_LENGTH}(?:(?:,?\s+(?:and|plus|minus|less)\s+|\s*[+&]\s*|,?\s+){_LENGTH})?"
)
TAKES = _any_case(
    r"(?:\b(?:for|about|took|takes?|lasted|lasts?|within|around|than|nearly|almost|roughly|approximately|over|only|is|"
    r"was|in|after|every|every other)\s+|^\W*)$"
)
"""Words before ``a week`` that show that it is a length."""
