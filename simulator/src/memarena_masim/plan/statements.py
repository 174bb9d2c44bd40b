"""Chooses which facts are stated in a session, and by whom, from what each person knew when the day began."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from memarena_dataset.model import Family

from memarena_masim.config import LEAST_PERMISSION, WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.facts.values import SpokenValue
from memarena_masim.plan.community import CommunityTalk
from memarena_masim.plan.facts import FactSource
from memarena_masim.plan.noted import Noted
from memarena_masim.plan.popularity import Popularity, Theme
from memarena_masim.plan.state import Fact, FactKind, Knowledge, Role, StatedFact
from memarena_masim.plan.wishes import SAYS_NOTHING, Wish, Wishes
from memarena_masim.rng import Stream
from memarena_masim.world.model import World

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
_AIMS = {
    "version": (Family.CONFLICT, 2.0),
    "fate": (Family.ANAPHORA, 1.5),
    "wish": (Family.PERMISSION, 0.15),
    "change": (Family.QA, 0.4),
}
"""For each kind of statement that refers to an earlier session: a family of questions, and statements per question."""
_MOST_GUARDED = 0.4
"""Maximum share of the statements that are told in confidence."""
_SPARE_GUARDED = 1.25
"""Factor on that share: some guarded statements are heard by several people."""
AGAIN = 0.4
"""Chance that a stated detail is one that the speaker has told another person before.

Small worlds, and those with hardly enough statements, use 0.85."""
AGAIN_WITHIN = 2.0
"""Factor on that chance in a talk of one theme, in which the speaker may have told no detail yet."""
SENSITIVE_PASSED_OVER = 0.6
"""Share of the sensitive details drawn that are replaced by another confidential one, which a wish may open to all."""
_KNOWN_TO_MEMBERS = frozenset(("group_membership", "group_place", "group_members"))
"""Facts of a group that no member needs to be told; a role may be new to them."""
TOLD_TWICE = 0.5
"""Chance that a guarded fact that is drawn again is told to another person too."""
_DAYS_BACK = 35
"""Days before its first telling in which a happening is dated: over fewer days its date could be guessed."""
_TOLD_FOR_DAYS = 150
"""Days for which people still tell of a happening: within half a year, a month needs no year."""
_FEW_DAYS = 3
"""Maximum days of a short world, in which there are few chances to tell a fact twice or to refer to it later."""
_SMALL = 200
"""Number of statements between people below which a world is small."""


def _guarded_share(config: WorldConfig) -> float:
    """Return the share of guarded statements: a little above that of D6 among all questions, at most _MOST_GUARDED.

    So a guarded statement is asked about no more often than others, and the words of a wish do not betray evidence.
    """
    facts = min(config.questions(Family.PERMISSION), LEAST_PERMISSION // 2)  # each is asked by several people
    others = sum(config.questions(family) for family in Family if family is not Family.PERMISSION)
    return min(_MOST_GUARDED, _SPARE_GUARDED * facts / others)


def _shares(config: WorldConfig) -> tuple[tuple[str, float], ...]:
    """Return SHARES for a world: raised for kinds of which a small world would have too few for its questions."""
    statements = config.statements_between_people
    finds = _FINDS_PER_QUESTION * config.questions(Family.ANAPHORA) / statements
    least = {"find": min(_MOST_FINDS, finds), "guarded": _guarded_share(config)}
    return tuple((kind, max(share, least.get(kind, 0.0))) for kind, share in SHARES)


@dataclass(frozen=True, slots=True)
class Choice:
    """A statement to be made: ``value`` is as stated, which for a version differs from the fact's."""

    fact: Fact
    speaker: str
    role: Role
    value: SpokenValue
    wish: Wish = SAYS_NOTHING


