"""Reads permission from the words: who may know what, from the evidence turns alone, by rules for English.

It shows that the gold of permission questions (D6) follows from what people say. So it imports neither the program
that made the data set nor ``permission_rules``: it looks for who is named in the sentence of a wish (who may hear a
fact) and on which side, and then works out who is left. A wish that it cannot read is a miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memarena_dataset.gold import PermissionGold
from memarena_dataset.model import Instance
from memarena_dataset.values.calendar import MONTHS
from memarena_dataset.values.generous import explicit_dates_in
from memarena_dataset.values.phrases import normal

from memarena_dataset_quality.world import World

_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-ZÀ-Þ\"'“‘])")
_WHO = "~[a-z_]+~"
"""A person in a marked sentence (``_mark_names``): ``~agent_id~``, ``~family~`` or ``~colleague~``."""
_RULED_OUT = re.compile(
    rf"(?:not|except|apart from|leave out|don't tell|not a word to|towards|when|if it is|but) ({_WHO})"
    rf"|({_WHO}) (?:must|should) not"
)
_ALLOWED = re.compile(
    rf"(?:tell|share (?:it|this) with|with|if|should|me and|but|other than|except|apart from) ({_WHO})"
    rf"|({_WHO}) (?:may|can) (?:know|hear)"
)
_ASIDE = re.compile(rf"(?:except|apart from|but|other than) ({_WHO})")
"""A person for whom the opposite holds of what holds for all others."""
_EVERYBODY = re.compile(r"\b(nobody|no one|every(?:one|body)|any(?:one|body)|whoever)\b")
_NEGATIVE = re.compile(r"\b(?:not|don't|quiet)\b")
_OPEN = re.compile(
    r"\b(?:no secret|common knowledge|out in the open|who (?:knows|hears)|notice board|all over the place|no need to"
    r"|whoever asks|the whole town|tell anyone|pass it on|pass that on|by all means|public)\b"
)
_CUE = re.compile(
    r"\b(?:know|knows|common knowledge|hear|hears|tell|secret|share|word|between|confidential|private|yourself|pass"
    r"|outsiders|soul|keep quiet|mention|open|notice board|public|ears|my friends|all over the place)\b"
)
_PRIVATE = re.compile(
    r"\bbetween (?:us|you and me|the two of us)\b|\bto yourself\b|\bconfidential\b|\bfor your ears\b"
    r"|\bin this room\b|\bstays with you\b|\bnot a word\b.*\b(?:anybody|others)\b"
    r"|\b(?:don't|please don't) (?:tell|pass)\b.*\b(?:anyone|a single person)\b"
    r"|\b(?:nobody else|not a soul|no one else|nobody) (?:needs|has|gets|is)\b"
)
_FRIENDS = re.compile(r"\bmy friends\b")
_MASKED = re.compile(rf"{_WHO}|\b(?:{'|'.join(MONTHS)})\b|\d+")
_AHEAD = re.compile(r"\b(?:from|before|until)\b")
"""Words before a date from which on the others may know."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """The meaning of a sentence: what holds for all (``base``), and the people named on either side.

    ``base`` is "open", "closed", "friends" (only friends of the speaker may know), or "unsaid" if the sentence names
    people on both sides and says nothing of others. ``start`` is the day from which on it holds.
    """

    base: str
    may: frozenset[str]
    must_not: frozenset[str]
    start: date | None


@dataclass(frozen=True, slots=True)
class WishesRead:
    """Number of actions that follow from the words, number of items, and each miss with id, action read and gold."""

    right: int
    items: int
    misses: tuple[str, ...]


def read_wishes(worlds: Iterable[World]) -> WishesRead:
    """Read all items that a wish decides: those that count for F1_PU, and controls with a level."""
    right, misses = 0, []
    for world in worlds:
        names = _names(world)
        for instance in world.instances:
            gold = instance.gold
            if not isinstance(gold, PermissionGold) or gold.self_item:
                continue
            if gold.permission_level is None and gold.sharing is None:
                continue
            action = _action(world, instance, gold, names)
            if action == gold.expected_action:
                right += 1
            else:
                misses.append(f"{world.path.name} {instance.instance_id}: read {action}, gold {gold.expected_action}")
    return WishesRead(right, right + len(misses), tuple(misses))


def is_read_as_wish(sentence: str) -> bool:
    """Whether the rules take a sentence that names no person for a wish, or for a part of one."""
    return _of_sentence(sentence.lower(), sentence, date.min) is not None


def wish_forms(world: World) -> int:
    """Return the number of wordings of the wishes that D6 items rest on; people, dates and numbers are masked."""
    names, forms = _names(world), set[str]()
    for instance in world.instances:
        gold = instance.gold
        if isinstance(gold, PermissionGold) and (gold.permission_level or gold.sharing):
            for turn, _ in world.evidence(instance):
                for sentence in _SENTENCE.split(turn.text):
                    marked = _mark_names(sentence, names)
                    if _of_sentence(marked, sentence, world.day_of(turn.timestamp)) is not None:
                        forms.add(_MASKED.sub("~", marked))
    return len(forms)


def _action(world: World, instance: Instance, gold: PermissionGold, names: Mapping[str, str]) -> str:
    """Return the action that follows from the words, or in words why none does."""
    wishes = []
    for turn, _ in world.evidence(instance):
        if normal(gold.fact).strip() not in normal(turn.text):
            continue  # says who is friends with whom
        wish = _wish_of(turn.text, gold.fact, names, world.day_of(turn.timestamp))
        if wish is not None:
            wishes.append((turn.speaker_id == gold.target_agent, wish))
    wishes_of_subject = [wish for by_subject, wish in wishes if by_subject]
    if not wishes:
        return "no wish found"
    wish = wishes_of_subject[-1] if wishes_of_subject else wishes[-1][1]
    # The order matters: a person who is named is decided by that, whatever holds for all others.
    asker = instance.asker_agent_id
    known_as = {asker or "", str(instance.metadata.get("relationship") or "")}
    if known_as & wish.must_not:
        return "withhold"
    if known_as & wish.may:
        return "disclose"
    if wish.start is not None and wish.start > world.day_of(float(instance.query_timestamp or world.day_count - 1)):
        return "withhold"
    if wish.base == "friends":
        # A tie is stated in an evidence turn that names both people, or in which one of them speaks about the other.
        return _friends(world, instance, gold)
    return {"open": "disclose", "closed": "withhold"}.get(wish.base, f"nothing on {asker}")


def _wish_of(text: str, fact: str, names: Mapping[str, str], said_on: date) -> _Wish | None:
    """Return the wish in a turn, from the first sentence with one after the fact's sentence; None if there is none."""
    sentences = _SENTENCE.split(text)
    start = next(
        (number + 1 for number, sentence in enumerate(sentences) if normal(fact).strip() in normal(sentence)), 0
    )
    wishes = (_of_sentence(_mark_names(sentence, names), sentence, said_on) for sentence in sentences[start:])
    return next((wish for wish in wishes if wish is not None), None)


