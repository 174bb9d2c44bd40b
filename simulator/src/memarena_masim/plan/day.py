"""Plans the days of a world: sessions with their threads and statements, from what was known when each day began.

A talk between people begins with half of a *scene*, a story of several beats (``courses.py``). Then another of them
tells half of one of theirs, or there is a thread for *news*, in which one or two facts are stated, with turns in
between in which they are taken up and more is said about them. Who answers a story may add a fact of theirs, an
*aside*. A session with an assistant has a scene and a thread for news. Planned statements are those that questions may
be about; *small talk* is facts that are only mentioned. Both keep to the talk's *theme*, a set of kinds of facts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import combinations

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.facts.parting import parted
from memarena_masim.facts.values import WEEKDAYS, day_words
from memarena_masim.phrases.library import library
from memarena_masim.phrases.scenes import BEATS
from memarena_masim.plan.community import CommunityTalk
from memarena_masim.plan.courses import Courses, Telling, tellings
from memarena_masim.plan.events import plan_events, talk_of
from memarena_masim.plan.facts import FactSource, opaque
from memarena_masim.plan.follow_ups import FollowUps
from memarena_masim.plan.frames import frame_of
from memarena_masim.plan.history import History, Notes
from memarena_masim.plan.impressions import Feeling, Impressions, felt
from memarena_masim.plan.lines import Lines, Met
from memarena_masim.plan.meetings import TALKED_OF_DAYS, DayMeetings, Meeting
from memarena_masim.plan.model import NEWS, Kind, SessionPlan, Speaker, Statement, Thread
from memarena_masim.plan.own_facts import OwnFacts
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.probes import draw_probe, probed
from memarena_masim.plan.schedule import SLOTS, DaySchedule, plan_schedules
from memarena_masim.plan.small_talk import Exchange, SmallTalk
from memarena_masim.plan.state import Choice, FactKind, Knowledge, Occasion, Role, StatedFact, turn_id
from memarena_masim.plan.statements import Chooser
from memarena_masim.plan.talk_facts import TalkFacts
from memarena_masim.plan.threads import first_story, threads_with_assistant, two_stories, with_news
from memarena_masim.plan.wishes import Wishes
from memarena_masim.rng import Stream
from memarena_masim.world.build import RELATION_KINDS, pools, relation
from memarena_masim.world.model import Person, World, WorldEvent

_STATEMENTS_TO_ASSISTANT = (0, 1, 1, 1)
"""Numbers of planned statements in a session with an assistant, each with the same chance."""
_PROBED = 0.7
"""Chance that a statement of a memory probe is the answer to a question of the assistant."""
_TURNS_WITH_ASSISTANT = (11, 13, 13)  # odd, so that the assistant has the last word
"""Numbers of turns in a session with an assistant, each with the same chance."""
_NAMES_PLACE = 0.6
"""Chance that the first turn of a talk in a public place names the place."""
_LIKED_TOPIC = 0.4
"""Chance that the topic is drawn from those that the speakers like, if they like any; else from all topics."""
_MINUTES_PER_DAY = 24 * 60
_LOOKS_BACK_DAYS = 6
"""Maximum age, in days, of a talk that a person looks back at with their assistant."""
_WORDS_PER_TURN = {"face_to_face": 89.0, "voice_message": 90.0, "text_message": 80.0}
"""Aimed words per turn, by medium; an assistant says a little over half as many."""
_ASSISTANT_FILLERS = 0.04
"""Share of an assistant's sentences with filler words."""


