"""Plans a day: its sessions with topics, turns and statements, from what was known when the day began."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations
from typing import Any

from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import Catalogue
from memarena_masim.facts.values import WEEKDAYS, day_words
from memarena_masim.phrases.library import library
from memarena_masim.phrases.scenes import BEATS, TALK_BEATS
from memarena_masim.plan.courses import Courses, Telling, tellings
from memarena_masim.plan.events import plan_events, talk_of
from memarena_masim.plan.facts import FactSource, opaque
from memarena_masim.plan.impressions import Feeling, Impressions, felt
from memarena_masim.plan.meetings import TALKED_OF_DAYS, DayMeetings, Meeting
from memarena_masim.plan.model import Kind, SessionPlan, Speaker, Statement, Thread
from memarena_masim.plan.schedule import DaySchedule, plan_schedules
from memarena_masim.plan.state import FactKind, Knowledge, Role, StatedFact, turn_id
from memarena_masim.plan.statements import Choice, Chooser, frame_of
from memarena_masim.plan.wishes import Wishes
from memarena_masim.rng import Stream
from memarena_masim.world.build import RELATION_KINDS, pools, relation
from memarena_masim.world.model import Person, World, WorldEvent

_STATED_BETWEEN_PEOPLE = (2, 2, 3, 3, 3)
_STATED_TO_ASSISTANT = (0, 1, 1, 2)
_ANSWERS_STATE = 0.75
"""How often a fact moves from a turn that goes on with a scene to one that answers: there it breaks into nothing."""
_LATER = 0.5
"""How often a fact that would stand in the turn that greets back is put elsewhere, which may be there again."""
PROBES = (("fact_recall", 0.5), ("conflict_probe", 0.2), ("temporal_probe", 0.3))
"""What a memory probe is after, by share."""
_TURNS_BETWEEN_PEOPLE = (7, 8, 9, 10, 10, 11, 11, 12, 13, 14)
_TURNS_WITH_ASSISTANT = (9, 11, 13)  # odd, so that the assistant has the last word
_LOOKS_BACK_DAYS = 6
"""How long ago a talk may be that somebody looks back at with their assistant."""
_WORDS = {"face_to_face": 67.0, "voice_message": 68.0, "text_message": 60.0}
"""Aimed words per turn; an assistant says a little over half as many."""


@dataclass(frozen=True, slots=True)
class DayPlan:
    """Everything of a day before it has words."""

    day: int
    sessions: tuple[SessionPlan, ...]
    stated: tuple[StatedFact, ...]
    events: tuple[WorldEvent, ...]
    schedules: dict[str, DaySchedule]
    feelings: tuple[Feeling, ...] = ()
    talks: tuple[tuple[str, str, str, str, int], ...] = ()
    """Who talked with whom of which topic, by which scene, and its next beat: what a later day may look back at."""
    tellings: tuple[Telling, ...] = ()
    """What was told of scenes."""
    noted: tuple[frozenset[Any], ...] = ()
    """What the choice of statements remembers of the day."""


class Planner:
    """Plans days in order.

    ``plan`` reads what was committed by the last midnight and changes nothing of it; ``commit`` makes a new state.
    """

    def __init__(self, config: WorldConfig, world: World, catalogue: Catalogue) -> None:
        self.config, self.world, self.catalogue = config, world, catalogue
        self.knowledge = Knowledge()
        self.impressions = Impressions()
        self._recent_events: list[tuple[WorldEvent, ...]] = []
        self._people = {person.agent_id: person for person in world.people}
        firsts = [person.first_name for person in world.people]
        self._names = {
            person.agent_id: person.first_name if firsts.count(person.first_name) == 1 else person.name
            for person in world.people
        }
        words = library(config.banks)
        source, wishes = FactSource(config, catalogue), Wishes(config, world, self._names)
        self._chooser = Chooser(config, world, catalogue, source, self.knowledge, wishes)
        names = {"man": pools()["other_men"], "woman": pools()["other_women"]}
        self._courses = Courses(words, names, config.key)
        self._taken_up: Counter[tuple[str, str, str]] = Counter()
        self._taken_up_today: Counter[tuple[str, str, str]] = Counter()
        self._topics = sorted(words.topics)
        self._looked: dict[str, list[tuple[int, str, str, str, int]]] = {}

    def plan(self, day: int) -> DayPlan:
        """The plan of the next day."""
        self._chooser.begin_day(day)
        self._courses.begin_day()
        self._taken_up_today = Counter()
        schedules = plan_schedules(self.config, self.world, day)
        events = plan_events(self.config, self.world, day)
        talked_of = [*events, *(event for earlier in self._recent_events for event in earlier)]
        meetings = DayMeetings(self.config, self.world, day, schedules, talked_of, self.impressions).draw()
        weather = Stream(self.config.key, "weather", day).pick(pools()["places"]["weather"])
        sessions: list[SessionPlan] = []
        stated: list[StatedFact] = []
        feelings: list[Feeling] = []
        seen: list[tuple[str, str, str, str, int]] = []
        told: list[Telling] = []
        for number, meeting in enumerate(meetings):
            plan, facts = self._session(day, number, meeting, weather)
            sessions.append(plan)
            stated.extend(facts)
            feelings.extend(self._felt(plan, meeting))
            now = tellings(plan.threads, [one.agent_id for one in plan.speakers])
            told.extend(now)
            if len(meeting.people) == 2:
                seen.extend(_to_look_back_at(now))
        return DayPlan(
            day=day,
            sessions=tuple(sessions),
            stated=tuple(stated),
            events=tuple(events),
            schedules=schedules,
            feelings=tuple(feelings),
            talks=tuple(seen),
            tellings=tuple(told),
            noted=self._chooser.noted,
        )

    def commit(self, plan: DayPlan) -> None:
        """Midnight: what was said on the day becomes known, and what was felt is felt."""
        self.knowledge.commit(list(plan.stated))
        self.impressions.commit(list(plan.feelings))
        self._chooser.commit(plan.noted)
        self._courses.commit(plan.tellings)
        self._taken_up.update(_taking_up(session, one) for session in plan.sessions for one in session.statements)
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

    def _session(self, day: int, number: int, meeting: Meeting, weather: str) -> tuple[SessionPlan, list[StatedFact]]:
        stream = Stream(self.config.key, "session", day, number)
        session_id = opaque("sess", self.config.key, day, number)
        people = [self._people[agent] for agent in meeting.people]
        assistant = meeting.kind.with_assistant
        turns = stream.pick(_TURNS_WITH_ASSISTANT if assistant else _TURNS_BETWEEN_PEOPLE)
        speakers = [self._speaker(person) for person in people]
        looks_back, kind = ("", ""), meeting.kind
        topics = self._threads(stream, people, turns, len(people) + assistant)
        looked: tuple[str, int] | None = None
        if assistant:
            speakers.append(_assistant_of(people[0]))
            if kind is Kind.REFLECTION:
                earlier = self._earlier(people[0].agent_id, day, stream)
                if earlier is None:
                    kind = Kind.NARRATION
                else:
                    looks_back, topics = (earlier[0], earlier[1]), [earlier[2], *topics[1:]]
                    looked = (earlier[3], earlier[4])
        threads = _cut(topics, turns, 0 if assistant else stream.below(len(people)), len(people), stream, assistant)
        threads = self._with_scenes(stream, threads, [speaker.agent_id for speaker in speakers], looked)
        place = self.world.places[meeting.place_id] if meeting.place_id else None
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
            place_name=place.name if place and place.privacy == "public" else "",
            names_place=bool(place and place.privacy == "public" and stream.chance(0.6)),
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
    ) -> tuple[SessionPlan, list[StatedFact]]:
        assistant, pace = plan.kind.with_assistant, self.config.pace
        count = stream.pick(_STATED_TO_ASSISTANT if assistant else _STATED_BETWEEN_PEOPLE)
        free = {
            person.agent_id: [turn for turn in range(1, plan.turn_count - 1) if speaker_index(plan, turn) == place]
            for place, person in enumerate(people)
        }
        told = set() if assistant else _told(plan)
        statements: list[Statement] = []
        stated: list[StatedFact] = []
        for number in range(count):
            speaker = stream.pick(people).agent_id
            listeners = tuple(person.agent_id for person in people if person.agent_id != speaker)
            if pace < 1 and not stream.chance(pace):
                continue
            if not free[speaker]:
                continue
            probing = plan.kind is Kind.PROBE and stream.chance(0.7)
            choice = self._probed(plan.sub_kind, stream, speaker) if probing else None
            if choice is None:
                choice = self._chooser.choose(stream, plan.day, speaker, listeners, assistant)
            if choice is None:
                continue
            turn = stream.pick(free[speaker])
            if turn == 1 and stream.chance(_LATER):
                turn = stream.pick(free[speaker])
            answers = [one for one in free[speaker] if one not in told]
            if turn in told and answers and stream.chance(_ANSWERS_STATE):
                turn = stream.pick(answers)
            free[speaker].remove(turn)
            key = opaque("stmt", plan.session_id, number)
            statements.append(self._statement(key, choice, plan, turn))
            stated.append(_stated(key, choice, plan, turn, tuple(person.agent_id for person in people)))
        return replace(plan, statements=self._counted(plan, statements)), stated

    def _counted(self, plan: SessionPlan, statements: list[Statement]) -> tuple[Statement, ...]:
        """The statements, each with how many of its kind the next speaker took up before of the same person's."""
        earlier = {}
        for one in sorted(statements, key=lambda statement: statement.turn):
            taking = _taking_up(plan, one)
            earlier[one.statement_id] = self._taken_up[taking] + self._taken_up_today[taking]
            self._taken_up_today[taking] += 1
        return tuple(replace(one, earlier=earlier[one.statement_id]) for one in statements)

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

    def _with_scenes(
        self, stream: Stream, threads: tuple[Thread, ...], ids: list[str], looked: tuple[str, int] | None
    ) -> tuple[Thread, ...]:
        """The threads with their scenes; the first goes on with the one looked back at."""
        found: list[Thread] = []
        for number, thread in enumerate(threads):
            if number == 0 and looked is not None:
                scene, beat = looked
                known = library(self.config.banks).scenes[scene]
                found.append(self._courses.telling(thread, ids[0], ids[1:], known, beat))
                continue
            narrator = ids[thread.narrator]
            others = [one for one in ids if one != narrator]
            found.append(self._courses.assign(stream, thread, narrator, others, found))
        return tuple(found)

    def _threads(self, stream: Stream, people: list[Person], turns: int, speakers: int) -> list[str]:
        liked = [topic for person in people for topic in person.topics]
        least = -(-turns // (TALK_BEATS * speakers - 1))
        most = min(len(self._topics), turns // _shortest(speakers))
        count = min(most, max(stream.pick((1, 2, 2, 2, 3)), least))
        found: list[str] = []
        while len(found) < count:
            topic = stream.pick(liked) if liked and stream.chance(0.4) else stream.pick(self._topics)
            if topic not in found:
                found.append(topic)
        return found

    def _earlier(self, owner: str, day: int, stream: Stream) -> tuple[str, str, str, str, int] | None:
        """A conversation of an earlier day: the other one's name, the day in words, the topic, scene and next beat."""
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
    """Who speaks in a turn: index into the plan's speakers, who take turns in their order."""
    first = len(plan.speakers) - 1 if plan.kind.with_assistant else plan.threads[0].narrator
    return (first + turn) % len(plan.speakers)


def _shortest(speakers: int) -> int:
    """Turns in which the teller comes to speak, whoever begins."""
    return 2 * (speakers - 1)


def _told(plan: SessionPlan) -> set[int]:
    """Turns between people in which somebody goes on with his or her scene; the others answer, and are shorter."""
    found: set[int] = set()
    first = 0
    for thread in plan.threads:
        turns = range(first, first + thread.turns)
        found |= {turn for turn in turns if speaker_index(plan, turn) == thread.narrator}
        first += thread.turns
    return found


def _taking_up(plan: SessionPlan, statement: Statement) -> tuple[str, str, str]:
    """Who makes a statement, who speaks next, and of what kind the statement is."""
    speaker, following = (plan.speakers[speaker_index(plan, statement.turn + step)] for step in (0, 1))
    return speaker.agent_id, following.agent_id, statement.frame.split(".")[1]


def _to_look_back_at(told: list[Telling]) -> list[tuple[str, str, str, str, int]]:
    """What of a talk between two people its tellers may go back to: scenes that have something left to tell."""
    return [
        (one.narrator, one.listener, one.scene.split(".")[0], one.scene, one.beats) for one in told if one.beats < BEATS
    ]


def _relation(world: World, people: tuple[str, ...]) -> str:
    """What people are to each other, where that is the same for all of them."""
    kinds = {RELATION_KINDS[relation(world, one, other)] for one, other in combinations(people, 2)}
    return kinds.pop() if len(kinds) == 1 else ""


def _probe(stream: Stream) -> str:
    return stream.weighted([name for name, _ in PROBES], [share for _, share in PROBES])


def _assistant_of(owner: Person) -> Speaker:
    return Speaker(owner.assistant_id, "Assistant", 0, 1.0, 0.04, assistant=True)


def _cut(
    topics: list[str], turns: int, narrator: int, people: int, stream: Stream, assistant: bool
) -> tuple[Thread, ...]:
    """Threads of roughly equal length; in talk between people the teller changes now and then."""
    threads, left = [], turns
    speakers = people + assistant
    shortest, longest = _shortest(speakers), TALK_BEATS * speakers
    for number, topic in enumerate(topics):
        others = len(topics) - 1 - number
        most, least = min(longest, left - others * shortest), max(shortest, left - others * longest)
        share = max(least, min(most, left // (others + 1) + stream.between(-1, 1))) if others else left
        threads.append(Thread(topic, narrator, share))
        left -= share
        if not assistant and stream.chance(0.6):
            narrator = (narrator + 1) % people
    if len(threads) > 1 and not assistant:  # the one whose turn is the last answers
        threads[-1] = replace(threads[-1], narrator=(threads[0].narrator + turns - 2) % people)
    return tuple(threads)


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
