"""Splits the text of a turn into sentences, stems of content words, and tokens that identify a fact by themselves."""

from __future__ import annotations

import re
from functools import lru_cache

from memarena_backend_gated.english import word_list
from memarena_backend_gated.prefilter import PrefilteredPattern

_SENTENCE = re.compile(r"(?<=[.!?;])[\"'’”)]*\s+|\n+|\s+[–—]\s+|\s+--?\s+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_TOKEN = re.compile(r"[^\s\"'“”‘’,;:!?()]+")
_DIGIT = re.compile(r"\d")
# In order: irregular forms such as "can't" and "won't" come before the general "n't".
_UNMARKED_CONTRACTIONS = (
    (PrefilteredPattern(r"\bcannot\b", re.I), "can not"),
    (PrefilteredPattern(r"\bdont\b", re.I), "do not"),
    (PrefilteredPattern(r"\bgonna\b", re.I), "going to"),
)
_CONTRACTIONS = (
    (PrefilteredPattern(r"\bcan['’]t\b", re.I), "can not"),
    (PrefilteredPattern(r"\bwon['’]t\b", re.I), "will not"),
    (PrefilteredPattern(r"\bshan['’]t\b", re.I), "shall not"),
    (PrefilteredPattern(r"\bain['’]t\b", re.I), "is not"),
    (PrefilteredPattern(r"n['’]t\b", re.I), " not"),
    (PrefilteredPattern(r"\b(i)['’]d\b", re.I), r"\1 would"),
    (PrefilteredPattern(r"\b(you|he|she|we|they)['’]d\b", re.I), r"\1 would"),
    (PrefilteredPattern(r"\b(i)['’]m\b", re.I), r"\1 am"),
    (PrefilteredPattern(r"['’]re\b", re.I), " are"),
    (PrefilteredPattern(r"['’]ve\b", re.I), " have"),
    (PrefilteredPattern(r"['’]ll\b", re.I), " will"),
    (PrefilteredPattern(r"\b(it|that|this|he|she|there|what|who|mum|mom)['’]s\b", re.I), r"\1 is"),
    (PrefilteredPattern(r"\blet['’]s\b", re.I), "let us"),
    *_UNMARKED_CONTRACTIONS,
)

STOPWORDS = word_list("stop")


def expanded(text: str) -> str:
    """Return the text with contractions written out, so that patterns need only the long form."""
    has_apostrophe = "'" in text or "’" in text
    for pattern, long_form in _CONTRACTIONS if has_apostrophe else _UNMARKED_CONTRACTIONS:
        text = pattern.sub(long_form, text)
    return text.replace("’", "'")


def sentences(text: str) -> list[str]:
    """Return the sentences of a turn; a semicolon, a dash and a line end close one too."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without the commonest endings of English ("parties" → "party"); a word with a digit unchanged."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if len(word) < 4 or any(letter.isdigit() for letter in word):
        return word
    endings = (("ies", "y", 5), ("sses", "ss", 6), ("ing", "", 6), ("ed", "", 5), ("es", "e", 5))
    for ending, replacement, min_length in endings:
        if word.endswith(ending) and len(word) >= min_length:
            word = word.removesuffix(ending) + replacement
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    # "stopp" → "stop"; but "agree", "pass" and "call" end in these letters twice by themselves
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiosl":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


def words(text: str) -> list[str]:
    """Return the words of a text, in order, as they are written."""
    return [match.group() for match in _WORD.finditer(text)]


def content_stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words but stop words, each once, in order."""
    content_words = (word for word in words(text) if word.lower().removesuffix("'s") not in STOPWORDS and len(word) > 1)
    return tuple(dict.fromkeys(map(stem, content_words)))


def identifying_tokens(text: str) -> frozenset[str]:
    """Return codes and numbers of at least four digits, or of letters with at least two digits; years are excluded.

    "the PIN is 4711, the gate AB12C, since 2019" gives "4711" and "ab12c".
    """
    result: set[str] = set()
    if text.isascii() and _DIGIT.search(text) is None:
        return frozenset()
    for match in _TOKEN.finditer(text):
        token = match.group().strip(".-").lower()
        digits = sum(letter.isdigit() for letter in token)
        mixed = any(letter.isalpha() for letter in token)
        is_year = len(token) == 4 and token[:2] in {"19", "20"} and digits == 4
        if not is_year and (digits >= 4 or (digits >= 2 and mixed and len(token) >= 5)):
            result.add(token)
    return frozenset(result)
