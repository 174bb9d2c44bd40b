"""Does an answer stand by what it says? What it takes back, rejects, leaves to others or merely supposes.

An answer can name a value without giving it: as somebody else's belief (``some might say X``), as its own first thought
(``I had X at first, but …``), as a question (``was it X?``), or only to take it back (``X. Scratch that.``). And it can
withdraw its confidence from all that it says (``a shot in the dark``). The phrases stand in
``text/lexicons/commitment.v1.txt``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memarena.text.phrasing import find_phrases
from memarena.text.reading import ReadText
from memarena.text.stating import Place, denied
from memarena.text.words import words

_LEXICON = "commitment.v1.txt"
_DENIES_AHEAD = re.compile(
    r"\b(?:nobody|no[ -]one|nowhere|none of (?:them|us|these|those|\w+ \w+)|den(?:y|ies|ied|ying)|rul(?:e[sd]?|"
    r"ing) out|reject(?:s|ed)?|dismiss(?:es|ed)?|"
    r"disput(?:e[sd]?|ing)|refut(?:e[sd]?|ing)|far from|anything (?:except|but)|everything (?:except|but)|all but|"
    r"(?:no|any) (?:sign|trace|mention|record|evidence|indication|support|basis) (?:of|for)|"
    r"contradict(?:s|ed)?(?! (?:you|your|that|this|it|the (?:question|context|record|notes?|chat|talk|"
    r"conversation|log|logs|messages?|evidence|memory|memories|transcript|source|sources))\b)|"
    r"(?:can|could|must)(?:no|n'|\s+no)t(?: possibly)? (?:be|have been))(?:\W+[\w']+){0,4}\W*$",
    re.IGNORECASE,
)
_REACH = 2
"""So many sentences behind a value can take it back."""
_SENTENCE_END = re.compile(r"[.!?\n\u2026]|\s-\s")
_CONTRASTS = re.compile(
    r"\b(?:but|yet|however|instead|in (?:fact|truth|reality)|actually|whereas|while|still|only|really (?:is|was)|"
    r"the (?:right|correct|true|real|actual) (?:one|answer|value)|rather|then|"
    r"(?:al)?though (?:it|the|what|my|in|that|i))\b|[;:\n]|\s[\u2014-]\s",
    re.IGNORECASE,
)
_GOES_ON_OTHERWISE = re.compile(
    r"\b(?:but|yet|however|though|although|then|until|turned out|later|since|instead|now|error|mistake|wrong|typo|"
    r"disregard|outdated|correct|sorry|having|on reflection)\b",
    re.IGNORECASE,
)
_POINTS_ELSEWHERE = re.compile(
    r"\b(?:elsewhere|another (?:way|direction)|differ(?:s|ent|ently)?|otherwise|"
    r"not (?:the case|so|right|it|quite|what)|"
    r"(?:is|was|are|does|do|did)(?:n't| not)\b|disagrees?|in fact|actually|the truth|in reality|rather|contrary|wins|"
    r"the (?:record|notes?|log|chat|conversation|talk) (?:says|has|gives|shows)|(?:it|that) is really)\b",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(
    r"(?:^|[,;:]\s*)\W*(?:hmm+|so|or|and|well|um|er)?\W*(?:(?:was|were|is|are|did|does|do|could|can|might|may|would|"
    r"should|has|have|had)(?:n't)?\s+(?:it|he|she|they|you|that|this|i|we|there|the|not)\b|maybe|perhaps|possibly|"
    r"how about|what about|what if)",
    re.IGNORECASE,
)
_PICTOGRAPH = re.compile(r"[\U0001f300-\U0001faff\u2600-\u26ff]")
"""Ends what is said before it, as a full stop does (``Friday 🙂 anything else?``)."""
_SAYS_YES = re.compile(
    r"\?[\s\"'*_]*(?:yes|yep|yeah|yup|aye|indeed|correct|right|true|exactly|precisely|absolutely|definitely|"
    r"certainly|affirmative|bingo|\u2713|\u2714|\u2705|that(?:'s| is| was) (?:it|right|correct|true|the one)|"
    r"it (?:is|was)\b(?! not))",
    re.IGNORECASE,
)
"""The answer's own yes to a value that it puts as a question (``X? Yes.``)."""
_TAG = re.compile(r"\W*(?:was|is|were|are|did|does|has)(?:n't| not) (?:it|that|he|she|they)\W*", re.IGNORECASE)
"""``X, wasn't it?``"""
WEEKDAY_AHEAD = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+(?:the\s+)?$", re.IGNORECASE)
_ALL_BUT = re.compile(
    r"\b(?:any|every|all)(?:thing|one|body|where)? but\W*(?:the |a |an |on |in |at )?$", re.IGNORECASE
)
_NEGATORS = frozenset(("no", "not", "without", "never", "nor", "zero", "neither", "nothing", "hardly", "beyond"))
_ANYBODY = ("one ", "1 ")
_COMPARES = frozenset(("as", "like", "than", "what"))
_ANTICIPATES = frozenset(("if", "unless", "whether"))
_ON_CONDITION = frozenset(
    ("replace", "swap", "once", "else", "rest", "otherwise", "if", "change", "substitute", "put", "with")
)
"""``Replace X with Y and your question is right``, ``everything else in your question is fine``."""
_PRONOUNS = frozenset(("that", "this", "it", "which", "they", "he", "she", "people", "those", "you"))
_ASKERS = frozenset(("you", "your", "question"))
"""``X, which is not what your question says``: that puts the question right and takes nothing back."""
_NEAR = 2
"""So many words of a later sentence may stand before a pronoun that means the value."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a read text; offsets count in its text. ``asks`` where it ends in a question mark."""

    start: int
    end: int
    text: str
    asks: bool


