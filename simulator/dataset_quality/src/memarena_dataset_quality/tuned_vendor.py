"""Measures the gain of a tuned vendor: a memory that knows the texts of one pack by heart, and answers by rules.

From worlds whose plan is public it learns the things that questions are about, by all names that they were called by,
and the frames of the sentences that state them. In another world it looks up what a question is about, searches the
ego's turns for sentences that name the thing, and takes the value out of a frame that it knows. What it has no frame
for it leaves to BM25 and the extractive reader, with which it is compared.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from memarena_dataset.io.files import REPORT, Folder
from memarena_dataset.model import Fact, Instance, Turn
from memarena_dataset.values.calendar import MONTHS, WEEKDAYS

from memarena_dataset_quality.answers import gold_values, is_right
from memarena_dataset_quality.bm25_recall import Ranking
from memarena_dataset_quality.extractive_reader import ask
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.tokenization import sentences, words
from memarena_dataset_quality.world import World

THING, NAME, VALUE = "qqthing", "qqname", "qqvalue"
"""Marks in a learned sentence in place of the thing, of people and of the value."""
BEFORE_WORDS, AFTER_WORDS = 4, 1
"""Words of a frame on both sides of its value."""
_NUMBERS = (
    rf"(?:{'|'.join(WEEKDAYS)})|(?:{'|'.join(MONTHS)}) \d{{1,2}}|\d+(?::\d\d)?(?: (?:[ap]m|euros|minutes|degrees|km))?"
)
_TEXTS = r"[\w'’.-]+(?: [\w'’.-]+){0,5}?"
_TWO = re.compile(r"\b(?:two|different|versions)\b", re.IGNORECASE)
_EARLIER = re.compile(r"\b(?:originally|before|earlier|at first|used to)\b", re.IGNORECASE)
_TELLER = re.compile(r"\b(?:who|whom)\b.*\b(?:told|tell|mentioned|said|heard)\b|\bheard\b.*\bfrom\b", re.IGNORECASE)
"""_TWO, _EARLIER, _TELLER: words of questions for both versions, the earlier value, the person who stated it."""

_OPTIONS = re.compile(r"^[A-E]\) .*$", re.MULTILINE)

Key = tuple[str, str]
"""A kind of fact and a thing, such as ``price`` and ``the coffee grinder``."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The words before and after a value. ``text``: whether the value is a name or term, not a number, time or day."""

    before: str
    after: str
    text: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern that matches a masked sentence of this frame; its group 1 is the value."""
        value = _TEXTS if self.text else _NUMBERS
        end = rf"\b{re.escape(self.after)}" if self.after else r"\s*(?:[.,;:?!)]|$)"
        return re.compile(rf"{re.escape(self.before)}\s*({value}){end}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Compared:
    """Right answers to the same questions: of the tuned vendor, of BM25, and how often the vendor answered itself."""

    questions: int
    tuned: int
    bm25: int
    by_rules: int

    @property
    def gain(self) -> float:
        """Return the points by which the tuned vendor is above BM25."""
        return 100 * (self.tuned - self.bm25) / self.questions


def key_of(fact: Fact) -> Key:
    """Return kind and thing of a statement: ``price`` and ``the coffee grinder``."""
    kind, _, thing = fact.attribute.partition(": ")
    return kind, thing


def pack_of(world: World) -> tuple[str, str] | None:
    """Return the hash of a generated world's pack, and the half that was used; None if its report names none."""
    data = Folder(world.path).read_bytes(REPORT)
    configuration = json.loads(data).get("configuration", {}) if data else {}
    pack = configuration.get("pack")
    return (str(pack["sha256"]), str(configuration.get("banks", "all"))) if pack else None


