"""Decides which option an answer to a D1 question chooses if it goes through several of them.

It is read in two ways, in this order. As a conclusion: the last clause that names an option names it alone, and as the
outcome (``so it is D``). As a weighing: exactly one of the options is supported, or exactly one is not rejected.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset.values.terms import Span

_CLAUSE_END = re.compile(r"[.!?](?=\s)|[;,\n—→]|\s[-–]\s|\b(?:but|while|whereas|because|since|although|though)\b")
"""Where a clause ends: a stop, a dash, ``but``, ``because``."""
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|accordingly|overall|answer|choices?|choose|chose|pick|select|settle|"
    r"conclude|conclusion|final(?:ly)?|go(?:ing)? with|opt|leav(?:es|ing)|left|remains?|remaining|only|must be|"
    r"has to be|best|match(?:es)?|correct|right|yes|it(?:'s| is| was| has to be)|that(?:'s| is| was| makes it)|"
    r"makes|fits?)\b|→|=>|✓|✔|✅"
    r"|\b(?:records?|notes?|chats?|logs?|conversations?|memory|evidence|transcripts?) (?:\w+ )?"
    r"(?:says?|shows?|has|have|gives?|names?|states?)\b",
    re.IGNORECASE,
)
"""Words before the option that is the outcome: ``so it is``, ``I go with``, ``the notes say``."""
_CONCLUDES_AFTER = re.compile(
    r"\W*(?:option |letter )?(?:it is|it was|it's|was it|is it|it must be|then|"
    r"(?:is|was) (?:the one|the answer|my (?:answer|choice|pick)))\W*$",
    re.IGNORECASE,
)
"""Words after the option that is the outcome, up to the end of its clause: ``C it is``."""
_REMAINS = re.compile(
    r"\b(?:remain(?:s|ing)?|leav(?:es|ing)|(?:is|are|be) left|left over|the other one|last one|only one)\b", re.I
)
"""Says that one option remains: ``which leaves``, ``the last one``."""
_NONE_LEFT = re.compile(r"\b(?:none|nothing|no (?:option|one))\b", re.IGNORECASE)
_LEAVES_OPEN = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|might|may|could|also|as well|too|equally|both|not sure|unsure|unclear)\b",
    re.IGNORECASE,
)
"""Says that more than one option may be right: ``maybe``, ``both``."""
_REJECTED = re.compile(
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|cannot|without|wrong|incorrect|false|unrelated|irrelevant|"
    r"absent|missing|unsupported|unlikely|lacks?|excluded?|eliminated|ruled out|ruling out|discard(?:ed)?|"
    r"dismiss(?:ed)?|others?|another|else|someone|somebody|belongs?|only|just|old|former(?:ly)?|earlier|"
    r"previous(?:ly)?|original(?:ly)?|too|sold|instead)\b"
    r"|n't\b|[✗✘❌]|(?<![\w'])[xX](?![\w'])|\b(?:is|was|are|were|for|by) [A-Z]\w+(?:'s)?\b",
)
"""A remark that rejects an option: ``was never mentioned``, ``belongs to Ada``, ``✗``."""
_SUPPORTED = re.compile(
    r"\b(?:yes|correct|right|match(?:es|ed)?|fits?|supported|confirmed|mention(?:s|ed)|said|says|told|stated|agrees?|"
    r"appears?|yours)\b|[✓✔✅]",
    re.IGNORECASE,
)
"""A remark that supports an option: ``matches the chat``, ``✓``."""
_YES = re.compile(r"\W*\?\W*(?:yes|yep|right|correct|that's it|that is it)\b", re.IGNORECASE)
"""The answer to an option that is put as a question: ``? Yes``."""
_NOTHING_ELSE = re.compile(r"(?:\W|\b(?:the|an?|option|letter)\b|(?<!\w)[A-Za-z](?!\w))*", re.IGNORECASE)
"""Nothing but letters of options and what goes with them: ``Option (B).``"""
_MIN_REJECTED = 2
"""Options, at least, that have to be rejected for the remaining one to be chosen."""
_MIN_EXPLAINING_WORDS = 5
"""Words next to the options from which on an answer explains them."""


@dataclass(frozen=True)
class Mention:
    """An option named in an answer, by its letter or its text."""

    letter: str
    span: Span
    denied: bool


def concluded(text: str, mentions: Sequence[Mention]) -> str | None:
    """Return the letter that a text chooses in the end, or by weighing all options that it names; None if neither."""
    ordered = sorted(mentions, key=lambda m: m.span)
    if len({m.letter for m in ordered if not m.denied}) < 2:
        return None
    return _concluded_option(text, ordered) or _weighed_option(text, ordered)


def remaining(text: str, mentions: Sequence[Mention], options: int) -> str | None:
    """Return the only option that a text does not name, if it rejects all others and speaks of what remains."""
    ordered = sorted(mentions, key=lambda m: m.span)
    ruled_out = {
        m.letter for n, m in enumerate(ordered) if m.denied or _REJECTED.search(_remark_after(text, ordered, n))
    }
    unnamed = {chr(ord("A") + n) for n in range(options)} - {m.letter for m in ordered}
    if len(unnamed) != 1 or len(ruled_out) < options - 1:
        return None
    following = text[ordered[-1].span.end :]
    return unnamed.pop() if _REMAINS.search(following) and not _NONE_LEFT.search(following) else None


def _concluded_option(text: str, mentions: Sequence[Mention]) -> str | None:
    """Return the option of the last clauses that name any, if a clause names it alone and as the outcome; else None."""
    letter = mentions[-1].letter
    ends = itertools.takewhile(lambda m: m.letter == letter and not m.denied, reversed(mentions))
    return letter if any(_is_outcome(text, mentions, mention) for mention in ends) else None


def _is_outcome(text: str, mentions: Sequence[Mention], mention: Mention) -> bool:
    """Whether a mention's clause names its option alone, affirms it, and presents it as the outcome."""
    start, end = _clause_of(text, mention)
    if {m.letter for m in mentions if start <= m.span.start < end and not m.denied} != {mention.letter}:
        return False
    if _LEAVES_OPEN.search(text[start:end]) or _REJECTED.search(text[mention.span.end : end]):
        return False
    if _CONCLUDES.search(text[start : mention.span.start]) or _CONCLUDES_AFTER.match(text[mention.span.end : end]):
        return True
    return _is_alone(text, start, end, mentions)


