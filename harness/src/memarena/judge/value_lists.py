"""Lists in answers: what stands beside the gold in bullets, numbers or commas, and announcements of several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memarena.judge.value_case import EXTRA_VALUES, Case
from memarena.judge.value_terms import Beside, competes
from memarena.text.lexicon import word_list
from memarena.text.phrasing import find_phrases
from memarena.text.reading import ReadText
from memarena.text.stating import ScalarValue, places
from memarena.text.words import content_words, stem, words

_MOST_WORDS = 9
"""Words of the longest item that is taken for a thing and no sentence."""
_SEVERAL_VERSIONS = re.compile(
    r"\b(?:[3-9]|three|four|five|six)\b(?: \w+){0,2} (?:versions?|answers|accounts|stories|values|statements|readings|"
    r"tellings|reports|variants|claims|entries|notes)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*\u2022\u2013\u2023\u25aa>;+]|\(?\d{1,2}[.)]|\(?[a-h]\))\s+(?=\S)")
_INLINE = re.compile(r"(?:^|(?<=[\s:;,]))\(?(?:[a-h]|\d|i{1,3}|iv|v)\)\s+")
_NUMBERED = re.compile(
    r"^\W*(?:(?:(?:main|first|second|third|other|another|further|also) )?"
    r"(?:answer|option|version|item|choice|candidate|part|value|result|no\.?|number)\s?\w?|"
    r"(?:also|equally) (?:correct|right|valid|true))\W*$",
    re.IGNORECASE,
)
_ITEM_LABEL = re.compile(r"^[\s\"'*_]*(?P<label>[^:\n]{1,40}?)[\"'*_]*\s*:[\"'*_]*\s+(?P<rest>\S.*)$")
_SENTENCE = re.compile(r"[.!?;](?:\s|$)")


def announces_several(answer: ReadText) -> str:
    """The phrase with which an answer gives several things as one answer; empty if there is none."""
    for clause in answer.clauses:
        if found := find_phrases("commitment.v1.txt", "several", clause.text):
            return found[0].text
    return ""


def counts_more_versions(answer: ReadText) -> str:
    """The words with which an answer counts more versions than the two that were told."""
    matches = _SEVERAL_VERSIONS.finditer(answer.text)
    days = [(m.start, m.end) for m in answer.of_kind("date")]
    return next((m.group() for m in matches if not any(start <= m.start() < end for start, end in days)), "")


def rival_item(case: Beside) -> str:
    """An item beside the gold's in a list of the answer that is another thing; empty if there is none."""
    for items in _lists(case.answer.text):
        read = [ReadText(item, case.answer.today) for item in items]
        terms = [v for v in case.required if any(_is_bare(case, v, r) for r in read)]
        if not terms:
            continue
        for item in read:
            if not any(places(v, item) for v in (*case.required, *case.barred)) and _is_rival(
                case, item.text, terms[0]
            ):
                return item.text.strip(" \"'*_")
    return ""


def _is_bare(case: Beside, value: ScalarValue, item: ReadText) -> bool:
    """Whether an item is the value and hardly more: beside a fact (``works as a baker``) other facts may stand."""
    found = places(value, item)
    if not found:
        return False
    rest = item.text[: found[0].start] + item.text[found[0].end :]
    return not competes(case, rest.strip(" \"'*_.,;|()"), value, by_word=True)


_FACT = re.compile(r"^\W*[a-z]+s\s+(?:in|at|as|for|with|to|on|from|by|near|about)\b")
"""``lives in Graz``, ``works as a baker``: something told of somebody, and no thing."""


def _is_rival(case: Beside, item: str, term: ScalarValue) -> bool:
    if _FACT.match(item):
        return False
    return len(item.split()) <= _MOST_WORDS and competes(case, item.strip(" \"'*_.,;|"), term, by_word=True)


def _lists(text: str) -> Iterator[list[str]]:
    """The lists of a text, each as its items; a field's label makes an item no item of a list."""
    run: list[str] = []
    for line in [*text.split("\n"), ""]:
        item = _item(line)
        if item:
            run.append(item)
        elif line.strip() or len(run) > 1:
            yield run
            run = []
    for line in text.split("\n"):
        pieces = _INLINE.split(line)
        if len(pieces) > 2:
            yield [_SENTENCE.split(piece)[0] for piece in pieces[1:]]


def _item(line: str) -> str:
    """What a line of a list says; empty for other lines."""
    bullet = _BULLET.match(line)
    rest = line[bullet.end() :] if bullet else line
    if label := _ITEM_LABEL.match(rest):
        return label["rest"] if _NUMBERED.match(label["label"]) else ""
    return rest if bullet else ""


# ------------------------------------------------------------------ lists in a sentence

_FIELD = re.compile(r"\w[\"'*_]*\s?[:=]\s")
_DETERMINERS = frozenset(
    ["a", "an", "the", "my", "your", "his", "her", "our", "their", "its", "some", "this", "that", "these", "those"]
)


def listed_beside(case: Case, terms: Sequence[ScalarValue]) -> list[str]:
    """Members of lists in which a term stands that are none of the required values."""
    found = []
    for sentence in re.split(r"[.!?\n]+", case.answer.text):
        if sentence.count(",") + len(re.findall(r"\band\b", sentence)) < EXTRA_VALUES:
            continue
        read = ReadText(sentence, case.answer.today)
        if any(places(t, read) for t in terms):
            members = extra_members(_without_places(read, case.required), case.required, case.question)
            found += [m for m in members if not _tells_about(m) and not _FIELD.search(m)]
    return found


def _without_places(read: ReadText, values: Sequence[ScalarValue]) -> ReadText:
    """The text with a pronoun for each value, which may hold an ``and`` of its own (``Salt and Cinders``)."""
    text = read.text
    for place in sorted((p for v in values for p in places(v, read)), key=lambda p: -p.start):
        text = f"{text[: place.start]}it{text[place.end :]}"
    return ReadText(text, read.today)


def _tells_about(member: str) -> bool:
    """Whether what stands between commas opens as no thing does (``in another set``, ``stated as firmly``)."""
    first = words(member)[0]
    return first not in _DETERMINERS and (
        first in word_list("function_words.v1.txt") or first.endswith(("ed", "ing", "ly"))
    )


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