@dataclass(frozen=True, slots=True)
class PastTalk:
    """A talk in which one person told another the first half of a scene: on a later day, the first may look back at it.

    A session with the assistant that looks back (``Kind.REFLECTION``) tells the second half.
    """

    day: int
    narrator: str
    listener: str
    scene: str
    next_beat: int
    """Index of the scene's first beat that was not told."""

    @property
    def topic(self) -> str:
        """Return the topic of the scene."""
        return self.scene.split(".")[0]


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The plan of a day, before its sessions have words."""

    day: int
    sessions: tuple[SessionPlan, ...]
    stated: tuple[StatedFact, ...]
    events: tuple[WorldEvent, ...]
    schedules: dict[str, DaySchedule]
    feelings: tuple[Feeling, ...] = ()
    mentioned: tuple[StatedFact, ...] = ()
    """Facts mentioned in passing: they enter no one's knowledge, and no question is about them."""
    talks: tuple[PastTalk, ...] = ()
    """Talks between two people at which a later day may look back."""
    tellings: tuple[Telling, ...] = ()
    """Halves of scenes that were told."""
    noted: Notes = field(default_factory=dict)
    """What the ``History`` noted on the day, for its ``commit``."""
    met: frozenset[Met] = frozenset()
    """Lines around statements that people said or heard."""


