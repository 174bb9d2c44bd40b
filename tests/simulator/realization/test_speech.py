"""Whether offline talk hangs together: questions are answered, turns take up words of the turn before."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from memarena_dataset_quality.tokenization import words
from memarena_masim.config import WorldConfig
from memarena_masim.engines.offline import words_of
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.grammar import Bank, Sequence_
from memarena_masim.phrases.library import library
from memarena_masim.phrases.matters import head, read_matters
from memarena_masim.plan.day import Planner
from memarena_masim.plan.model import Kind, SessionPlan
from memarena_masim.realization.record import last_noun, marked, new_record, to_me, to_you
from memarena_masim.realization.speech import SpokenTurn
from memarena_masim.rng import Stream
from memarena_masim.world.build import build_world
from memarena_masim.world.model import World

COMMONEST = 150
LOCOMO_TAKEN_UP = 0.467
"""Share of LoCoMo's turns that share a word of content with the turn before, measured as below on its five talks."""


def texts(world: Path) -> list[list[str]]:
    lines = (world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines()
    return [[turn["text"] for turn in json.loads(line)["turns"]] for line in lines]


def content(sessions: Sequence[Sequence[str]]) -> list[list[set[str]]]:
    """Words of each turn but the commonest of the corpus."""
    tokens = [[words(text) for text in session] for session in sessions]
    counts = Counter(word for session in tokens for turn in session for word in turn)
    common = {word for word, _ in counts.most_common(COMMONEST)}
    return [[set(turn) - common for turn in session] for session in tokens]


def test_turns_take_up_words_of_the_turn_before(small_world: Path) -> None:
    """More often than LoCoMo's do, and far more often than turns that do not follow each other."""
    sessions = content(texts(small_world))
    everything = [turn for session in sessions for turn in session]
    rng = random.Random(1)
    shared = [bool(one & other) for session in sessions for one, other in pairwise(session)]
    by_chance = [bool(rng.choice(everything) & rng.choice(everything)) for _ in shared]
    assert sum(shared) / len(shared) > LOCOMO_TAKEN_UP
    assert sum(shared) / len(shared) > 2 * sum(by_chance) / len(by_chance)


def test_nobody_hesitates_in_the_middle_of_a_phrase(small_world: Path) -> None:
    """Words of hesitation only stand where a sentence begins."""
    middle = re.compile(r"[a-z] (?:um|uh|er|let's say|what was it|kind of),", re.IGNORECASE)
    assert not [text for session in texts(small_world) for text in session if middle.search(text)]


def test_answers_take_up_their_questions() -> None:
    """Of nine exchanges in ten, at least one answer repeats a word of content of its question."""
    exchanges = [
        exchange
        for topic in library().topics.values()
        for matter in topic.matters
        for talks in matter.talks.values()
        for exchange in talks
    ]
    tied = [bool(_words(one.question) & set().union(*map(_words, one.answers))) for one in exchanges]
    assert len(exchanges) > 300
    assert sum(tied) / len(tied) > 0.9


_SMALL = frozenset(
    [
        "the",
        "you",
        "your",
        "and",
        "for",
        "that",
        "what",
        "who",
        "how",
        "did",
        "does",
        "have",
        "has",
        "with",
        "was",
        "were",
        "are",
        "can",
        "not",
        "isn't",
    ]
)


def _words(line: Sequence_) -> set[str]:
    """Words of content that a line may say, in any of its branches."""
    found = {word for node in line for text in (node.text, *node.options) for word in words(text) if len(word) > 2}
    return found.union(*(_words(branch) for node in line for branch in node.branches)) - _SMALL


def test_a_record_says_nothing_twice() -> None:
    """Each line of a matter is drawn once at most, then there is none."""
    found = library()
    topic = next(iter(found.topics.values()))
    record = new_record(found, topic, 0, 2, Stream("record"), frozenset())
    drawn = []
    while (line := record.clause("detail")) is not None:
        drawn.append(id(line))
    assert len(drawn) == len(set(drawn)) == len(record.matter.clauses["detail"])


def test_a_second_thread_has_another_matter() -> None:
    """What was talked of already is not drawn again while there is something else."""
    found = library()
    for topic in found.topics.values():
        first = new_record(found, topic, 0, 2, Stream(topic.key), frozenset())
        second = new_record(found, topic, 0, 2, Stream(topic.key), frozenset((first.matter.key,)))
        assert len(topic.matters) == 1 or first.matter.key != second.matter.key


@pytest.mark.parametrize(
    ("noun", "short"),
    [("kitchen tap", "tap"), ("plan for the market square", "plan"), ("jumper I'm knitting", "jumper")],
)
def test_the_short_name_is_the_head(noun: str, short: str) -> None:
    """What follows the head noun is left out."""
    assert head(noun) == short


def test_words_change_person_with_the_speaker() -> None:
    """What is mine is yours when you take it up, and the other way round."""
    assert to_you("my back and I was told of ours") == "your back and you were told of yours"
    assert to_me("those pots on your balcony") == "those pots on my balcony"


def test_marks_are_taken_out_and_kept_as_key() -> None:
    """The last marked stretch is what can be taken up; without a mark, a noun at the end."""
    said = marked("*the seal* is worn, says *the plumber*")
    assert (said.text, said.key) == ("the seal is worn, says the plumber", "the plumber")
    assert last_noun("they put in a beehive") == "a beehive"
    assert marked("we cook *over a fire*").key == "a fire"
    assert [marked(f"so *{words}*").key for words in ("for treasure", "where it ended", "save on", "lit")] == [""] * 4
    assert last_noun("nobody knows what to do with it") == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", r"at least one \[matter\]"),
        ("[tap]\nnouns = []\n", "'nouns' is no list"),
        ("[tap]\nnoun = ['a']\n", "noun: at least 2"),
        ("[tap\n", "matters/odd.toml"),
    ],
)
def test_a_faulty_matter_is_named(text: str, fault: str, tmp_path: Path) -> None:
    """File and key of the fault."""
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(MasimError, match=fault):
        read_matters(path, Bank())


