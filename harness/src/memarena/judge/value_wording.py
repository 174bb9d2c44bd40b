"""An answer without its values: the wording around them, which is alike whatever was asked.

Every stated value becomes a sign (:data:`VALUE` and its like), and so does everything else that belongs to one question
only: a value beside the gold's, the speaker and the day of the conversation, and words that hardly any answer has, of
which a thing that nobody mentioned consists. What is left are the words with which people give, hedge, list and take
back values, over which weights can be learned (:mod:`memarena.judge.value_weighing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from memarena.judge.value_case import Case
from memarena.text.lexicon import table
from memarena.text.mentions import DateMention, Mention, ProperMention
from memarena.text.numbers import digits_for_words
from memarena.text.stating import KIND_OF, ScalarValue, kinds_of, places
from memarena.text.words import content_words, spell_out, stem, tidy, words

VALUE, OTHER_VERSION, PREMISE, RIVAL = "zqv", "zqc", "zqa", "zqo"
"""A gold value, the other version of a conflict, the premise of a counterfactual, another value of the gold's type."""
SPEAKER, DAY, UNHEARD = "zqw", "zqd", "zqx"
"""A speaker and a day of the evidence; words that are rare in answers and stand in neither question nor evidence."""
_KNOWN = "it"
"""What stands for words of the question and the evidence: ``the dentist costs X`` is worded like ``it costs X``."""
_NUMBER = "7"
SENTENCE_ENDS = frozenset((".", "!", "?", "\n"))
_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = re.compile(
    r"\n|zq[a-z]|[^\W_]+(?:'[^\W_]+)*|[.!?;:,()\[\]{}/&+|=>\u2014\u2026\u2192\u2717\u2713\u274c\u2705-]|~~"
)
_SIGN = re.compile(r"\bzq[a-z]\b", re.IGNORECASE)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WEEKDAY_AHEAD = re.compile(rf"\b{_WEEKDAY},?\s+(?:the\s+)?\Z", re.IGNORECASE)
_WEEKDAY_BEHIND = re.compile(rf"\s*\((?:a\s+)?{_WEEKDAY}\)|,\s+a\s+{_WEEKDAY}\b", re.IGNORECASE)
_CLASSES = "wording_classes.v1.txt"


@cache
def class_of_word() -> dict[str, str]:
    """The class of each word that has one; a word stands in the first class that lists it."""
    found: dict[str, str] = {}
    for name, members in table(_CLASSES).items():
        for word in members:
            found.setdefault(word, name)
    return found


def raw_words(text: str) -> list[str]:
    """Words and signs of a text in which values are signs already, in lower case, contractions spelled out."""
    return [w.removesuffix("'s") for w in _TOKEN.findall(spell_out(digits_for_words(tidy(text))))]


def wording(text: Sequence[str], vocabulary: frozenset[str], known: frozenset[str] = frozenset()) -> list[str]:
    """Raw words with rare ones as :data:`UNHEARD`, what is in a row as one, and no article before a sign.

    Args:
        text: what :func:`raw_words` gives.
        vocabulary: the words that stay, and stems of theirs.
        known: stems of words of the question and its evidence.
    """
    out: list[str] = []
    for spoken in text:
        word = _kept(spoken, vocabulary, known)
        if word == "\n" and (not out or out[-1] == "\n"):
            continue
        if word in (UNHEARD, _KNOWN) and len(out) > 1 and out[-1] == "of" and out[-2] == word == UNHEARD:
            out.pop()
            continue
        if word.startswith("zq") and word != UNHEARD and out[-2:] in ([UNHEARD, "of"], ["total", "of"]):
            # `a gap of X`, `a total of X`: the value told with its measure.
            del out[-2:]
        if (word.startswith("zq") or word == _KNOWN) and out and out[-1] in _ARTICLES:
            out.pop()
        if out and out[-1] == word and word in (UNHEARD, _KNOWN, VALUE, OTHER_VERSION):
            continue
        if word == VALUE and len(out) > 1 and out[-1] == "and" and out[-2] == VALUE:
            out.pop()
            continue
        out.append(word)
    while out and out[-1] == "\n":
        out.pop()
    return out


