"""Judges sets: an answer has to name every member, and no other."""

from __future__ import annotations

import itertools
import re

from memarena_dataset.values import SetValue
from memarena_dataset.values.match import occurrences
from memarena_dataset.values.mentions import ProperMention
from memarena_dataset.values.reading import ReadText
from memarena_dataset.values.terms import Span
from memarena_dataset.values.words import content_words, words

from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.typed_value.question import OpenQuestion, describe
from memarena.judging.typed_value.segments import phrases

_PIECE = re.compile(r",|;|\band\b|&|\n|[.!?](?:\s|$)|:")
"""The end of a piece of a list: a comma, ``and``, the end of a line or a sentence."""
_MAX_MEMBER_WORDS = 4
"""Most words of a piece that may be another member."""


def rule_set(value: SetValue, question: OpenQuestion, read: ReadText) -> Judgment:
    """Judge by the set-F1 over the members: right at 1.0."""
    spans = {n: [s for s in occurrences(m, read) if not _is_denied(read.text, s)] for n, m in enumerate(value.members)}
    missing = [describe(m) for n, m in enumerate(value.members) if not spans[n]]
    own_spans = [span for member_spans in spans.values() for span in member_spans]
    by_name = all(m.type in ("name", "place") for m in value.members)
    extra = _extra_names(read, question, own_spans) if by_name else _extra_things(read, question, own_spans)
    # F1 of precision hits / (hits + extra) and recall hits / members.
    hits = len(value.members) - len(missing)
    f1 = 2 * hits / (hits + len(extra) + len(value.members)) if hits else 0.0
    if missing:
        return wrong("value", Code.MISSING_MEMBER, f1, value=", ".join(missing))
    if extra:
        return wrong("value", Code.EXTRA_MEMBER, f1, words=", ".join(extra))
    # "Nora or Emre" names every member and commits to none.
    ordered = sorted(own_spans)
    if any(re.fullmatch(r"\W*or\W*", read.text[a.end : b.start]) for a, b in itertools.pairwise(ordered)):
        return wrong("value", Code.NOT_COMMITTED, value=describe(value))
    return right("value", Code.STATES_VALUE, value=describe(value))


def _is_denied(text: str, span: Span) -> bool:
    before, after = (re.split(r"[.;,\n]", part) for part in (text[: span.start], text[span.end :]))
    return bool(
        phrases("denied_before").search(" ".join(words(before[-1])) + " ")
        or phrases("absent_behind").match(" ".join(words(after[0])) + " ")
    )


def _extra_names(read: ReadText, question: OpenQuestion, own_spans: list[Span]) -> list[str]:
    """Return names in the answer that are not a member, not in the question and not denied."""
    extra = []
    for mention in read.mentions:
        span = Span(mention.start, mention.end)
        if not isinstance(mention, ProperMention) or any(s.start < span.end and span.start < s.end for s in own_spans):
            continue
        if set(mention.name) & question.subjects or read.text[span.start : span.end].lower() in question.text.lower():
            continue
        if not _is_denied(read.text, span):
            extra.append(" ".join(mention.name))
    return list(dict.fromkeys(extra))


def _extra_things(read: ReadText, question: OpenQuestion, own_spans: list[Span]) -> list[str]:
    """Return short pieces of a list that are not a member and have words that the question lacks."""
    extra = []
    start = 0
    for match in [*_PIECE.finditer(read.text), None]:
        end = match.start() if match else len(read.text)
        piece = read.text[start:end]
        if not any(s.start < end and start < s.end for s in own_spans):
            news = set(content_words(piece)) - question.question_words
            if news and len(words(piece)) <= _MAX_MEMBER_WORDS:
                extra.append(piece.strip())
        start = match.end() if match else end
    return extra