class Planner:
    """Plans days in order.

    ``plan`` reads the state of the last midnight without changing it; ``commit`` adds a planned day to it.
    """

    def __init__(self, config: WorldConfig, world: World, catalogue: Catalogue) -> None:
        self.config, self.world = config, world
        self.knowledge = Knowledge()
        self.impressions = Impressions()
        self._recent_events: list[tuple[WorldEvent, ...]] = []
        self._people = {person.agent_id: person for person in world.people}
        firsts = [person.first_name for person in world.people]
        self._names = {
            person.agent_id: person.first_name if firsts.count(person.first_name) == 1 else person.name
            for person in world.people
        }
        words = library(config.words)
        self.catalogue, mentioned = parted(catalogue, config.key)
        source, wishes = FactSource(config, self.catalogue), Wishes(config, world, self._names)
        self._history = History(config, self.knowledge)
        own_facts = OwnFacts(config, self.catalogue, source, wishes, self._history)
        community_talk = CommunityTalk(world, source, self._history)
        follow_ups = FollowUps(self.catalogue, source, wishes, self._history)
        self._chooser = Chooser(config, self.catalogue, own_facts, community_talk, follow_ups, self._history)
        self._small_talk = SmallTalk(config, world, mentioned, own_facts.popularity.attributes, wishes)
        self._talk_facts = TalkFacts(config, self.catalogue, self._chooser, self._small_talk, self._earlier)
        names = {"man": pools(config.words)["other_men"], "woman": pools(config.words)["other_women"]}
        self._courses = Courses(words, names, config.key)
        self._lines = Lines(catalogue)
        self._exchanges: Counter[Exchange] = Counter()
        self._exchanges_today: Counter[Exchange] = Counter()
        self._topics = sorted(words.topics)
        self._past_talks: dict[str, list[PastTalk]] = {}
        """Talks of the last _LOOKS_BACK_DAYS days, by narrator."""

    def plan(self, day: int) -> DayPlan:
        """Plan the next day."""
        self._history.begin_day(day)
        self._courses.begin_day()
        self._lines.begin_day(day)
        self._exchanges_today = Counter()
        schedules = plan_schedules(self.config, self.world, day)
        events = plan_events(self.config, self.world, day)
        talked_of = [*events, *(event for day_events in self._recent_events for event in day_events)]
        meetings = DayMeetings(self.config, self.world, day, schedules, talked_of, self.impressions).draw()
        weather = Stream(self.config.key, "weather", day).pick(pools(self.config.words)["places"]["weather"])
        sessions: list[SessionPlan] = []
        stated: list[StatedFact] = []
        mentioned: list[StatedFact] = []
        feelings: list[Feeling] = []
        talks: list[PastTalk] = []
        day_tellings: list[Telling] = []
        for number, meeting in enumerate(meetings):
            plan, stated_facts, mentioned_facts = self._plan_session(day, number, meeting, weather)
            sessions.append(plan)
            stated.extend(stated_facts)
            mentioned.extend(mentioned_facts)
            feelings.extend(self._draw_feelings(plan, meeting))
            session_tellings = tellings(plan.threads, [speaker.agent_id for speaker in plan.speakers])
            day_tellings.extend(session_tellings)
            if len(meeting.people) == 2:
                talks.extend(_unfinished_talks(day, session_tellings))
        return DayPlan(
            day=day,
            sessions=tuple(sessions),
            stated=tuple(stated),
            events=tuple(events),
            schedules=schedules,
            feelings=tuple(feelings),
            mentioned=tuple(mentioned),
            talks=tuple(talks),
            tellings=tuple(day_tellings),
            noted=self._history.noted,
            met=self._lines.noted,
        )

    def commit(self, plan: DayPlan) -> None:
        """Add a day to the state, at midnight: statements become known, feelings become impressions."""
        self.knowledge.commit(list(plan.stated))
        self.impressions.commit(list(plan.feelings))
        self._history.commit(plan.noted)
        self._courses.commit(plan.tellings)
        self._lines.commit(plan.day, plan.met)
        self._exchanges.update(
            _exchange(session, statement) for session in plan.sessions for statement in session.statements
        )
        oldest_day = plan.day + 1 - _LOOKS_BACK_DAYS
        self._past_talks = {
            narrator: [talk for talk in talks if talk.day >= oldest_day] for narrator, talks in self._past_talks.items()
        }
        for talk in plan.talks:
            self._past_talks.setdefault(talk.narrator, []).append(talk)
        self._recent_events = [plan.events, *self._recent_events][: TALKED_OF_DAYS - 1]

    def _draw_feelings(self, plan: SessionPlan, meeting: Meeting) -> list[Feeling]:
        """Draw what the people of a session feel about each other after it; empty if there is only one person."""
        if len(meeting.people) < 2:
            return []
        stream = Stream(self.config.key, "feelings", plan.day, plan.session_id)
        last = turn_id(plan.session_id, plan.turn_count - 1)
        return felt(self.world, self.impressions, stream, meeting.people, plan.session_id, last, plan.day)

    def _plan_session(
        self, day: int, number: int, meeting: Meeting, weather: str
    ) -> tuple[SessionPlan, list[StatedFact], list[StatedFact]]:
        """Plan the session of a meeting.

        Returns it with the provenance records of its planned statements, and of what is only mentioned.
        """
        stream = Stream(self.config.key, "session", day, number)
        people = [self._people[agent] for agent in meeting.people]
        assistant = meeting.kind.with_assistant
        speakers = [self._speaker(person) for person in people]
        if assistant:
            speakers.append(_assistant_of(people[0]))
        kind = meeting.kind
        past_talk = self._draw_past_talk(stream, people[0].agent_id, day) if kind is Kind.REFLECTION else None
        if kind is Kind.REFLECTION and past_talk is None:
            kind = Kind.NARRATION
        topic = past_talk.topic if past_talk else self._draw_topic(stream, people)
        location = self.world.places[meeting.place_id] if meeting.place_id else None
        public = location is not None and location.privacy == "public"
        plan = SessionPlan(
            session_id=opaque("sess", self.config.key, day, number),
            kind=kind,
            modality=meeting.modality,
            day=day,
            start=day + meeting.slot / SLOTS + stream.below(5) / _MINUTES_PER_DAY,
            speakers=tuple(speakers),
            threads=(),
            statements=(),
            weekday=WEEKDAYS[(self.config.calendar_epoch + timedelta(days=day)).weekday()],
            daypart=_daypart(meeting.slot),
            weather=weather,
            place_id=meeting.place_id,
            place_name=location.name if location and public else "",
            names_place=public and stream.chance(_NAMES_PLACE),
            group_id=meeting.group_id,
            event=talk_of(meeting.event, meeting.people, self._names) if meeting.event else None,
            relation=_relation(self.world, meeting.people),
            looks_back=self._looks_back(past_talk, day) if past_talk else ("", ""),
            sub_kind=draw_probe(stream) if kind is Kind.PROBE else "",
            words_per_turn=_WORDS_PER_TURN[meeting.modality],
        )
        if not assistant:
            return self._plan_talk(plan, stream, topic, people)
        turns = stream.pick(_TURNS_WITH_ASSISTANT)
        ids = [speaker.agent_id for speaker in speakers]
        threads = threads_with_assistant(stream, topic, turns, looks_back=past_talk is not None)
        threads = tuple(self._add_scene(stream, thread, ids, past_talk) for thread in threads)
        plan, stated, theme = self._add_statements(replace(plan, threads=threads), stream, people)
        plan, mentioned = self._add_small_talk(plan, theme)
        return plan, stated, mentioned

    def _plan_talk(
        self, plan: SessionPlan, stream: Stream, topic: str, people: list[Person]
    ) -> tuple[SessionPlan, list[StatedFact], list[StatedFact]]:
        """Plan a talk between people: a story, and then the facts of its thread for news, or else a second story.

        Who answers a story may add a fact of their own.
        """
        ids = [person.agent_id for person in people]
        story = self._add_scene(stream, first_story(stream, topic, len(people)), ids, None)
        plan = replace(plan, threads=(story,))
        facts = self._talk_facts.news(stream, plan, ids) if stream.chance(self.config.news_share) else []
        if facts:
            plan = replace(plan, threads=with_news(story, facts[-1].slot, len(people)))
        else:
            teller = people[(story.narrator + 1) % len(people)]
            first, second = two_stories(stream, story, self._draw_topic(stream, [teller]), len(people))
            plan = replace(plan, threads=(first, self._add_scene(stream, second, ids, None, story)))
        facts += self._talk_facts.asides(stream, plan, ids, facts)
        statements: list[Statement] = []
        stated: list[StatedFact] = []
        mentioned: list[StatedFact] = []
        for number, fact in enumerate(facts):
            turn, statement_id = fact.slot.turn, opaque("stmt" if fact.planned else "said", plan.session_id, number)
            statements.append(replace(self._statement(statement_id, fact.choice, plan, turn), invite=fact.invite))
            provenance = _provenance(statement_id, fact.choice, plan, turn, tuple(ids))
            (stated if fact.planned else mentioned).append(provenance)
        plan = replace(plan, statements=tuple(statements))
        self._exchanges_today.update(_exchange(plan, statement) for statement in statements)
        return self._lines.with_lines(stream, plan), stated, mentioned

    def _earlier(self, exchange: Exchange) -> int:
        """Return how many statements of an exchange there were before the session that is planned."""
        return self._exchanges[exchange] + self._exchanges_today[exchange]

    def _add_statements(
        self, plan: SessionPlan, stream: Stream, people: list[Person]
    ) -> tuple[SessionPlan, list[StatedFact], Theme]:
        """Return an assistant's session with its statements, these as provenance records, and their common theme."""
        count = stream.pick(_STATEMENTS_TO_ASSISTANT)
        news = news_turns(plan)
        free_turns = {
            person.agent_id: [turn for turn in news if plan.speaker_index(turn) == index]
            for index, person in enumerate(people)
        }
        ids = tuple(person.agent_id for person in people)
        statements: list[Statement] = []
        stated: list[StatedFact] = []
        theme: Theme = None
        for number in range(count):
            possible_speakers = [agent for agent in ids if free_turns[agent]]
            if not possible_speakers:
                break
            speaker = stream.pick(possible_speakers)
            if self.config.pace < 1 and not stream.chance(self.config.pace):
                continue
            choice = self._choose(plan, Occasion(stream, plan.day, speaker, (), theme))
            if choice is None:
                continue
            theme = theme or self._chooser.draw_theme(stream, choice.fact)
            adjacent = {statement.turn + step for statement in statements for step in (-1, 1)}
            free = free_turns[speaker]
            turn = stream.pick([candidate for candidate in free if candidate not in adjacent] or free)
            free.remove(turn)
            statement_id = opaque("stmt", plan.session_id, number)
            statements.append(self._statement(statement_id, choice, plan, turn))
            stated.append(_provenance(statement_id, choice, plan, turn, ids))
        return replace(plan, statements=tuple(statements)), stated, theme or self._chooser.draw_theme(stream, None)

    def _choose(self, plan: SessionPlan, occasion: Occasion) -> Choice | None:
        """Choose a planned statement, in a memory probe mostly one that the assistant asks for; None if none fits."""
        if plan.kind is Kind.PROBE and occasion.stream.chance(_PROBED):
            choice = probed(plan.sub_kind, occasion.stream, occasion.speaker, self._history)
            if choice is not None:
                return choice
        return self._chooser.choose(occasion)

    def _add_small_talk(self, plan: SessionPlan, theme: Theme) -> tuple[SessionPlan, list[StatedFact]]:
        """Return an assistant's session with small talk in those turns for news that state nothing planned."""
        stream = Stream(self.config.key, "small talk", plan.day, plan.session_id)
        people = tuple(speaker.agent_id for speaker in plan.speakers if not speaker.assistant)
        by_turn = {statement.turn: statement for statement in plan.statements}
        mentioned: list[StatedFact] = []
        stated_texts = {
            text
            for statement in plan.statements
            for name, text in statement.slots
            if name in ("item", "source", "do", "v")
        }
        for turn in news_turns(plan):
            if turn in by_turn:
                continue
            kinds = {statement.frame_parts.attribute for statement in by_turn.values()}
            mention = self._small_talk.draw(stream, assistant=True, theme=theme, except_kinds=kinds)
            speaker, next_speaker = _speaker_and_next(plan, turn)
            exchange = Exchange(speaker, next_speaker, mention.kind)
            in_session = sum(_exchange(plan, statement) == exchange for statement in by_turn.values())
            earlier = self._earlier(exchange) + in_session
            choice = self._small_talk.choose(stream, plan.day, mention, (speaker, next_speaker), earlier, stated_texts)
            if choice is None:
                continue
            stated_texts |= {choice.fact.item, choice.value.text}
            statement_id = opaque("said", plan.session_id, turn)
            by_turn[turn] = self._statement(statement_id, choice, plan, turn)
            mentioned.append(_provenance(statement_id, choice, plan, turn, people))
        plan = replace(plan, statements=tuple(by_turn.values()))
        self._exchanges_today.update(_exchange(plan, statement) for statement in plan.statements)
        return self._lines.with_lines(stream, plan), mentioned

    def _statement(self, statement_id: str, choice: Choice, plan: SessionPlan, turn: int) -> Statement:
        """Return a choice as the statement of a turn: the bank rules that word it, and the text of each slot."""
        frame, slots = frame_of(choice, self.config, self._names, self.catalogue, plan.day)
        slots |= dict(choice.wish.slots)
        prompt = ""
        if choice.role is Role.RECALL:
            if choice.fact.kind is FactKind.HAPPENING:
                prompt = "prompt.when"
            elif plan.sub_kind == "conflict_probe":
                prompt = "prompt.conflict"
            else:
                prompt = "prompt.recall"
        return Statement(
            statement_id, choice.fact.fact_id, turn, frame, tuple(sorted(slots.items())), choice.wish.form, prompt
        )

    def _speaker(self, person: Person) -> Speaker:
        name = self._names[person.agent_id]
        return Speaker(person.agent_id, name, person.leaning, person.pace, person.fillers, asking=person.asking)

    def _add_scene(
        self, stream: Stream, thread: Thread, ids: list[str], past_talk: PastTalk | None, before: Thread | None = None
    ) -> Thread:
        """Return a thread with its scene: that of ``past_talk``, or one that fits after ``before``; news as it is."""
        if thread.topic == NEWS:
            return thread
        narrator = ids[thread.narrator]
        others = [agent for agent in ids if agent != narrator]
        if past_talk is None:
            return self._courses.assign(stream, thread, narrator, others, before)
        scene = library(self.config.words).scenes[past_talk.scene]
        return self._courses.telling(thread, narrator, others, scene, past_talk.next_beat)

    def _draw_topic(self, stream: Stream, people: list[Person]) -> str:
        liked = [topic for person in people for topic in person.topics]
        return stream.pick(liked) if liked and stream.chance(_LIKED_TOPIC) else stream.pick(self._topics)

    def _draw_past_talk(self, stream: Stream, narrator: str, day: int) -> PastTalk | None:
        """Draw a talk of an earlier day at which its narrator looks back on ``day``; None if there is none."""
        talks = [talk for talk in self._past_talks.get(narrator, ()) if day - _LOOKS_BACK_DAYS <= talk.day < day]
        return stream.pick(talks) if talks else None

    def _looks_back(self, past_talk: PastTalk, day: int) -> tuple[str, str]:
        """Return the name of the talk's listener, and the day of the talk in words, as spoken on ``day``."""
        today = self.config.calendar_epoch + timedelta(days=day)
        talk_date = self.config.calendar_epoch + timedelta(days=past_talk.day)
        return self._names[past_talk.listener], day_words(today, talk_date).removeprefix("on ")