@lru_cache(maxsize=4096)
def sentences(answer: ReadText) -> tuple[Sentence, ...]:
    """The sentences of a text, of its clauses: an abbreviation's full stop ends neither."""
    found: list[list[int]] = []
    for clause in answer.clauses:
        gap = answer.text[found[-1][1] : clause.start] if found else "."
        if _SENTENCE_END.search(gap):
            found.append([clause.start, clause.end])
        else:
            found[-1][1] = clause.end
    return tuple(
        Sentence(start, end, answer.text[start:end], answer.text[end : end + 1] == "?") for start, end in found
    )


def refused_place(answer: ReadText, place: Place, *, versions: bool = False) -> str:
    """Why the answer does not give what stands there: denied, rejected, somebody else's, taken back. Else empty."""
    if weekday := WEEKDAY_AHEAD.search(answer.text[: place.start]):
        place = Place(weekday.start(), place.end)
    if denied(answer, place):
        return "denied"
    here = _sentence_at(answer, place)
    if here is None:
        return ""
    if reason := _rejected(answer, place, here, versions=versions):
        return reason
    return "" if versions else _others_belief(answer, place, here) or _taken_back(answer, place, here)


def asked_back(answer: ReadText, place: Place, *, versions: bool = False) -> bool:
    """Whether the value stands in a question that the answer itself asks; two versions may be named as questions."""
    here = _sentence_at(answer, place)
    if here is None or not here.asks or _PICTOGRAPH.search(answer.text[place.end : here.end]):
        return False
    behind = answer.text[place.end : here.end]
    if (not behind.strip(" \"'*_") or _TAG.fullmatch(behind)) and _SAYS_YES.match(answer.text[here.end :]):
        return False
    last = next((c for c in reversed(answer.clauses) if c.end <= here.end), None)
    alone = last is not None and last.start <= place.start < last.end
    return (alone and not versions) or _ASKS_BACK.search(here.text) is not None


