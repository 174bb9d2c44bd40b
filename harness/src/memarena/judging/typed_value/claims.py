"""Reads an answer into claims: each says a value, whose it is, which version, who said it, and whether it is given.

An answer is cut in three steps. ``Final answer:`` and corrections (``no, wait``) make what stands before them void.
Then sentences are cut into segments that speak of one person or one version (``you pay 335 euros`` | ``while Xavier
pays 785``). Each value mentioned becomes one :class:`Claim`, read from its segment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from memarena_dataset.values import TermValue
from memarena_dataset.values.reading import ReadText
from memarena_dataset.values.terms import is_everyday
from memarena_dataset.values.words import stem

from memarena.judging.typed_value.masking import Mask, Token, masked
from memarena.judging.typed_value.question import Asked, Version

TABLE = "claims.v1.toml"


class Matter(StrEnum):
    """Which matter a claim is about: the one that is asked after, or another."""

    ASKED = "asked"
    OTHER = "other"


class Holder(StrEnum):
    """Whose value a claim tells."""

    ASKED = "asked"
    OTHER = "other"


@dataclass(frozen=True)
class Claim:
    """A value as an answer tells it. None stands for: not said."""

    mask: Mask
    which: int
    at: int
    """Index of its token."""
    holder: Holder | None
    version: Version | None
    denied: bool
    matter: Matter | None = None
    source: str = ""
    """Who is said to have told it: a first name in lower case."""


@dataclass(frozen=True)
class Statement:
    """An answer as it stands in the end: its tokens and claims."""

    tokens: tuple[Token, ...]
    claims: tuple[Claim, ...]
    taken_back: bool = False
    """Whether something before was corrected or overruled by a final answer."""

    def of(self, *masks: Mask) -> list[Claim]:
        """The claims of these masks."""
        return [claim for claim in self.claims if claim.mask in masks]


_VALUES = (Mask.VALUE, Mask.CHANGED, Mask.PREMISE, Mask.RIVAL)
_ASIDES = ("supposed", "set_against", "beside")
_SENTENCE = frozenset((".", "!", "?", "\n"))
_CUT = frozenset((";", "(", ")", "—", "while", "whereas", "but", "though", "although", "however", "yet", "→", "/"))


@cache
def phrases(section: str) -> re.Pattern[str]:
    """The phrases of a section of the table as one pattern over words that are joined by single spaces."""
    lines: Sequence[str] = _table()[section]
    return re.compile("|".join(rf"(?<!\S)(?:{line})(?!\S)" for line in lines))


@cache
def _table() -> Mapping[str, Sequence[str]]:
    text = (files("memarena.judging") / "tables" / TABLE).read_text(encoding="utf-8")
    found: dict[str, Sequence[str]] = tomllib.loads(text)
    return found


def read_statement(asked: Asked, read: ReadText) -> Statement:
    """What the answer stands by in the end."""
    tokens = masked(asked, read)
    kept, taken_back = _final(asked, tokens)
    kept = _without_asides(kept)
    claims = tuple(_claim(asked, kept, n, read.text) for n, t in enumerate(kept) if t.mask in _VALUES)
    return Statement(tuple(kept), claims, taken_back)


# ------------------------------------------------------------------ the end of an answer counts


def _final(asked: Asked, tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """The tokens behind the last final answer or correction, if they say anything."""
    for section in ("final", "correction"):
        text, starts = joined(tokens)
        for match in reversed(list(phrases(section).finditer(text))):
            cut = next(n for n, at in enumerate([*starts, len(text) + 1]) if at >= match.end())
            before, behind = list(tokens[:cut]), list(tokens[cut:])
            said = any(t.mask in _VALUES for t in behind) or _names_a_thing(asked, behind)
            speaks = any(t.word[:1].isalnum() for t in behind) and (said or section == "final")
            if speaks and any(t.mask in _VALUES for t in before):
                return behind, True
    return list(tokens), False


def _names_a_thing(asked: Asked, tokens: Sequence[Token]) -> bool:
    """Whether some words could be another thing, where a thing is asked for: words that are no everyday ones."""
    if not all(isinstance(value, TermValue) for value in asked.required):
        return False
    words = (t.word for t in tokens if t.mask is None and t.word[:1].isalpha())
    return any(not is_everyday(w) and stem(w) not in asked.question_words for w in words)


def _without_asides(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without what only says that a value is held for probable, or that it is none of other things."""
    text, starts = joined(tokens)
    spans = [match.span() for section in _ASIDES for match in phrases(section).finditer(text)]
    if not spans:
        return list(tokens)
    return [t for t, at in zip(tokens, starts, strict=True) if not any(low <= at < high for low, high in spans)]