def news_turns(plan: SessionPlan) -> list[int]:
    """Return the turns that may state a fact: those for news, except for a talk's first, last and an assistant's."""
    first, turn_indices = 0, list[int]()
    for thread in plan.threads:
        if thread.topic == NEWS:
            turn_indices += range(max(first, 1), min(first + thread.turns, plan.turn_count - 1))
        first += thread.turns
    return [turn for turn in turn_indices if not plan.speakers[plan.speaker_index(turn)].assistant]


def _speaker_and_next(plan: SessionPlan, turn: int) -> tuple[str, str]:
    """Return the agent ids of the speaker of a turn and of the turn after it."""
    return plan.speakers[plan.speaker_index(turn)].agent_id, plan.speakers[plan.speaker_index(turn + 1)].agent_id


def _exchange(plan: SessionPlan, statement: Statement) -> Exchange:
    """Return the key by which a statement is counted."""
    return Exchange(*_speaker_and_next(plan, statement.turn), statement.frame_parts.attribute)


def _unfinished_talks(day: int, session_tellings: list[Telling]) -> list[PastTalk]:
    """Return the talks of a session at which narrators may look back: those whose scene has beats left."""
    return [
        PastTalk(day, telling.narrator, telling.listener, telling.scene, telling.beats)
        for telling in session_tellings
        if telling.beats < BEATS
    ]