def uncommitted(answer: ReadText, *, versions: bool = False) -> str:
    """The phrase with which the answer, wherever in it, declines to stand by what it says; empty if there is none."""
    sections = ("uncommitted",) if versions else ("uncommitted", "undecided")
    for sentence in sentences(answer):
        for section in sections:
            for found in find_phrases(_LEXICON, section, sentence.text):
                ahead = words(sentence.text)[max(0, found.at - 3) : found.at]
                if found.text.endswith(" to mind") and _GOES_ON_OTHERWISE.search(answer.text[sentence.start :]):
                    continue  # Another value is put for what came to mind, or it is refused where it stands.
                if ahead and ahead[-1] in _COMPARES:
                    continue  # `Not X, as one might think, but Y`
                if found.text.startswith(_ANYBODY) and _GOES_ON_OTHERWISE.search(answer.text[sentence.start :]):
                    continue  # `One might think of X, but it was Y`: refused where X stands.
                if not _NEGATORS & set(ahead[-2:]) and "you" not in ahead:
                    return found.text
    return ""


def supposed(answer: ReadText, place: Place) -> str:
    """The phrase by which the value's own clause merely supposes it; empty if there is none."""
    clause = answer.clause_at(place.start)
    spoken = words(clause.text)
    for found in find_phrases(_LEXICON, "supposes", clause.text):
        if not {"you", "we", *_NEGATORS} & set(spoken[max(0, found.at - 2) : found.at]):
            return found.text
    return ""


def affirms_question(answer: ReadText) -> str:
    """The phrase with which the answer calls right what the question takes for granted; empty if there is none."""
    for sentence in sentences(answer):
        for found in find_phrases(_LEXICON, "affirms", sentence.text):
            if not _ON_CONDITION & set(words(sentence.text)[: found.at + 1]):
                return found.text
    return ""


def _sentence_at(answer: ReadText, place: Place) -> Sentence | None:
    return next((s for s in sentences(answer) if s.start <= place.start < s.end), None)


_OF_ANOTHER_MATTER = re.compile(
    r"^[\"'*_)]*(?:\s+(?:too|also|as well|there))?(?:\s*[,;]|\s+[-\u2013\u2014])?\s*"
    r"(?:but|yet|though|although)\s+(?:that|this)(?:'s|\s+(?:is|was|belong(?:s|ed)|concern(?:s|ed)|refer(?:s|red)|relate[sd]|comes?|came))\s+"
    r"(?:(?:quite|really|just|rather|to|about|from|part of|in)\s+)*(?:an?\s+|the\s+|some\s+)?"
    r"(?:(?:entirely|completely|quite|wholly|totally)\s+)?"
    r"(?:separate|another|different|other|unrelated|elsewhere|something else|some(?:one|body) else)\b",
    re.IGNORECASE,
)
"""``X, but that is a separate story``: what it is said of is not what was asked."""


def _rejected(answer: ReadText, place: Place, here: Sentence, *, versions: bool) -> str:
    """``X is wrong``, ``X has nothing to do with it``, ``X? No.``"""
    behind = answer.text[place.end : here.end]
    spoken = words(behind)
    if _ALL_BUT.search(answer.text[here.start : place.start]):
        return "says anything but that"
    if matter := _OF_ANOTHER_MATTER.match(behind):
        return f"tells it of another matter ({matter.group().strip(' ,;-')!r})"
    found = find_phrases(_LEXICON, "rejected", behind)
    agreed = here.asks and _TAG.fullmatch(behind) and _SAYS_YES.match(answer.text[here.end :])
    opposed = versions and _OPPOSED.match(behind)
    if found and found[0].at == 0 and spoken and not agreed and not opposed:
        return f"rejects it ({found[0].text!r})"
    if here.asks and not behind.strip(" \"'*_") and re.match(r"\?\W*no(?:t|pe|ne)?\b", answer.text[here.end :], re.I):
        return "answers no to it"
    return ""