def joined(tokens: Sequence[Token]) -> tuple[str, list[int]]:
    """The words with single spaces between, and where each begins."""
    starts, text = [], ""
    for token in tokens:
        starts.append(len(text))
        text += (token.mask.value if token.mask and token.mask is not Mask.ASKED else token.word) + " "
    return text, starts


# ------------------------------------------------------------------ one claim


def _claim(asked: Asked, tokens: Sequence[Token], at: int, text: str) -> Claim:
    low, high = segment_of(tokens, at)
    token = tokens[at]
    assert token.mask is not None
    return Claim(
        token.mask,
        token.which,
        at,
        holder=None if asked.about_talk or asked.changed else _holder(tokens, low, at, high),
        version=_version(tokens, low, at, high),
        denied=_denied(tokens, low, at, high) or (asked.about_talk and _is_spoken_of(tokens, at)),
        matter=_matter(asked, tokens, low, high),
        source=_source(asked, tokens, at, text) if asked.changed else "",
    )


def sentence_of(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """From where to where the sentence around a token goes."""
    low = next((n + 1 for n in range(at - 1, -1, -1) if _ends(tokens, n)), 0)
    high = next((n for n in range(at, len(tokens)) if _ends(tokens, n)), len(tokens))
    return low, high


def _ends(tokens: Sequence[Token], n: int) -> bool:
    if tokens[n].word not in _SENTENCE:
        return False
    # "Dr." and "a.m." end no sentence.
    return (
        tokens[n].word != "."
        or n == 0
        or tokens[n - 1].word not in ("mr", "mrs", "ms", "dr", "prof", "st", "e", "g", "i")
    )


def segment_of(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """From where to where the stretch around a token goes that speaks of one person or version."""
    low, high = sentence_of(tokens, at)
    start = next((n + 1 for n in range(at - 1, low - 1, -1) if _cuts(tokens, n)), low)
    end = next((n for n in range(at + 1, high) if _cuts(tokens, n)), high)
    return start, end


def _cuts(tokens: Sequence[Token], n: int) -> bool:
    """Whether a new segment begins behind a token: a contrast, or a comma or ``and`` before another person or value."""
    word = tokens[n].word
    if word in _CUT:
        return word != "but" or not phrases("all_but").search(_words(tokens, max(0, n - 2), n).rstrip())
    if word not in (",", "and", ":"):
        return False
    ahead = tokens[n + 1 : n + 4]
    if word == ":":
        return False
    has_before = any(t.mask in _VALUES for t in tokens[max(0, n - 12) : n])
    has_person = any(t.mask in (Mask.OTHER, Mask.ASKED) for t in ahead[:2])
    return has_before and (has_person or any(t.mask in _VALUES for t in ahead) or word == ",")


def _words(tokens: Sequence[Token], low: int, high: int) -> str:
    return joined(tokens[low:high])[0]


def _denied(tokens: Sequence[Token], low: int, at: int, high: int) -> bool:
    """``not X``, ``X is wrong``, ``instead of X``."""
    return bool(phrases("denied_before").search(_words(tokens, low, at))) or bool(
        phrases("denied_behind").match(_words(tokens, at + 1, high))
    )


def _is_spoken_of(tokens: Sequence[Token], at: int) -> bool:
    """Whether a person is named as the one spoken of: ``about VALUE``, ``VALUE's badminton``."""
    before, behind = _words(tokens, max(0, at - 3), at), _words(tokens, at + 1, at + 3)
    return bool(phrases("spoken_of_before").search(before)) or bool(phrases("spoken_of_behind").match(behind))


def _holder(tokens: Sequence[Token], low: int, at: int, high: int) -> Holder | None:
    """The person nearest before the value, else behind it. Who only tells or hears it is passed over."""
    for n in range(at - 1, low - 1, -1):
        if tokens[n].mask in (Mask.ASKED, Mask.OTHER) and not _is_source(tokens, n):
            return Holder.ASKED if tokens[n].mask is Mask.ASKED else Holder.OTHER
    if phrases("somebody_else").search(_words(tokens, low, high)):
        return Holder.OTHER
    for n in range(at + 1, high):
        if tokens[n].mask is Mask.ASKED:
            return Holder.ASKED
        if tokens[n].mask is Mask.OTHER and not _is_source(tokens, n) and _owns(tokens, at, n):
            return Holder.OTHER
    return None


def _matter(asked: Asked, tokens: Sequence[Token], low: int, high: int) -> Matter | None:
    """The matter that a stretch names: the asked one by words of the question, or of a turn that states the value."""
    words = (t.word.removesuffix("'s") for t in tokens[low:high] if t.mask is None and t.word[:1].isalpha())
    named = {stem(word) for word in words if not is_everyday(word)}
    if named & asked.matter_words:
        return Matter.ASKED
    return Matter.OTHER if named else None


def _owns(tokens: Sequence[Token], at: int, n: int) -> bool:
    """``VALUE is OTHER's``, ``VALUE belongs to OTHER``, ``VALUE for OTHER``."""
    return bool(phrases("owned_behind").fullmatch(_words(tokens, at + 1, n).strip()))


def _is_source(tokens: Sequence[Token], n: int) -> bool:
    behind = _words(tokens, n + 1, min(n + 5, len(tokens)))
    before = _words(tokens, max(0, n - 4), n)
    return bool(phrases("source_behind").match(behind)) or bool(phrases("source_before").search(before.rstrip()))


def _version(tokens: Sequence[Token], low: int, at: int, high: int) -> Version | None:
    """The version that the words nearest to the value name; those before it win over those behind."""
    start, _ = sentence_of(tokens, at)
    before, behind = _words(tokens, low, at), _words(tokens, at + 1, high)
    if phrases("from_to").search(before) and re.match(r"(?:to|→|into) ", behind):
        return Version.FORMER
    for pattern, version in ((phrases("former_tight"), Version.FORMER), (phrases("current_tight"), Version.CURRENT)):
        if pattern.match(behind):
            return version
    found = _last(before)
    if found is None:
        found = _first(behind)
    if found is None and low > start and not any(t.mask in _VALUES for t in tokens[start:low]):
        found = _last(_words(tokens, start, low))
    return found


def _last(text: str) -> Version | None:
    former = max((m.end() for m in phrases("former").finditer(text)), default=-1)
    current = max((m.end() for m in phrases("current").finditer(text)), default=-1)
    if former == current:
        return None
    return Version.FORMER if former > current else Version.CURRENT


def _first(text: str) -> Version | None:
    former = phrases("former").search(text)
    current = phrases("current").search(text)
    if former is None or current is None:
        return Version.FORMER if former else Version.CURRENT if current else None
    return Version.FORMER if former.start() < current.start() else Version.CURRENT


def _source(asked: Asked, tokens: Sequence[Token], at: int, text: str) -> str:
    """Which of a conflict's two sources is said to have told the value; empty where that is not said."""
    sources = asked.sources
    if sources is None:
        return ""
    low, high = _own_stretch(tokens, at)
    before = [n for n in range(low, at) if tokens[n].mask in (Mask.ASKED, Mask.OTHER, Mask.RIVAL)]
    behind = [n for n in range(at + 1, high) if tokens[n].mask in (Mask.ASKED, Mask.OTHER, Mask.RIVAL)]
    named_before = [name for n in before if _tells(tokens, n) and (name := _first_name(tokens[n], text)) in sources]
    named_behind = [
        name for n in behind if _told_by(tokens, at, n) and (name := _first_name(tokens[n], text)) in sources
    ]
    if named_behind:
        return named_behind[0]
    return named_before[-1] if named_before else ""


def _own_stretch(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """What stands between the values before and behind."""
    values = [n for n, t in enumerate(tokens) if t.mask in (Mask.VALUE, Mask.CHANGED)]
    low = max((n + 1 for n in values if n < at), default=0)
    high = min((n for n in values if n > at), default=len(tokens))
    return low, high


def _first_name(token: Token, text: str) -> str:
    return text[token.start : token.end].split(maxsplit=1)[0].lower().removesuffix("'s")


def _tells(tokens: Sequence[Token], n: int) -> bool:
    """Whether a person before a value is told as its source, and not as whose value it is."""
    behind = _words(tokens, n + 1, min(n + 6, len(tokens)))
    before = _words(tokens, max(0, n - 4), n).rstrip()
    return bool(phrases("tells_behind").match(behind)) or bool(phrases("tells_before").search(before))


def _told_by(tokens: Sequence[Token], at: int, n: int) -> bool:
    """Whether a person right behind a value is told as its source: ``VALUE (Viktor)``."""
    return bool(phrases("told_by").fullmatch(_words(tokens, at + 1, n).strip()))