class TunedVendor:
    """The knowledge learned from worlds: the subject of each question, and frames by kind of fact."""

    def __init__(self, worlds: Iterable[World]) -> None:
        question_words: defaultdict[Key, set[str]] = defaultdict(set)
        frames: defaultdict[str, dict[Frame, None]] = defaultdict(dict)
        for world in worlds:
            people = _names(world)
            keys: dict[str, Key] = {}
            for fact in world.facts:
                key = keys[fact.fact_id] = key_of(fact)
                question_words[key].update(words(key[1]))
                frames[key[0]].update(dict.fromkeys(_frames_of(world, fact, people)))
            for instance in world.instances:
                key_asked = keys.get(str(instance.metadata.get("fact_id")))
                if key_asked is not None:
                    question_words[key_asked].update(words(_mask(instance.query, people)))
        self._question_words = dict(sorted(question_words.items()))
        spread = Counter(word for key_words in question_words.values() for word in key_words)
        self._weights = {word: math.log(len(question_words) / count) for word, count in spread.items()}
        self._patterns = {kind: [(frame, frame.pattern) for frame in group] for kind, group in frames.items()}

    def answer(self, world: World, instance: Instance, turns: Sequence[Turn]) -> str | None:
        """Return the answer by rules from what the ego heard; None if no frame fits."""
        people = _names(world)
        kind, thing = self.about(_OPTIONS.sub("", instance.query), people)
        subject = next(
            (agent for agent, name in people.items() if _names_person(name, instance.query)), instance.ego_agent_id
        )
        statements = list(self._statements(kind, thing, subject, people, turns))
        if not statements:
            return None
        values = list(dict.fromkeys(value for _, value in statements))
        if _TELLER.search(instance.query):
            return next((world.name(speaker) for speaker, _ in statements if speaker != instance.ego_agent_id), None)
        if _TWO.search(instance.query):
            return " or ".join(values[:2])
        return values[0] if _EARLIER.search(instance.query) else values[-1]

    def about(self, query: str, people: dict[str, str]) -> Key:
        """Return kind and name of the thing a question names, the longest; else of the likeliest by its questions."""
        query_words = set(words(_mask(query, people)))
        spaced = f" {' '.join(words(query))} "
        keys = [key for key in self._question_words if f" {' '.join(words(key[1].removeprefix('the ')))} " in spaced]
        longest = max((len(thing) for _, thing in keys), default=0)
        among = [key for key in keys if len(key[1]) == longest] or self._question_words
        return max(among, key=lambda key: sum(self._weights[word] for word in query_words & self._question_words[key]))

    def _statements(
        self, kind: str, thing: str, subject: str, people: dict[str, str], turns: Sequence[Turn]
    ) -> Iterator[tuple[str, str]]:
        """Yield speaker and value of each sentence that states a person's thing, in the order of the talk."""
        needle = thing.lower()
        for turn in turns:
            if needle not in turn.text.lower():
                continue
            is_own, is_named = turn.speaker_id == subject, _names_person(people.get(subject, ""), turn.text)
            for sentence in sentences(turn.text):
                if needle not in sentence.lower():
                    continue
                masked = _mask(sentence, people, thing)
                value = self._value(kind, masked) if (NAME not in masked if is_own else is_named) else None
                if value is not None:
                    yield turn.speaker_id, value

    def _value(self, kind: str, sentence: str) -> str | None:
        """Return the value in the fitting frame with the most words; None if none fits."""
        fitting = [
            (len(frame.before) + len(frame.after), match.group(1))
            for frame, pattern in self._patterns.get(kind, ())
            if (match := pattern.search(sentence))
        ]
        return max(fitting)[1] if fitting else None


def _names(world: World) -> dict[str, str]:
    return {agent: name for agent, name in world.names.items() if not agent.startswith("assistant_")}


def _names_person(name: str, text: str) -> bool:
    return bool(name) and re.search(rf"\b{re.escape(name.split(maxsplit=1)[0])}\b", text) is not None


def _mask(text: str, people: dict[str, str], thing: str = "") -> str:
    """Return a sentence with the thing and people's names masked."""
    if thing:
        text = re.sub(re.escape(thing), THING, text, flags=re.IGNORECASE)
    return re.sub("|".join(rf"\b{re.escape(part)}\b" for name in people.values() for part in name.split()), NAME, text)


