"""Splits an answer into tokens in which values and people are masks, so that only its wording is left.

``You pay 335 euros, while Xavier pays 785`` becomes ``you pay VALUE , while OTHER pays RIVAL``, with ``you`` marked as
the person whom the question asks about. Claims (``claims.py``) are read from these tokens, and the commitment model
(``commitment.py``) scores them: both see the wording, whatever the values of a data set are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from memarena_dataset.values import DateValue, NameValue, PlaceValue, TermValue
from memarena_dataset.values.match import kinds_of, occurrences, rivals
from memarena_dataset.values.mentions import DateMention, ProperMention
from memarena_dataset.values.reading import ReadText, read_text
from memarena_dataset.values.terms import Span

from memarena.judging.typed_value.question import OpenQuestion


class Mask(StrEnum):
    """What a token means: a value of the gold, another value, or a person."""

    VALUE = "VALUE"
    """A value of the gold; of a conflict, of its original version."""
    CHANGED = "CHANGED"
    """A value of a conflict's other version."""
    PREMISE = "PREMISE"
    """A value of a counterfactual question's wrong premise."""
    RIVAL = "RIVAL"
    """Another value of the gold's type, which competes with it."""
    ASKED = "ASKED"  # words: a name of the file format
    """The person whom the question asks about."""
    OTHER = "OTHER"
    """Another person."""
    DETAIL = "DETAIL"
    """A value that does not compete: of another type, of the question, or the day of a conversation."""


@dataclass(frozen=True)
class Token:
    """A word or sign in lower case, or a mask. ``which`` is the index of the gold's value that a mask hides.

    ``word`` is the mask's name if there is a mask, but a pronoun stays itself: ``you`` with the mask ``ASKED``.
    """

    word: str
    start: int
    end: int
    mask: Mask | None = None
    which: int = 0


_PIECE = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\w\s]|\n", re.UNICODE)
_YOU = frozenset(
    ("you", "your", "yours", "you're", "you've", "you'd", "you'll", "yourself", "i", "my", "me", "mine", "i've")
)
"""Words for the asker in answers to a question about the asker: ``you``, or ``I`` as in the question."""
_THEY_WORDS = "he she his her hers they their theirs him he's she's they're himself herself"
_THEY = frozenset(_THEY_WORDS.split())
"""Words for the person asked about in answers to a question about another person."""
_WHOLE_DATE = 3
"""Fineness of a date that has a day, such as ``3 May``: it does not compete with ``late May``."""
_TITLE = re.compile(r"[A-Z]\S*(?: .*)? [A-Z]\S*|[A-Z]\S*")
"""A thing that is written with capitals at either end, such as a programme."""
_YOURS = frozenset(("yours", "mine"))
"""Words for the asker's own value, who is another person in answers to a question about someone else."""
_HOLIDAYS = frozenset(
    ("christmas", "christmas day", "christmas eve", "new year", "new year's day", "easter", "boxing day")
)
"""Holidays, which are capitalised and not people."""
_VERB_AFTER = re.compile(
    r"\s+(?:has|had|is|was|will|took|went|got|paid|goes|does|did|keeps|kept|bought|made|gave|sold|sent|put|hid|chose|told|said|"
    r"pays|plays|uses|needs|[a-z]{3,}ed)\b"
)
"""A verb right after a capitalised word, which makes it a person."""
_SAYING_DAY = re.compile(
    r"\b(?:on|from|of|dated|in your (?:talk|chat|conversation) (?:on|of)|this)\s+"
    r"(?:the (?:evening|morning|afternoon) of )?"
    r"(?:\w+day,? )?(?:the )?$",
    re.IGNORECASE,
)
"""Words right before the day of a conversation: ``in your chat on the``."""
_SPEECH_NEAR = re.compile(
    r"\b(?:said|told|tell|mention\w*|talk\w*|chat\w*|conversation\w*|session|spoke|speak|wrote|claimed|heard|asked|brought|"
    r"message|note[ds]?|repeated|according|confirmed|previously|when)\b",
    re.IGNORECASE,
)
"""Words of speech, one of which is near the day of a conversation."""


