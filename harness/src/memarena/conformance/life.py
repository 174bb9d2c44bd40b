"""Draws a life from a seed: months of one person's conversations and events, full of traps on which turns get lost.

The checks of chapter LIFE (checks/life.py) send it to the backend under test and then ask for entries of every group by
their own words. Each part of a life has a habit of real data or a trap: gaps between days, sessions of thousands of
turns, ids that differ only in letter case, control characters.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from functools import partial

from memarena_proto import memory_backend_pb2 as pb

from memarena.conformance import fixtures
from memarena.conformance.backend_under_test import NamespaceFixture
from memarena.conformance.contract_limits import TURN_TEXT_BYTES
from memarena.conformance.drawn_words import SCRIPTS
from memarena.conformance.fixtures import Fact
from memarena.conformance.life_size import LifeSize

_MODALITIES = ("face_to_face", "voice_message", "text_message", "")
_FIRST_FRAME = 37
"""Number of turns in the first frame of a session: a longer one is split, and further frames have more."""
_WITHOUT_TEXT = 0.3
"""Probability that a session begins with a turn without text."""
_CATEGORIES = ("global", "community", "dyadic", "private", "")  # of events
_WORDS, _BYTES_OF_WORDS = "1,500 words", 13_500
TWICE = "a turn that comes twice"
_FIRST, _LAST = "the first turn of a long session", "the last turn of a long session"
_ODD = (
    "  {word} {emoji}{emoji}  ",
    "\t{word}\nand\r\n{word}\rof \n\n",
    "\u200b{word} zero\u200dwidth\u2060 \ufeff \u202eright to left\u202c",
    "{word} \x01\x07\x1b[0m\x7f\x85 {emoji}\u200d{emoji}\ufe0f",
    '<b>{word} & b</b> &lt;no&gt; "q" \\n \\u0041 %41 $x {{y}} `z`',
    "\ufeff{word} caf\u00e9 cafe\u0301 \ufb01 \u212b \ue000 \ufffe \U0010ffff",
    "{word} “it’s” ‘so’ – — … ½ ² ①  Ａ two\u00a0kinds\u202fof\u3000blanks\u2028and of\u2029lines",
    "{word} " + " ".join(map(chr, (*range(0x1, 0x20), *range(0x7F, 0xA0)))) + " .",
)
"""Texts with characters that stores and parsers tend to change, around a drawn word and drawn symbols."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A turn or an event that can be asked for.

    Backends lose turns by kind, so a report counts losses by ``group`` and names the groups that are lost. Turns of
    "plain" are no trap; those of "long" only fill a long session and are never asked for.
    """

    group: str
    fact: Fact
    day: int
    session: pb.Session | None = None
    turn: pb.Turn | None = None
    event: pb.Event | None = None
    behind_empty: bool = False
    """Whether the session begins with a turn without text."""

    @property
    def kinds(self) -> list[str]:
        """Return the kinds by which losses are counted: the group, and a turn's traits unless the group explains it."""
        if self.session is None or self.turn is None or self.group == TWICE or self.group.endswith(_WORDS):
            return [self.group]
        roles = {p.participant_id: pb.ParticipantRole.Name(p.role) for p in self.session.participants}
        named = "a place" if self.session.place else "a group" if self.session.group else "neither place nor group"
        return [
            self.group,
            f"turns of modality {self.session.modality!r}",
            f"turns in a session with {named}",
            f"turns of a speaker of {roles[self.turn.speaker_id]}",
            *["turns behind one without text"] * self.behind_empty,
        ]