def _frames_of(world: World, fact: Fact, people: dict[str, str]) -> Iterator[Frame]:
    """Yield the frame of the sentence that states a fact, if it names the thing and the value."""
    thing, value = key_of(fact)[1], dict(fact.value)
    turn = world.turns[fact.turn_id][0]
    text = value.get("type") in ("name", "place", "term")
    spelled = [str(value.get("name", value.get("text"))), *map(str, value.get("aliases", ()))]
    forms = sorted(spelled, key=len, reverse=True) if text else _candidates(value, turn.text)
    for sentence in sentences(turn.text):
        for form in forms:
            start = sentence.find(form)
            if thing.lower() in sentence.lower() and start >= 0:
                masked = f"{sentence[:start]} {VALUE} {sentence[start + len(form) :]}"
                before, _, after = _mask(masked, people, thing).partition(VALUE)
                end = re.match(r"\s*(\w+)", after)
                yield Frame(" ".join(before.split()[-BEFORE_WORDS:]), " " + end.group(1) if end else "", text)
                return


def known_frames(train: Sequence[World], world: World) -> tuple[int, int]:
    """Count the statements of ``world`` whose frame ``train`` has for the same kind of fact, and all with a frame."""
    learned = {pair for known in train for pair in _kinds_and_frames(known)}
    pairs = list(_kinds_and_frames(world))
    return sum(pair in learned for pair in pairs), len(pairs)


def _kinds_and_frames(world: World) -> Iterator[tuple[str, Frame]]:
    people = _names(world)
    for fact in world.facts:
        for frame in _frames_of(world, fact, people):
            yield key_of(fact)[0], frame


def _candidates(value: Mapping[str, object], text: str) -> list[str]:
    """Return the numbers, times and days of a text that may be a form of the value."""
    digits = {part.lstrip("0") for part in re.findall(r"\d+", json.dumps(value))}
    numbers = re.findall(_NUMBERS, text, re.IGNORECASE)
    if "weekday" in value:
        return [word for word in numbers if word.lower() == value["weekday"]]
    return [word for word in numbers if any(part.lstrip("0") in digits for part in re.findall(r"\d+", word))]


@dataclass
class _Ego:
    """The turns that one person heard, in order, with a BM25 index over them."""

    turns: Sequence[Turn]

    @cached_property
    def ranking(self) -> Ranking:
        """BM25 over the turns."""
        return Ranking(words(turn.text) for turn in self.turns)


def compare(train: Sequence[World], worlds: Sequence[World], reader: ServerProcess) -> Compared | None:
    """Compare the vendor tuned on ``train`` with BM25 on the value questions of ``worlds``; None if there is none."""
    vendor, tuned, bm25, by_rules, questions = TunedVendor(train), 0, 0, 0, 0
    for world in worlds:
        egos = {ego: _Ego(turns) for ego, turns in world.projections.items()}
        for instance in world.instances:
            if not gold_values(instance) or not instance.evidence_turn_ids:
                continue
            ego, today = egos[instance.ego_agent_id], world.day_of(instance.query_timestamp or 0.0)
            asked_at = instance.query_timestamp
            until = world.day_count if asked_at is None else int(asked_at) + 1
            count = sum(turn.timestamp < until for turn in ego.turns)
            retrieved = [ego.turns[index] for index in sorted(ego.ranking.top(words(instance.query), count))]
            plain = ask(reader, [f"{world.name(turn.speaker_id)}: {turn.text}" for turn in retrieved], instance.query)
            answer = vendor.answer(world, instance, ego.turns[:count])
            questions += 1
            by_rules += answer is not None
            bm25 += is_right(instance, plain, today)
            tuned += is_right(instance, plain if answer is None else answer, today)
    return Compared(questions, tuned, bm25, by_rules) if questions else None
