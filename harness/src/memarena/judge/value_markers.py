"""What an answer carries beside its value and its wording: bullets, footnote marks, forms of address, idle numbers.

Rules would read a bullet as a dash, the mark of a footnote or the ``two`` of ``the two of you`` as an amount, and
``sir`` behind a comma as one thing more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from memarena.text.lexicon import sections, table

_MARKER = re.compile(r"(?:^|(?<=\s))\(?(\d)[.)]\s+(?=\S)")
_LINE_MARKER = re.compile(r"^[ \t]*\(?(\d)[.)]\s+(?=\S)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022\u2013\u2014\u2023\u25aa+>]|\[[ x]?\])\s+(?=\S)", re.MULTILINE)
"""Bullets, which would be read as dashes that stand for a pause."""
_COUNTED = re.compile(
    r"\b((?:entry|version|account|story|source|statement|note|hit|passage|part|option|message|record|reading|step))"
    r"[ _](?:one|two|three|[123])\b(?![.,:]?\d|\s+of\b)",
    re.IGNORECASE,
)
"""``entry two``, ``Version 1``: a number that counts what the answer speaks about."""
_TAGS = re.compile(
    r"<\|\w{1,20}\|>|</?(?:speak|s|p|br|b|i|u|em|strong|answer|final|break|prosody|emphasis|span|div|code|say-as)\b[^<>]{0,80}>",
    re.IGNORECASE,
)
"""``<|im_end|>``, ``<break time="200ms"/>``: what a model's template or a voice's markup leaves."""
_PROMPT = re.compile(r"^\s*[\w.-]{1,16}>{1,3}\s+(?=\S)")
"""``HUD> X``: the prompt of a terminal."""
_PIECES = re.compile(
    r"\b((?:retrieved |source )?(?:snippet|chunk|document|doc|passage|excerpt|context|result|hit|fragment|segment)s?)"
    r"[ _]#?(?:\d{1,3}|one|two|three|four|five)(?:(?:,? (?:and|&|or|to|through) |, ?| ?[-\u2013] ?)"
    r"(?:\d{1,3}|one|two|three|four|five)\b(?!\s+of\b))*\b(?![.,:]?\d|\s+of\b|\s*%)|"
    r"\s?\(\d{1,3} (?:of|out of) \d{1,3}\)",
    re.IGNORECASE,
)
"""``snippets 1 and 2``, ``(1 of 3)``: pieces of what was retrieved, and how many of them."""
_NUMBERED = re.compile(
    r"\b((?:section|paragraph|volume|chapter|page|line|turn)s?)(?:[ _]#?|#|(?<!this line)(?<!that line):\s?)"
    r"(?:one|two|three|four|five|\d{1,4})\b(?![.:]\d)"
    r"|\b((?:memory|message|session|note|entry|chat|record|item|log) ?)#\d{1,4}\b",
    re.IGNORECASE,
)
"""``Section 2``, ``turn: 3``, ``Memory #4``: where it stands in what the answer has read."""
_SCORE = re.compile(
    r"\b(conf(?:idence)?\b\.?|score|certainty|probability|relevance|similarity)([\s\"'*:=]*)"
    r"(?:0?\.[5-9]\d*|1\.0+|(?:[5-9]\d|100) ?%|(?:[7-9]|10)(?:/| out of )10)|(?<=\w),\s*100 ?%(?=[.!]*\s*$)",
    re.IGNORECASE,
)
"""How sure the answer is of itself, in figures; lower ones are left to what reads doubt."""
_EFFORT = re.compile(
    r"\b(?:\d+(?:\.\d+)?|one|two|three|four|five|ten|a few) ?(?:ms|s|sec|seconds?|minutes?) of "
    r"(?=(?:look|search|digg|read|scroll|think|check)\w*ing\b)"
    r"|\b(?:thought|searched|looked|waited|paused|took|reflected)(?: for)? "
    r"(?:\d+(?:\.\d+)?|one|two|three|four|five|ten|a few) ?(?:ms|s|sec|seconds?|minutes?)\b"
    r"|(?<=\b(?:match|found) )in \d+(?:\.\d+)? ?(?:ms|s|sec|seconds?)\b",
    re.IGNORECASE,
)
"""``five minutes of searching``"""
_FOOTNOTE = re.compile(
    r"\s?\[\^?\d{1,2}\]:?|(?<=[^\Wm])[\u00b9\u00b2\u00b3](?=\W|$)|^[\u00b9\u00b2\u00b3]\s*", re.MULTILINE
)
_LONE_FOOTNOTE = re.compile(
    r"(?<=\w)(?<!\bis)(?<!\bwas)(?<!\bare)(?<!\bwere)(?<!\bof)(?<!\bexactly)(?<!\bbe)\s\[\^?\d\](?=[.!]?\s*$)",
    re.MULTILINE,
)
"""``76 minutes [1]``: behind something said, at the end; ``there are [3]`` gives it."""
_GLUED_FOOTNOTE = re.compile(r"(?<=[\w.,!?])\[\^?\d{1,2}\]")
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_TALKED = r"(?:chat|talk|time|version|conversation|account|session|message|place|telling|statement|note|entry|source)"
_GOES_ON = (
    r"(?:(?:two|2)\s+[a-z]|(?:that(?:'s)?|this|these|those|both|each|neither|you(?:'ve)?|they|it(?:'s)?|there)\s+"
    r"(?:is|are|was|were|have|has|had|told|came|come|how|what|said|both|each)\b|you've\b|that's\b|it's how\b)"
)
"""What comments on the values before a colon, and is no value after a label."""
_UNITS = r"(?:second|sec|minute|min|hour|day|week|month|year|night|euro|dollar|pound|cent|metre|meter|mile|kilo\w*|k?m)"
_MISREAD = (
    (re.compile(rf"\ban? (?!{_UNITS}\b)([a-z]+) or two\b", re.IGNORECASE), r"some \1s"),
    (
        re.compile(
            r"\b(entry|source|passage|chunk|document|message|note|record|result|hit|item) \[\d{1,2}\]", re.IGNORECASE
        ),
        r"\1",
    ),
    (re.compile(r"\b([ap])\.\s?m\.(?:\.(?!\.)|(?=\s+\d{1,2}[:.]\d\d))", re.IGNORECASE), r"\1m."),
    (re.compile(rf"\ba second(?=,? (?:\w+ )?{_TALKED}\b)", re.IGNORECASE), "another"),
    (re.compile(rf"(?<=\w):\s+(?={_GOES_ON})", re.IGNORECASE), " \u2014 "),
    (
        re.compile(
            rf"(\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?),\s+(?=(?:{_WEEKDAY}|{_MONTH}) (?:is|was|it)\b)",
            re.IGNORECASE,
        ),
        "\\1 \u2014 ",
    ),
)
"""What would be read as a value or join two: ``7 p.m.. 16:22``, ``a second chat``, ``May 5: two versions``, ``going by
January 1, Wednesday is …``."""
_COUNTS_ON = rf"hundred|thousand|million|and a half|{_MONTH}|{_UNITS}s?|am|pm|o'clock|percent|times"
"""Behind a number in a way of speaking: it is an amount or a date after all (``told you two hundred``)."""
_EPITHETS = r"(?:(?:my|good|dear|kind|old|young|fair|gentle)\s+)*"


