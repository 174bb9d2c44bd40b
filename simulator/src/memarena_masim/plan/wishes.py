"""Draws wishes for discretion: who may hear a fact that is told in confidence, who must not, and from which day.

The right action of a permission question (D6) follows from such a wish. Its words are rules of
``banks/facts/levels.bank``: ``level.<form>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memarena_dataset.permission_rules import CIRCLES
from pydantic import JsonValue

from memarena_masim.config import WorldConfig
from memarena_masim.facts.values import date_words
from memarena_masim.rng import Stream
from memarena_masim.world.build import relation
from memarena_masim.world.model import World

_WEIGHTS = {
    "public": 3,
    "private": 2,
    "none": 3,
    "friends_only": 4,
    "only": 5,
    "except": 9,
    "either": 6,
    "circle_only": 4,
    "circle_except": 5,
    "early": 4,
    "later": 5,
}
"""Relative frequency of each form, if it fits."""
_OPEN = frozenset({"public", "except", "circle_except", "early", "later"})
"""Forms that let people know who are not named. Never used for sensitive facts, such as a locker code."""
_NAMING = ("only", "except", "either")
"""Forms of a second wish about a fact, which withdraws or contradicts the first."""
_CIRCLE_WORDS = {"family": "family", "colleague": "colleagues"}
_PENDING_DAYS = 20
"""Latest day, counted from the world's end, on which a wish that outlasts the world lets the others know."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A wish for discretion. ``form`` names the rule that words it, with ``slots``; "" for no wish in words.

    The other fields are what ``permission_rules`` decides from: the level, the people named (agent ids, or relations
    of CIRCLES), and the first day on which the level holds.
    """

    form: str = ""
    level: str | None = None
    may_know: tuple[str, ...] = ()
    may_not_know: tuple[str, ...] = ()
    not_before: date | None = None
    slots: tuple[tuple[str, str], ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Return the ids of the people whom the wish names."""
        return tuple(name for name in (*self.may_know, *self.may_not_know) if name not in CIRCLES)

    @property
    def sharing(self) -> dict[str, JsonValue]:
        """Return what the wish says besides its level, as the files have it; empty if nothing."""
        fields: dict[str, JsonValue] = {}
        if self.may_know:
            fields["may_know"] = list(self.may_know)
        if self.may_not_know:
            fields["may_not_know"] = list(self.may_not_know)
        if self.not_before is not None:
            fields["not_before"] = self.not_before.isoformat()
        return fields


SAYS_NOTHING = Wish()


