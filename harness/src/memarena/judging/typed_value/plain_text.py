"""Converts an answer to plain text: without JSON, Markdown, bullets and the echo of the question.

Small models wrap their answers. In the result an answer is sentences, and a line of a list or a field of an object
("Goran: the Salt House") is a separate sentence. The rules for open answers read nothing else.

:func:`with_antecedents` and :func:`without_speaker` are further steps, which ``kinds/open_answer.py`` applies to the
result before it reads typed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import lru_cache

_FENCE = re.compile(r"```[a-z]*\n?|```", re.IGNORECASE)
"""A line of three backticks around a block of code, with the language after them."""
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^\s*#+\s*|^\s*>\s*", re.MULTILINE)
"""Emphasis, headings and quotations of Markdown: ``**``, ``# ``, ``> ``."""
_RULE = re.compile(r"^[\s|:+-]{3,}$", re.MULTILINE)
"""A line that is only drawn: ``| --- | --- |``."""
_BULLET = re.compile(r"^\s*(?:[-*•‣▪–+]|\(?\d{1,2}[.)]|\(?[a-h]\))\s+(?=\S)", re.MULTILINE)
"""The beginning of a line of a list: ``- ``, ``2. ``, ``(b) ``."""
_INLINE_NUMBER = re.compile(r"(?:(?<=\s)|^)\(?(\d{1,2})\)\s+")
"""A number of a list within a line: the ``2) `` of ``1) soup 2) bread``."""
_ANSWER_KEYS = ("answer", "final_answer", "final answer", "response", "result", "value")
"""Names of a JSON field that has the answer, the most likely first; if an object has such a field, its other fields are
dropped. ``correct`` is none of them: such an object is read with all its fields."""
_ASIDE_KEYS = ("reason", "reasoning", "explanation", "note", "evidence", "confidence", "source_turn", "thought")
"""Names of JSON fields that are not part of the answer."""
_LABEL = re.compile(
    r"^\s*(?:(?:the|my|final|correct|short) )*(?:answer|response|result)\s*(?:is)?\s*[:=]\s*", re.IGNORECASE
)
"""Words before the answer: ``The final answer is: ``."""
_SPEAKER = re.compile(r"(?:^|(?<=[\n;,.] ))[>*_\s]*([A-Z][\w-]+(?: [A-Z][\w-]+)?)\s*:\s+(?=\S)", re.MULTILINE)
"""A speaker before a statement: ``Ada Klein: ``."""
_TAG = re.compile(
    r"\[/?[A-Z][A-Z_ ]{2,}\]|</?[a-z_]{3,}>|\\boxed(?=\{)|(?:\[(?:\d{1,2}|turn[^\]\n]{0,20}|source[^\]\n]{0,40})\])"
)
"""Marks around or after an answer: ``[ANSWER]``, ``<answer>``, ``[2]``."""
_ABOUT_ITSELF = re.compile(
    r"(?:^|(?<=[\n.;])|\s*\()[ \t]*(?:confidence|certainty|probability|score|likelihood)"
    r"(?: (?:score|level))?\s*[:=]\s*[^\n()]*\)?"
    r"|(?:^|(?<=[\n.;])|\s*\()[ \t]*(?:sources?|references?|citations?|evidence)\s*[:=]\s*"
    r"(?:(?:sessions?|turns?|messages?|chats?|lines?|ids?|items?)\b|[#\d\[])[^\n()]*\)?",
    re.IGNORECASE,
)
"""A label with a figure for the answer's certainty or its source: ``confidence: 0.8``, ``source: turn 3``."""
_ORDINAL = re.compile(r"\bthe (former|latter)\b(?! (?:one )?(?:version|value|answer|time|date)s?\b)", re.IGNORECASE)
"""``the former`` and ``the latter`` as a reference to a thing, not ``the former value``."""
_NOUN = (
    r"(?!(?i:and|or|are|is|were|was|have|has|had|both|between|by|among|them|two|come|came|turn|go|get|mentioned)\b)"
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.|[\w'’:-]+)"
)
"""A word that can be part of a thing's name: no word of grammar and no verb that is usual between two things."""
_PAIR = re.compile(rf"(?<![\w'’])((?:{_NOUN}\s+){{1,7}})and ((?:{_NOUN}(?:\s|(?=\W)|$)){{1,7}})")
"""Two things that ``and`` joins, up to a verb or a sign."""
_MIN_ECHO_WORDS = 4
"""Least words of a question whose repetition is removed."""
_BRACKET = re.compile(r"[\[\]{}]")
"""A bracket of JSON, by which the depth of nesting is counted."""
_MAX_DEPTH = 24
"""Deepest nesting of JSON that is read, deeper than any answer: parsing takes a nested call for each level."""


def plain_text(answer: str, question: str) -> str:
    """Return the answer's own words, one statement a line or sentence.

    Args:
        answer: as the reader gave it.
        question: if the answer repeats all its words in a row, they are removed.
    """
    # The fence first, since JSON is recognised by its first and last bracket; the echo while all words are as written.
    text = _FENCE.sub("", answer).strip()
    text = from_json(text)
    return _without_marks(_without_echo(text, question))


@lru_cache(maxsize=4096)
def _without_marks(text: str) -> str:
    """Return the text without Markdown, tags, bullets, labels and remarks on its own certainty."""
    # Cached: cells, readers and baselines often give the same answer.
    # The order counts. Bars at the ends of a table's line go before those between its cells, which become colons.
    # Emphasis and tags go before remarks, bullets and labels, which are recognised at the beginning of a line:
    # "**Confidence:** 0.8", "**1.** soup". The label is last, since a bullet may be before it: "- Answer: Rome".
    text = _RULE.sub("", text)
    # Blanks around a bar, but no line break: each row is a line.
    text = re.sub(r"^[^\S\n]*\||\|[^\S\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"[^\S\n]*\|[^\S\n]*", ": ", text)
    text = re.sub(r"\s[-=–]+>\s", " → ", text)
    text = _ABOUT_ITSELF.sub("\n", _TAG.sub(" ", _MARKS.sub("", text)))
    # Before bullets, since the number that begins a line is both.
    text = _BULLET.sub("", _with_a_line_for_each_item(text))
    return _LABEL.sub("", text).strip()


def _with_a_line_for_each_item(text: str) -> str:
    """Return the text with each item of a numbered list on a line, without its number: ``1) soup 2) bread``.

    Numbers of a list count up; others stay: the ``(20)`` of ``1) bread, (20) euros 2) soup``.
    """
    numbers = [int(number) for number in _INLINE_NUMBER.findall(text)]
    first = 1 if 1 in numbers else next(iter(numbers), 1)
    due, counts_up, line_start = first, False, 0

    def begins_line(match: re.Match[str]) -> str:
        nonlocal due, counts_up, line_start
        number = int(match[1])
        if number not in (due, first):
            return match[0]
        counts_up |= number > first
        due = number + 1
        # No empty lines: for bullets, a run of them is read once for each of its lines.
        is_at_start = match.start() == line_start or text[match.start() - 1] == "\n"
        line_start = match.end()
        return "" if is_at_start else "\n"

    split = _INLINE_NUMBER.sub(begins_line, text)
    return split if counts_up else text


def with_antecedents(text: str) -> str:
    """Return the text with ``the former`` and ``the latter`` replaced by the two things that ``and`` joins last."""
    out, end = "", 0
    for match in _ORDINAL.finditer(text):
        pairs = [p for p in _PAIR.finditer(text, 0, match.start()) if p.end() <= match.start()]
        referent = pairs[-1][1 if match[1].lower() == "former" else 2].strip() if pairs else match.group()
        out += text[end : match.start()] + referent
        end = match.end()
    return out + text[end:]


def from_json(text: str) -> str:
    """Return a JSON object or list as lines, empty if it holds only null; any other text as it is."""
    if text[:1] not in "{[" or text[-1:] not in "}]" or _depth(text) > _MAX_DEPTH:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return "\n".join(_lines(value)) if isinstance(value, dict | list) else text


def _depth(text: str) -> int:
    """Return how deep brackets are nested; those within strings count too."""
    deepest = depth = 0
    for match in _BRACKET.finditer(text):
        depth += 1 if match.group() in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _lines(content: object) -> Iterator[str]:
    """Yield the lines of a JSON value; of an object with an answer field only that field."""
    if isinstance(content, dict):
        lowered = {str(key).lower(): value for key, value in content.items()}
        answer = next((key for key in _ANSWER_KEYS if key in lowered), None)
        if answer is not None:
            yield from _lines(lowered[answer])
            return
        for key, value in content.items():
            if str(key).lower() in _ASIDE_KEYS:
                continue
            for line in _lines(value):
                yield f"{str(key).replace('_', ' ')}: {line}"
    elif isinstance(content, list):
        for member in content:
            if isinstance(member, dict) and len(member) == 2:
                # {"person": "Goran", "place": "the Salt House"} is "Goran: the Salt House".
                yield ": ".join(" ".join(_lines(value)) for value in member.values())
            else:
                yield from _lines(member)
    elif isinstance(content, bool):
        yield "yes" if content else "no"
    elif content is not None:
        yield str(content)


def _without_echo(text: str, question: str) -> str:
    """Return the text without the question, if the answer repeats it word for word."""
    words = question.split()
    if len(words) < _MIN_ECHO_WORDS or words[0].lower() not in text.lower():
        return text
    pattern = r"\s+".join(re.escape(word) for word in words)
    return re.sub(pattern, " ", text, flags=re.IGNORECASE)


def without_speaker(text: str, people: Collection[str]) -> str:
    """Return the text without a speaker's name before it; a list of several people is left as it is."""
    heads = [m for m in _SPEAKER.finditer(text) if m.group(1).lower().split()[0] in people]
    return text[heads[0].end() :] if len(heads) == 1 and heads[0].start() == 0 else text
