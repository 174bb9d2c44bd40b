"""Chooses statements that refer to an earlier talk: a fact is passed on, contradicted, changed or given another wish.

For the ``Chooser``, which decides how many there are. What people state as new is in ``plan/own_facts.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.history import History
from memarena_masim.plan.state import Choice, Fact, FactKind, Occasion, Role, StatedFact
from memarena_masim.plan.wishes import Wishes


class FollowUps:
    """Chooses what is stated about facts of earlier talks. Each method returns None if there is no fact that fits."""

    def __init__(self, catalogue: Catalogue, source: FactSource, wishes: Wishes, history: History) -> None:
        self._catalogue, self._source, self._wishes = catalogue, source, wishes
        self._history, self._knowledge = history, history.knowledge

    def retell(self, occasion: Occasion) -> Choice | None:
        """Choose a detail that the speaker heard of another person who is not present."""
        heard = [statements[0].fact for statements in self._knowledge.facts_heard(occasion.speaker).values()]
        candidates = [
            fact
            for fact in heard
            if fact.subject not in (occasion.speaker, *occasion.listeners)
            and self._history.is_plain(fact)
            and occasion.fits(fact.theme_kind)
            and self._history.is_new(fact, occasion.hearers)
        ]
        if not candidates:
            return None
        fact = occasion.stream.pick(candidates)
        self._history.add("passed_on", fact.fact_id)
        return occasion.choice(fact, Role.RETELL)

    def fate(self, occasion: Occasion) -> Choice | None:
        """Choose a find that the speaker named to the only listener, to state what became of it; once per find."""
        (listener,) = occasion.listeners
        heard = self._knowledge.facts_heard(listener)
        finds = [
            fact
            for key, fact in self._knowledge.told.get(occasion.speaker, {}).items()
            if fact.kind is FactKind.FIND and key in heard and not self._history.has("fated", key)
        ]
        if not finds:
            return None
        fact = occasion.stream.pick(finds)
        self._history.add("fated", fact.fact_id)
        return occasion.choice(fact, Role.FATE)

    def change(self, occasion: Occasion) -> Choice | None:
        """Choose a new value for a detail that the speaker told all of these listeners, once per detail.

        Details that others passed on are not changed: those would go on stating the old value. And rather one that few
        people know: the others may still contradict each other on the details that they share.
        """
        current = [
            fact
            for key, fact in self._knowledge.told.get(occasion.speaker, {}).items()
            if self._history.is_plain(fact)
            and occasion.fits(fact.theme_kind)
            and self._catalogue.attributes[fact.attribute].changes
            and not self._history.has("passed_on", key)
            and all(key in self._knowledge.facts_heard(listener) for listener in occasion.listeners)
        ]
        if not current:
            return None
        known_to = {fact.fact_id: self._knowledge.hearers(fact.fact_id) for fact in current}
        fewest = min(known_to.values())
        fact = occasion.stream.pick([fact for fact in current if known_to[fact.fact_id] == fewest])
        self._history.add("outdated", fact.fact_id)
        return occasion.choice(self._source.later(fact, occasion.day), Role.CHANGE)

    def version(self, occasion: Occasion) -> Choice | None:
        """Choose a detail that both heard from others, to state it with another value: an injected conflict.

        If need be one that others already state with that value: a fact has two values, however many people heard both.
        """
        speaker, (listener,), history = occasion.speaker, occasion.listeners, self._history
        heard, heard_by_listener = (self._knowledge.facts_heard(agent) for agent in (speaker, listener))
        facts = {key: heard[key][0].fact for key in heard if key in heard_by_listener}
        shared = occasion.stream.shuffled([key for key, fact in facts.items() if occasion.fits(fact.theme_kind)])
        for key in sorted(shared, key=lambda key: history.has("versioned", key)):
            if self._may_contradict(facts[key], heard_by_listener[key], speaker, listener):
                history.add("versioned", key)
                history.add("contradictor", key, speaker)
                history.add("contradicted", key, listener)
                return Choice(facts[key], speaker, Role.VERSION, self._source.changed(facts[key], occasion.day))
        return None

    def _may_contradict(self, fact: Fact, heard: Sequence[StatedFact], speaker: str, listener: str) -> bool:
        """Whether a speaker may contradict a fact to a listener who ``heard`` it: neither of them knows both values."""
        key, history = fact.fact_id, self._history
        if fact.subject in (speaker, listener) or any(stated.speaker == speaker for stated in heard):
            return False
        if not history.has("versioned", key):
            return history.is_plain(fact)
        heard_both = any(history.has("contradicted", key, agent) for agent in (speaker, listener))
        return not (heard_both or history.has("contradictor", key, listener) or history.is_over(fact))

    def second_wish(self, occasion: Occasion) -> Choice | None:
        """Choose a guarded fact for a person who knows it, with another wish: of the subject, or relayed by another.

        Once per fact and listener, so that the subject's latest wish counts, or the only one.
        """
        stream, speaker, (listener,) = occasion.stream, occasion.speaker, occasion.listeners
        firsts = {key: statements[0] for key, statements in self._knowledge.facts_heard(listener).items()}
        told_facts = [firsts[key] for key in self._knowledge.told.get(speaker, {}) if key in firsts]
        passed_on = [firsts[key] for key in self._knowledge.facts_heard(speaker) if key in firsts]
        # By how many of either there are, whichever is nearer at hand: there are few people who both heard a secret.
        for lead, candidates in stream.shuffled([("changed", told_facts), ("relayed", passed_on)]):
            open_ones = [first for first in candidates if self._open_to_second_wish(first, occasion)]
            if not open_ones:
                continue
            first = stream.pick(open_ones)
            sensitive = bool(first.fact.sensitive)
            wish = self._wishes.second(stream, occasion.day, speaker, (listener,), sensitive, first.wish, lead)
            if wish is not None:
                self._history.add("wished_again", first.fact.fact_id, listener)
                role = Role.WISH if lead == "changed" else Role.RETELL
                return replace(occasion.choice(first.fact, role), wish=wish)
        return None

    def _open_to_second_wish(self, first: StatedFact, occasion: Occasion) -> bool:
        """Whether the listener first heard a guarded fact from its subject, with a wish that names others.

        It must not be over, nor have a second wish for this listener already.
        """
        fact, named = first.fact, first.wish.named
        from_subject = fact.guarded and first.speaker == fact.subject and occasion.fits(fact.theme_kind)
        names_others = bool(named) and set(named).isdisjoint((occasion.speaker, *occasion.listeners))
        wished_again = self._history.has("wished_again", fact.fact_id, *occasion.listeners)
        return from_subject and names_others and not wished_again and not self._history.is_over(fact)