def without_markers(answer: str) -> str:
    """The answer without what is neither value nor wording.

    Left out are bullets, the numbers of a list (``1) … 2) …``) and of footnotes, forms of address (``X, sir.``), and
    numbers that belong to a way of speaking (``the two of you``, ``one second``).
    """
    answer = _PROMPT.sub("", _TAGS.sub(" ", answer))
    answer = _PIECES.sub(lambda match: (match[1] or "").lower(), answer)
    answer = _COUNTED.sub(r"\1", _GLUED_FOOTNOTE.sub("", _without_address(answer)))
    answer = _EFFORT.sub("", _SCORE.sub(r"\1", _NUMBERED.sub(_lower, answer)))
    answer = _idle().sub(lambda match: _idle_numbers()[" ".join(match.group().lower().split())], answer)
    if len(_FOOTNOTE.findall(answer)) > 1:
        # A lone `[3]` may be the answer; the mark of a footnote stands at both of its ends.
        answer = _FOOTNOTE.sub("", answer)
    answer = _LONE_FOOTNOTE.sub("", answer)
    # A day at the end of a line (`of January 3.`) looks like the number of an item: those that open lines go first.
    marker = next((m for m in (_LINE_MARKER, _MARKER) if _counts_up(m.findall(answer))), None)
    for pattern, instead in _MISREAD:
        answer = pattern.sub(instead, answer)
    answer = _BULLET.sub("; ", answer)
    return marker.sub("; ", answer) if marker else answer


def _counts_up(numbers: Sequence[str]) -> bool:
    """Whether the numbers of markers are those of a list, or of several lists."""
    counted = [int(number) for number in numbers]
    return len(counted) > 1 and counted[0] == 1 and all(n in (1, before + 1) for before, n in pairwise(counted))


def _lower(match: re.Match[str]) -> str:
    """What was counted, without its number and without a capital that would make it a name."""
    return (match[1] or match[2]).lower()


def _without_address(answer: str) -> str:
    behind, before = _address()
    shorter = before.sub("", behind.sub("", answer))
    return shorter if shorter.strip(" .!?,") else answer


@cache
def _address() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Forms of address behind a comma, and those that open a sentence."""
    longest_first = sorted(sections("address_forms.v1.txt")["forms"], key=len, reverse=True)
    forms = "|".join(map(re.escape, longest_first))
    form = rf"{_EPITHETS}(?:{forms})"
    behind = re.compile(rf",\s*{form}(?=\s*(?:[.!?,;:\u2026\n)]|$|[^\x00-\x7f]))", re.IGNORECASE)
    before = re.compile(rf"(?:^|(?<=[.!?\n]\s)){form}\s*[,!:]\s*(?=\S)", re.IGNORECASE)
    return behind, before


@cache
def _idle_numbers() -> Mapping[str, str]:
    return {phrase: " ".join(read) for phrase, read in table("idle_numbers.v1.txt").items()}


@cache
def _idle() -> re.Pattern[str]:
    phrases = sorted(_idle_numbers(), key=len, reverse=True)
    joined = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
    return re.compile(rf"(?<![\w/.])(?:{joined})(?![\w/]|[ -](?:{_COUNTS_ON})\b)", re.IGNORECASE)