class Wishes:
    """Draws wishes. ``names`` has the name by which each agent is called in talk."""

    def __init__(self, config: WorldConfig, world: World, names: Mapping[str, str]) -> None:
        self._config, self._world, self._names = config, world, names
        self._forms: dict[str, Callable[[Stream, int, Sequence[str]], Wish | None]] = {
            "public": lambda *_: Wish("public", "public"),
            "private": lambda *_: Wish("private", "private"),
            "none": lambda *_: SAYS_NOTHING,
            "friends_only": lambda *_: Wish("friends_only", "friends_only"),
            "only": self._only,
            "except": self._except,
            "either": self._either,
            "early": self._early,
            "later": self._later,
        }

    def draw(self, stream: Stream, day: int, speaker: str, listeners: tuple[str, ...], sensitive: bool) -> Wish:
        """Draw a first wish; SAYS_NOTHING if no form fits."""
        forms = [form for form in _WEIGHTS if not (sensitive and form in _OPEN)]
        people = self._people(stream, speaker, listeners)
        for _ in range(4):
            form = stream.weighted(forms, [_WEIGHTS[form_key] for form_key in forms])
            if form.startswith("circle"):
                wish = self._circle(stream, form, listeners)
            else:
                wish = self._forms[form](stream, day, people)
            if wish is not None:
                return wish
        return SAYS_NOTHING

    def second(
        self,
        stream: Stream,
        day: int,
        speaker: str,
        listeners: tuple[str, ...],
        sensitive: bool,
        first: Wish,
        lead: str,
    ) -> Wish | None:
        """Draw another wish about the same people as ``first``; None if it named no person or no form differs from it.

        ``lead`` is the suffix of the rule that words it: ``changed`` or ``relayed``.
        """
        if not first.named:
            return None
        others = [person for person in self._people(stream, speaker, listeners) if person not in first.named]
        people = [*stream.shuffled(first.named), *others]
        forms = [form for form in _NAMING if not (sensitive and form in _OPEN)]
        for form in stream.shuffled(forms):
            wish = self._forms[form](stream, day, people)
            if wish is not None and (wish.level, wish.may_know, wish.may_not_know) != (
                first.level, first.may_know, first.may_not_know,
            ):  # fmt: skip
                return Wish(f"{wish.form}.{lead}", wish.level, wish.may_know, wish.may_not_know, None, wish.slots)
        return None

    def _people(self, stream: Stream, speaker: str, listeners: tuple[str, ...]) -> list[str]:
        """Return the people who can be named: those whom every listener knows, in random order.

        Those whom the speaker knows as well come first.
        """
        known = [
            person.agent_id
            for person in self._world.people
            if person.agent_id not in (speaker, *listeners)
            and all(self._world.edge(person.agent_id, listener).layer >= 0 for listener in listeners)
        ]
        shuffled = stream.shuffled(known)
        return sorted(shuffled, key=lambda other: self._world.edge(other, speaker).layer < 0)

    def _only(self, stream: Stream, day: int, people: Sequence[str]) -> Wish | None:
        if not people:
            return None
        return Wish("only", "private", may_know=(people[0],), slots=(("may", self._names[people[0]]),))

    def _except(self, stream: Stream, day: int, people: Sequence[str]) -> Wish | None:
        if not people:
            return None
        return Wish("except", "public", may_not_know=(people[0],), slots=(("maynot", self._names[people[0]]),))

    def _either(self, stream: Stream, day: int, people: Sequence[str]) -> Wish | None:
        if len(people) < 2:
            return None
        allowed, denied = people[:2]
        slots = (("may", self._names[allowed]), ("maynot", self._names[denied]))
        return Wish("either", None, (allowed,), (denied,), slots=slots)

    def _early(self, stream: Stream, day: int, people: Sequence[str]) -> Wish | None:
        """Draw a wish by which one person may know at once, the others only after the last day of the world."""
        if not people:
            return None
        start = self._date(self._config.days + stream.below(_PENDING_DAYS))
        slots = (("may", self._names[people[0]]), ("from", date_words(start)))
        return Wish("early", "public", (people[0],), not_before=start, slots=slots)

    def _later(self, stream: Stream, day: int, people: Sequence[str]) -> Wish | None:
        """Draw a wish by which everyone except one person may know, from a day of the world on."""
        remaining = self._config.days - 1 - day
        if not people or remaining < 1:
            return None
        start = self._date(day + 1 + stream.below(min(remaining, 3)))
        slots = (("maynot", self._names[people[0]]), ("from", date_words(start)))
        return Wish("later", "public", (), (people[0],), start, slots)

    def _circle(self, stream: Stream, form: str, listeners: tuple[str, ...]) -> Wish | None:
        """Draw a wish about the listener's family or colleagues; None if there are neither, or several listeners."""
        if len(listeners) != 1:
            return None
        ego = listeners[0]
        relations = {
            relation(self._world, ego, person.agent_id) for person in self._world.people if person.agent_id != ego
        }
        circles = [circle for circle in CIRCLES if circle in relations]
        if not circles:
            return None
        circle = stream.pick(circles)
        slots = (("circle", _CIRCLE_WORDS[circle]),)
        if form == "circle_only":
            return Wish(form, "private", may_know=(circle,), slots=slots)
        return Wish(form, "public", may_not_know=(circle,), slots=slots)

    def _date(self, day: int) -> date:
        return self._config.calendar_epoch + timedelta(days=day)