@dataclass
class Life:
    """A drawn life: days to send, oldest first, and the entries that can be asked for afterwards."""

    days: list[list[pb.IngestRequest]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    renamed: tuple[str, str] = ("", "")
    """The earlier and the later name of a person."""
    common: str = ""
    """A word that many turns contain, to ask for many of them at once."""
    asked_at: str = ""
    session_ids: list[str] = field(default_factory=list)
    people: list[pb.Participant] = field(default_factory=list)
    """Participants of the life; the first is the owner."""


Draft = tuple[str, Fact]  # group and fact of an entry that is not drawn yet


class LifeWriter:
    """Draws the life of one namespace."""

    def __init__(self, ns: NamespaceFixture, seed: int, size: LifeSize) -> None:
        self._ns, self._size = ns, size
        self._words = ns.backend.words
        self._random = random.Random(seed)  # noqa: S311 (nothing secret)
        self._vocabulary = [self._words.next().lower() for _ in range(40)]
        # January of a leap year: 29 February is soon part of the life.
        self._begin = date(self._random.choice((2024, 2028, 2032)), 1, self._random.randint(1, 28))
        self._life = Life(common=self._vocabulary[0])
        self._people = [self._person(pb.PARTICIPANT_ROLE_OWNER), *(self._person() for _ in range(5))]
        self._people.append(self._person(pb.PARTICIPANT_ROLE_ASSISTANT))
        self._life.people = self._people
        # Two traps: people of one display name, and ids of people that differ only in letter case.
        self._people[4].display_name = self._people[3].display_name
        self._people[2].participant_id = self._people[3].participant_id.swapcase()

    # ---------------------------------------------------------------- parts

    def id(self) -> str:
        """Return an id that does not sort by time, with a sign that has a meaning to some stores and parsers."""
        sign = self._random.choice(string.punctuation)
        return f"{self._random.choice('azmAZM')}{sign}b{self._ns.backend.new_id()}"

    def _person(self, role: pb.ParticipantRole.ValueType = pb.PARTICIPANT_ROLE_PERSON) -> pb.Participant:
        return pb.Participant(participant_id=self.id(), display_name=self._name(), role=role)

    def _name(self) -> str:
        return f"{self._words.next()} {self._words.next()}"

    def sentence(self, *own: str) -> str:
        """Return a sentence of frequent words around ``own``, words that occur only here."""
        often = self._random.sample(self._vocabulary, self._random.randint(3, 7))
        return f"{often[0].capitalize()} {' '.join((*own, *often[1:]))}{self._random.choice('.!?…')}"

    def fact(self, *own: str) -> Fact:
        """Return a fact whose statement has a word that occurs nowhere else, by which it is asked for."""
        value = self._words.next()
        return Fact(self.sentence(value, *own), f"{value}?", value)

    def facts(self, group: str, count: int | None = None) -> list[Draft]:
        return [(group, self.fact()) for _ in range(self._size.per_group if count is None else count)]

    def _in_script(self, script: str) -> list[Draft]:
        drafts = []
        for _ in range(self._size.per_group):
            words = [self._words.of_script(script) for _ in range(4)]
            drafts.append((f"turns in {script}", Fact(" ".join(words), " ".join(words[1:3]), words[1])))
        return drafts

    # ---------------------------------------------------------------- a day

    def date_of(self, day: int) -> date:
        return self._begin + timedelta(days=day)

    def moment(self, day: int, hour: float | None = None) -> datetime:
        """Return a moment of a day, by default at a drawn hour, with a drawn UTC offset."""
        zone = timezone(timedelta(minutes=15 * self._random.randint(-44, 56)))
        start = datetime.combine(self.date_of(day), time(0), zone)
        return start + timedelta(hours=self._random.uniform(0, 22) if hour is None else hour)

    def talk(
        self, day: int, drafts: Sequence[Draft], *, speaker: int | None = None, step_s: int = 20, session_id: str = ""
    ) -> pb.Session:
        """Return a session of drafts as turns; its entries join the life. ``step_s`` 0: all turns have one time."""
        at = self.moment(day)
        others = [index for index in range(1, len(self._people)) if index != speaker]
        # Person 3 talks to person 2, whose id differs from theirs only in letter case.
        present = ([2] if speaker == 3 else self._random.sample(others, 2)) + (
            [0] if speaker != 0 and self._random.random() < 0.7 else []
        )
        people = [self._people[index] for index in (present if speaker is None else [speaker, *present])]
        session = pb.Session(session_id=session_id or self.id(), participants=people, started_at=at.isoformat())
        session.modality = self._random.choice(_MODALITIES)
        session.place, session.group = self._random.choice((("", ""), (self._name(), ""), ("", self._name())))
        if empty := bool(drafts) and self._random.random() < _WITHOUT_TEXT:
            session.turns.add(turn_id=self.id(), speaker_id=people[0].participant_id, said_at=at.isoformat())
        for group, fact in drafts:
            who = self._people[speaker] if speaker is not None else self._random.choice(people)
            turn = session.turns.add(turn_id=self.id(), speaker_id=who.participant_id, text=fact.statement)
            turn.said_at = at.isoformat()
            at += timedelta(seconds=step_s)
            self._life.entries.append(Entry(group, fact, day, session, turn, behind_empty=empty))
        session.ended_at = at.isoformat()
        self._life.session_ids.append(session.session_id)
        return session

    def happens(self, day: int, drafts: Sequence[Draft], hour: float | None = None) -> list[pb.Event]:
        """Return events of a day; their entries join the life. All happen at one time if an hour is passed."""
        events: list[pb.Event] = []
        together = self.moment(day, hour)
        for number, (group, fact) in enumerate(drafts):
            at = together if hour is not None else self.moment(day)
            event = pb.Event(event_id=self.id(), happened_at=at.isoformat(), text=fact.statement)
            if number % 2:  # an id that differs from that of the previous event only in letter case
                event.event_id = events[-1].event_id.swapcase()
            event.category = _CATEGORIES[number % len(_CATEGORIES)]
            events.append(event)
            kind = f"{group} of category {event.category!r}" if group == "an event" else group
            self._life.entries.append(Entry(kind, fact, day, event=event))
        return events

    def day(self, index: int, sessions: Sequence[pb.Session] = (), events: Sequence[pb.Event] = ()) -> None:
        """Close a day and append it to the life."""
        head = pb.DayHeader(
            namespace=self._ns.namespace, day_index=index, date=self.date_of(index).isoformat(), batch_id=self.id()
        )
        head.owner.CopyFrom(self._people[0])
        number, rest = divmod(len(self._life.days), 5)
        if rest in (1, 2):  # "7" and "007": two ids that are one number
            head.batch_id = f"{'00' * (rest - 1)}{number + 7}"
        if rest == 4:  # an id that differs from the previous one only in letter case
            head.batch_id = self._life.days[-1][0].header.batch_id.swapcase()
        frames = (pb.IngestRequest(session=part) for whole in sessions for part in fixtures.split(whole, _FIRST_FRAME))
        whole = [pb.IngestRequest(header=head), *frames, *(pb.IngestRequest(event=event) for event in events)]
        self._life.days.append(fixtures.sealed(whole))

    # ---------------------------------------------------------------- the life

    def write(self) -> Life:
        """Draw and return the whole life."""
        life = self._life
        indices = self._indices(self._size.days)
        parts = self._parts()
        self._random.shuffle(parts)
        # Parts are dealt to days in turn, so that the first and last may share a day; these two, in the middle, do not:
        # their days have events and no session.
        at_one_time = partial(self.happens, drafts=self.facts("events that happen at one time", 4), hour=7)
        parts[len(parts) // 2 : len(parts) // 2] = [at_one_time, self._crowd_of_events]
        # The first day has a session, the last is empty, and about a third of those in between are empty too.
        busy = sorted(self._random.sample(indices[1:-1], min(len(parts), len(indices) * 2 // 3 - 1)))
        shares: dict[int, list[Callable[[int], object]]] = {day: [] for day in busy}
        for number, part in enumerate(parts):
            shares[busy[number % len(busy)]].append(part)
        shares[indices[0]] = [lambda day: self.talk(day, self.facts("a turn of the first day"), speaker=1)]
        shares[busy[-1]].append(lambda day: self.talk(day, self.facts("a turn of the last day"), speaker=1))
        shares[busy[-1]].append(partial(self.happens, drafts=self.facts("an event next to sessions", 5)))
        earlier, half = self._people[1].display_name, indices[len(indices) // 2]
        life.renamed = (earlier, self._name())
        for day in indices:
            if day >= half:  # a person is renamed, under the same id
                self._people[1].display_name = life.renamed[1]
            # A part is known by its type: a session, a tuple of sessions, a list of events.
            made = [part(day) for part in shares.get(day, ())]
            sessions = [each for each in made if isinstance(each, pb.Session)]
            sessions += [each for some in made if isinstance(some, tuple) for each in some]
            events = [each for some in made if isinstance(some, list) for each in some]
            self.day(day, sessions, events)
        life.asked_at = self.moment(indices[-1] + 2).isoformat()
        return life

    def _indices(self, count: int) -> list[int]:
        indices = [self._random.randint(0, 3)]
        while len(indices) < count:
            indices.append(indices[-1] + self._random.choices((1, 2, 5), (12, 2, 1))[0])
        return indices

    def _parts(self) -> list[Callable[[int], object]]:
        """Return functions of the day that each return a part of it: a session, a tuple of sessions, or events."""
        scripts = [draft for script in SCRIPTS for draft in self._in_script(script)]
        self._random.shuffle(scripts)
        parts: list[Callable[[int], object]] = [
            partial(self.talk, drafts=scripts[n : n + 7]) for n in range(0, len(scripts), 7)
        ]
        spoken = (("what the owner says", 0), ("what a person says who is renamed", 1), ("what an assistant says", 6),
                  ("what a namesake says", 3), ("what a namesake says", 4))  # fmt: skip
        parts += [partial(self._talk_of, "plain")] * 24
        parts += [partial(self._talk_of, group, speaker=who) for group, who in (*spoken, *spoken)]
        parts += [self._together, self._long, self._at_the_limit, self._one_word, self._near_ids, self._crowd]
        for _ in range((self._size.per_group + 1) // 2):
            parts += [partial(self.talk, drafts=self._odd()), self._ends]
        twice = (TWICE, self.fact())  # a store that drops equal texts loses one of their sessions
        return [
            *parts,
            partial(self.talk, drafts=()),  # a session without turns
            partial(self.talk, drafts=[twice]),
            partial(self.talk, drafts=[twice, *self.facts("plain", 2), twice, twice]),
        ]

    def _talk_of(self, group: str, day: int, *, speaker: int | None = None) -> pb.Session:
        return self.talk(day, self.facts(group, 1), speaker=speaker)

    def _together(self, day: int) -> pb.Session:
        return self.talk(day, [*self.facts("plain", 1), *self.facts("turns of one time", 3)], speaker=1, step_s=0)

    def _crowd(self, day: int) -> tuple[pb.Session, ...]:
        return tuple(self.talk(day, self.facts("one of many sessions of a day", 1)) for _ in range(self._size.many))

    def _crowd_of_events(self, day: int) -> list[pb.Event]:
        odd = [(f"an event with {group}", fact) for group, fact in self._odd()]
        drafts = [*odd, *self.facts("an event", self._size.many - 4), *self.facts("an event behind many", 4)]
        return self.happens(day, drafts)

    def _long(self, day: int) -> pb.Session:
        """Return a session of very many turns: as many as a day may hold, at 400 bytes each."""
        most = self._ns.backend.described.limits.max_day_bytes
        count = min(self._size.long_turns, most // 400) if most else self._size.long_turns
        groups = dict.fromkeys(range(count - 4, count - 1), "the end of a very long session")
        groups |= dict.fromkeys(self._random.sample(range(101, max(count, 104)), 3), "a turn behind a hundred others")
        groups |= dict.fromkeys(range(count // 2 - 1, count // 2 + 2), "the middle of a long session")
        groups |= {0: _FIRST, count - 1: _LAST}
        # Every other turn has a word of some script, since a backend may change text only in later frames.
        own = [[self._words.of_script(self._random.choice(SCRIPTS))] if n % 2 else [] for n in range(count)]
        return self.talk(day, [(groups.get(n, "long"), self.fact(*own[n])) for n in range(count)], step_s=2)

    def _ends(self, day: int) -> pb.Session:
        last = self._random.randint(20, 40)  # on either side of _FIRST_FRAME: one frame or two
        groups = {0: _FIRST, last: _LAST}
        return self.talk(day, [(groups.get(n, "long"), self.fact()) for n in range(last + 1)])

    def _at_the_limit(self, day: int) -> pb.Session:
        """Return a session with turns of the maximum length and of 1,500 words, with a unique word at either end."""
        limit = min(self._ns.backend.described.limits.max_turn_text_bytes or TURN_TEXT_BYTES, self._size.text_bytes)
        drafts, words = [], min(limit, _BYTES_OF_WORDS)
        for size, how in (*[(limit, f"{limit} bytes")] * 2, *[(words, _WORDS)] * 4):
            first, last = self.fact(), self._words.next()
            filler = " ".join(self._random.choices(self._vocabulary, k=size // 9 + 1))
            text = f"{first.statement} {filler}"[: size - len(last) - 12].rsplit(" ", 1)[0]
            drafts.append((f"the end of a text of {how}", Fact(f"{text} {last}.", f"{last}?", first.value)))
        return self.talk(day, drafts)

    def _one_word(self, day: int) -> pb.Session:
        words = [self._words.next() for _ in range(self._size.per_group)]
        drafts = [("a turn of one word", Fact(word, f"{word}?", word)) for word in words]
        word = "".join(self._words.next() for _ in range(8))
        return self.talk(day, [*drafts, ("a turn of one long word", Fact(word, f"{word}?", word))])

    def _odd(self) -> list[Draft]:
        drafts = []
        for form in _ODD:
            word = self._words.next()
            text = form.format(word=word, emoji=self._words.emoji())
            drafts.append((f"text like {form[:48]!r}", Fact(text, f"{word}?", word)))
        return drafts

    def _near_ids(self, day: int) -> tuple[pb.Session, ...]:
        """Return two sessions whose ids, and the ids of their turns, differ only in letter case."""
        earlier = self.talk(day, self.facts("sessions of near ids"))
        other = self.talk(day, self.facts("sessions of near ids"), session_id=earlier.session_id.swapcase())
        # From the end, as either session may begin with a turn without text.
        for first, second in zip(reversed(earlier.turns), reversed(other.turns), strict=False):
            second.turn_id = first.turn_id.swapcase()
        return earlier, other