def masked(question: OpenQuestion, read: ReadText) -> list[Token]:
    """Return the tokens of an answer. The gold's values come before all other masks, and longer ones before shorter."""
    spans: list[tuple[Span, Mask, int]] = []
    for mask, values in (
        (Mask.VALUE, question.required),
        (Mask.CHANGED, question.changed),
        (Mask.PREMISE, question.barred),
    ):
        for which, value in enumerate(values):
            spans += [(span, mask, which) for span in occurrences(value, read, question.unit)]
    spans = _keep_longest(spans)
    own_spans = [span for span, _, _ in spans]
    spans += [(span, mask, 0) for span, mask in _others(question, read) if not _overlaps(span, own_spans)]
    spans = [(_without_stop(read.text, span), mask, which) for span, mask, which in spans]
    spans.sort(key=lambda entry: entry[0].start)
    return list(_tokens(read.text, spans, question))


def _keep_longest(spans: Iterable[tuple[Span, Mask, int]]) -> list[tuple[Span, Mask, int]]:
    longest: list[tuple[Span, Mask, int]] = []
    for entry in sorted(spans, key=lambda s: (s[0].start - s[0].end, s[0].start)):
        if not _overlaps(entry[0], [span for span, _, _ in longest]):
            longest.append(entry)
    return longest


def _overlaps(span: Span, others: Iterable[Span]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)


def _others(question: OpenQuestion, read: ReadText) -> Iterable[tuple[Span, Mask]]:
    """Yield rivals of the gold's type, people, and values of other kinds, such as the day of a conversation.

    The order counts: of two spans that begin at the same position, :func:`_tokens` uses the first.
    """
    # The type of the gold's first value decides which kinds of mentions compete with it.
    first = question.required[0] if question.required else None
    if first is None:
        return
    by_name = isinstance(first, NameValue | PlaceValue)
    titled = isinstance(first, TermValue) and _TITLE.fullmatch(first.text) is not None
    for mention in read.mentions:
        span = _without_possessive(read.text, mention.start, mention.end)
        if isinstance(mention, ProperMention):
            if mention.name[0] in question.people or mention.name[-1] in question.people:
                # A known person: "while Xavier pays"; to "Who mentioned it?" another person is another answer.
                is_subject = mention.name[0] in question.subjects or mention.name[-1] in question.subjects
                person = Mask.ASKED if is_subject else Mask.OTHER
                rival = isinstance(first, NameValue) and question.about_talk and not is_subject
                yield span, Mask.RIVAL if rival else person
            elif by_name and not _in_question(question, read.text[span.start : span.end]):
                # Another name for a gold that is a name: "your dentist is Jonas Weber".
                yield span, Mask.RIVAL
            elif not by_name and _is_stranger(question, read.text, span):
                # "so Bruno pays", or another title for a gold that is a title: "you read Silver Moon".
                yield span, Mask.RIVAL if titled and _may_be_title(read.text, span) else Mask.OTHER
    kinds = {kind for value in question.required for kind in kinds_of(value)}
    if isinstance(first, TermValue) and any(m.kind == "date" for m in read_text(first.text).mentions):
        # "early June" for "late May". These come before the details below, to which dates belong here too.
        parts = [m for m in read.mentions if isinstance(m, DateMention) and m.fineness < _WHOLE_DATE]
        yield from ((Span(m.start, m.end), Mask.RIVAL) for m in parts)
    # The date of "on 3 May you paid 335 euros", where an amount is asked for.
    yield from ((Span(m.start, m.end), Mask.DETAIL) for m in read.mentions if m.kind not in (*kinds, "proper"))
    if isinstance(first, NameValue | PlaceValue | TermValue):
        return
    for value in {*question.required}:
        # "785 euros" for "335 euros"; not "in your chat on 9 March", nor a value that the question itself has.
        for mention in rivals(value, read, question.unit):
            span = Span(mention.start, mention.end)
            of_talk = isinstance(value, DateValue) and _is_day_of_talk(read.text, span)
            echo = (
                question.gold.kind != "counterfactual"
                and read.text[span.start : span.end].lower() in question.question_mentions
            )
            yield span, Mask.DETAIL if of_talk or echo else Mask.RIVAL


