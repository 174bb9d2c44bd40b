"""Plans the days of a world: sessions with their threads and statements, from what was known when each day began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations
from typing import Any

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.facts.parting import parted
from memarena_masim.facts.values import WEEKDAYS, day_words
from memarena_masim.phrases.library import library
from memarena_masim.phrases.scenes import BEATS
from memarena_masim.plan.courses import Courses, Telling, tellings
from memarena_masim.plan.events import plan_events, talk_of
from memarena_masim.plan.facts import FactSource, opaque
from memarena_masim.plan.frames import frame_of
from memarena_masim.plan.impressions import Feeling, Impressions, felt
from memarena_masim.plan.lines import Lines, Met
from memarena_masim.plan.meetings import TALKED_OF_DAYS, DayMeetings, Meeting
from memarena_masim.plan.model import NEWS, Kind, SessionPlan, Speaker, Statement, Thread
from memarena_masim.plan.popularity import Theme
from memarena_masim.plan.schedule import DaySchedule, plan_schedules
from memarena_masim.plan.small_talk import FIND, HAPPENING, Mention, SmallTalk
from memarena_masim.plan.state import Fact, FactKind, Knowledge, Role, StatedFact, turn_id
from memarena_masim.plan.statements import Choice, Chooser
from memarena_masim.plan.threads import fewest_turns, threads_of
from memarena_masim.plan.wishes import Wishes
from memarena_masim.rng import Stream
from memarena_masim.world.build import RELATION_KINDS, pools, relation
from memarena_masim.world.model import Person, World, WorldEvent

_STATED_BETWEEN_PEOPLE = (2, 3, 3, 3, 3)
_STATED_TO_ASSISTANT = (0, 1, 1, 2)
_LIKE = 0.9
"""Chance that a fact mentioned in passing is of the kind of the statement before or after it."""
PROBES = (("fact_recall", 0.5), ("conflict_probe", 0.2), ("temporal_probe", 0.3))
"""Kinds of memory probes, with their shares."""
_TURNS_BETWEEN_PEOPLE = (10, 11, 11, 12, 12, 13, 13, 14, 15)
_TURNS_WITH_ASSISTANT = (11, 11, 13)  # odd, so that the assistant has the last word
_LOOKS_BACK_DAYS = 6
"""Maximum days ago of a talk that a person looks back at with their assistant."""
_WORDS = {"face_to_face": 84.0, "voice_message": 85.0, "text_message": 75.0}
"""Aimed words per turn, by medium; an assistant says a little over half as many."""


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
    talks: tuple[tuple[str, str, str, str, int], ...] = ()
    """Talks at which a later day may look back: (person, other, topic, scene, index of the scene's next beat)."""
    tellings: tuple[Telling, ...] = ()
    """Halves of scenes that were told."""
    noted: tuple[frozenset[Any], ...] = ()
    """Memory of the day of the ``Chooser``, for its ``commit``."""
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
        self._chooser = Chooser(config, world, self.catalogue, source, self.knowledge, wishes)
        self._small_talk = SmallTalk(config, world, mentioned, self._chooser.attributes, wishes)
        names = {"man": pools(config.words)["other_men"], "woman": pools(config.words)["other_women"]}
        self._courses = Courses(words, names, config.key)
        self._lines = Lines(catalogue)
        self._taken_up: Counter[tuple[str, str, str]] = Counter()
        self._taken_up_today: Counter[tuple[str, str, str]] = Counter()
        self._topics = sorted(words.topics)
        self._looked: dict[str, list[tuple[int, str, str, str, int]]] = {}

    def plan(self, day: int) -> DayPlan:
        """Plan the next day."""
        self._chooser.begin_day(day)
        self._courses.begin_day()
        self._lines.begin_day(day)
        self._taken_up_today = Counter()
        schedules = plan_schedules(self.config, self.world, day)
        events = plan_events(self.config, self.world, day)
        talked_of = [*events, *(event for earlier in self._recent_events for event in earlier)]
        meetings = DayMeetings(self.config, self.world, day, schedules, talked_of, self.impressions).draw()
        weather = Stream(self.config.key, "weather", day).pick(pools(self.config.words)["places"]["weather"])
        sessions: list[SessionPlan] = []
        stated: list[StatedFact] = []
        mentioned: list[StatedFact] = []
        feelings: list[Feeling] = []
        seen: list[tuple[str, str, str, str, int]] = []
        day_tellings: list[Telling] = []
        for number, meeting in enumerate(meetings):
            plan, planned, theme = self._session(day, number, meeting, weather)
            plan, facts = self._with_small_talk(plan, theme)
            sessions.append(plan)
            stated.extend(planned)
            mentioned.extend(facts)
            feelings.extend(self._felt(plan, meeting))
            now = tellings(plan.threads, [speaker.agent_id for speaker in plan.speakers])
            day_tellings.extend(now)
            if len(meeting.people) == 2:
                seen.extend(_to_look_back_at(now))
        return DayPlan(
            day=day,
            sessions=tuple(sessions),
            stated=tuple(stated),
            events=tuple(events),
            schedules=schedules,
            feelings=tuple(feelings),
            mentioned=tuple(mentioned),
            talks=tuple(seen),
            tellings=tuple(day_tellings),
            noted=self._chooser.noted,
            met=self._lines.noted,
        )

    def commit(self, plan: DayPlan) -> None:
        """Add a day to the state, at midnight: statements become known, feelings become impressions."""
        self.knowledge.commit(list(plan.stated))
        self.impressions.commit(list(plan.feelings))
        self._chooser.commit(plan.noted)
        self._courses.commit(plan.tellings)
        self._lines.commit(plan.day, plan.met)
        self._taken_up.update(
            _taking_up(session, statement) for session in plan.sessions for statement in session.statements
        )
        recent = plan.day - _LOOKS_BACK_DAYS
        self._looked = {who: [talk for talk in talks if talk[0] > recent] for who, talks in self._looked.items()}
        for person, other, topic, scene, beat in plan.talks:
            self._looked.setdefault(person, []).append((plan.day, other, topic, scene, beat))
        self._recent_events = [plan.events, *self._recent_events][: TALKED_OF_DAYS - 1]

    def _felt(self, plan: SessionPlan, meeting: Meeting) -> list[Feeling]:
        if len(meeting.people) < 2:
            return []
        stream = Stream(self.config.key, "feelings", plan.day, plan.session_id)
        last = turn_id(plan.session_id, plan.turn_count - 1)
        return felt(self.world, self.impressions, stream, meeting.people, plan.session_id, last, plan.day)

    def _session(
        self, day: int, number: int, meeting: Meeting, weather: str
    ) -> tuple[SessionPlan, list[StatedFact], Theme]:
        stream = Stream(self.config.key, "session", day, number)
        session_id = opaque("sess", self.config.key, day, number)
        people = [self._people[agent] for agent in meeting.people]
        assistant = meeting.kind.with_assistant
        turns = stream.pick(_TURNS_WITH_ASSISTANT if assistant else _TURNS_BETWEEN_PEOPLE)
        turns = max(turns, fewest_turns(len(people)))
        speakers = [self._speaker(person) for person in people]
        looks_back, kind = ("", ""), meeting.kind
        looked: tuple[str, str, int] | None = None
        if assistant:
            speakers.append(_assistant_of(people[0]))
            if kind is Kind.REFLECTION:
                earlier = self._earlier(people[0].agent_id, day, stream)
                if earlier is None:
                    kind = Kind.NARRATION
                else:
                    looks_back, looked = (earlier[0], earlier[1]), (earlier[2], earlier[3], earlier[4])
        topic = looked[0] if looked else self._topic(stream, people)
        threads = threads_of(stream, topic, turns, len(people), assistant, looks_back=looked is not None)
        ids = [speaker.agent_id for speaker in speakers]
        threads = tuple(self._with_scene(stream, thread, ids, looked) for thread in threads)
        location = self.world.places[meeting.place_id] if meeting.place_id else None
        hour = meeting.slot / 4
        plan = SessionPlan(
            session_id=session_id,
            kind=kind,
            modality=meeting.modality,
            day=day,
            start=day + meeting.slot / 96 + stream.below(5) / 1440,
            speakers=tuple(speakers),
            threads=threads,
            statements=(),
            weekday=WEEKDAYS[(self.config.calendar_epoch + timedelta(days=day)).weekday()],
            daypart="morning" if hour < 12 else "afternoon" if hour < 18 else "evening",
            weather=weather,
            place_id=meeting.place_id,
            place_name=location.name if location and location.privacy == "public" else "",
            names_place=bool(location and location.privacy == "public" and stream.chance(0.6)),
            group_id=meeting.group_id,
            event=talk_of(meeting.event, meeting.people, self._names) if meeting.event else None,
            relation=_relation(self.world, meeting.people),
            looks_back=looks_back,
            sub_kind=_probe(stream) if kind is Kind.PROBE else "",
            words_per_turn=_WORDS[meeting.modality],
        )
        return self._with_statements(plan, stream, people)

    def _with_statements(
        self, plan: SessionPlan, stream: Stream, people: list[Person]
    ) -> tuple[SessionPlan, list[StatedFact], Theme]:
        """Return the plan with its statements, these as provenance records, and their common theme (None: any)."""
        assistant, pace = plan.kind.with_assistant, self.config.pace
        count = stream.pick(_STATED_TO_ASSISTANT if assistant else _STATED_BETWEEN_PEOPLE)
        news = news_turns(plan)
        free = {
            person.agent_id: [turn for turn in news if speaker_index(plan, turn) == index]
            for index, person in enumerate(people)
        }
        statements: list[Statement] = []
        stated: list[StatedFact] = []
        theme: Theme = None
        for number in range(count):
            able = [person.agent_id for person in people if free[person.agent_id]]
            if not able:
                break
            speaker = stream.pick(able)
            listeners = tuple(person.agent_id for person in people if person.agent_id != speaker)
            if pace < 1 and not stream.chance(pace):
                continue
            probing = plan.kind is Kind.PROBE and stream.chance(0.7)
            choice = self._probed(plan.sub_kind, stream, speaker) if probing else None
            if choice is None:
                choice = self._chooser.choose(stream, plan.day, speaker, listeners, assistant, theme)
            if choice is None:
                continue
            theme = theme or self._theme(stream, choice.fact)
            adjacent = {statement.turn + step for statement in statements for step in (-1, 1)}
            turn = stream.pick(
                [turn_index for turn_index in free[speaker] if turn_index not in adjacent] or free[speaker]
            )
            free[speaker].remove(turn)
            key = opaque("stmt", plan.session_id, number)
            statements.append(self._statement(key, choice, plan, turn))
            stated.append(_stated(key, choice, plan, turn, tuple(person.agent_id for person in people)))
        return replace(plan, statements=tuple(statements)), stated, theme or self._theme(stream, None)

    def _theme(self, stream: Stream, fact: Fact | None) -> Theme:
        """Draw the theme of a talk whose first fact is ``fact``; None in worlds whose talks have no theme."""
        if not self._chooser.themed:
            return None
        return stream.pick([theme for theme in self.catalogue.themes if fact is None or fact.theme_kind in theme])

    def _with_small_talk(self, plan: SessionPlan, theme: Theme) -> tuple[SessionPlan, list[StatedFact]]:
        """Return the plan with small talk in those turns for news that state nothing planned, and its facts."""
        stream = Stream(self.config.key, "small talk", plan.day, plan.session_id)
        people = tuple(speaker.agent_id for speaker in plan.speakers if not speaker.assistant)
        by_turn = {statement.turn: statement for statement in plan.statements}
        answering: set[int] = set()
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
            mention = self._like(stream, by_turn, turn, answering) or self._small_talk.draw(
                stream, plan.kind.with_assistant, theme
            )
            speaker, following = (plan.speakers[speaker_index(plan, turn + step)].agent_id for step in (0, 1))
            taking = (speaker, following, mention.kind)
            before = [statement for statement in by_turn.values() if _taking_up(plan, statement) == taking]
            earlier = self._taken_up[taking] + self._taken_up_today[taking] + len(before)
            others = [person for person in people if person not in (speaker, following)]
            choice = self._small_talk.choose(
                stream, plan.day, mention, (speaker, following, *others), earlier, stated_texts
            )
            if choice is None:
                continue
            stated_texts |= {choice.fact.item, choice.value.text}
            key = opaque("said", plan.session_id, turn)
            by_turn[turn] = self._statement(key, choice, plan, turn)
            mentioned.append(_stated(key, choice, plan, turn, people))
        plan = replace(plan, statements=tuple(by_turn.values()))
        self._taken_up_today.update(_taking_up(plan, statement) for statement in plan.statements)
        return self._lines.with_lines(stream, plan), mentioned

    def _like(self, stream: Stream, by_turn: Mapping[int, Statement], turn: int, answering: set[int]) -> Mention | None:
        """Return a mention of the kind of the statement in the turn before or after, with the chance _LIKE; else None.

        ``answering`` collects the turns that answer a statement with one of its kind; these are not answered again.
        """
        for other, answer in ((turn - 1, turn), (turn + 1, turn + 1)):
            neighbour = by_turn.get(other)
            if neighbour is None or other in answering or neighbour.level or neighbour.prompt:
                continue
            form, attribute, person = neighbour.frame.split(".")
            answers = other < turn or (form == "say" and person == "own")
            kind = FIND if attribute == "fate" and other < turn else attribute
            if answers and self._small_talk.has(kind) and stream.chance(_LIKE):
                answering.add(answer)
                return Mention(
                    kind, mood=self.catalogue.moods[dict(neighbour.slots)["do"]] if kind == HAPPENING else ""
                )
        return None

    def _probed(self, sub_kind: str, stream: Stream, owner: str) -> Choice | None:
        match sub_kind:
            case "conflict_probe":
                return self._chooser.conflict_probe(stream, owner)
            case "temporal_probe":
                return self._chooser.temporal_probe(stream, owner)
            case _:
                return self._chooser.recall(stream, owner)

    def _statement(self, key: str, choice: Choice, plan: SessionPlan, turn: int) -> Statement:
        frame, slots = frame_of(choice, self.config, self._names, self.catalogue, plan.day)
        slots |= dict(choice.wish.slots)
        prompt = ""
        if choice.role is Role.RECALL:
            conflict = plan.sub_kind == "conflict_probe"
            happening = choice.fact.kind is FactKind.HAPPENING
            prompt = "prompt.when" if happening else "prompt.conflict" if conflict else "prompt.recall"
        return Statement(key, choice.fact.fact_id, turn, frame, tuple(sorted(slots.items())), choice.wish.form, prompt)

    def _speaker(self, person: Person) -> Speaker:
        name = self._names[person.agent_id]
        return Speaker(person.agent_id, name, person.leaning, person.pace, person.fillers, asking=person.asking)

    def _with_scene(
        self, stream: Stream, thread: Thread, ids: list[str], looked: tuple[str, str, int] | None
    ) -> Thread:
        """Return a thread with its scene: the one looked back at, or an assigned one; a thread for news as it is."""
        if thread.topic == NEWS:
            return thread
        narrator = ids[thread.narrator]
        others = [agent for agent in ids if agent != narrator]
        if looked is None:
            return self._courses.assign(stream, thread, narrator, others)
        return self._courses.telling(thread, narrator, others, library(self.config.words).scenes[looked[1]], looked[2])

    def _topic(self, stream: Stream, people: list[Person]) -> str:
        liked = [topic for person in people for topic in person.topics]
        return stream.pick(liked) if liked and stream.chance(0.4) else stream.pick(self._topics)

    def _earlier(self, owner: str, day: int, stream: Stream) -> tuple[str, str, str, str, int] | None:
        """Draw an earlier talk to look back at: (other's name, day in words, topic, scene, next beat); None if none."""
        talks = [talk for talk in self._looked.get(owner, ()) if day - _LOOKS_BACK_DAYS <= talk[0] < day]
        if not talks:
            return None
        then, other, topic, scene, beat = stream.pick(talks)
        today = self.config.calendar_epoch + timedelta(days=day)
        return (
            self._names[other],
            day_words(today, today - timedelta(days=day - then)).removeprefix("on "),
            topic,
            scene,
            beat,
        )


def speaker_index(plan: SessionPlan, turn: int) -> int:
    """Return the speaker of a turn, as an index into the plan's speakers."""
    return plan.speaker_index(turn)


def news_turns(plan: SessionPlan) -> list[int]:
    """Return the turns that may state a fact: those for news, except for a talk's first, last and an assistant's."""
    first, turn_indices = 0, list[int]()
    for thread in plan.threads:
        if thread.topic == NEWS:
            turn_indices += range(max(first, 1), min(first + thread.turns, plan.turn_count - 1))
        first += thread.turns
    return [turn for turn in turn_indices if not plan.speakers[speaker_index(plan, turn)].assistant]


def _taking_up(plan: SessionPlan, statement: Statement) -> tuple[str, str, str]:
    """Return the speaker of a statement, the next speaker (both agent ids), and the statement's attribute."""
    speaker, following = (plan.speakers[speaker_index(plan, statement.turn + step)] for step in (0, 1))
    return speaker.agent_id, following.agent_id, statement.frame.split(".")[1]


def _to_look_back_at(tellings_so_far: list[Telling]) -> list[tuple[str, str, str, str, int]]:
    """Return the talks at which narrators may look back: those whose scene has beats left."""
    return [
        (telling.narrator, telling.listener, telling.scene.split(".")[0], telling.scene, telling.beats)
        for telling in tellings_so_far
        if telling.beats < BEATS
    ]


def _relation(world: World, people: tuple[str, ...]) -> str:
    """Return the relation between people (a value of RELATION_KINDS) if it is the same for all pairs; else ""."""
    kinds = {RELATION_KINDS[relation(world, person, other)] for person, other in combinations(people, 2)}
    return kinds.pop() if len(kinds) == 1 else ""


def _probe(stream: Stream) -> str:
    return stream.weighted([name for name, _ in PROBES], [share for _, share in PROBES])


def _assistant_of(owner: Person) -> Speaker:
    return Speaker(owner.assistant_id, "Assistant", 0, 1.0, 0.04, assistant=True)


def _stated(key: str, choice: Choice, plan: SessionPlan, turn: int, people: tuple[str, ...]) -> StatedFact:
    return StatedFact(
        statement_id=key,
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