def _of_sentence(marked: str, sentence: str, said_on: date) -> _Wish | None:
    """Return the wish that a sentence states; None if it states none. Names in ``marked`` are ``~key~``."""
    if not _CUE.search(marked):
        return None
    dates = sorted(explicit_dates_in(sentence, said_on)) if _AHEAD.search(marked) else []
    start = dates[-1] if dates else None
    people = re.findall(_WHO, marked)
    if not people:
        if _FRIENDS.search(marked):
            return _Wish("friends", frozenset(), frozenset(), None)
        if _PRIVATE.search(marked):
            return _Wish("closed", frozenset(), frozenset(), None)
        return _Wish("open", frozenset(), frozenset(), None) if _OPEN.search(marked) else None
    may, must_not = _two_sides(marked) if len(set(people)) > 1 else _one_side(marked)
    if not may and not must_not:
        return None
    base = "open" if start is not None or not may else "unsaid" if must_not else "closed"
    return _Wish(base, frozenset(may), frozenset(must_not), start)


def _two_sides(marked: str) -> tuple[set[str], set[str]]:
    """Return who may know and who must not, by a sentence with two people: ruled out are those in a negative clause."""
    may, must_not, clauses = set[str](), set[str](), ""
    for clause in reversed(marked.split(",")):
        clauses = f"{clause},{clauses}"
        for key in re.findall(_WHO, clause):
            (must_not if _NEGATIVE.search(clauses) else may).add(key.strip("~"))
            clauses = ""
    return may, must_not


def _one_side(marked: str) -> tuple[set[str], set[str]]:
    """Return who may know and who must not, by one sentence; "apart from Anna" reverses for her what holds for all."""
    may = {_key(match) for match in _ALLOWED.finditer(marked)}
    must_not = {_key(match) for match in _RULED_OUT.finditer(marked)}
    aside = {_key(match) for match in _ASIDE.finditer(marked)}
    for key in aside:
        position = marked.index(f"~{key}~")
        others = _EVERYBODY.findall(marked[:position])[-1:] or _EVERYBODY.findall(marked[position:])[:1]
        (must_not if others and others[0].startswith("no") else may).discard(key)
    return may - must_not, must_not


def _key(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).strip("~")


def _mark_names(sentence: str, names: Mapping[str, str]) -> str:
    """Return the sentence in lower case, with every name, "your family" and "your colleagues" as ``~key~``."""
    for name in sorted(names, key=len, reverse=True):
        sentence = re.sub(rf"\b{re.escape(name)}\b(?!['’]s)", f"~{names[name]}~", sentence)
    lowered = sentence.lower()
    lowered = re.sub(r"\byour family\b", "~family~", lowered)
    return re.sub(r"\byour colleagues\b", "~colleague~", lowered)


def _names(world: World) -> dict[str, str]:
    """Return agent ids by full name, and by each first name that only one person has."""
    people = {agent: name for agent, name in world.names.items() if not agent.startswith("assistant_")}
    firsts = [name.split()[0] for name in people.values()]
    agents = {name: agent for agent, name in people.items()}
    agents |= {name.split()[0]: agent for agent, name in people.items() if firsts.count(name.split()[0]) == 1}
    return agents


_NO_FRIEND = re.compile(r"\b(?:not|hardly|never|nobody could|no friend|not even close)\b")


def _friends(world: World, instance: Instance, gold: PermissionGold) -> str:
    """Return the action for facts that friends may know: ``disclose`` if a sentence makes asker and subject friends."""
    asker = instance.asker_agent_id
    if asker is None or asker not in world.names:
        return "withhold"
    both: Sequence[str] = [world.name(agent).split()[0] for agent in (asker, str(gold.target_agent))]
    for turn, _ in world.evidence(instance):
        for sentence in _SENTENCE.split(turn.text):
            if "friend" in sentence and "my friends" not in sentence.lower():
                speaker = world.name(turn.speaker_id).split()[0]
                if all(name in sentence or name == speaker for name in both):
                    return "withhold" if _NO_FRIEND.search(sentence.lower()) else "disclose"
    return "no tie found"