def sentences_of(said: Sequence[str]) -> list[list[str]]:
    """The sentences of words, each with what ends it; those without a word are left out."""
    found: list[list[str]] = [[]]
    for word in said:
        found[-1].append(word)
        if word in SENTENCE_ENDS:
            found.append([])
    return [s for s in found if any(w[0].isalnum() for w in s)]


def is_of_matter(word: str, vocabulary: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a raw word is none that answers are made of, and stands in the question or its evidence."""
    return word[0].isalpha() and not _is_common(word, vocabulary) and stem(word) in known


def _is_common(word: str, vocabulary: frozenset[str]) -> bool:
    return word.startswith("zq") or word in class_of_word() or word in vocabulary or stem(word) in vocabulary


def _kept(word: str, vocabulary: frozenset[str], known: frozenset[str]) -> str:
    if not word[0].isalnum():
        return word
    if word.isdigit() and word not in class_of_word():
        return _NUMBER
    if _is_common(word, vocabulary):
        return word
    return _KNOWN if stem(word) in known else UNHEARD


def signed(case: Case, others: Iterable[Mention], versions: Sequence[ScalarValue] = ()) -> str:
    """The answer with a sign for every value, speaker and day in it.

    Args:
        case: the answer and what it is held against.
        others: mentions of the gold's type beside the gold's.
        versions: those of the required values that are the other version.
    """
    text = case.answer.text
    spans = [
        (place.start, place.end, sign)
        for sign, values in (
            (OTHER_VERSION, versions),
            (VALUE, [v for v in case.required if v not in versions]),
            (PREMISE, case.barred),
        )
        for value in values
        for place in places(value, case.answer)
    ]
    people = frozenset(w for s in case.evidence for t in s.turns for w in words(t.speaker))
    for mention in case.answer.mentions:
        if isinstance(mention, ProperMention) and set(mention.name) <= people:
            spans.append((mention.start, mention.end, SPEAKER))
        elif isinstance(mention, DateMention) and any(
            mention.same(day) for day in case.evidence_days if isinstance(day, DateMention)
        ):
            spans.append((mention.start, mention.end, DAY))
    typed = {KIND_OF[v.type] for v in case.required} | {k for v in case.required for k in kinds_of(v)} - {"weekday"}
    spans += [(m.start, m.end, RIVAL) for m in others if m.kind in typed]
    days = case.answer.of_kind("date")
    out, at = [], 0
    for start, end, sign in _apart(spans):
        # `Friday, 3 January (a Friday)`: the weekday belongs to its date.
        dated = sign == DAY or any(m.start < end and start < m.end for m in days)
        ahead = _WEEKDAY_AHEAD.search(text, at, start) if dated else None
        behind = _WEEKDAY_BEHIND.match(text, end) if dated else None
        out += [_own(text[at : ahead.start() if ahead else start]), f" {sign} "]
        at = behind.end() if behind else end
    return "".join([*out, _own(text[at:])])


def _own(text: str) -> str:
    """The text without signs: an answer may not bring its own."""
    return _SIGN.sub(" ", text)


def known_stems(case: Case) -> frozenset[str]:
    """Stems of the content words of the question and of its evidence."""
    return _stems(case.question.text, *(f"{t.speaker} {t.text}" for s in case.evidence for t in s.turns))


@lru_cache(maxsize=4096)
def _stems(*texts: str) -> frozenset[str]:
    return frozenset(w for text in texts for w in content_words(text))


def _apart(spans: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans by position, without those that overlap one named before them."""
    kept: list[tuple[int, int, str]] = []
    for span in spans:
        if not any(span[0] < end and start < span[1] for start, end, _ in kept):
            kept.append(span)
    return sorted(kept)
