"""Tests that offline talk is coherent: questions are answered, turns refer to the turn before."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from string import Template

import pytest
from memarena_dataset.values.generous import dates_in, numbers_in
from memarena_dataset.values.phrases import normal, phrase_occurs
from memarena_dataset_quality.tokenization import words
from memarena_masim.config import WorldConfig
from memarena_masim.engines.offline import words_of
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.grammar import Sequence_, sentences_of, tidy, wordings_of
from memarena_masim.phrases.library import library, scene_files
from memarena_masim.phrases.scenes import TALK_BEATS
from memarena_masim.plan.day import Planner
from memarena_masim.plan.frames import kind_of, more_rule, opinion_rule
from memarena_masim.plan.model import Invite, Kind, SessionPlan, Statement, Thread
from memarena_masim.realization.spoken import SpokenTurn
from memarena_masim.realization.turn import finish
from memarena_masim.world.build import build_world
from memarena_masim.world.model import World

CONFIG = WorldConfig(name="test", agents=16, days=4, density=0.5, seed=108)
COMMONEST = 150
LOCOMO_TAKEN_UP = 0.467
"""Share of LoCoMo's turns that share a content word with the turn before, measured as below on its five talks."""


def texts(world: Path) -> list[list[str]]:
    lines = (world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines()
    return [[turn["text"] for turn in json.loads(line)["turns"]] for line in lines]


def content(sessions: Sequence[Sequence[str]]) -> list[list[set[str]]]:
    """Return the words of each turn, without the commonest of the corpus."""
    tokens = [[words(text) for text in session] for session in sessions]
    counts = Counter(word for session in tokens for turn in session for word in turn)
    common = {word for word, _ in counts.most_common(COMMONEST)}
    return [[set(turn) - common for turn in session] for session in tokens]


def test_turns_take_up_words_of_the_turn_before(small_world: Path) -> None:
    """More often than LoCoMo's do, and far more often than turns that do not follow each other."""
    sessions = content(texts(small_world))
    everything = [turn for session in sessions for turn in session]
    rng = random.Random(1)
    shared = [bool(turn & next_turn) for session in sessions for turn, next_turn in pairwise(session)]
    by_chance = [bool(rng.choice(everything) & rng.choice(everything)) for _ in shared]
    assert sum(shared) / len(shared) > LOCOMO_TAKEN_UP
    assert sum(shared) / len(shared) > 2 * sum(by_chance) / len(by_chance)


def test_the_next_speaker_names_a_find_s_source_and_not_the_find(small_world: Path) -> None:
    """Most next turns name where a find came from; none names what it is."""
    turns = {
        f"{row['session_id']}_t{number:02d}": turn["text"]
        for row in map(json.loads, (small_world / "corpus_sessions.jsonl").read_text(encoding="utf-8").splitlines())
        for number, turn in enumerate(row["turns"])
    }
    source_mentions = find_mentions = count = 0
    facts = [json.loads(line) for line in (small_world / "facts.jsonl").read_text(encoding="utf-8").splitlines()]
    own = {(fact["turn_id"], fact["value"].get("text")) for fact in facts}
    for fact in facts:
        if fact["role"] != "tell" or not fact["attribute"].startswith("find"):
            continue
        session, turn_number = fact["turn_id"].rsplit("_t", 1)
        after = f"{session}_t{int(turn_number) + 1:02d}"
        following = turns.get(after)
        if following is None or (after, fact["value"]["text"]) in own:  # the next one has found such a thing, too
            continue
        count += 1
        source_mentions += fact["attribute"].removeprefix("find: the ") in following
        find_mentions += fact["value"]["text"] in following
    assert count > 20
    assert find_mentions == 0
    assert source_mentions > 0.6 * count


Spoken = list[tuple[SessionPlan, tuple[SpokenTurn, ...]]]


@pytest.fixture(scope="module")
def spoken() -> tuple[World, Spoken]:
    """A world, and its sessions with their words."""
    planner = Planner(CONFIG, build_world(CONFIG), catalogue())
    sessions: Spoken = []
    for day in range(CONFIG.days):
        plan = planner.plan(day)
        planner.commit(plan)
        sessions += [(session, words_of(CONFIG, session)) for session in plan.sessions]
    return planner.world, sessions


_SAID_ANYWAY = frozenset(("the", "and", "for", "from", "was", "our", "its", "with"))


def _content_of(text: str) -> set[str]:
    return {word for word in words(text) if len(word) > 2} - _SAID_ANYWAY


def test_sessions_about_an_event_open_with_it(spoken: tuple[World, Spoken]) -> None:
    """The first turn states it, the second repeats its noun; other sessions open with no event."""
    sessions = spoken[1]
    events = [(plan, turns) for plan, turns in sessions if plan.event is not None]
    assert len(events) > 25
    nouns = set()
    for plan, turns in events:
        assert plan.event is not None
        assert plan.kind is Kind.EVENT
        clause = _content_of(plan.event.clauses[turns[0].speaker].replace("*", ""))
        assert len(clause & _content_of(turns[0].text)) >= 0.5 * len(clause)
        nouns.add(plan.event.clauses[0].split("*")[1])
    assert len(nouns) > 5
    repeats = 0
    for plan, turns in events:
        assert plan.event is not None
        key = plan.event.clauses[turns[1].speaker].split("*")[1]
        repeats += bool(_content_of(key) & _content_of(turns[1].text))
    assert repeats > 0.9 * len(events)
    event_contents = {frozenset(_content_of(plan.event.told)) for plan, _ in events if plan.event}
    for plan, turns in sessions:
        if plan.event is None:
            assert plan.kind is not Kind.EVENT
            assert not [
                event_words
                for event_words in event_contents
                if len(event_words) > 3 and event_words <= _content_of(turns[0].text)
            ]


def test_style_and_traits_show_in_length_and_questions(spoken: tuple[World, Spoken]) -> None:
    """People of low pace say less than others; people of high ``asking`` end more turns with a question."""
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

    def mean(people: Sequence[str], measures: Mapping[str, Sequence[float]]) -> float:
        values = [value for agent_id in people for value in measures[agent_id]]
        return sum(values) / len(values)

    brief, long = ([person.agent_id for person in part] for part in (by_pace[:5], by_pace[-5:]))
    few, many = ([person.agent_id for person in part] for part in (by_asking[:5], by_asking[-5:]))
    assert mean(long, lengths) > 1.04 * mean(brief, lengths)
    assert mean(many, asks) > 1.15 * mean(few, asks)


def test_pace_fillers_and_asking_depend_on_style_and_traits() -> None:
    """Over many people, each style has its own means."""
    people = build_world(WorldConfig(agents=400, days=2, seed=1)).people
    by_style = {
        style: [person for person in people if person.style == style] for style in {person.style for person in people}
    }

    def mean(style: str, what: str) -> float:
        values: list[float] = [getattr(person, what) for person in by_style[style]]
        return sum(values) / len(values)

    assert mean("dry and brief", "pace") + 0.2 < mean("chatty", "pace")
    assert mean("blunt", "fillers") + 0.15 < mean("dreamy", "fillers")
    assert mean("gentle, with many questions", "asking") > 1.3 * mean("blunt", "asking")
    assert 0.97 < sum(person.pace for person in people) / len(people) < 1.03


def test_openings_show_the_relation_of_the_speakers(spoken: tuple[World, Spoken]) -> None:
    """Each relation has its own openings, used in many of its talks and in no others."""
    rules = library().frame.rules
    ties = ("family", "friend", "colleague", "acquaintance")
    own = {tie: [branch for line in rules[f"open.{tie}"].alternatives for branch in _texts(line)] for tie in ties}
    opening_flags: dict[str, list[bool]] = {}
    for plan, turns in spoken[1]:
        if plan.kind.with_assistant or not plan.relation:
            continue
        opening_flags.setdefault(plan.relation, []).append(any(text in turns[0].text for text in own[plan.relation]))
        others = [text for tie in ties if tie != plan.relation for text in own[tie]]
        assert not any(text in turns[0].text for text in others)
    assert len(opening_flags) >= 2
    assert all(any(flags) and not all(flags) for flags in opening_flags.values())


def _texts(line: Sequence_) -> list[str]:
    """Return the texts in the branches of a line's choices."""
    return [node.text for part in line for branch in part.branches for node in branch if len(node.text) > 12]


def test_a_talk_tells_one_half_of_a_scene(spoken: tuple[World, Spoken]) -> None:
    """The second half only to listeners who heard the first on an earlier day, and neither half twice."""
    heard_beats: dict[tuple[str, str, str], int] = {}
    day_of: dict[tuple[str, str, str], int] = {}
    second = 0
    for plan, turns in spoken[1]:
        people = [speaker.agent_id for speaker in plan.speakers]
        for thread, positions, narrator in _threads(plan):
            teller_turns = sum(turns[position].speaker == narrator for position in positions)
            assert 1 <= teller_turns <= TALK_BEATS
            assert thread.first_beat in (0, TALK_BEATS)
            for listener in people:
                if listener == people[narrator]:
                    continue
                key = (people[narrator], listener, thread.scene)
                if thread.first_beat and plan.kind is not Kind.REFLECTION:
                    assert heard_beats[key] == TALK_BEATS
                    assert day_of[key] < plan.day
                    second += 1
                heard_beats[key] = max(heard_beats.get(key, 0), thread.first_beat + TALK_BEATS)
                day_of[key] = plan.day
    assert second > 20


def scenes_with_one_amount() -> set[str]:
    """Return the scenes whose first beat can mention one amount of money, and no other."""
    scenes = set()
    for path in scene_files():
        rows = tomllib.loads(path.read_text(encoding="utf-8")) if path.suffix == ".toml" else {}
        for name, scene in rows.items():
            amounts = [key for key, spec in scene.get("values", {}).items() if str(spec).startswith("euros")]
            first = " ".join(scene["beats"][0]["tell"]) if "beats" in scene else ""
            if sum(bool(re.search(rf"\${key}\b", first)) for key in amounts) == 1:
                scenes.add(f"{path.stem}.{name}")
    return scenes


def test_a_teller_s_values_of_a_scene_are_the_same_in_every_talk(spoken: tuple[World, Spoken]) -> None:
    """They differ between tellers. Each talk is worded twice, the second time as a session with another id."""
    scenes = scenes_with_one_amount()
    amounts: dict[tuple[str, str], list[str]] = {}
    for plan, turns in spoken[1]:
        index = 0
        for thread in plan.threads:
            first, index = index, index + thread.turns
            if thread.scene not in scenes or thread.first_beat:
                continue
            other = words_of(CONFIG, replace(plan, session_id=f"{plan.session_id}-again"))
            for words_of_talk in (turns, other):
                opening = next(turn for turn in words_of_talk[first:index] if turn.speaker == thread.narrator)
                mentioned = re.findall(r"(\d+) euros", opening.text)
                if len(mentioned) == 1:  # news in the same turn may have another one
                    amounts.setdefault((thread.scene, plan.speakers[thread.narrator].agent_id), []).extend(mentioned)
    assert sum(len(values) > 1 for values in amounts.values()) > 20
    assert [key for key, values in amounts.items() if len(set(values)) > 1] == []
    tellers: dict[str, set[str]] = {}
    for (scene, _), values in amounts.items():
        tellers.setdefault(scene, set()).update(values)
    assert sum(len(values) > 1 for values in tellers.values()) > 5


def test_an_assistant_does_not_claim_a_private_life(spoken: tuple[World, Spoken]) -> None:
    """A friend's addition to a question ("I only run for the bus") is not said by an assistant."""
    texts_of_assistants = [
        turn.text for plan, turns in spoken[1] for turn in turns if plan.speakers[turn.speaker].assistant
    ]
    assert len(texts_of_assistants) > 200
    assert not [
        text
        for text in texts_of_assistants
        if re.search(r"\b[Mm]y (?:mother|sister|grandfather|family|legs|flat)\b", text)
    ]


def _threads(plan: SessionPlan) -> list[tuple[Thread, range, int]]:
    """Return the threads of a session that tell a scene, as (thread, its turns, index of the teller)."""
    threads, first = [], 0
    for thread in plan.threads:
        if thread.scene:
            threads.append((thread, range(first, first + thread.turns), thread.narrator))
        first += thread.turns
    return threads


def _reaction(plan: SessionPlan, statement: Statement, assistant: bool) -> set[str]:
    """Return the beginnings of turns that may react to a statement."""
    form, attribute, person = statement.frame.split(".")
    fact_catalogue, frame = catalogue(), library().frame.rules
    kind = "tie" if attribute in ("friends", "not_friends") else kind_of(statement, fact_catalogue)
    if assistant:
        own = (
            frame[f"pa.react.{kind}"]
            if attribute not in fact_catalogue.topics
            else fact_catalogue.bank.rules[f"noted.{kind}"]
        )
        rule = frame["pa.react.told"] if person == "told" else own
    elif form == "change":
        rule = frame["react.change"]
    else:
        rule = (
            frame[f"react.{kind}"]
            if attribute not in fact_catalogue.topics
            else fact_catalogue.bank.rules[f"heard.{kind}.{person}"]
        )
    slots = dict(statement.slots)
    return {finish(tidy(Template(text).safe_substitute(slots))) for text in wordings_of(rule)}


def test_the_next_turn_reacts_to_every_fact(spoken: tuple[World, Spoken]) -> None:
    """No fact is in the last turn of a session, after which no one could react."""
    count = 0
    for plan, turns in spoken[1]:
        for statement in plan.statements:
            assert statement.turn < plan.turn_count - 1
            following = turns[statement.turn + 1]
            assistant = plan.speakers[following.speaker].assistant
            assert any(text in following.text for text in _reaction(plan, statement, assistant)), following.text
            count += 1
    assert count > 500


def test_no_reaction_holds_a_value_or_a_number() -> None:
    """Neither what the facts of a kind may be, nor a number or a day."""
    fact_catalogue = catalogue()
    rules = {name: rule for name, rule in fact_catalogue.bank.rules.items() if name.startswith(("heard.", "noted."))}
    rules |= {name: rule for name, rule in library().frame.rules.items() if ".react." in f".{name}."}
    assert len(rules) > 80
    a_day = date(2025, 1, 1)
    for name, rule in rules.items():
        kind = fact_catalogue.attributes.get(name.split(".")[1])
        values = kind.kind.choices if kind is not None and kind.kind.type in ("name", "place", "term") else ()
        for text in wordings_of(rule):
            assert not numbers_in(text), (name, text)
            assert dates_in(text, a_day) == {a_day}, (name, text)
            assert not [value for value in values if phrase_occurs(value, normal(text))], (name, text)


def _asks(plan: SessionPlan, statement: Statement) -> set[str]:
    """Return the ends of turns that may ask for a statement."""
    rules, bank = library().frame.rules, catalogue().bank.rules
    slots = {"weekday": plan.weekday, "daypart": plan.daypart, "weather": plan.weather, **dict(statement.slots)}
    if plan.kind.with_assistant or statement.invite is Invite.OPEN:
        person = "open" if statement.frame_parts.person == "own" else "others"
        name = "pa.invited" if plan.kind.with_assistant else f"invited.{person}"
        asks = [text for rule in (name, f"{name}.first") if rule in rules for text in wordings_of(rules[rule])]
        return {finish(Template(text).safe_substitute(slots)) for text in asks}
    rule = bank[f"invite.{statement.frame_parts.attribute}"]
    return {Template(text).safe_substitute(slots) for text in wordings_of(rule)}


def test_a_fact_is_asked_for_as_planned_or_brought_up_by_its_speaker(spoken: tuple[World, Spoken]) -> None:
    """Between people, the turn before asks openly or by the thing; an unasked fact begins after a few words."""
    count: Counter[tuple[bool, Invite]] = Counter()
    for plan, turns in spoken[1]:
        for statement in plan.statements:
            if statement.prompt:
                continue
            assistant = plan.kind.with_assistant
            count[assistant, statement.invite] += 1
            before = turns[statement.turn - 1].text
            if assistant or statement.invite is not Invite.NONE:
                assert any(before.endswith(tuple({text, text.split(": ")[-1]})) for text in _asks(plan, statement))
            else:
                assert not before.endswith("?") or any(before.endswith(text) for text in _more())
    assert count[True, Invite.NONE] > 200
    assert min(count[False, invite] for invite in (Invite.NONE, Invite.OPEN)) > 40
    assert count[False, Invite.THING] > 2


def test_a_new_fact_begins_with_what_made_its_speaker_think_of_it(spoken: tuple[World, Spoken]) -> None:
    """Told to a person, and no other fact: not a changed value, another person's fact, or one for an assistant."""
    rules = catalogue().bank.rules
    occasions = {text for name, rule in rules.items() if name.startswith("why.") for text in wordings_of(rule)}
    count: Counter[bool] = Counter()
    for plan, turns in spoken[1]:
        for statement in plan.statements:
            text = turns[statement.turn].text
            fits = statement.is_new and not plan.kind.with_assistant
            count[fits] += 1
            has_occasion = any(occasion in text for occasion in occasions)
            leads_up = re.search(
                r"(?:have I told|did I tell|do you remember|don't laugh|you won't|I don't know wh)", text, re.I
            )
            assert has_occasion == fits or (fits and leads_up), text
    assert min(count.values()) > 100


def _more() -> set[str]:
    return {finish(text) for text in wordings_of(library().frame.rules["ask.more"])}


def test_a_fact_between_people_is_taken_up_before_its_teller_says_more(spoken: tuple[World, Spoken]) -> None:
    """The lines that follow are in the teller's next turn, which states nothing else."""
    count = 0
    for plan, turns in spoken[1]:
        if plan.kind.with_assistant:
            continue
        for statement in plan.statements:
            turn = turns[statement.turn + len(plan.speakers)]
            assert turn.speaker == turns[statement.turn].speaker
            lines = catalogue().bank.rules[more_rule(statement, catalogue())].alternatives
            for number in statement.later:
                count += 1
                slots = catalogue().bank.slots_of(lines[number])
                words = _content_of(" ".join(node.text for node in lines[number])) - slots
                assert len(words & _content_of(turn.text)) >= 0.7 * len(words)
    assert count > 100


def test_a_fact_that_is_added_to_a_story_is_taken_up_before_the_story_goes_on(spoken: tuple[World, Spoken]) -> None:
    """The turn after it is the story's teller's: a reaction, a line that leads back, and the next beat or question."""
    rules = library().frame.rules
    ways_back = [text.split(" $matter")[0] for rule in ("back", "enough") for text in wordings_of(rules[rule])]
    count = 0
    for plan, turns in spoken[1]:
        for statement in plan.statements:
            if plan.kind.with_assistant or plan.in_news(statement.turn):
                continue
            count += 1
            text = turns[statement.turn + 1].text
            position = next(text.index(way) for way in ways_back if way in text)
            assert position > 10
            next_beat = not any(first == statement.turn + 1 for first in _first_turns(plan))
            assert len(text) - position > (100 if next_beat else 40)
    assert count > 100


def _first_turns(plan: SessionPlan) -> list[int]:
    """Return the first turn of each thread."""
    return [sum(thread.turns for thread in plan.threads[:number]) for number in range(len(plan.threads))]


def test_an_invented_name_belongs_to_one_person(spoken: tuple[World, Spoken]) -> None:
    """No name is shared by people of two scenes in one talk or of one teller, or with a person of the world."""
    names: dict[tuple[str, str], set[str]] = {}
    real = {person.first_name for person in spoken[0].people}
    for plan, _ in spoken[1]:
        talk_names = [name for thread in plan.threads for _, name in thread.names]
        assert len(talk_names) == len(set(talk_names))
        for thread in plan.threads:
            teller = plan.speakers[thread.narrator].agent_id
            names.setdefault((teller, thread.scene), set()).update(name for _, name in thread.names)
    for teller in {who for who, _ in names}:
        of_teller = [name for (who, _), in_scene in names.items() if who == teller for name in in_scene]
        assert len(of_teller) == len(set(of_teller)) > 5
        assert not real & set(of_teller)


def test_answers_use_only_values_that_the_teller_said_in_the_talk(spoken: tuple[World, Spoken]) -> None:
    """Each name of a scene in an answer occurs in an earlier turn of the talk."""
    count = 0
    for plan, turns in spoken[1]:
        for thread, positions, narrator in _threads(plan):
            names = {name for _, name in thread.names}
            for position in positions:
                if turns[position].speaker == narrator:
                    continue
                earlier_text = " ".join(turn.text for turn in turns[:position])
                answer_names = names & set(re.findall(r"\w+", turns[position].text))
                assert answer_names <= set(re.findall(r"\w+", earlier_text)), turns[position].text
                count += len(answer_names)
    assert count > 50


def test_a_third_person_speaks_after_the_teller_has_begun(spoken: tuple[World, Spoken]) -> None:
    """And says no line twice in a talk."""
    count = 0
    for plan, turns in spoken[1]:
        if len(plan.speakers) < 3:
            continue
        for thread, positions, narrator in _threads(plan):
            lines = [text for line in library().scenes[thread.scene].lines["also"] for text in _texts(line)]
            first_position = next(position for position in positions if turns[position].speaker == narrator)
            for line in lines:
                occurrences = [position for position in positions if line in turns[position].text]
                assert len(occurrences) <= 1
                assert all(position > first_position for position in occurrences)
                count += len(occurrences)
    assert count > 20


def test_lines_around_a_fact_are_new_to_all_present(spoken: tuple[World, Spoken]) -> None:
    """Within two days a person hears no added line twice; no opinion of a kind of fact is ever repeated."""
    bank = catalogue().bank
    hearing_days: dict[tuple[str, str, str], int] = {}
    lines = views = 0
    for plan, turns in spoken[1]:
        people = [speaker.agent_id for speaker in plan.speakers if not speaker.assistant]
        for statement in sorted(plan.statements, key=lambda statement: statement.turn):
            added_lines = [
                (more_rule(statement, catalogue()), str(number)) for number in (*statement.more, *statement.later)
            ]
            lines += len(added_lines)
            rule = opinion_rule(statement, catalogue())
            if statement.opinion is not None:
                assert rule is not None
                view = wordings_of(bank.rules[rule])[statement.opinion]
                assert finish(view) in turns[statement.turn + 1].text
                added_lines += [(rule, sentence) for sentence in sentences_of(view)]
                views += 1
            new = {(person, *line) for person in people for line in added_lines}
            assert not [
                line
                for line in new & set(hearing_days)
                if line[1].startswith("react.") or plan.day - hearing_days[line] < 2
            ]
            hearing_days.update(dict.fromkeys(new, plan.day))
    assert lines > 500
    assert views > 170


def test_a_scene_is_told_to_the_next_listener_in_other_words(spoken: tuple[World, Spoken]) -> None:
    """Most sentences with a choice of words differ from those to the last listener."""
    tellings: dict[tuple[str, str, int], list[set[str]]] = {}
    for plan, turns in spoken[1]:
        for thread, positions, narrator in _threads(plan):
            key = (plan.speakers[narrator].agent_id, thread.scene, thread.first_beat)
            text = " ".join(turns[position].text for position in positions if turns[position].speaker == narrator)
            tellings.setdefault(key, []).append(set(sentences_of(text)))
    shared = [
        len(sentences & next_sentences) / len(sentences)
        for sentence_sets in tellings.values()
        for sentences, next_sentences in pairwise(sentence_sets)
    ]
    assert len(shared) > 10
    assert sum(shared) / len(shared) < 0.2


def test_people_meet_all_halves_of_scenes_about_equally_often(spoken: tuple[World, Spoken]) -> None:
    """No person meets one half of a scene far more often than another."""
    encounters: Counter[tuple[str, str, int]] = Counter()
    for plan, _ in spoken[1]:
        for thread, _, _ in _threads(plan):
            encounters.update(
                (speaker.agent_id, thread.scene, thread.first_beat)
                for speaker in plan.speakers
                if not speaker.assistant
            )
    assert sum(encounters.values()) > 500
    assert sum(count > 1 for count in encounters.values()) < 0.05 * len(encounters)
