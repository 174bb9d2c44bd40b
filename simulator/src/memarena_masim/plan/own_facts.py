"""Chooses facts of a person's own life that they state: details, secrets, happenings and finds.

For the ``Chooser``. To the listeners they are new; what refers to an earlier talk is in ``plan/follow_ups.py``.
"""

from __future__ import annotations

from dataclasses import replace

from memarena_masim.config import SMALL_WORLD, WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.history import History
from memarena_masim.plan.popularity import Popularity
from memarena_masim.plan.state import Choice, Fact, Occasion
from memarena_masim.plan.wishes import Wishes

AGAIN, AGAIN_IF_SCARCE = 0.4, 0.85
"""Chance that a stated detail is one that the speaker has told another person before; and in small or scarce worlds."""
AGAIN_WITHIN = 2.0
"""Factor on that chance in a talk of one theme, in which the speaker may have told no detail yet."""
SENSITIVE_PASSED_OVER = 0.6
"""Share of the sensitive details drawn that are replaced by another confidential one, which a wish may open to all."""
TOLD_TWICE = 0.5
"""Chance that a guarded fact that is drawn again is told to another person too."""
_DAYS_BACK = 35
"""Days before its first telling in which a happening is dated: over fewer days its date could be guessed."""
_TRIES, _TRIES_DETAIL, _TRIES_AGAIN = 8, 16, 6
"""Maximum draws of a happening or find, of a detail, and of a detail that the speaker has told before."""


class OwnFacts:
    """Chooses facts of the speaker that are new to the listeners. Each method returns None if no draw fits."""

    def __init__(
        self, config: WorldConfig, catalogue: Catalogue, source: FactSource, wishes: Wishes, history: History
    ) -> None:
        self._catalogue, self._source, self._wishes = catalogue, source, wishes
        self._history, self._knowledge = history, history.knowledge
        self.popularity = Popularity(config, catalogue)
        scarce = config.scarce or config.statements_between_people < SMALL_WORLD
        self._again = AGAIN_IF_SCARCE if scarce else AGAIN
        self._confidential = [attribute for attribute in catalogue.attributes.values() if attribute.confidential]

    def detail(self, occasion: Occasion) -> Choice | None:
        """Choose a detail that is not told in confidence, told before or not."""
        fact = self._detail_again(occasion)
        if fact is not None:
            return occasion.choice(fact)
        for _ in range(_TRIES_DETAIL):
            drawn = self.popularity.draw(occasion.stream, occasion.theme)
            if drawn is None:
                return None
            fact = self._source.detail(occasion.speaker, *drawn, occasion.day)
            if self._history.is_plain(fact) and self._history.is_new(fact, occasion.hearers):
                return self._told_today(fact, occasion)
        return None

    def _detail_again(self, occasion: Occasion) -> Fact | None:
        """Draw, with a chance, a detail that the speaker told others before; None if none is drawn."""
        stream, speaker = occasion.stream, occasion.speaker
        facts = self._knowledge.told.get(speaker, {}) | self._history.details_today.get(speaker, {})
        of_theme = [fact for fact in facts.values() if occasion.fits(fact.theme_kind)]
        chance = self._again if occasion.theme is None else min(1.0, AGAIN_WITHIN * self._again)
        if of_theme and stream.chance(chance):
            for _ in range(_TRIES_AGAIN):
                fact = stream.pick(of_theme)
                if self._history.is_plain(fact) and self._history.is_new(fact, occasion.hearers):
                    return fact
        return None

    def secret(self, occasion: Occasion) -> Choice | None:
        """Choose a detail that is told in confidence, told before or not."""
        stream, speaker, history = occasion.stream, occasion.speaker, self._history
        attributes = [attribute for attribute in self._confidential if occasion.fits(attribute.key)]
        for _ in range(_TRIES_DETAIL if attributes else 0):
            attribute = stream.pick(attributes)
            if attribute.sensitive and stream.chance(SENSITIVE_PASSED_OVER):
                continue
            fact = self._source.detail(speaker, attribute, stream.pick(attribute.items), occasion.day)
            if not fact.guarded or history.is_over(fact) or not history.is_new(fact, occasion.hearers):
                continue
            if not history.has("drawn", speaker, fact.fact_id) or stream.chance(TOLD_TWICE):
                history.add("drawn", speaker, fact.fact_id)
                choice, sensitive = self._told_today(fact, occasion), bool(fact.sensitive)
                wish = self._wishes.draw(stream, occasion.day, speaker, occasion.listeners, sensitive)
                return replace(choice, wish=wish)
        return None

    def _told_today(self, fact: Fact, occasion: Occasion) -> Choice:
        self._history.details_today.setdefault(fact.subject, {})[fact.fact_id] = fact
        return occasion.choice(fact)

    def happening(self, occasion: Occasion) -> Choice | None:
        """Choose a happening, told before or not."""
        stream, speaker, history = occasion.stream, occasion.speaker, self._history
        recent = [fact for fact in self._knowledge.told.get(speaker, {}).values() if history.is_recent(fact)]
        if recent and stream.chance(self._again):
            fact = stream.pick(recent)
            if history.is_new(fact, occasion.hearers):
                return occasion.choice(fact)
        for _ in range(_TRIES):
            phrase = stream.pick(self._catalogue.happenings)
            if not history.has("drawn", speaker, phrase):
                history.add("drawn", speaker, phrase)
                return occasion.choice(self._source.happening(speaker, phrase, occasion.day - stream.below(_DAYS_BACK)))
        return None

    def find(self, occasion: Occasion) -> Choice | None:
        """Choose a find of which the speaker has not told yet."""
        for _ in range(_TRIES):
            source = occasion.stream.pick(self._catalogue.sources)
            if not self._history.has("drawn", occasion.speaker, source):
                self._history.add("drawn", occasion.speaker, source)
                return occasion.choice(self._source.find(occasion.speaker, source))
        return None