class Chooser:
    """Chooses statements. Reads knowledge as of the last midnight, and remembers only what must not be stated twice.

    What it remembers of a day (``noted``) lasts only if the day is committed.
    """

    def __init__(
        self,
        config: WorldConfig,
        world: World,
        catalogue: Catalogue,
        source: FactSource,
        knowledge: Knowledge,
        wishes: Wishes,
    ) -> None:
        self._config, self._world, self._catalogue = config, world, catalogue
        self._source, self._knowledge, self._wishes = source, knowledge, wishes
        # (fact, listener) that were stated; (speaker, happening, source or fact) that were drawn
        self._pairs, self._used = Noted[tuple[str, str]](), Noted[tuple[str, str]]()
        # facts with a second value; finds whose fate was stated
        self._versioned, self._fated = Noted[str](), Noted[str]()
        # (fact, speaker) who stated its second value; (fact, listener) who heard both values
        self._contradictors, self._contradicted = Noted[tuple[str, str]](), Noted[tuple[str, str]]()
        # facts that a later fact replaces; facts that people other than their subject stated
        self._outdated, self._passed_on = Noted[str](), Noted[str]()
        # (fact, listener) that were stated with a second wish
        self._wished_again = Noted[tuple[str, str]]()
        # a plan's ``noted`` has the same order
        self._memory: tuple[Noted[Any], ...] = (
            *(self._pairs, self._used, self._versioned, self._contradictors, self._contradicted),
            *(self._fated, self._outdated, self._passed_on, self._wished_again),
        )
        self._day, self._today = 0, config.calendar_epoch
        self._stated_today: dict[str, dict[str, Fact]] = {}
        """Details that a subject stated since midnight, by subject and fact id."""
        self._popularity = Popularity(config, catalogue)
        self._community = CommunityTalk(world, source)
        self._members = {group.name: frozenset(group.members) for group in world.groups}
        self._shares = _shares(config)
        self._small = config.statements_between_people < _SMALL
        self.themed = not self._small and config.days > _FEW_DAYS
        """Whether each talk keeps to one theme: false in small or short worlds, which need all that can be stated."""
        self._again = 0.85 if self._small or config.scarce else AGAIN
        self._confidential = [attribute for attribute in catalogue.attributes.values() if attribute.confidential]

    @property
    def attributes(self) -> frozenset[str]:
        """Return the keys of the attributes that people talk about in this world."""
        return self._popularity.attributes

    def begin_day(self, day: int) -> None:
        """Start to plan ``day``: drop what was noted since the last commit."""
        self._day, self._today = day, self._config.calendar_epoch + timedelta(days=day)
        self._stated_today = {}
        for noted in self._memory:
            noted.begin_day()

    @property
    def noted(self) -> tuple[frozenset[Any], ...]:
        """Return what was noted since the day began, for ``commit``."""
        return tuple(noted.today for noted in self._memory)

    def commit(self, noted: tuple[frozenset[Any], ...]) -> None:
        """Make permanent what was noted on a day, at midnight."""
        for memory, today in zip(self._memory, noted, strict=True):
            memory.commit(today)

    def choose(
        self,
        stream: Stream,
        day: int,
        speaker: str,
        listeners: tuple[str, ...],
        assistant: bool,
        theme: Theme,
        possible: Theme = None,
    ) -> Choice | None:
        """Choose a statement of ``speaker`` to ``listeners`` (empty: to their assistant); None if nothing fits.

        It is of ``theme``; what refers to an earlier talk, if none of the theme is possible, of the kinds ``possible``.
        """
        choice = self._across_sessions(stream, speaker, listeners, theme, possible)
        if choice is not None:
            self._note(choice, listeners)
        else:
            choice = self._any(stream, day, speaker, listeners, assistant, theme)
        if choice is not None and choice.fact.guarded and not choice.wish.form:
            sensitive = bool(choice.fact.sensitive)
            return replace(choice, wish=self._wishes.draw(stream, day, speaker, listeners, sensitive))
        return choice

    def _any(
        self, stream: Stream, day: int, speaker: str, listeners: tuple[str, ...], assistant: bool, theme: Theme
    ) -> Choice | None:
        """Choose a statement of a drawn kind, or a detail if the kind has none; None if nothing fits."""
        shares = ASSISTANT_SHARES if assistant else self._shares
        names, weights = zip(*((name, share) for name, share in shares if self._within(name, theme)), strict=True)
        kind = stream.weighted(names, weights)
        choice = self._of_kind(kind, stream, day, speaker, listeners, theme)
        if choice is None and kind != "detail" and self._within("detail", theme):
            choice = self._detail(stream, speaker, listeners, theme, guarded=False)
        if choice is not None:
            self._note(choice, listeners or (f"assistant_{speaker}",))
        return choice

    def _within(self, share: str, theme: Theme) -> bool:
        """Whether a theme has facts of a kind of SHARES."""
        if theme is None:
            return True
        if share in ("happening", "find", "tie"):
            return share in theme
        return not theme.isdisjoint(self._catalogue.community if share == "community" else self._catalogue.attributes)

    def _across_sessions(
        self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme, possible: Theme
    ) -> Choice | None:
        """Choose a fate, a version, a second wish or a change, as long as the days so far have fewer than _AIMS.

        If need be of any kind that is ``possible``: there are few facts that two people both heard. None if none fits.
        """
        if len(listeners) != 1:
            return None
        if self._too_few("fate", self._fated) and (possible is None or FactKind.FIND.value in possible):
            choice = self._fate(stream, speaker, listeners[0])
            if choice is not None:
                return choice
        choices: list[Callable[[Theme], Choice | None]] = []
        if self._too_few("version", self._contradicted):
            choices.append(lambda kinds: self._version(stream, speaker, listeners, kinds))
        if self._too_few("wish", self._wished_again):
            choices.append(lambda kinds: self._second_wish(stream, speaker, listeners, kinds))
        if self._too_few("change", self._outdated):
            choices.append(lambda kinds: self._change(stream, speaker, listeners, kinds))
        return next((choice for kinds in (theme, possible) for choose in choices if (choice := choose(kinds))), None)

    def _too_few(self, kind: str, noted: Sized) -> bool:
        """Whether fewer statements of a kind of _AIMS were made than are aimed at by the end of the day."""
        family, times = _AIMS[kind]
        return len(noted) < times * self._config.questions(family) * (self._day + 1) / (self._config.days - 1)

    def recall(self, stream: Stream, owner: str) -> Choice | None:
        """Choose a detail that the assistant asks its owner about: heard on an earlier day and not contradicted."""
        heard = self._knowledge.facts_heard(owner)
        for _ in range(6):
            if not heard:
                return None
            fact = heard[stream.pick(list(heard))][0].fact
            if self._plain(fact):
                self._passed_on.add(fact.fact_id)
                self._pairs.add((fact.fact_id, owner))
                return Choice(fact, owner, Role.RECALL, fact.value)
        return None

    def conflict_probe(self, stream: Stream, owner: str) -> Choice | None:
        """Choose a detail of which the owner heard two versions; the owner states the first one heard."""
        heard = self._knowledge.facts_heard(owner)
        open_ones = [
            statements
            for key, statements in heard.items()
            if key in self._versioned
            and not statements[0].fact.is_over(self._today)
            and any(stated.role is Role.VERSION for stated in statements)
        ]
        told_twice = [statements for statements in open_ones if statements[0].role is not Role.VERSION]
        if not told_twice:
            return None
        first = stream.pick(told_twice)[0]
        return Choice(first.fact, owner, Role.RECALL, first.value)

    def temporal_probe(self, stream: Stream, owner: str) -> Choice | None:
        """Choose a happening that the owner heard or told on an earlier day; the owner states its date."""
        told_facts = list(self._knowledge.told.get(owner, {}).values())
        heard = [statements[0].fact for statements in self._knowledge.facts_heard(owner).values()]
        happened = [fact for fact in (*told_facts, *heard) if self._recent(fact)]
        if not happened:
            return None
        fact = stream.pick(happened)
        return Choice(fact, owner, Role.RECALL, fact.value)

    def _plain(self, fact: Fact) -> bool:
        """Whether a fact is a detail that all who know it may state: not guarded, contradicted, replaced or over."""
        return (
            fact.kind is FactKind.DETAIL
            and not fact.guarded
            and not fact.is_over(self._today)
            and fact.fact_id not in self._versioned
            and fact.fact_id not in self._outdated
            and not fact.supersedes
        )

    def _recent(self, fact: Fact) -> bool:
        """Whether a fact is a happening of which people still tell."""
        return fact.happened is not None and (self._today - fact.happened).days <= _TOLD_FOR_DAYS

    def _note(self, choice: Choice, listeners: tuple[str, ...]) -> None:
        for listener in listeners:
            self._pairs.add((choice.fact.fact_id, listener))

    def draw_theme(self, stream: Stream, fact: Fact | None) -> Theme:
        """Draw the theme of a talk whose first fact is ``fact``; None in worlds whose talks have no theme."""
        if not self.themed:
            return None
        return stream.pick([theme for theme in self._catalogue.themes if fact is None or fact.theme_kind in theme])

    def _of_kind(
        self, kind: str, stream: Stream, day: int, speaker: str, listeners: tuple[str, ...], theme: Theme
    ) -> Choice | None:
        """Choose a statement of one kind; None if nothing fits."""
        choose: Mapping[str, Callable[[], Choice | None]] = {
            "guarded": lambda: self._detail(stream, speaker, listeners, theme, guarded=True),
            "detail": lambda: self._detail(stream, speaker, listeners, theme, guarded=False),
            "happening": lambda: self._happening(stream, day, speaker, listeners),
            "find": lambda: self._find(stream, speaker, listeners),
            "tie": lambda: self._tie(stream, speaker, listeners),
            "retell": lambda: self._retell(stream, speaker, listeners, theme),
            "change": lambda: self._change(stream, speaker, listeners, theme),
            "community": lambda: self._of_community(stream, speaker, listeners, theme),
        }
        return choose[kind]()

    def _new_to(self, fact: Fact, listeners: tuple[str, ...]) -> bool:
        return all((fact.fact_id, listener) not in self._pairs for listener in listeners)

    def _detail(
        self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme, guarded: bool
    ) -> Choice | None:
        """Choose a detail of the speaker, told before or not, that is new to the listeners; None if none is drawn."""
        today = self._stated_today.setdefault(speaker, {})
        stated = self._knowledge.told.get(speaker, {}) | today
        to = listeners or (f"assistant_{speaker}",)
        keys = [key for key, fact in stated.items() if _of(fact, theme)]
        again = self._again if theme is None else min(1.0, AGAIN_WITHIN * self._again)
        if keys and not guarded and stream.chance(again):
            for _ in range(6):
                fact = stated[stream.pick(keys)]
                if self._plain(fact) and self._new_to(fact, to):
                    return Choice(fact, speaker, Role.TELL, fact.value)
        confidential = [attribute for attribute in self._confidential if theme is None or attribute.key in theme]
        if guarded and not confidential:
            return None
        for _ in range(16):
            if guarded:
                attribute = stream.pick(confidential)
                if attribute.sensitive and stream.chance(SENSITIVE_PASSED_OVER):
                    continue
                item = stream.pick(attribute.items)
            else:
                drawn = self._popularity.draw(stream, theme)
                if drawn is None:
                    return None
                attribute, item = drawn
            fact = self._source.detail(speaker, attribute, item, self._day)
            unchanged = fact.fact_id not in self._versioned and fact.fact_id not in self._outdated
            unchanged = unchanged and not fact.is_over(self._today)
            if fact.guarded == guarded and unchanged and self._new_to(fact, to):
                if guarded and (speaker, fact.fact_id) in self._used and not stream.chance(TOLD_TWICE):
                    continue
                self._used.add((speaker, fact.fact_id))
                today[fact.fact_id] = fact
                return Choice(fact, speaker, Role.TELL, fact.value)
        return None

    def _second_wish(self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme) -> Choice | None:
        """Choose a guarded fact for a person who knows it, with another wish: of the subject, or relayed by another.

        Once per fact and listener, so that the subject's latest wish counts, or the only one.
        """
        listener = listeners[0]
        heard = self._knowledge.facts_heard(listener)
        told_facts = [heard[key] for key in self._knowledge.told.get(speaker, {}) if key in heard]
        passed_on = [heard[key] for key in self._knowledge.facts_heard(speaker) if key in heard]
        # By how many of either there are, whichever is nearer at hand: there are few people who both heard a secret.
        for lead, statements in stream.shuffled([("changed", told_facts), ("relayed", passed_on)]):
            within = [some for some in statements if _of(some[0].fact, theme)]
            open_ones = [candidate for candidate in within if self._open_to_second_wish(candidate, speaker, listener)]
            if not open_ones:
                continue
            first = stream.pick(open_ones)[0]
            fact, sensitive = first.fact, bool(first.fact.sensitive)
            wish = self._wishes.second(stream, self._day, speaker, listeners, sensitive, first.wish, lead)
            if wish is not None:
                self._wished_again.add((fact.fact_id, listener))
                return Choice(fact, speaker, Role.WISH if lead == "changed" else Role.RETELL, fact.value, wish)
        return None

    def _open_to_second_wish(self, statements: Sequence[StatedFact], speaker: str, listener: str) -> bool:
        first = statements[0]
        return (
            first.fact.guarded
            and not first.fact.is_over(self._today)
            and first.speaker == first.fact.subject
            and bool(first.wish.named)
            and speaker not in first.wish.named
            and listener not in first.wish.named
            and (first.fact.fact_id, listener) not in self._wished_again
        )

    def _change(self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme) -> Choice | None:
        """Choose a new value for a detail that the speaker told all of these listeners, once per detail.

        Details that others passed on are not changed: those would go on stating the old value. And rather one that few
        people know: the others may still contradict each other on the details that they share.
        """
        current = [
            fact
            for fact in self._knowledge.told.get(speaker, {}).values()
            if self._plain(fact)
            and _of(fact, theme)
            and self._catalogue.attributes[fact.attribute].changes
            and fact.fact_id not in self._passed_on
            and all(fact.fact_id in self._knowledge.facts_heard(listener) for listener in listeners)
        ]
        if not current or not listeners:
            return None
        known_to = {fact.fact_id: self._knowledge.hearers(fact.fact_id) for fact in current}
        fewest = min(known_to.values())
        current_fact = stream.pick([fact for fact in current if known_to[fact.fact_id] == fewest])
        self._outdated.add(current_fact.fact_id)
        fact = self._source.later(current_fact, self._day)
        return Choice(fact, speaker, Role.CHANGE, fact.value)

    def _of_community(self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme) -> Choice | None:
        for _ in range(8):
            fact = self._community.draw(stream, speaker)
            if fact.attribute in _KNOWN_TO_MEMBERS and not self._members[fact.item].isdisjoint(listeners):
                continue
            if listeners and _of(fact, theme) and self._new_to(fact, listeners):
                return Choice(fact, speaker, Role.TELL, fact.value)
        return None

    def _happening(self, stream: Stream, day: int, speaker: str, listeners: tuple[str, ...]) -> Choice | None:
        """Choose a happening of the speaker, told before or not; None if none is drawn."""
        to = listeners or (f"assistant_{speaker}",)
        heard = [fact for fact in self._knowledge.told.get(speaker, {}).values() if self._recent(fact)]
        if heard and stream.chance(self._again):
            fact = stream.pick(heard)
            if self._new_to(fact, to):
                return Choice(fact, speaker, Role.TELL, fact.value)
        for _ in range(8):
            phrase = stream.pick(self._catalogue.happenings)
            if (speaker, phrase) not in self._used:
                self._used.add((speaker, phrase))
                fact = self._source.happening(speaker, phrase, day - stream.below(_DAYS_BACK))
                return Choice(fact, speaker, Role.TELL, fact.value)
        return None

    def _find(self, stream: Stream, speaker: str, listeners: tuple[str, ...]) -> Choice | None:
        """Choose the fate of an earlier find, or a new find; None to an assistant, or if none is drawn."""
        if len(listeners) == 1 and stream.chance(0.85):
            later = self._fate(stream, speaker, listeners[0])
            if later is not None:
                return later
        if not listeners:
            return None
        for _ in range(8):
            source = stream.pick(self._catalogue.sources)
            if (speaker, source) not in self._used:
                self._used.add((speaker, source))
                fact = self._source.find(speaker, source)
                return Choice(fact, speaker, Role.TELL, fact.value)
        return None

    def _fate(self, stream: Stream, speaker: str, listener: str) -> Choice | None:
        """Choose a find that the speaker named to the listener, to state what became of it; once per find."""
        open_finds = [
            fact
            for fact in self._knowledge.told.get(speaker, {}).values()
            if fact.kind is FactKind.FIND
            and fact.fact_id not in self._fated
            and fact.fact_id in self._knowledge.facts_heard(listener)
        ]
        if not open_finds:
            return None
        fact = stream.pick(open_finds)
        self._fated.add(fact.fact_id)
        return Choice(fact, speaker, Role.FATE, fact.value)

    def _retell(self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme) -> Choice | None:
        """Choose a detail that the speaker heard of another person who is not present; None if there is none."""
        heard = [statements[0].fact for statements in self._knowledge.facts_heard(speaker).values()]
        present = (speaker, *listeners)
        open_ones = [
            fact
            for fact in heard
            if fact.subject not in present and self._plain(fact) and _of(fact, theme) and self._new_to(fact, listeners)
        ]
        if not open_ones:
            return None
        fact = stream.pick(open_ones)
        self._passed_on.add(fact.fact_id)
        return Choice(fact, speaker, Role.RETELL, fact.value)

    def _version(self, stream: Stream, speaker: str, listeners: tuple[str, ...], theme: Theme) -> Choice | None:
        """Choose a detail that both heard from others, to state it with another value: an injected conflict.

        If need be one that others already state with that value: a fact has two values, however many people heard both.
        """
        if len(listeners) != 1:
            return None
        listener = listeners[0]
        heard_by_speaker, heard_by_listener = (self._knowledge.facts_heard(agent) for agent in (speaker, listener))
        shared = [
            key for key in heard_by_speaker if key in heard_by_listener and _of(heard_by_speaker[key][0].fact, theme)
        ]
        for key in sorted(stream.shuffled(shared), key=self._versioned.__contains__):
            fact = heard_by_speaker[key][0].fact
            others = {stated.speaker for stated in heard_by_listener[key]}
            if fact.subject in (speaker, listener) or speaker in others or not self._open_to_version(fact, speaker):
                continue
            if (key, listener) in self._contradictors or (key, listener) in self._contradicted:
                continue
            self._versioned.add(key)
            self._contradictors.add((key, speaker))
            self._contradicted.add((key, listener))
            return Choice(fact, speaker, Role.VERSION, self._source.changed(fact, self._day))
        return None

    def _open_to_version(self, fact: Fact, speaker: str) -> bool:
        """Whether a speaker may state a fact with another value: a plain detail, or one on which they do so again."""
        if fact.fact_id not in self._versioned:
            return self._plain(fact)
        return (fact.fact_id, speaker) not in self._contradicted and not fact.is_over(self._today)

    def _tie(self, stream: Stream, speaker: str, listeners: tuple[str, ...]) -> Choice | None:
        for _ in range(8):
            other = stream.pick(self._world.people).agent_id
            if other in (speaker, *listeners):
                continue
            layer = self._world.edge(speaker, other).layer
            fact = self._source.tie(speaker, other, friends=layer in (0, 1))
            if layer in (0, 1, -1) and self._new_to(fact, listeners):
                return Choice(fact, speaker, Role.TELL, fact.value)
        return None


def _of(fact: Fact, theme: Theme) -> bool:
    """Whether a fact is of ``theme``; every fact is of None."""
    return theme is None or fact.theme_kind in theme
