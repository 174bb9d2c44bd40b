"""Chooses the facts of talks between people: those of the thread for news, and those that answer a story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memarena_masim.config import FACTS_PER_TALK, WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.plan.model import Invite, SessionPlan
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.small_talk import Exchange, SmallTalk
from memarena_masim.plan.state import Choice, Occasion, Role
from memarena_masim.plan.statements import Chooser
from memarena_masim.plan.threads import Slot, asides, first_slot, next_slot
from memarena_masim.rng import Stream

_OF_STORY = 0.6
"""Chance that the news after a story is of the story's themes, if its topic has any."""
_PAIR = 2
"""Number of people in a talk that may have more than one fact: with three, each fact takes more turns."""


class TalkFact(NamedTuple):
    """A fact of a talk between people: its turn, what is stated, and whether it is a planned statement."""

    slot: Slot
    choice: Choice
    planned: bool

    @property
    def invite(self) -> Invite:
        """Return how it is asked for: by its thing only if the listeners heard of that on an earlier day."""
        if not self.slot.after_question:
            return Invite.NONE
        return Invite.THING if self.choice.role in (Role.CHANGE, Role.FATE, Role.WISH) else Invite.OPEN


class TalkFacts:
    """Chooses facts for the turns of a talk; ``earlier`` counts the statements of an exchange before the talk."""

    def __init__(
        self,
        config: WorldConfig,
        catalogue: Catalogue,
        chooser: Chooser,
        small_talk: SmallTalk,
        earlier: Callable[[Exchange], int],
    ) -> None:
        self._config, self._catalogue = config, catalogue
        self._chooser, self._small_talk, self._earlier = chooser, small_talk, earlier
        self._kinds = frozenset[str]().union(*catalogue.themes)
        self._sensitive = frozenset(key for key, kind in catalogue.attributes.items() if kind.sensitive)
        self._not_news = frozenset(key for key, kind in catalogue.attributes.items() if not kind.is_news)

    def news(self, stream: Stream, plan: SessionPlan, ids: Sequence[str]) -> list[TalkFact]:
        """Choose the facts after a talk's story, in their turns; empty if nothing can be stated.

        They are of the themes of the story, or of one theme that the first of them has, and no two are of one kind.
        """
        count = stream.pick(FACTS_PER_TALK) if len(ids) == _PAIR else 1
        theme: Theme = None
        if self._chooser.themed and stream.chance(_OF_STORY):
            theme = self._catalogue.themes_of_topics.get(plan.threads[0].topic)
        slot = first_slot(stream, plan.threads[0], count, len(ids))
        facts: list[TalkFact] = []
        possible: Theme = None
        for _ in range(count):
            fact = self._fact(stream, plan, ids, slot, facts, theme, possible)
            if fact is None:
                continue
            facts.append(fact)
            possible = (possible or self._kinds) - {fact.choice.fact.theme_kind}
            theme = (theme or self._chooser.draw_theme(stream, fact.choice.fact) or possible) & possible
            if not theme:
                break
            slot = next_slot(stream, slot, len(ids))
        return facts

    def asides(self, stream: Stream, plan: SessionPlan, ids: Sequence[str], news: Sequence[TalkFact]) -> list[TalkFact]:
        """Choose, for who answers a story, a fact that goes with it; in the order of their turns, empty for most talks
        with two facts of ``news``.

        No two facts of the talk are of one kind, and none is sensitive.
        """
        chosen: list[TalkFact] = []
        if len(ids) != _PAIR:
            return chosen
        for thread, turns in stream.shuffled(asides(plan.threads, len(ids))):
            if len(chosen) == self._config.most_asides(len(news)):
                break
            if not stream.chance(self._config.asides):
                continue
            kinds = {fact.choice.fact.theme_kind for fact in (*news, *chosen)}
            theme = self._catalogue.themes_of_topics.get(thread.topic, self._kinds) - kinds - self._sensitive
            slot = Slot(stream.pick(turns), after_question=False)
            fact = self._fact(stream, plan, ids, slot, (*news, *chosen), theme, theme) if theme else None
            if fact is not None:
                chosen.append(fact)
        return sorted(chosen, key=lambda fact: fact.slot.turn)

    def _fact(
        self,
        stream: Stream,
        plan: SessionPlan,
        ids: Sequence[str],
        slot: Slot,
        facts: Sequence[TalkFact],
        theme: Theme,
        possible: Theme,
    ) -> TalkFact | None:
        """Choose a fact for a turn; None if nothing fits, or its kind is not ``possible``."""
        if slot.after_question:
            theme, possible = ((kinds or self._kinds) - self._not_news for kinds in (theme, possible))
            if not theme:
                return None
        speaker, next_speaker = (ids[plan.speaker_index(slot.turn + step)] for step in (0, 1))
        others = tuple(agent for agent in ids if agent != speaker)
        choice, planned = None, stream.chance(self._config.planned)
        if planned:
            choice = self._chooser.choose(Occasion(stream, plan.day, speaker, others, theme), possible)
        if choice is None:
            planned = False
            texts = {text for fact in facts for text in (fact.choice.fact.item, fact.choice.value.text)}
            mention = self._small_talk.draw(stream, False, theme)
            earlier = self._earlier(Exchange(speaker, next_speaker, mention.kind))
            in_order = (speaker, next_speaker, *(agent for agent in others if agent != next_speaker))
            choice = self._small_talk.choose(stream, plan.day, mention, in_order, earlier, texts)
        if choice is None or (possible is not None and choice.fact.theme_kind not in possible):
            return None
        return TalkFact(slot, choice, planned)
