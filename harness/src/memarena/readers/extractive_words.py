"""Splits texts into sentences and stems for the extractive reader, and loads its data files."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from memarena_answering import ContextItem

LEXICON_FILE = "lexicons/extractive.v1.toml"
SYNONYM_FILE = "lexicons/synonyms.v1.txt.gz"
"""Made from WordNet by scripts/synonyms.py: per line a stem and the stems of its synonyms, each pair once."""

WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])(?<!\b[DM]r\.)(?<!\b[DM]s\.)(?<!\bMrs\.)(?<!\bSt\.)[\"'”’)\]]*\s+|(?<=[。！？])"
)
_SETTING = re.compile(r"\A\s*\[(?P<parts>[^\[\]\n]+)\]\s+")
"""The bracketed setting at the head of an item: ``[face to face, at Luna Café]``."""
_SPEAKER = re.compile(r"^\s*(?P<speaker>[^\s:][^:\n]{0,40}):\s+(?=\S)")


PATTERNS = ("private", "public", "circle", "versions", "telling", "present", "teller", "place", "means")
"""Names of the patterns in the data file. The first three match what a speaker says on who may hear, the others match
questions."""


@dataclass(frozen=True)
class Lexicon:
    """Words and patterns of the reader, from its data file."""

    stopwords: frozenset[str]
    base_of: Mapping[str, str]
    """Base form by irregular form."""
    kinds: tuple[tuple[str, re.Pattern[str]], ...]
    """Kinds of values, each with the pattern of questions that ask for it; the first that matches decides."""
    patterns: Mapping[str, re.Pattern[str]]
    """Patterns by name (`PATTERNS`)."""

    def fits(self, name: str, text: str) -> bool:
        """Whether the pattern of a name matches anywhere in a text."""
        return bool(self.patterns[name].search(text))


@cache
def lexicon() -> Lexicon:
    """Return the words and patterns of the data file."""
    table = tomllib.loads(_data(LEXICON_FILE).decode())
    forms = {form: base for base, *others in map(str.split, table["irregular"]) for form in others}
    kinds = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in table["kinds"].items())
    patterns = {name: re.compile("|".join(table[name]), re.IGNORECASE) for name in PATTERNS}
    return Lexicon(frozenset(table["stopwords"].split()), forms, kinds, patterns)


@cache
def synonyms() -> Mapping[str, frozenset[str]]:
    """Return the synonyms of stems, in both directions."""
    by_word: dict[str, set[str]] = {}
    for line in gzip.decompress(_data(SYNONYM_FILE)).decode().splitlines():
        word, *others = line.split()
        for synonym in others if word != "#" else ():  # "#" begins a comment
            by_word.setdefault(word, set()).add(synonym)
            by_word.setdefault(synonym, set()).add(word)
    return {word: frozenset(others) for word, others in by_word.items()}


def _data(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def data_files() -> dict[str, str]:
    """Return the SHA-256 (hex) of all data files that can affect an answer of the extractive reader, by path."""
    return {
        f"memarena/readers/{name}": hashlib.sha256(_data(name)).hexdigest() for name in (LEXICON_FILE, SYNONYM_FILE)
    }


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return a word without common English endings, for matching; empty for a stop word."""
    word = word.lower()
    if word in lexicon().stopwords:
        return ""
    word = lexicon().base_of.get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    # First the plural, then -ing or -ed: meetings, meeting, meet.
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and re.search(r"[aeiouy]", base):
            # stopped: stop, but called: call
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=1 << 15)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of all words but stop words."""
    return frozenset(filter(None, map(stem, WORD.findall(text))))


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence without its speaker's name, its speaker, and the index of its item in the context."""

    text: str
    speaker: str
    item: int

    @property
    def words(self) -> frozenset[str]:
        """Return the stems of its content words."""
        return content_words(self.text)


def setting_of(item: ContextItem) -> tuple[str, ...]:
    """Return the parts of the bracketed setting at the head of an item ("[face to face, at Luna Café]")."""
    match = _SETTING.match(item.text)
    return tuple(part.strip() for part in match["parts"].split(",")) if match else ()


def sentences(items: Sequence[ContextItem]) -> Iterator[Sentence]:
    """Yield all sentences in order. The speaker of a line ("Name: …") is that of all its sentences."""
    for index, item in enumerate(items):
        for line in _SETTING.sub("", item.text).splitlines():
            match = _SPEAKER.match(line)
            for text in _SENTENCE_END.split(line[match.end() :] if match else line):
                if text.strip():
                    yield Sentence(text.strip(), match["speaker"] if match else "", index)
