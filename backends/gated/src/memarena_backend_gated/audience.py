"""Reads English phrases for people ("my family", "anyone but Nora"), and decides whether they include an asker."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from memarena_backend import AskerKind, Requester

from memarena_backend_gated.english import kinds, pattern, piece, word_list
from memarena_backend_gated.records import Answer, Audience, Group, Whose
from memarena_backend_gated.text import stem

_EVERYONE = piece("everyone")
_EXCEPT = piece("but")
_AT_WORK = pattern("at_work")
_KIND_OF = {**kinds("kin"), **kinds("circles")}
FAMILY_KINDS = frozenset(kinds("kin").values())
GROUP_WORDS = frozenset(_KIND_OF)
_WHOSE = {
    "my": Whose.SPEAKER, "our": Whose.SPEAKER, "mine": Whose.SPEAKER,
    "your": Whose.OWNER, "yours": Whose.OWNER,
}  # fmt: skip
_NOT_NAMES = word_list("not_names")
_TOKEN = re.compile(r"[^\W\d_][\w'’-]*\.?")

NameOf = Callable[[str], bool]
"""Tells whether a capitalised word is part of a known person's name."""


def read_audience(span: str, is_name: NameOf) -> Audience:
    """Return the people that a phrase names; a capitalised word counts as a name if it is not a known word."""
    span = _AT_WORK.sub(" colleagues", span)
    cut = _EXCEPT.search(span)
    if cut is not None and not (span[: cut.start()].strip() or cut.start() == 0):
        cut = None
    inside, outside = (span, "") if cut is None else (span[: cut.start()], span[cut.end() :])
    names, groups = _members(inside, is_name)
    except_names, except_groups = _members(outside, is_name)
    everyone = _EVERYONE.search(inside) is not None
    if outside and not everyone and not names and not groups and (except_names or except_groups):
        everyone = True  # only an exception is named: "not outside the family"
    return Audience(everyone, names, groups, except_names, except_groups)


def _members(span: str, is_name: NameOf) -> tuple[tuple[str, ...], tuple[Group, ...]]:
    """Return the names and groups in a phrase; words of one name that follow each other are joined."""
    names: list[str] = []
    groups: list[Group] = []
    whose = Whose.OPEN
    last_end = -1
    for match in _TOKEN.finditer(span):
        word = match.group().rstrip(".")
        low = word.lower().removesuffix("'s")
        if low in _WHOSE:
            whose = _WHOSE[low]
        elif low in _KIND_OF and not (word[0].isupper() and is_name(word)):
            groups.append(Group(_KIND_OF[low], whose))
            continue
        elif _looks_like_name(word, is_name):
            plain = word.removesuffix("'s")
            if names and match.start() == last_end + 1:
                names[-1] = f"{names[-1]} {plain}"
            else:
                names.append(plain)
            last_end = match.end()
            continue
        if low in {"and", "or", "nor"}:
            continue
        if low not in _WHOSE:
            whose = Whose.OPEN
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(groups))


def _looks_like_name(word: str, is_name: NameOf) -> bool:
    plain = word.removesuffix("'s")
    if not plain[0].isupper() or plain.lower() in _NOT_NAMES:
        return False
    return is_name(plain) or (len(plain) > 1 and plain[1:].islower())


# ------------------------------------------------------------------ matching


@dataclass(frozen=True, slots=True)
class Asker:
    """The asker of a question, with the facts that the memory knows of them."""

    requester: Requester
    is_known: bool
    """Whether the owner knows the asker: they were in a session together, or the caller names their relation."""

    @property
    def name(self) -> str:
        return self.requester.display_name

    @property
    def is_stranger(self) -> bool:
        return self.requester.kind is AskerKind.ANONYMOUS or not self.is_known


def kind_of(word: str) -> str:
    """Return the kind of relation that a word such as ``friends`` names; for any other word its stem, as a role."""
    low = word.casefold().strip()
    return _KIND_OF.get(low, stem(low))


Ties = Callable[[str, str, str], Answer]
"""Tells whether two people, by name, have a relation of a kind, by the statements of turns (`TieBook.have`)."""


@lru_cache(maxsize=1_024)
def kinds_of(relationship: str) -> frozenset[str]:
    """Return the kinds of relation that a phrase such as ``older sister`` or ``family_member`` states."""
    tokens = re.findall(r"[a-z-]+", relationship.lower().replace("_", " "))
    kinds = {_KIND_OF.get(token, stem(token)) for token in tokens}
    return frozenset(kinds | ({"family"} if kinds & FAMILY_KINDS else set()))


class Reach(IntEnum):
    """How specifically a wish refers to an asker; the more specific reference takes precedence."""

    IMPLIED = 0
    """The wish lets other people know and does not mention the asker."""
    EVERYONE = 1
    GROUP = 2
    NAME = 3


def reach(
    audience: Audience, asker: Asker, speaker: str, speaker_is_owner: bool, ties: Ties
) -> tuple[Reach, Answer] | None:
    """Return how an audience that ``speaker`` stated refers to the asker; None if it does not.

    The answer is YES if the audience includes the asker, NO if it excepts the asker, UNKNOWN if it is unclear whether
    the asker belongs to one of its groups.
    """
    # From the most specific reference to the least: names, groups, everyone; exceptions before the groups themselves.
    for names, answer in ((audience.names, Answer.YES), (audience.except_names, Answer.NO)):
        if any(same_name(name, asker.name) for name in names):
            return Reach.NAME, answer
    unclear = False
    for groups, answer in ((audience.except_groups, Answer.NO), (audience.groups, Answer.YES)):
        for group in groups:
            within = _in_group(group, asker, speaker, speaker_is_owner, ties)
            if within is Answer.YES:
                return Reach.GROUP, answer
            unclear = unclear or within is Answer.UNKNOWN
    if unclear:
        return Reach.GROUP, Answer.UNKNOWN
    return (Reach.EVERYONE, Answer.YES) if audience.everyone else None


def _in_group(group: Group, asker: Asker, speaker: str, speaker_is_owner: bool, ties: Ties) -> Answer:
    if asker.is_stranger:
        return Answer.YES if group.kind == "stranger" else Answer.NO
    to_owner = group.kind in kinds_of(asker.requester.relationship)
    if group.whose is Whose.OWNER or speaker_is_owner:
        return Answer.YES if to_owner else (Answer.NO if asker.requester.relationship else Answer.UNKNOWN)
    answer = ties(speaker, asker.name, group.kind)
    if group.whose is Whose.OPEN and to_owner:
        return Answer.YES
    if answer is Answer.UNKNOWN and group.whose is Whose.OPEN and asker.requester.relationship:
        return Answer.NO
    return answer


@lru_cache(maxsize=16_384)
def same_name(spoken_name: str, name: str) -> bool:
    """Whether a name used in a turn can refer to a person: all its words are part of the person's full name."""
    spoken_words, full_words = _name_words(spoken_name), _name_words(name)
    return bool(spoken_words) and spoken_words <= full_words


def _name_words(name: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"[^\W_]+", name.casefold()) if word not in {"dr", "mr", "mrs", "ms"})
