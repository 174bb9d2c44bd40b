"""Words of a turn: sentences, stems that carry content, tokens that tell a fact by themselves."""

from __future__ import annotations

import re
from functools import lru_cache

from memarena_backend_gated.english import word_list
from memarena_backend_gated.prefilter import Pattern

_SENTENCE = re.compile(r"(?<=[.!?;])[\"'’”)]*\s+|\n+|\s+[–—]\s+|\s+--?\s+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_STRONG = re.compile(r"[^\s\"'“”‘’,;:!?()]+")
_DIGIT = re.compile(r"\d")
_WITHOUT_APOSTROPHE = (
    (Pattern(r"\bcannot\b", re.I), "can not"),
    (Pattern(r"\bdont\b", re.I), "do not"),
    (Pattern(r"\bgonna\b", re.I), "going to"),
)
_CONTRACTIONS = (
    (Pattern(r"\bcan['’]t\b", re.I), "can not"),
    (Pattern(r"\bwon['’]t\b", re.I), "will not"),
    (Pattern(r"\bshan['’]t\b", re.I), "shall not"),
    (Pattern(r"\bain['’]t\b", re.I), "is not"),
    (Pattern(r"n['’]t\b", re.I), " not"),
    (Pattern(r"\b(i)['’]d\b", re.I), r"\1 would"),
    (Pattern(r"\b(you|he|she|we|they)['’]d\b", re.I), r"\1 would"),
    (Pattern(r"\b(i)['’]m\b", re.I), r"\1 am"),
    (Pattern(r"['’]re\b", re.I), " are"),
    (Pattern(r"['’]ve\b", re.I), " have"),
    (Pattern(r"['’]ll\b", re.I), " will"),
    (Pattern(r"\b(it|that|this|he|she|there|what|who|mum|mom)['’]s\b", re.I), r"\1 is"),
    (Pattern(r"\blet['’]s\b", re.I), "let us"),
    *_WITHOUT_APOSTROPHE,
)

STOPWORDS = word_list("stop")


def expanded(text: str) -> str:
    """The text with contractions written out, so that one pattern fits both."""
    shortened = "'" in text or "’" in text
    for pattern, whole in _CONTRACTIONS if shortened else _WITHOUT_APOSTROPHE:
        text = pattern.sub(whole, text)
    return text.replace("’", "'")


def sentences(text: str) -> list[str]:
    """The sentences of a turn; a semicolon, a dash and a line end close one too."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without the commonest endings of English; words of digits as they are."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if len(word) < 4 or any(letter.isdigit() for letter in word):
        return word
    for ending, rest, shortest in (("ies", "y", 5), ("sses", "ss", 6), ("ing", "", 6), ("ed", "", 5), ("es", "e", 5)):
        if word.endswith(ending) and len(word) >= shortest:
            word = word.removesuffix(ending) + rest
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiosl":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


def words(text: str) -> list[str]:
    """The words of a text, in order, as they are written."""
    return [match.group() for match in _WORD.finditer(text)]


def content(text: str) -> tuple[str, ...]:
    """Stems of the words that carry content, each once, in order."""
    content_words = (word for word in words(text) if word.lower().removesuffix("'s") not in STOPWORDS and len(word) > 1)
    return tuple(dict.fromkeys(map(stem, content_words)))


def strong_tokens(text: str) -> frozenset[str]:
    """Tokens that tell a fact by themselves: codes and numbers with four digits, or letters mixed with two digits."""
    result: set[str] = set()
    if text.isascii() and _DIGIT.search(text) is None:
        return frozenset()
    for match in _STRONG.finditer(text):
        token = match.group().strip(".-").lower()
        digits = sum(letter.isdigit() for letter in token)
        mixed = any(letter.isalpha() for letter in token)
        is_year = len(token) == 4 and token[:2] in {"19", "20"} and digits == 4
        if not is_year and (digits >= 4 or (digits >= 2 and mixed and len(token) >= 5)):
            result.add(token)
    return frozenset(result)