def _without_possessive(text: str, start: int, end: int) -> Span:
    return Span(start, end - 2 if text[start:end].endswith("'s") else end)


def _without_stop(text: str, span: Span) -> Span:
    """Return the span without a full stop that ends the sentence: ``7:05 am.``, not ``7:05 a.m. on Friday``."""
    ends = text[span.start : span.end].endswith(".") and re.match(r"\s*(?:$|\n|[A-Z\"(*])", text[span.end :])
    return Span(span.start, span.end - 1) if ends else span


def _in_question(question: OpenQuestion, text: str) -> bool:
    return text.lower() in question.text.lower()


def _is_stranger(question: OpenQuestion, text: str, span: Span) -> bool:
    """Whether a capitalised word that is not a name in the evidence may name another person."""
    word = text[span.start : span.end].removesuffix("'s").lower()
    # Bruno opens a sentence (where any word has a capital), owns ("Bruno's rent"), acts ("Bruno pays"); Oslo is placed
    # ("in Oslo"); a word of the question, Easter and Spanish are explained.
    opens = re.search(r"(?:^|[.!?:;\n*\"(]\s*)$", text[: span.start]) is not None
    owns = text[span.end :].startswith("'s")
    acts = _VERB_AFTER.match(text[span.end :]) is not None
    placed = re.search(r"\b(?:the|in|at|on|near|under)\s+$", text[: span.start].lower()) is not None
    explained = word in question.text.lower() or word in _HOLIDAYS or word.endswith(("ish", "ese"))
    return not explained and not placed and (owns or acts or not opens)


def _may_be_title(text: str, span: Span) -> bool:
    """Whether a capitalised stranger is a title: not a person, who owns, acts, or is named after ``with``."""
    after, before = text[span.end :], text[: span.start].lower()
    person = after.startswith("'s") or _VERB_AFTER.match(after) or re.search(r"\b(?:with|to|for|by|from)\s+$", before)
    return not person


def _is_day_of_talk(text: str, span: Span) -> bool:
    """Whether a date is stated as the day of a conversation and not as the answer."""
    before, after = text[max(0, span.start - 60) : span.start], text[span.end : span.end + 40]
    # In brackets behind a word: "your message (9 March)".
    if re.search(r"[\w)]\s*\(\s*(?:\w+,? )?$", before) or re.match(r"\s*\)", after):
        return True
    return bool(_SAYING_DAY.search(before)) and bool(
        _SPEECH_NEAR.search(re.split(r"[.;:\n]", before)[-1] + " " + re.split(r"[.;:\n]", after)[0])
    )


def _tokens(text: str, spans: list[tuple[Span, Mask, int]], question: OpenQuestion) -> Iterable[Token]:
    """Yield the tokens of a text: masks for the spans, words between them."""
    position = 0
    for span, mask, which in spans:
        if span.start < position:
            continue
        yield from _words(text, position, span.start, question)
        yield Token(mask.value, span.start, span.end, mask, which)
        position = span.end
        if text[position : position + 2] == "'s":
            yield Token("'s", position, position + 2)
            position += 2
    yield from _words(text, position, len(text), question)


def _words(text: str, start: int, end: int, question: OpenQuestion) -> Iterable[Token]:
    """Yield the words of a part of the text; pronouns and lower-case names become masks of people."""
    for match in _PIECE.finditer(text, start, end):
        word = match.group().lower()
        bare = word.removesuffix("'s")
        if bare in question.people and len(bare) > 2:
            # A name in small letters, as small models write it.
            mask = Mask.ASKED if bare in question.subjects else Mask.OTHER
            suffix_length = len(word) - len(bare)
            yield Token(mask.value, match.start(), match.end() - suffix_length, mask)
            if suffix_length:
                yield Token("'s", match.end() - suffix_length, match.end())
        elif word in (_YOU if question.own else _THEY):
            yield Token(word, *match.span(), mask=Mask.ASKED)
        elif not question.own and (word in _YOURS or text[match.start() : match.end() + 4].lower() == "your own"):
            yield Token(word, *match.span(), mask=Mask.OTHER)
        else:
            yield Token(word, *match.span())
