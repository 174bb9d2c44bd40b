"""Normalises text: tidy characters, words, stems, clauses, and the token-F1 of SQuAD.

The judges and all modules that read values compare texts in these forms, so that spelling, contractions and endings of
words do not decide.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memarena_dataset.values.word_lists import word_list

_FOLDED = str.maketrans(
    {"’": "'", "‘": "'", "‛": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
)
_DASHES = re.compile(r"[\u2010\u2011\u2012\u2212]")
_SHARE = re.compile(r"(?<![\w.,:])(?:(\d{1,2})[ \u00a0\u2009\u202f](?=.(?!\s+of\b))|(\d+))?([¼½¾])")
_DECIMALS = {"¼": "25", "½": "5", "¾": "75"}
_LONG_DASHES = re.compile(r"\s*[\u2013\u2014\u2015]\s*|\s+--?\s+|--+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_ARTICLES = re.compile(r"\b(a|an|the)\b")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

_NOT = r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should|must|might|need){}\b"
_CONTRACTIONS = (
    ("can", re.compile(r"\bcan'?t\b|\bcannot\b|\bcan not\b"), "can not"),
    ("won", re.compile(r"\bwon'?t\b"), "will not"),
    ("shan't", re.compile(r"\bshan't\b"), "shall not"),
    ("ain't", re.compile(r"\bain't\b"), "is not"),
    ("n't", re.compile(_NOT.format("n't")), r"\1 not"),
    ("nt", re.compile(_NOT.format("nt")), r"\1 not"),
    ("i'm", re.compile(r"\b(i)'m\b"), r"\1 am"),
    ("im", re.compile(r"\b(i)m\b"), r"\1 am"),
    ("'ve", re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    ("'ll", re.compile(r"\b(i|you|he|she|it|we|they|that|there)'ll\b"), r"\1 will"),
    ("'d", re.compile(r"\b(i|you|he|she|it|we|they|that|there)'d\b"), r"\1 would"),
    ("'re", re.compile(r"\b(you|we|they)'re\b"), r"\1 are"),
    ("'s", re.compile(r"\b(he|she|it|that|there|here|what|who|where|when|how)'s\b"), r"\1 is"),
    ("let's", re.compile(r"\b(let)'s\b"), r"\1 us"),
)
"""A substring that a text must contain (a fast pre-check), the pattern of the contraction, and its replacement."""

# Text before a full stop that may not end a sentence: "Dr.", "approx.", an initial.
_ABBREVIATION = re.compile(
    r"(?:^|\W)(?:[a-z]|mr|mrs|ms|dr|prof|st|vs|etc|no|approx|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)$",
    re.IGNORECASE,
)
# A clause ends at, in the order of the alternatives:
# - ; ! ? or a line break; a full stop before a blank, a quote or a bracket, not in 7.5; a colon before a blank, not in
#   14:30; an em dash, to which tidy() changes each dash of a pause; a bracket;
# - a comma, but not in 1,500 nor before a year (May 3, 2023); the blank before but, because and the like;
# - the blank before "and" with a pronoun or adverb that begins a clause: "and it", "and then";
# - the blank before "and" with a noun and its verb: "and the new room costs". Thus "tea and the milk" stays a clause.
_CLAUSE_END = re.compile(
    r"[;!?\n]+|\.+(?=[\s\"')\]]|$)|:(?=\s|$)|\s?[\u2014]\s?|[()\[\]{}]"
    r"|,(?!\d|\s+(?:1[5-9]|20|21)\d\d\b)\s*|\s+(?=(?:but|however|although|though|except|whereas|because|unless)\b)"
    r"|\s+(?=and (?:i|it|she|he|they|you|we|there|that|this|also|then)\b)"
    r"|\s+(?=and (?:the|her|his|their|my|your|its)(?: [\w'-]+){1,3} "
    r"(?:is|was|are|were|will|has|had|costs?|takes?|took)\b)",
    re.IGNORECASE,
)


def tidy(text: str) -> str:
    """Fold compatibility characters, drop invisible ones, and unify quotes and dashes; keep the case.

    A dash that marks a pause becomes an em dash with spaces, a dash within a word a hyphen, and ``2½`` becomes ``2.5``.
    """
    if text.isascii():
        # Most text is ASCII, for which this gives the same result as the steps below.
        text = _CONTROL.sub("", text.replace("`", "'"))
        return _LONG_DASHES.sub(" — ", text) if "-" in text else text
    # Before NFKC, which makes 21⁄2 of 2½.
    text = _SHARE.sub(lambda match: f"{match[1] or match[2] or 0}.{_DECIMALS[match[3]]}", text)
    text = unicodedata.normalize("NFKC", text).translate(_FOLDED)
    unseen = [c for c in set(text) if c not in "\n\t" and unicodedata.category(c) in ("Cf", "Cc")]
    text = text.translate({ord(c): None for c in unseen}) if unseen else text
    text = _DASHES.sub("-", text)
    # Before the long dashes: between digits (9–10) an en dash is a hyphen, not a pause.
    text = re.sub(r"(?<=\d)\u2013(?=\d)", "-", text)
    return _LONG_DASHES.sub(" — ", text)


def spell_out(text: str) -> str:
    """Return the text in lower case with contractions spelled out: ``can't`` is ``can not``, ``I'm`` is ``i am``."""
    text = tidy(text).lower()
    for contraction, pattern, spelled in _CONTRACTIONS:
        if contraction in text:
            text = pattern.sub(spelled, text)
    return text


def words(text: str) -> list[str]:
    """Return the words in lower case, with contractions spelled out and possessive endings dropped."""
    return list(_words(text))


@lru_cache(maxsize=16_384)
def _words(text: str) -> tuple[str, ...]:
    # Cached, as the same questions, names and clauses are read many times.
    return tuple(w.removesuffix("'s").removesuffix("'") for w in _WORD.findall(spell_out(text)))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the word without a plural, past or -ing ending, by which two forms of one word are equal.

    At least three letters stay, so that no name or short word becomes another (``Ines`` is not ``in``).
    """
    # The first ending that fits is removed, so that ies and es come before s.
    for ending, put in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        base = word.removesuffix(ending) + put
        if word.endswith(ending) and len(base) >= 3 and not word.endswith("ss"):
            # "planning" has the stem of "plan", while "calling" and "passing" keep both letters.
            if ending in ("ing", "ed") and len(base) > 3 and base[-1] == base[-2] and base[-1] not in "ls":
                base = base[:-1]
            return _without_e(base)
    return _without_e(word)


