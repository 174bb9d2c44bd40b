"""Reads an answer into claims: each is a value with its holder, version, matter and source, and whether it is denied.

An answer is cut in three steps. Text before ``Final answer:`` or a correction (``no, wait``) is void. Then sentences
are cut into segments that speak of one person or one version (``you pay 335 euros`` | ``while Xavier pays 785``). Each
value mentioned becomes one :class:`Claim`, read from its segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from memarena_dataset.values import NameValue, TermValue
from memarena_dataset.values.reading import ReadText
from memarena_dataset.values.terms import is_everyday
from memarena_dataset.values.words import stem

from memarena.judging.typed_value.masking import Mask, Token, masked
from memarena.judging.typed_value.question import OpenQuestion, Version
from memarena.judging.typed_value.segments import VALUES, joined, phrases, segment_of, sentence_of, words_of
from memarena.judging.typed_value.versions import OPPOSITE, version_of

_PARTS = frozenset((",", ";", ".", ")", "\n", "—", "/", "and", "or", "while", "whereas", "but", "vs", "versus"))
"""Words and signs that separate a person after a value from the next value."""
_OTHERS = frozenset(("he", "she"))
"""Words that are another person at the beginning of a segment if the question is about the asker."""
_HIS = frozenset(("his", "her", "hers", "their", "theirs"))
"""Possessives, which may refer to a person who is named before."""
_HAVING = frozenset(
    ("has", "had", "have", "keeps", "holds", "puts", "planned", "plans", "set", "takes", "does", "goes")
)
"""Verbs of having and doing, of which a holder is the subject."""
_PEOPLE = (Mask.ASKED, Mask.OTHER)
_ASIDES = ("supposed", "set_against", "beside")
"""Sections of the table with asides (:func:`_without_asides`)."""


class Matter(StrEnum):
    """The matter that a claim is about: the one that the question asks about, or another."""

    ASKED = "asked"  # words: a name of the file format
    OTHER = "other"


class Holder(StrEnum):
    """The person whose value a claim states: the one whom the question asks about, or another."""

    ASKED = "asked"  # words: a name of the file format
    OTHER = "other"


@dataclass(frozen=True)
class Claim:
    """A value as an answer states it. None means that the answer does not say."""

    mask: Mask
    which: int
    """Index of the value among the gold's values with this mask."""
    at: int
    """Index of its token."""
    holder: Holder | None
    version: Version | None
    denied: bool
    matter: Matter | None = None
    teller: Holder | None = None
    """The person by whose word the value holds, if the answer names one: ``you said that …``."""
    source: str = ""
    """The person who is named as the value's source, for a conflict: a first name in lower case; else empty."""


@dataclass(frozen=True)
class Statement:
    """The final state of an answer: its tokens and claims."""

    tokens: tuple[Token, ...]
    claims: tuple[Claim, ...]

    def of(self, *masks: Mask) -> list[Claim]:
        """Return the claims with these masks."""
        return [claim for claim in self.claims if claim.mask in masks]


def read_statement(question: OpenQuestion, read: ReadText) -> Statement:
    """Return the tokens and claims that the answer upholds in the end."""
    # From the inside out: pronouns, repetitions, the final answer, asides. A question that asks for no version has its
    # words masked, so that "old" of "the old school" makes no former version.
    tokens = _without_asides(_final(question, _without_repetitions([*_resolve_possessives(masked(question, read))])))
    versions = tokens if question.version else [_mask_question_word(question, token) for token in tokens]
    claims = tuple(_claim(question, tokens, versions, n, read.text) for n, t in enumerate(tokens) if t.mask in VALUES)
    return Statement(tuple(tokens), _complete_versions(question, claims))