def test_the_next_speaker_takes_a_fact_up_without_its_value(small_world: Path) -> None:
    """Most found things are spoken of again in the next turn by where they came from; none by what they are."""
    turns = {
        f"{row['session_id']}_t{number:02d}": turn["text"]
        for row in map(json.loads, (small_world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines())
        for number, turn in enumerate(row["turns"])
    }
    taken = named = count = 0
    for line in (small_world / "facts.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        if fact["role"] != "tell" or not fact["attribute"].startswith("find"):
            continue
        session, place = fact["turn_id"].rsplit("_t", 1)
        following = turns.get(f"{session}_t{int(place) + 1:02d}")
        if following is None:
            continue
        count += 1
        taken += fact["attribute"].removeprefix("find: the ") in following
        named += fact["value"]["text"] in following
    assert count > 20
    assert named == 0
    assert taken > 0.6 * count


Spoken = list[tuple[SessionPlan, tuple[SpokenTurn, ...]]]


@pytest.fixture(scope="module")
def spoken() -> tuple[World, Spoken]:
    """A world, and its sessions with their words."""
    config = WorldConfig(name="test", agents=16, days=4, density=0.5, seed=108)
    planner = Planner(config, build_world(config), catalogue())
    sessions: Spoken = []
    for day in range(config.days):
        plan = planner.plan(day)
        planner.commit(plan)
        sessions += [(session, words_of(config, session)) for session in plan.sessions]
    return planner.world, sessions


_SAID_ANYWAY = frozenset(("the", "and", "for", "from", "was", "our", "its", "with"))


def _content_of(text: str) -> set[str]:
    return {word for word in words(text) if len(word) > 2} - _SAID_ANYWAY


def test_sessions_about_an_event_speak_of_it(spoken: tuple[World, Spoken]) -> None:
    """The first turn says it, the second takes its noun up; talk of other kinds opens with none of the events."""
    sessions = spoken[1]
    events = [(plan, turns) for plan, turns in sessions if plan.event is not None]
    assert len(events) > 25
    nouns = set()
    for plan, turns in events:
        assert plan.event is not None
        assert plan.kind is Kind.EVENT
        own = [marked(plan.event.clauses[turn.speaker]) for turn in turns[:2]]
        clause, said = _content_of(own[0].text), _content_of(turns[0].text)
        assert len(clause & said) >= 0.5 * len(clause)
        nouns.add(marked(plan.event.clauses[0]).key)
    assert len(nouns) > 5
    taken = 0
    for plan, turns in events:
        assert plan.event is not None
        key = marked(plan.event.clauses[turns[1].speaker]).key
        taken += bool(_content_of(key) & _content_of(turns[1].text))
    assert taken > 0.9 * len(events)
    told = {frozenset(_content_of(plan.event.told)) for plan, _ in events if plan.event}
    for plan, turns in sessions:
        if plan.event is None:
            assert plan.kind is not Kind.EVENT
            assert not [one for one in told if len(one) > 3 and one <= _content_of(turns[0].text)]


def test_style_and_traits_show_in_length_and_questions(spoken: tuple[World, Spoken]) -> None:
    """Those whose manner is brief say less than those whose is not; those who ask a lot end more turns with one."""
    world, sessions = spoken
    lengths: dict[str, list[int]] = {}
    asks: dict[str, list[bool]] = {}
    for plan, turns in sessions:
        for turn in turns[1:-2]:
            speaker = plan.speakers[turn.speaker]
            if not speaker.assistant:
                lengths.setdefault(speaker.agent_id, []).append(len(turn.text.split()))
                asks.setdefault(speaker.agent_id, []).append(turn.text.endswith("?"))
    by_pace = sorted(world.people, key=lambda person: person.pace)
    by_asking = sorted(world.people, key=lambda person: person.asking)

    def mean(people: Sequence[str], found: Mapping[str, Sequence[float]]) -> float:
        values = [value for one in people for value in found[one]]
        return sum(values) / len(values)

    brief, long = ([one.agent_id for one in part] for part in (by_pace[:5], by_pace[-5:]))
    few, many = ([one.agent_id for one in part] for part in (by_asking[:5], by_asking[-5:]))
    assert mean(long, lengths) > 1.1 * mean(brief, lengths)
    assert mean(many, asks) > 1.15 * mean(few, asks)


def test_manner_comes_from_style_and_traits() -> None:
    """Over many people each style has its own pace, fillers and asking, as its name says."""
    people = build_world(WorldConfig(agents=400, days=2, seed=1)).people
    by_style = {style: [one for one in people if one.style == style] for style in {one.style for one in people}}

    def mean(style: str, what: str) -> float:
        values: list[float] = [getattr(one, what) for one in by_style[style]]
        return sum(values) / len(values)

    assert mean("dry and brief", "pace") + 0.2 < mean("chatty", "pace")
    assert mean("blunt", "fillers") + 0.15 < mean("dreamy", "fillers")
    assert mean("gentle, with many questions", "asking") > 1.3 * mean("blunt", "asking")
    assert 0.97 < sum(one.pace for one in people) / len(people) < 1.03


def test_the_tie_between_speakers_shows(spoken: tuple[World, Spoken]) -> None:
    """Openings and endings use words that one tie has and another has not."""
    own = {
        "family": ("home",),
        "colleague": ("team", "colleague", "shift", "boss"),
        "friend": ("dear friend", "old friend", "friends", "my friend", "good friend"),
    }
    texts: dict[str, list[str]] = {}
    for plan, turns in spoken[1]:
        if not plan.kind.with_assistant and plan.relation:
            ends = (turns[0].text, turns[-1].text, turns[-2].text)
            texts.setdefault(plan.relation, []).append(" ".join(ends).lower())
    found = [tie for tie in own if len(texts.get(tie, ())) >= 20]
    assert len(found) >= 2
    for tie in found:
        share = {
            other: sum(any(word in text for word in own[tie]) for text in texts[other]) / len(texts[other])
            for other in found
        }
        assert share[tie] > 0.1 + max(share[other] for other in found if other != tie)
