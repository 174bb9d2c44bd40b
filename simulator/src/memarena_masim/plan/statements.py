"""Chooses what a person states in a session: draws the kind of fact, as often as the questions about each kind need.

For the planners of days and talks. Facts are chosen by ``own_facts.py``, ``community.py`` and ``follow_ups.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memarena_dataset.model import Family

from memarena_masim.config import LEAST_PERMISSION, SMALL_WORLD, WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.plan.community import CommunityTalk
from memarena_masim.plan.follow_ups import FollowUps
from memarena_masim.plan.history import History, Mark
from memarena_masim.plan.own_facts import OwnFacts
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.state import Choice, Fact, FactKind, Occasion
from memarena_masim.rng import Stream

SHARES = (
    ("detail", 0.45),
    ("retell", 0.13),
    ("happening", 0.19),
    ("find", 0.14),
    ("guarded", 0.06),
    ("tie", 0.03),
    ("change", 0.04),
    ("community", 0.12),
)
"""Shares of the statements between people, by kind: in proportion to the questions about them.

Fates of finds, versions of what both people heard, second wishes and changes come first, up to _AIMS."""
ASSISTANT_SHARES = (("detail", 0.5), ("happening", 0.28), ("find", 0.22))
"""Shares of the statements to an assistant, by kind."""
_FINDS_PER_QUESTION, _MOST_FINDS = 6.0, 0.36
"""Finds per question on references, and their maximum share of the statements."""
_AIMS: dict[Mark, tuple[Family, float]] = {
    "contradicted": (Family.CONFLICT, 2.0),
    "fated": (Family.ANAPHORA, 1.5),
    "wished_again": (Family.PERMISSION, 0.15),
    "outdated": (Family.QA, 0.4),
}
"""For each mark of statements that refer to earlier sessions: a family of questions, and statements per question."""
_MOST_GUARDED, _SPARE_GUARDED = 0.4, 1.25
"""Maximum share of the statements that are told in confidence, and a factor: some are heard by several people."""
_FEW_DAYS = 3
"""Maximum days of a short world, in which there are few chances to tell a fact twice or to refer to it later."""
_FATE_FIRST = 0.85
"""Chance that the fate of an earlier find is stated, if there is one, instead of a new find."""


def _guarded_share(config: WorldConfig) -> float:
    """Return the share of guarded statements: a little above that of D6 among all questions, at most _MOST_GUARDED.

    So a guarded statement is asked about no more often than others, and the words of a wish do not betray evidence.
    """
    facts = min(config.questions(Family.PERMISSION), LEAST_PERMISSION // 2)  # each is asked by several people
    others = sum(config.questions(family) for family in Family if family is not Family.PERMISSION)
    return min(_MOST_GUARDED, _SPARE_GUARDED * facts / others)


def _shares(config: WorldConfig) -> tuple[tuple[str, float], ...]:
    """Return SHARES for a world: raised for kinds of which a small world would have too few for its questions."""
    finds = _FINDS_PER_QUESTION * config.questions(Family.ANAPHORA) / config.statements_between_people
    least = {"find": min(_MOST_FINDS, finds), "guarded": _guarded_share(config)}
    return tuple((kind, max(share, least.get(kind, 0.0))) for kind, share in SHARES)


class Chooser:
    """Chooses statements, by kinds and themes. All that it remembers of them is in ``history``."""

    def __init__(
        self,
        config: WorldConfig,
        catalogue: Catalogue,
        own_facts: OwnFacts,
        community_talk: CommunityTalk,
        follow_ups: FollowUps,
        history: History,
    ) -> None:
        self._config, self._catalogue, self._history = config, catalogue, history
        self._own_facts, self._follow_ups = own_facts, follow_ups
        self._shares = _shares(config)
        self.themed = config.statements_between_people >= SMALL_WORLD and config.days > _FEW_DAYS
        """Whether each talk keeps to one theme: false in small or short worlds, which need all that can be stated."""
        self._of_kind: dict[str, Callable[[Occasion], Choice | None]] = {
            "guarded": own_facts.secret,
            "detail": own_facts.detail,
            "happening": own_facts.happening,
            "find": self._find,
            "tie": community_talk.tie,
            "retell": follow_ups.retell,
            "change": follow_ups.change,
            "community": community_talk.community,
        }

    def draw_theme(self, stream: Stream, fact: Fact | None) -> Theme:
        """Draw the theme of a talk whose first fact is ``fact``; None in worlds whose talks have no theme."""
        if not self.themed:
            return None
        return stream.pick([theme for theme in self._catalogue.themes if fact is None or fact.theme_kind in theme])

    def choose(self, occasion: Occasion, possible: Theme = None) -> Choice | None:
        """Choose a statement for an occasion; None if nothing fits.

        What refers to an earlier talk is of the kinds ``possible``, if none of the occasion's theme is possible.
        """
        choice = self._needed(occasion, possible) or self._drawn(occasion)
        if choice is not None:
            for hearer in occasion.hearers:
                self._history.add("stated", choice.fact.fact_id, hearer)
        return choice

    def _needed(self, occasion: Occasion, possible: Theme) -> Choice | None:
        """Choose a fate, a version, a second wish or a change, as long as the days so far have fewer than _AIMS.

        If need be of any kind that is ``possible``: there are few facts that two people both heard. None if none fits.
        """
        if len(occasion.listeners) != 1:
            return None
        if self._too_few("fated", occasion.day) and (possible is None or FactKind.FIND.value in possible):
            fate = self._follow_ups.fate(occasion)
            if fate is not None:
                return fate
        of_mark: dict[Mark, Callable[[Occasion], Choice | None]] = {
            "contradicted": self._follow_ups.version,
            "wished_again": self._follow_ups.second_wish,
            "outdated": self._follow_ups.change,
        }
        needed = [choose for mark, choose in of_mark.items() if self._too_few(mark, occasion.day)]
        occasions = (occasion, replace(occasion, theme=possible))
        choices = (choose(either) for either in occasions for choose in needed)
        return next((choice for choice in choices if choice is not None), None)

    def _too_few(self, mark: Mark, day: int) -> bool:
        """Whether fewer statements with a mark of _AIMS were made than are aimed at by the end of the day."""
        family, per_question = _AIMS[mark]
        aim = per_question * self._config.questions(family) * (day + 1) / (self._config.days - 1)
        return self._history.count(mark) < aim

    def _drawn(self, occasion: Occasion) -> Choice | None:
        """Choose a statement of a drawn kind, or a detail if the kind has none; None if nothing fits."""
        shares = self._shares if occasion.listeners else ASSISTANT_SHARES
        names, weights = zip(*((kind, share) for kind, share in shares if self._has(kind, occasion)), strict=True)
        kind = occasion.stream.weighted(names, weights)
        choice = self._of_kind[kind](occasion)
        if choice is None and kind != "detail" and self._has("detail", occasion):
            return self._own_facts.detail(occasion)
        return choice

    def _has(self, kind: str, occasion: Occasion) -> bool:
        """Whether there are facts of a kind of SHARES in the occasion's theme."""
        if kind in ("happening", "find", "tie"):
            return occasion.fits(kind)
        return any(map(occasion.fits, self._catalogue.community if kind == "community" else self._catalogue.attributes))

    def _find(self, occasion: Occasion) -> Choice | None:
        """Choose the fate of an earlier find, or a new find; None to an assistant, or if none is drawn."""
        one_listener = len(occasion.listeners) == 1
        if one_listener and occasion.stream.chance(_FATE_FIRST) and (fate := self._follow_ups.fate(occasion)):
            return fate
        return self._own_facts.find(occasion) if occasion.listeners else None