def _others_belief(answer: ReadText, place: Place, here: Sentence) -> str:
    """Whether it stands there as what others think or as the answer's own first thought."""
    ahead = answer.text[here.start : place.start]
    cut = max((m.end() for m in _CONTRASTS.finditer(ahead)), default=0)
    if _DENIES_AHEAD.search(ahead[cut:]):
        return "denied"
    if found := find_phrases(_LEXICON, "other_minds", ahead[cut:]):
        return f"tells it as a mere belief ({found[-1].text!r})"
    if reason := _set_aside(answer, place, here, ahead[cut:]):
        return reason
    goes_on = _GOES_ON_OTHERWISE.search(answer.text[place.end :])
    if goes_on and (found := find_phrases(_LEXICON, "expected", ahead[cut:])):
        return f"tells it as what was to be ({found[-1].text!r})"
    clause = answer.text[here.start : here.end]
    found = find_phrases(_LEXICON, "first_thoughts", clause)
    if found and found[0].at <= len(words(ahead)) and goes_on:
        mine = not _CONTRASTS.search(ahead)
        return f"tells it as a first thought ({found[0].text!r})" if mine else ""
    return ""


def _set_aside(answer: ReadText, place: Place, here: Sentence, ahead: str) -> str:
    """``You may have X in your head``, ``X comes to mind``: a belief, where what follows puts something else for it."""
    if not _GOES_ON_OTHERWISE.search(answer.text[place.end :]) and not _POINTS_ELSEWHERE.search(
        answer.text[place.end :]
    ):
        return ""
    behind = answer.text[place.end : here.end]
    found = find_phrases(_LEXICON, "in_mind", behind)
    if found and found[0].at == 0:
        return f"tells it as a mere belief ({found[0].text!r})"
    found = find_phrases(_LEXICON, "others_words", ahead)
    return f"tells it as a mere belief ({found[-1].text!r})" if found else ""


_OPPOSED = re.compile(
    r"\s+(?:is|was|gets|got|has been)\s+(?:then |later |elsewhere |directly |flatly )?"
    r"(?:contradicted|opposed|disputed|challenged|countered|contested)\s+(?:by|with)\b",
    re.IGNORECASE,
)
"""``X is contradicted by Y``: of two versions, each is told."""
_HAS_IT = frozenset(("has", "had", "have", "puts", "put"))


def _taken_back(answer: ReadText, place: Place, here: Sentence) -> str:
    """Whether what follows takes it back."""
    every = sentences(answer)
    at = every.index(here)
    stretches = [answer.text[place.end : here.end], *(s.text for s in every[at + 1 : at + 1 + _REACH])]
    if trailing := _trails(answer, place):
        return trailing
    for number, stretch in enumerate(stretches):
        amends = find_phrases(_LEXICON, "amends", stretch) if number else ()
        if amends and amends[0].at == 0:
            return f"takes it back ({amends[0].text!r})"
        for section in ("withdraws", "points_back"):
            for found in find_phrases(_LEXICON, section, stretch):
                ahead = set(words(stretch)[max(0, found.at - 3) : found.at])
                # A pronoun means what was named last; further off it means something else.
                pronoun = section == "points_back" and found.text.split()[0] in _PRONOUNS
                near = not pronoun or number == 0 or found.at <= _NEAR
                behind = words(stretch)[found.at + len(found.text.split()) :][:2]
                if found.text.startswith("it ") and _HAS_IT & set(words(stretch)[max(0, found.at - 1) : found.at]):
                    continue  # `X, as the question has it, is mistaken` says nothing of what stands before X.
                if found.text.endswith("what") and not _ASKERS.isdisjoint(behind):
                    continue
                if near and not ahead & (_NEGATORS | _ANTICIPATES):
                    return f"takes it back ({found.text!r})"
    return ""


def _trails(answer: ReadText, place: Place) -> str:
    """Whether a bare word of doubt or of denial stands right behind it (``X, perhaps``, ``X … no, Y``)."""
    own = answer.clause_at(place.start)
    if words(answer.text[place.end : own.end]):
        return ""
    behind = next((c for c in answer.clauses if c.start >= own.end), None)
    found = find_phrases(_LEXICON, "trails", behind.text) if behind else ()
    return f"takes it back ({found[0].text!r})" if found and found[0].at == 0 else ""
