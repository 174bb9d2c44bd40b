"""Parses the answer from a reader's output: removes thinking, parses or repairs JSON, else uses the plain text.

Readers are asked for JSON, and small ones often write something else. What counts is the answer, not its form.
"""

from __future__ import annotations

import json
import re
from functools import cache

from memarena_answering.assets import parsing_table
from memarena_answering.lenient_json import JsonNumber, JsonValue, lenient_objects
from memarena_answering.model import ParsedAnswer

_FENCE = re.compile(r"\A```[a-zA-Z]*\s*\n?(?P<inside>.*?)\n?```\s*\Z", re.DOTALL)


@cache
def _thinking_patterns() -> tuple[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]], ...]:
    """Return four patterns for each pair of thinking marks.

    They match a closed block, the closing mark, a text up to a closing mark (the chat template contained the opening
    mark), and an unclosed block.
    """
    patterns = []
    for opening, closing in parsing_table().thinking:
        start, end = re.escape(opening), re.escape(closing)
        flags = re.DOTALL | re.IGNORECASE
        patterns.append(
            (
                re.compile(rf"{start}.*?{end}", flags),
                re.compile(end, flags),
                re.compile(rf"\A.*{end}", flags),
                re.compile(rf"{start}.*", flags),
            )
        )
    return tuple(patterns)


def _trimmed(text: str) -> str:
    """Return the text without white space and stray template tokens at its ends."""
    while True:
        before = len(text)
        text = text.strip()
        for token in parsing_table().stray_tokens:
            text = text.removeprefix(token).removesuffix(token)
        if len(text) == before:
            return text


def _final_channel(text: str) -> str:
    """Return the text of the last final channel, for models that divide a reply into channels; else the whole text."""
    table = parsing_table()
    if table.channel not in text:
        return text
    final = f"{table.channel}{table.final_channel}"
    _, marker, tail = text.rpartition(final)
    if marker:
        return tail.partition(table.channel_message)[2]
    # There is no final channel: the text before the first channel mark is the answer, if there is any.
    return text.partition(table.channel)[0]


def strip_thinking(raw: str) -> str:
    """Return the reply without thinking, other channels and template tokens; an unclosed block extends to the end."""
    text = _trimmed(_final_channel(raw))
    for closed, closing, swallowed, unclosed in _thinking_patterns():
        # No block is closed after the last closing mark, and a search for it from every opening takes quadratic time.
        last = max((match.end() for match in closing.finditer(text)), default=0)
        text = closed.sub("", text[:last]) + text[last:]
        # In this order: only marks without a partner are left after the closed blocks.
        text = swallowed.sub("", text)
        text = unclosed.sub("", text)
    return _trimmed(text)


def _key(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip().strip("*_").lower())


def _words(value: JsonValue) -> str:
    """Return a JSON value as the text of an answer."""
    table = parsing_table()
    if value is None:
        return ""
    if isinstance(value, bool):
        return table.true_word if value else table.false_word
    if isinstance(value, list):
        return ", ".join(filter(None, map(_words, value)))
    if isinstance(value, dict):
        inner = _pick(value, table.answer_keys)
        if not isinstance(inner, _Absent):
            return _words(inner)
        return "; ".join(f"{key}: {_words(item)}" for key, item in value.items())
    return str(value).strip()


class _Absent:
    """Tells a missing key from null."""


_ABSENT = _Absent()


def _pick(content: dict[str, JsonValue], keys: tuple[str, ...]) -> JsonValue | _Absent:
    by_key = {_key(key): value for key, value in reversed(content.items())}
    return next((by_key[key] for key in keys if key in by_key), _ABSENT)


def _from_object(content: JsonValue, parse: str) -> ParsedAnswer | None:
    """Return the answer in an object or the objects within it; None if there is none."""
    if not isinstance(content, dict):
        return None
    table = parsing_table()
    answer = _pick(content, table.answer_keys)
    status = _pick(content, table.status_keys)
    says_none = isinstance(status, str) and _key(status) in table.unknown_statuses
    if answer is None or (says_none and (answer == "" or isinstance(answer, _Absent))):
        answer = table.unknown_word
    if isinstance(answer, _Absent):
        return next(filter(None, (_from_object(value, "lenient_json") for value in content.values())), None)
    reason = _pick(content, table.reason_keys)
    return ParsedAnswer(
        _words(answer),
        "" if isinstance(reason, _Absent) else _words(reason),
        "json" if parse == "json" else "lenient_json",
    )


def _strict(text: str) -> JsonValue | _Absent:
    try:
        loaded: JsonValue = json.loads(text, parse_int=JsonNumber, parse_float=JsonNumber)
    except (ValueError, RecursionError):
        return _ABSENT
    return loaded


@cache
def _headings(names: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in names)
    return re.compile(rf"^[\s*_#>-]*(?:{alternatives})[*_]*\s*:[*_]*[^\S\n]*", re.MULTILINE | re.IGNORECASE)


def _unquoted(text: str) -> str:
    """Return the text without quotation marks around all of it."""
    if len(text) > 2 and (text[0], text[-1]) in {('"', '"'), ("'", "'"), ("“", "”")} and text[0] not in text[1:-1]:
        return text[1:-1].strip()
    return text


def _plain(text: str) -> ParsedAnswer:
    """Return the answer of a reply without JSON: by its headings, else the text itself."""
    table = parsing_table()
    fence = _FENCE.match(text)
    text = fence["inside"].strip() if fence else text
    reason = ""
    answers = list(_headings(table.answer_headings).finditer(text))
    thinks = _headings(table.thinking_headings).match(text)
    if answers and (thinks or answers[0].start() == 0):
        chosen = answers[-1] if thinks else answers[0]
        text = text[chosen.end() :]
    if explained := _headings(table.reason_headings).search(text):
        text, reason = text[: explained.start()], text[explained.end() :]
    answer = _unquoted(text.strip().strip("`").strip())
    return ParsedAnswer(answer, reason.strip(), "text") if answer else ParsedAnswer("", reason.strip(), "empty")


def parse_answer(raw: str) -> ParsedAnswer:
    """Parse a reply, without raising: as strict JSON, repaired JSON anywhere in the text, or the text itself."""
    text = strip_thinking(raw)
    try:
        return _from_json(raw, text) or _plain(text)
    except RecursionError:  # objects within objects, deeper than any answer
        return _plain(text)


def _from_json(raw: str, text: str) -> ParsedAnswer | None:
    """Return the answer of the first object that has one, else None. ``text`` is ``raw`` without thinking."""
    # First the raw reply: in a valid JSON text, marks of thinking are part of the answer.
    parsed = _strict(raw.strip())
    if not isinstance(parsed, _Absent) and (answer := _from_object(parsed, "json")):
        return answer
    parsed = _strict(text)
    if not isinstance(parsed, _Absent) and (answer := _from_object(parsed, "json")):
        return answer
    for content in lenient_objects(text):
        if answer := _from_object(content, "lenient_json"):
            return answer
    return None
