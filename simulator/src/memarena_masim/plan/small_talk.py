"""Draws what people mention in passing: facts like planned ones, worded by the same rules, but never asked about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memarena_masim.config import NEAREST_DATE_DAYS, WorldConfig
from memarena_masim.facts.catalogue import Catalogue, base
from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.state import Choice, Fact, Role
from memarena_masim.plan.wishes import SAYS_NOTHING, Wishes
from memarena_masim.rng import Stream
from memarena_masim.world.model import World

HAPPENING, FIND = "happening", "find"
_SHARES = (("detail", 0.45), (HAPPENING, 0.15), (FIND, 0.12), ("guarded", 0.28))
"""Shares of what is mentioned, by kind; ``guarded`` is a detail with a wish for discretion."""
_OF_OTHERS = 0.2
"""Share of the details that are about a person who is not present."""
_MONTH_DAYS = NEAREST_DATE_DAYS
"""Length of a month of small talk: each month has its own happenings and future dates."""


class Exchange(NamedTuple):
    """The key by which statements are counted; the count decides which thing of a kind is mentioned next."""

    speaker: str
    next_speaker: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Mention:
    """The kind of thing to mention, before it is drawn. ``kind`` is an attribute's key, ``happening`` or ``find``."""

    kind: str
    of_another: bool = False
    """Whether it is about a person who is not present."""
    guarded: bool = False
    """Whether it is told with a wish for discretion."""


class SmallTalk:
    """Draws the things to mention. It has no memory: the caller counts earlier mentions between two people."""

    def __init__(
        self, config: WorldConfig, world: World, mentioned: Catalogue, attributes: Collection[str], wishes: Wishes
    ) -> None:
        self._config, self._world, self._catalogue, self._wishes = config, world, mentioned, wishes
        self._month, self._source = 0, FactSource(config, mentioned)
        self._confidential = [key for key, attribute in mentioned.attributes.items() if attribute.confidential]
        self._attributes = sorted(set(attributes) & set(mentioned.attributes))

    def draw(
        self, stream: Stream, assistant: bool, theme: Theme, except_kinds: Collection[str] = frozenset()
    ) -> Mention:
        """Draw the kind of thing to mention: of ``theme`` if it has any, else of any theme.

        Only a detail or a happening is mentioned to an assistant. A detail is of none of ``except_kinds``.
        """
        attributes = [key for key in self._attributes if (theme is None or key in theme) and key not in except_kinds]
        confidential = [key for key in self._confidential if theme is None or key in theme]
        possible = {
            "detail": bool(attributes),
            "guarded": bool(confidential) and not assistant,
            HAPPENING: theme is None or HAPPENING in theme,
            FIND: (theme is None or FIND in theme) and not assistant,
        }
        shares = [(name, share) for name, share in _SHARES if possible[name]]
        if not shares:
            return self.draw(stream, assistant, None, except_kinds)
        names, weights = zip(*shares, strict=True)
        drawn = stream.weighted(names, weights)
        if drawn == "guarded":
            return Mention(stream.pick(confidential), guarded=True)
        if drawn == "detail":
            return Mention(stream.pick(attributes), of_another=not assistant and stream.chance(_OF_OTHERS))
        return Mention(drawn)

    def choose(
        self,
        stream: Stream,
        day: int,
        mention: Mention,
        people: Sequence[str],
        earlier: int,
        stated_texts: Collection[str],
    ) -> Choice | None:
        """Choose what the first of ``people`` says to the others; the second answers. None if nothing is left.

        ``earlier`` is the number of earlier statements of the kind between the two: it selects the next one in an order
        of their own, so that each comes once before one is repeated. ``stated_texts`` has the items and values of the
        same talk, none of which comes up a second time.
        """
        speaker, listener = people[:2]
        subject = speaker
        if mention.of_another:
            absent = [
                person.agent_id
                for person in self._world.people
                if person.agent_id not in people and self._world.edge(speaker, person.agent_id).layer >= 0
            ]
            if not absent or day == 0:  # on the first day no person knows news of another
                return None
            subject = stream.pick(absent)
        order = Stream(self._config.key, "small talk", mention.kind, speaker, listener).shuffled(self._items(mention))
        for step in range(len(order)):
            fact = self._fact(mention.kind, subject, order[(earlier + step) % len(order)], day)
            if not {fact.item, fact.value.text}.isdisjoint(stated_texts):
                continue
            if mention.of_another and fact.guarded:
                continue
            wish = SAYS_NOTHING
            if mention.guarded:
                wish = self._wishes.draw(stream, day, speaker, tuple(people[1:]), bool(fact.sensitive))
            return Choice(fact, speaker, Role.RETELL if mention.of_another else Role.TELL, fact.value, wish)
        return None

    def _items(self, mention: Mention) -> tuple[str, ...]:
        """Return the happenings, sources of finds, or items of the attribute that ``mention`` can be about."""
        if mention.kind == HAPPENING:
            return self._catalogue.happenings
        return self._catalogue.sources if mention.kind == FIND else self._catalogue.attributes[mention.kind].items

    def _fact(self, kind: str, subject: str, item: str, day: int) -> Fact:
        """Return a person's fact about an item, a happening or a source of finds, for the month of ``day``."""
        month = day // _MONTH_DAYS
        if month != self._month:  # dates are ahead of the month; every other value stays what it is
            self._month, self._source = month, FactSource(self._config, self._catalogue)
        if kind == FIND:
            return self._source.find(subject, item)
        if kind == HAPPENING:
            stream = Stream(self._config.key, "mentioned day", subject, base(item), month)
            return self._source.happening(subject, item, month * _MONTH_DAYS - stream.below(_MONTH_DAYS))
        return self._source.detail(subject, self._catalogue.attributes[kind], item, day)