def _daypart(slot: int) -> str:
    """Return the part of the day in which a quarter hour is, as texts name it."""
    hour = slot / 4
    if hour < 12:
        return "morning"
    return "afternoon" if hour < 18 else "evening"


def _relation(world: World, people: tuple[str, ...]) -> str:
    """Return the relation between people (a value of RELATION_KINDS) if it is the same for all pairs; else ""."""
    kinds = {RELATION_KINDS[relation(world, person, other)] for person, other in combinations(people, 2)}
    return kinds.pop() if len(kinds) == 1 else ""


def _assistant_of(owner: Person) -> Speaker:
    return Speaker(owner.assistant_id, "Assistant", leaning=0, pace=1.0, fillers=_ASSISTANT_FILLERS, assistant=True)


def _provenance(statement_id: str, choice: Choice, plan: SessionPlan, turn: int, people: tuple[str, ...]) -> StatedFact:
    """Return the provenance record of a statement; ``people`` are the ids of the humans in the session."""
    return StatedFact(
        statement_id=statement_id,
        fact=choice.fact,
        role=choice.role,
        speaker=choice.speaker,
        people=people,
        session_id=plan.session_id,
        turn=turn,
        turns=plan.turn_count,
        day=plan.day,
        value=choice.value,
        wish=choice.wish,
        place_id=plan.place_id,
        modality=plan.modality,
    )
