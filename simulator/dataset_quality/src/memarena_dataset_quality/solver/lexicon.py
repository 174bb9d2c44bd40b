"""Collects the names, places and terms that the solver knows: the values of statements in measured and training worlds.

What a question is after must be learned elsewhere: the values of its own fact count only if another fact has them too.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from memarena_dataset.model import Fact
from memarena_dataset.values import DateValue, NameValue, PlaceValue, TermValue, Value
from memarena_dataset.values.phrases import spellings, tokens_of
from pydantic import TypeAdapter, ValidationError

from memarena_dataset_quality.world import World

COMMUNITY = frozenset({"home_location", "work_location", "group_membership", "group_role", "group_place"})
"""Attributes whose values are words of everyday talk (a part of town, a post): searched only for questions on them."""
HAPPENED = "date"
"""Attribute of statements that something happened on a day; the happening follows it, verb first."""
TIE = "tie"
"""Attribute of statements on the tie of two people, about whose value there are no questions."""
ARTICLES = frozenset({"the", "a", "an"})
_VALUE: TypeAdapter[Value] = TypeAdapter(Value)
Phrase = tuple[str, ...]


def typed_value(fact: Fact) -> Value | None:
    """Return the typed value of a statement; None for a plain text or number."""
    try:
        return _VALUE.validate_python(fact.value)
    except ValidationError:
        return None


def base_id(world: World, fact_id: str) -> str:
    """Return a fact's id without the mark of a changed version, unique over worlds."""
    return f"{world.path.resolve()}:{fact_id.removesuffix('_v')}"


class Lexicon:
    """Known phrases by type of value, with the facts that use them."""

    def __init__(self, worlds: Iterable[World]) -> None:
        self._sources: defaultdict[str, defaultdict[Phrase, set[str]]] = defaultdict(lambda: defaultdict(set))
        """By kind and phrase, the ids of the facts that have it as their value."""
        self._spellings: dict[Phrase, str] = {}
        self._first: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        """By kind and first word, the lengths of the phrases that begin with it."""
        self._attributes: defaultdict[str, set[str]] = defaultdict(set)
        """By phrase in lower case, the attributes of which it is a value."""
        self._happenings: set[tuple[str, frozenset[str]]] = set()
        """The verb of each happening, and its other words without articles."""
        self._turns = 0
        self._spoken: Counter[str] = Counter()
        for world in worlds:
            for session in world.sessions:
                for turn in session.turns:
                    self._turns += 1
                    self._spoken.update(set(tokens_of(turn.text)))
            for fact in world.facts:
                value = typed_value(fact)
                head, _, item = fact.attribute.partition(": ")
                if isinstance(value, NameValue | PlaceValue | TermValue) and head != TIE:
                    kind = head if head in COMMUNITY else value.type
                    self._add(kind, value, base_id(world, fact.fact_id))
                    self._attributes[_display(value).lower()].add(head)
                elif isinstance(value, DateValue) and head == HAPPENED:
                    verb, *rest = tokens_of(item)
                    self._happenings.add((verb, frozenset(rest) - ARTICLES))

    def _add(self, kind: str, value: NameValue | PlaceValue | TermValue, source: str) -> None:
        display = _display(value)
        for form in spellings(value):
            phrase = _without_article(tokens_of(form))
            if phrase:
                self._sources[kind][phrase].add(source)
                self._spellings[phrase] = display
                self._first[kind][phrase[0]].add(len(phrase))

    def tells_happening(self, sentence: str) -> bool:
        """Whether a sentence speaks of something that statements say happened.

        All words but the verb have to be there, and a word that begins like the verb, whose past may differ ("bought").
        """
        words = frozenset(tokens_of(sentence))
        begin = {word[0] for word in words}
        return any(rest and rest <= words and verb[0] in begin for verb, rest in self._happenings)

    def same_kind(self, phrase: str, other: str) -> bool:
        """Whether two phrases are known as values of the same attribute."""
        return not self._attributes[phrase.lower()].isdisjoint(self._attributes[other.lower()])

    def rarity(self, word: str) -> float:
        """Return how rare a word is: the log of the ratio of all turns to turns with it."""
        return math.log((1 + self._turns) / (1 + self._spoken[word]))

    def positions_of(self, kind: str, tokens: list[str], own: str) -> Mapping[str, int]:
        """Return the index of the first word of each known value of a kind in a text, without those of fact ``own``."""
        positions: dict[str, int] = {}
        position = 0
        while position < len(tokens):
            for length in sorted(self._first[kind].get(tokens[position], ()), reverse=True):
                phrase = tuple(tokens[position : position + length])
                if self._sources[kind].get(phrase, set()) - {own}:
                    positions.setdefault(self._spellings[phrase], position)
                    position += length - 1
                    break
            position += 1
        return positions


def _display(value: NameValue | PlaceValue | TermValue) -> str:
    return value.text if isinstance(value, TermValue) else value.name


def _without_article(tokens: list[str]) -> Phrase:
    while len(tokens) > 1 and tokens[0] in ("the", "a", "an", "my", "his", "her", "their", "our"):
        tokens = tokens[1:]
    return tuple(tokens)