def _clause_of(text: str, mention: Mention) -> tuple[int, int]:
    start = max((m.end() for m in _CLAUSE_END.finditer(text, 0, mention.span.start)), default=0)
    return start, next((m.start() for m in _CLAUSE_END.finditer(text, mention.span.end)), len(text))


def _is_alone(text: str, start: int, end: int, mentions: Sequence[Mention]) -> bool:
    """Whether an answer that has explained its options ends in a line or sentence with the option only."""
    explained = len(re.findall(r"\w{2,}", _blank_mentions(text[:start], 0, mentions))) >= _MIN_EXPLAINING_WORDS
    bare = _NOTHING_ELSE.fullmatch(_blank_mentions(text[start:end], start, mentions)) and not text[end:].strip(" .!\n")
    return bool(explained and bare and re.search(r"[\n:.!?→]\W*$", text[:start]))


def _blank_mentions(clause: str, start: int, mentions: Sequence[Mention]) -> str:
    characters = list(clause)
    for mention in mentions:
        for position in range(mention.span.start - start, mention.span.end - start):
            if 0 <= position < len(characters):
                characters[position] = " "
    return "".join(characters)


def _weighed_option(text: str, mentions: Sequence[Mention]) -> str | None:
    """Return the only supported option, else the only one of at least three that is not rejected; else None."""
    for_it: set[str] = set()
    against: set[str] = set()
    remarks = [_remark_after(text, mentions, n) for n in range(len(mentions))]
    for mention, remark in zip(mentions, remarks, strict=True):
        if mention.denied or _REJECTED.search(remark):
            against.add(mention.letter)
        elif _SUPPORTED.search(remark):
            for_it.add(mention.letter)
    letters = {m.letter for m in mentions}
    answered = [m.letter for m, remark in zip(mentions, remarks, strict=True) if _YES.match(remark)]
    if len(answered) == 1 and all(remark.lstrip(" )").startswith("?") for remark in remarks):
        return answered[0]  # each option is put as a question, and a single one is answered with yes
    if len(for_it) == 1 and letters - for_it <= against:
        return next(iter(for_it))
    opening = mentions[0]
    _, end = _clause_of(text, opening)
    opens = _NOTHING_ELSE.fullmatch(_blank_mentions(text[:end], 0, mentions)) or _is_outcome(text, mentions, opening)
    if opens and not opening.denied and len(letters) > _MIN_REJECTED and letters - {opening.letter} <= against:
        return opening.letter
    standing = letters - against
    if len(standing) == 1 and len(against) >= _MIN_REJECTED and not for_it - standing:
        return standing.pop()
    return None


def _remark_after(text: str, mentions: Sequence[Mention], at: int) -> str:
    """Return the text after a mention, up to the next other mention; mentions in a row share the last one's remark."""
    for mention, following in itertools.pairwise([*mentions[at:], None]):
        assert mention is not None
        remark = text[mention.span.end : following.span.start if following else len(text)]
        remark = re.sub(r"(?:\b(?:options?|letter|the|an?)\b|[\s(\[*-])*$", "", remark) if following else remark
        if re.search(r"\w|[✓✔✅✗✘❌]", re.sub(r"\b(?:and|or|the|an?)\b", "", remark)) or following is None:
            return remark
    return ""