def _resolve_possessives(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens; ``his`` and ``her`` after another person who has or does something are that person's."""
    for n, token in enumerate(tokens):
        if token.mask is Mask.ASKED and token.word in _HIS:
            low, _ = segment_of(tokens, n)
            people = [
                index for index in range(low, n) if tokens[index].mask in _PEOPLE and tokens[index].word not in _HIS
            ]
            if people and tokens[people[-1]].mask is Mask.OTHER and _has_something(tokens, people[-1]):
                yield replace(token, mask=Mask.OTHER)
                continue
        yield token


def _without_repetitions(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens without a value that only repeats the one before it: ``VALUE or roughly VALUE``."""
    distinct: list[Token] = []
    last = -1
    for n, token in enumerate(tokens):
        again = last >= 0 and token.mask is Mask.VALUE and token.which == tokens[last].which
        if again and phrases("equally").fullmatch(words_of(tokens, last + 1, n).strip()):
            del distinct[len(distinct) - (n - last - 1) :]
            continue
        distinct.append(token)
        last = n if token.mask is Mask.VALUE else last
    return distinct


def _has_something(tokens: Sequence[Token], n: int) -> bool:
    """Whether a person is the subject of having or doing, not of telling: ``OTHER has his``."""
    return tokens[n + 1 : n + 2] != [] and tokens[n + 1].word in _HAVING and not _is_source(tokens, n)


def _complete_versions(question: OpenQuestion, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """Return the claims, with a version for those without one if the question asks for a version.

    It is the version that the other values of the answer leave over.
    """
    if question.version is None:
        return claims
    versioned = [c for c in claims if c.version is not None and not c.denied and c.holder is not Holder.OTHER]
    completed = []
    for claim in claims:
        open_versions = {
            OPPOSITE[c.version] for c in versioned if c.version and (c.mask, c.which) != (claim.mask, claim.which)
        }
        version = next(iter(open_versions)) if claim.version is None and len(open_versions) == 1 else claim.version
        completed.append(replace(claim, version=version))
    return tuple(completed)


# ------------------------------------------------------------------ the end of an answer counts


def _final(question: OpenQuestion, tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens after the last final answer or correction, if they state anything; else all tokens."""
    text, starts = joined(tokens)
    for section in ("final", "correction"):
        for match in reversed(list(phrases(section).finditer(text))):
            cut = next(n for n, start in enumerate([*starts, len(text) + 1]) if start >= match.end())
            before, after = list(tokens[:cut]), list(tokens[cut:])
            has_content = any(t.mask in VALUES for t in after) or _names_a_thing(question, after)
            corrects = has_content and any(t.mask in VALUES for t in before)
            if any(t.word[:1].isalnum() for t in after) and (corrects or section == "final"):
                return after
    return list(tokens)


def _names_a_thing(question: OpenQuestion, tokens: Sequence[Token]) -> bool:
    """Whether the question asks for a thing and the tokens have a word that may name another thing."""
    if not all(isinstance(value, TermValue) for value in question.required):
        return False
    words = (t.word for t in tokens if t.mask is None and t.word[:1].isalpha())
    return any(not is_everyday(w) and stem(w) not in question.question_words for w in words)


def _without_asides(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens without asides.

    An aside says that a value is supposed, or sets it against other things (sections of ``tables/claims.v1.toml``).
    """
    text, starts = joined(tokens)
    spans = [match.span() for section in _ASIDES for match in phrases(section).finditer(text)]
    if not spans:
        return list(tokens)
    return [t for t, start in zip(tokens, starts, strict=True) if not any(low <= start < high for low, high in spans)]


# ------------------------------------------------------------------ one claim


def _mask_question_word(question: OpenQuestion, token: Token) -> Token:
    """Return the token, a word of the question as ``q``: the old school that is asked about is not a former version."""
    in_question = token.mask is None and stem(token.word) in question.question_words
    return replace(token, word="q") if in_question else token


def _claim(question: OpenQuestion, tokens: Sequence[Token], versions: Sequence[Token], at: int, text: str) -> Claim:
    """Return the claim of the value at index ``at``. ``versions`` are the tokens with the question's words masked."""
    low, high = segment_of(tokens, at)
    token = tokens[at]
    assert token.mask is not None
    return Claim(
        token.mask,
        token.which,
        at,
        holder=None
        if question.about_talk or question.changed
        else _holder_by_pairing(question, tokens, low, at) or _holder(tokens, low, at, high, question.own),
        version=version_of(versions, low, at, high),
        denied=_denied(tokens, low, at, high)
        or (question.about_talk and _is_spoken_of(tokens, at))
        or _is_discredited(tokens, at, text),
        matter=_matter(question, tokens, low, high),
        teller=_teller(tokens, low, at),
        source=_source(question, tokens, at, text) if question.changed else "",
    )


def _holder_by_pairing(question: OpenQuestion, tokens: Sequence[Token], low: int, at: int) -> Holder | None:
    """Return another person as holder if a name is asked for and another name goes with it: ``RIVAL sees VALUE``."""
    if not isinstance(question.required[0], NameValue):
        return None
    people = [n for n in range(low, at) if tokens[n].mask is Mask.RIVAL]
    if people and phrases("goes_with").fullmatch(words_of(tokens, people[-1] + 1, at).strip()):
        return Holder.OTHER
    return None


def _denied(tokens: Sequence[Token], low: int, at: int, high: int) -> bool:
    """Whether words before or after the value deny it: ``not X``, ``X is wrong``, ``instead of X``."""
    return bool(phrases("denied_before").search(words_of(tokens, low, at))) or bool(
        phrases("denied_behind").match(words_of(tokens, at + 1, high))
    )


def _is_discredited(tokens: Sequence[Token], at: int, text: str) -> bool:
    """Whether the person who told the value is called wrong: ``as OTHER recalls it … OTHER is mistaken``."""
    low, _ = sentence_of(tokens, at)
    others = [n for n in range(low, at) if tokens[n].mask is Mask.OTHER]
    tellers = {
        _first_name(tokens[n], text)
        for n in others
        if _tells(tokens, n) or (n > low and tokens[n - 1].word in ("as", "to", "for"))
    }
    return any(
        _first_name(token, text) in tellers
        for n, token in enumerate(tokens)
        if token.mask is Mask.OTHER and phrases("errs").match(words_of(tokens, n + 1, n + 6))
    )


def _teller(tokens: Sequence[Token], low: int, at: int) -> Holder | None:
    """Return whose word the value is: of the first person before it in its segment who tells it; else None."""
    tellers = [
        tokens[n].mask for n in range(low, at) if tokens[n].mask in (Mask.ASKED, Mask.OTHER) and _tells(tokens, n)
    ]
    return None if not tellers else Holder.ASKED if tellers[0] is Mask.ASKED else Holder.OTHER


def _is_spoken_of(tokens: Sequence[Token], at: int) -> bool:
    """Whether a person is named as the subject of the talk: ``about VALUE``, ``VALUE's badminton``."""
    before, after = words_of(tokens, max(0, at - 3), at), words_of(tokens, at + 1, at + 3)
    return bool(phrases("spoken_of_before").search(before)) or bool(phrases("spoken_of_behind").match(after))


def _holder(tokens: Sequence[Token], low: int, at: int, high: int, own: bool) -> Holder | None:
    """Return the nearest person before the value, else after it; None if no person holds it.

    ``own``: the value is the asker's, so that ``he`` is another person.
    """
    people = [n for n in range(at - 1, low - 1, -1) if tokens[n].mask in (Mask.ASKED, Mask.OTHER)]
    if people:
        holder, ends = _holder_before(tokens, people)
        if ends:
            return holder
    elif own and tokens[low].word in _OTHERS and not _is_source(tokens, low):
        return Holder.OTHER
    if phrases("somebody_else").search(words_of(tokens, low, high)) or _explained_as_anothers(tokens, at):
        return Holder.OTHER
    for n in range(at + 1, high):
        if tokens[n].mask is Mask.ASKED:
            return Holder.ASKED
        if tokens[n].mask is Mask.OTHER and _owns(tokens, at, n):
            return Holder.OTHER
    return None


def _holder_before(tokens: Sequence[Token], people: Sequence[int]) -> tuple[Holder | None, bool]:
    """Return the holder among these people, the nearest first, and whether the search ends with it.

    A person who only tells or hears the value is skipped, but the search ends at the asked person who tells a clause
    (``you said that the stock count is due on``). If two share something (``you and OTHER``), the asked one counts.
    """
    for n in people:
        if not _is_source(tokens, n):
            return (Holder.ASKED if tokens[n].mask is Mask.ASKED or _shares(tokens, n) else Holder.OTHER), True
        if tokens[n].mask is Mask.ASKED and any(token.word == "that" for token in tokens[n + 1 : n + 5]):
            return None, True
    return None, False


def _shares(tokens: Sequence[Token], n: int) -> bool:
    """Whether a person is joined to the asked one: ``ASKED and OTHER``, ``OTHER and ASKED``."""
    before, after = tokens[max(0, n - 2) : n], tokens[n + 1 : n + 3]
    return any(
        len(pair) == 2 and pair[joint].word == "and" and pair[1 - joint].mask is Mask.ASKED
        for pair, joint in ((before, 1), (after, 0))
    )


def _explained_as_anothers(tokens: Sequence[Token], at: int) -> bool:
    """Whether brackets make the value another's: ``VALUE (OTHER's dentist)``, not ``VALUE (OTHER's words)``."""
    after = tokens[at + 1 : at + 5]
    return (
        len(after) == 4
        and after[0].word == "("
        and after[1].mask is Mask.OTHER
        and after[2].word == "'s"
        and not _is_source(tokens, at + 2)
    )


def _matter(question: OpenQuestion, tokens: Sequence[Token], low: int, high: int) -> Matter | None:
    """Return the matter that a stretch of tokens names; None if it names none.

    It is the asked one if the stretch has words of the question, or of a turn that states the value.
    """
    words = (t.word.removesuffix("'s") for t in tokens[low:high] if t.mask is None and t.word[:1].isalpha())
    telling = {stem(word) for word in words if not is_everyday(word)}
    if telling & question.matter_words:
        return Matter.ASKED
    return Matter.OTHER if telling else None


def _owns(tokens: Sequence[Token], at: int, n: int) -> bool:
    """Whether a person after the value has it: ``VALUE is OTHER's``, ``VALUE for OTHER``, ``VALUE paid by OTHER``."""
    between = words_of(tokens, at + 1, n).strip()
    if phrases("owned_by_deed").fullmatch(between):
        return True
    return not _is_source(tokens, n) and bool(phrases("owned_behind").fullmatch(between))


def _is_source(tokens: Sequence[Token], n: int) -> bool:
    after = words_of(tokens, n + 1, min(n + 5, len(tokens)))
    before = words_of(tokens, max(0, n - 4), n)
    return bool(phrases("source_behind").match(after)) or bool(phrases("source_before").search(before.rstrip()))


def _source(question: OpenQuestion, tokens: Sequence[Token], at: int, text: str) -> str:
    """Return the source of a conflict's two that told the value, by first name; empty if the answer does not say."""
    sources = question.sources
    if sources is None:
        return ""
    low, high = _stretch_between_values(tokens, at)
    people = (Mask.ASKED, Mask.OTHER, Mask.RIVAL)
    names = {
        n: _first_name(t, text) for n, t in enumerate(tokens[low:high], low) if t.mask in people and t.start < t.end
    }
    names = {n: name for n, name in names.items() if name in sources}
    names_after = [
        name
        for n, name in names.items()
        if n > at and _told_by(tokens, at, n) and not _belongs_to_next_value(tokens, n, high)
    ]
    if names_after:
        return names_after[0]
    names_before = {n: name for n, name in names.items() if n < at}
    tellers = [name for n, name in names_before.items() if _tells(tokens, n)]
    if tellers:
        return tellers[-1]
    # A person whom the question does not ask about can only be a source.
    only = set(names_before.values()) - question.subjects
    return only.pop() if len(names_before) == 1 and only else ""


def _belongs_to_next_value(tokens: Sequence[Token], n: int, high: int) -> bool:
    """Whether a person belongs to the next value: ``VALUE, according to Viktor CHANGED``."""
    return high < len(tokens) and not any(t.word in _PARTS for t in tokens[n + 1 : high])


def _stretch_between_values(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """Return start and end of the tokens between the previous and the next value."""
    values = [n for n, t in enumerate(tokens) if t.mask in (Mask.VALUE, Mask.CHANGED)]
    low = max((n + 1 for n in values if n < at), default=0)
    high = min((n for n in values if n > at), default=len(tokens))
    return low, high


def _first_name(token: Token, text: str) -> str:
    return text[token.start : token.end].split(maxsplit=1)[0].lower().removesuffix("'s")


def _tells(tokens: Sequence[Token], n: int) -> bool:
    """Whether a person before a value is named as its source, not as its holder."""
    after = words_of(tokens, n + 1, min(n + 6, len(tokens)))
    before = words_of(tokens, max(0, n - 4), n).rstrip()
    return bool(phrases("tells_behind").match(after)) or bool(phrases("tells_before").search(before))


def _told_by(tokens: Sequence[Token], at: int, n: int) -> bool:
    """Whether a person right after a value is named as its source: ``VALUE (Viktor)``."""
    between = words_of([t for t in tokens[at + 1 : n] if t.word != '"'], 0, n).strip()
    return bool(phrases("told_by").fullmatch(between))
