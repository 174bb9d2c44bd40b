"""What looks like a value in an answer and is none: headings, fields, openers of sentences, sources.

A capital letter makes no name at the head of a line, and the day or the speaker of a conversation stands in an answer
to say where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memarena.log.records import EvidenceSession
from memarena.text.lexicon import table, word_list
from memarena.text.mentions import DateMention, Mention, ProperMention
from memarena.text.reading import ReadText, read_text
from memarena.text.words import stem, words

_WORDLESS = re.compile(r"[^\w]*$")
_OPENS = re.compile(r"[.!?:;\n|*#>{\"(\[\u2022\u2192]|[^\x00-\x7f]")
_ENDS_SOUND = ("", ",", ".", "!", "?", "\u2026", ";")
_TITLES = frozenset(("dr", "mr", "ms", "mrs", "prof"))
"""Before a name, with a full stop that parts them."""
_LABEL = re.compile(r"[\w'/#&+. -]{0,40}?(?:\([^()\n]{0,30}\))?[\"'*_)\]]*\s?[:=](?!\d)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|[^\n]*\n\s*[=-]{3,}\s*(?:\n|$))")
_ENDINGS = re.compile(
    r"[a-z]{2,}(?:ly|ing|ed|tion|sion|ment|ness|ity|ance|ence|ful|less|able|ible|ous|ive|ical|ary|wards?|wise|ism)$"
)
_ACTS_ON = re.compile(r"[ \t]+(?:the|an?|my|your|me|us|you|him|them|i)\b", re.IGNORECASE)
_SPEAKER_ITSELF = frozenset(("i", "i'm", "i've", "i'd", "i'll"))
"""``Omg I remember``, ``Dude I've found it``."""
_ANSWERS = re.compile(
    r"\b(?:answers?|values?|results?|responses?|outputs?|final|correct|actual|version|reply|option|candidate|fact|"
    r"detail|"
    r"finding|entry|statement|hit|match|account)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?:^|[\n.;|,(\[{])[\s\"'*_#>-]*(?P<label>[^\n.;|,:()\[\]{}]{1,50}?)[\"'*_]*\s?[:|]\s*[\"'*_\[]*$")
_GIVES = re.compile(
    r"\b(?:answer|value|result|reply|response|(?:right|correct|true|real) (?:one|name|person|place|date))\b"
    r"(?: \w+){0,2} (?:is|was|reads|would be|be)\s+[\"'*_]*$|\bor\s+[\"'*_]*$",
    re.IGNORECASE,
)