def _without_e(word: str) -> str:
    return word.removesuffix("e") if len(word) > 3 else word


def content_words(text: str) -> list[str]:
    """Return the stems of words that are not function words.

    ``checks.overlap.content_words`` is another measure: whole words, by another list of function words.
    """
    grammar = word_list("function_words.v1.txt")
    return [stem(w) for w in words(text) if w not in grammar]


@dataclass(frozen=True)
class Clause:
    """A clause of a text. ``start`` and ``end`` are offsets into the tidied text."""

    start: int
    end: int
    text: str


def clauses(text: str) -> list[Clause]:
    """Split a tidied text into clauses: at sentence ends, brackets, commas, dashes and contrasting conjunctions."""
    clauses: list[Clause] = []
    start = 0
    for match in _CLAUSE_END.finditer(text):
        if (
            match.group().startswith(".")
            and _ABBREVIATION.search(text[start : match.start()])
            and _goes_on(text, match)
        ):
            continue
        _add(clauses, text, start, match.start())
        start = match.end()
    _add(clauses, text, start, len(text))
    return clauses


def _goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the sentence continues after an abbreviation's full stop."""
    rest = text[match.end() :].lstrip()
    return bool(rest) and (
        not rest[0].isupper() or bool(re.search(r"\b(?:mr|mrs|ms|dr|prof|st)$", text[: match.start()], re.I))
    )


def _add(clauses: list[Clause], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    if _WORD.search(piece):
        lead = len(piece) - len(piece.lstrip())
        clauses.append(Clause(start + lead, start + len(piece.rstrip()), piece.strip()))


def squad_tokens(text: str) -> list[str]:
    """Return the tokens of SQuAD's normal form: lower case, no punctuation, no articles."""
    return list(_squad_tokens(text))


@lru_cache(maxsize=8192)
def _squad_tokens(text: str) -> tuple[str, ...]:
    # A gold text is compared with the answers of every cell.
    lowered = tidy(text).lower()
    bare = lowered.translate(_NO_PUNCTUATION)
    if not bare.isascii():
        marks = {ord(c): None for c in set(bare) if unicodedata.category(c).startswith("P")}
        bare = bare.translate(marks)
    return tuple(_ARTICLES.sub(" ", bare).split())


def token_f1(prediction: str, gold: str) -> float:
    """Return the F1 (0 to 1) of the two bags of SQuAD tokens: 1.0 for two empty texts, 0.0 if one is empty."""
    return bag_f1(_squad_tokens(prediction), _squad_tokens(gold))


def bag_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return the F1 (0 to 1) of two bags of tokens: 1.0 for two empty bags, 0.0 if one is empty."""
    if not predicted or not gold:
        return float(not predicted and not gold)
    unmatched = dict(_counted(tuple(gold)))
    shared = 0
    for token in predicted:
        if unmatched.get(token):
            unmatched[token] -= 1
            shared += 1
    return 2 * shared / (len(predicted) + len(gold))


@lru_cache(maxsize=8192)
def _counted(tokens: tuple[str, ...]) -> Counter[str]:
    return Counter(tokens)