def by_line(answer: ReadText, mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions, with a name that runs on over a line's end cut there: a heading and what follows it."""
    found: list[Mention] = []
    for mention in mentions:
        said = answer.text[mention.start : mention.end]
        if not isinstance(mention, ProperMention) or "\n" not in said:
            found.append(mention)
            continue
        for line in re.finditer(r"[^\n]*\w[^\n]*", said):
            name = tuple(_bare(w) for w in line.group().split())
            found.append(ProperMention(mention.start + line.start(), mention.start + line.end(), name))
    return found


def names_nothing(answer: ReadText, mention: Mention, evidence: Sequence[EvidenceSession], *, known: bool) -> bool:
    """Whether a capitalised word is a heading, a field's label or the opener of a sentence.

    ``known`` are those that evidence or question have: of these only labels and words of grammar are no names.
    """
    if not isinstance(mention, ProperMention):
        return False
    if set(mention.name) <= _TITLES:
        return True
    if not known and set(mention.name) <= word_list("initials.v1.txt"):
        return True
    return _at_opening(answer.text, mention.start) and _opens_without_name(answer, mention, evidence, known=known)


def _opens_without_name(
    answer: ReadText, mention: ProperMention, evidence: Sequence[EvidenceSession], *, known: bool
) -> bool:
    if not _of_evidence(mention, evidence) and _is_label(answer.text, mention.start, mention.end):
        return True
    first, *others = answer.text[mention.start : mention.end].split()
    if known and _bare(first) not in word_list("function_words.v1.txt") and not _is_adverb(answer.text, mention, first):
        return False
    # `Pardon the liberty`, `Behold my find`: what a name does not stand before.
    acts = not others and _ACTS_ON.match(answer.text, mention.end) is not None
    if acts or (others and set(map(_bare, others)) <= _SPEAKER_ITSELF):
        return True
    # A second capital behind an everyday word: a heading (`Final Answer`), or a name after all.
    return _opens_a_sentence(first, alone=not others) and all(_is_opener(_bare(w)) for w in others)


def _is_adverb(text: str, mention: ProperMention, first: str) -> bool:
    """``Honestly, …``, ``Ha, …``: no name, though the conversation opens a sentence with it too."""
    behind = text[mention.end : mention.end + 1]
    if _bare(first) in word_list("interjections.v1.txt"):
        return behind in _ENDS_SOUND
    return behind == "," and _bare(first).endswith("ly") and _bare(first) in word_list("openers.v1.txt")


def _at_opening(text: str, at: int) -> bool:
    gap = _WORDLESS.search(text[:at])
    return gap is None or gap.start() == 0 or _OPENS.search(gap.group()) is not None


def _is_label(text: str, start: int, end: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 :]
    if _HEADING.match(line):
        return True
    return _LABEL.match(text, end) is not None and len(words(text[start:end])) <= 5


def _opens_a_sentence(word: str, *, alone: bool) -> bool:
    bare = _bare(word)
    return _is_opener(bare) or (alone and _ENDINGS.match(bare) is not None)


def _is_opener(word: str) -> bool:
    # `I've`, `Let's`: each of its words opens a sentence.
    return bool(word) and all(w in _openers() or stem(w) in _opener_stems() for w in (words(word) or [word]))


def _bare(word: str) -> str:
    return word.lower().strip().removesuffix("'s").strip("'-*_\"")


@cache
def _openers() -> frozenset[str]:
    lists = (
        "openers.v1.txt",
        "interjections.v1.txt",
        "function_words.v1.txt",
        "common_words.v1.txt",
        "talk_words.v1.txt",
    )
    of_stance = (w for members in table("stance_words.v1.txt").values() for w in members)
    return frozenset(of_stance).union(*map(word_list, lists))


@cache
def _opener_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in _openers())


# ------------------------------------------------------------------ where something was said


def tells_source(answer: ReadText, mention: Mention, evidence: Sequence[EvidenceSession]) -> bool:
    """Whether a mention is the day or a speaker of the evidence and stands where it says where something comes from.

    Anywhere but where an answer is given in so many words, or joined to another.
    """
    line = answer.text[max(0, mention.start - 90) : mention.start]
    if not _of_evidence(mention, evidence):
        return False
    if answer.text[mention.end : mention.end + 1] == ":":
        # `Maya Chen: …` opens a line of the conversation, which an answer that only repeats it has too.
        return _FROM.search(line) is not None
    if field := _FIELD.search(line):
        return _ANSWERS.search(field["label"]) is None or _SAID.search(field["label"]) is not None
    return _GIVES.search(line) is None


_FROM = re.compile(r"\b(?:per|according to|via|as told by|says|citing|source:?)\s+[\"'*_]*$", re.IGNORECASE)
_SAID = re.compile(r"\b(?:said|told|by|of|date|day|when|who|source|mentioned|dated|with|from)\b", re.IGNORECASE)


def _of_evidence(mention: Mention, evidence: Sequence[EvidenceSession]) -> bool:
    if isinstance(mention, DateMention):
        days = (m for s in evidence for t in s.turns for m in _days(t.said_at or s.started_at))
        return any(mention.same(day) for day in days)
    if isinstance(mention, ProperMention):
        people = {w for s in evidence for t in s.turns for w in words(t.speaker)}
        return set(mention.name) <= people
    return False


def _days(moment: str) -> list[Mention]:
    return list(read_text(moment).of_kind("date"))
