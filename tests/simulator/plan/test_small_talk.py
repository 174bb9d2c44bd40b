"""What is mentioned in passing: as much as is planned, of the same kinds, nothing that a question could be about."""

from __future__ import annotations

from collections import Counter

import pytest
from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.facts.parting import MENTIONED_SHARE, parted
from memarena_masim.plan.day import DayPlan, Planner, news_turns
from memarena_masim.plan.model import NEWS
from memarena_masim.world.build import build_world

CONFIG = WorldConfig(agents=10, days=5, density=0.8, seed=212)


@pytest.fixture(scope="module")
def plans() -> list[DayPlan]:
    config = CONFIG
    planner = Planner(config, build_world(config), catalogue())
    found = []
    for day in range(config.days):
        plan = planner.plan(day)
        planner.commit(plan)
        found.append(plan)
    return found


def test_what_is_mentioned_is_nothing_that_is_planned(plans: list[DayPlan]) -> None:
    """No item, happening or source of a statement comes up in small talk, nor a thing that somebody found."""
    planned = {(one.fact.attribute, one.fact.item) for plan in plans for one in plan.stated}
    mentioned = {(one.fact.attribute, one.fact.item) for plan in plans for one in plan.mentioned}
    assert len(mentioned) > 50
    assert not planned & mentioned
    things = [
        {one.value.text for plan in plans for one in stated if one.fact.attribute == "find"}
        for plan in plans
        for stated in (plan.stated, plan.mentioned)
    ]
    assert not set().union(*things[::2]) & set().union(*things[1::2])


def test_as_much_is_mentioned_as_is_planned_and_of_the_same_kinds(plans: list[DayPlan]) -> None:
    planned = Counter(one.fact.attribute for plan in plans for one in plan.stated)
    mentioned = Counter(one.fact.attribute for plan in plans for one in plan.mentioned)
    assert 0.7 < mentioned.total() / planned.total() < 2.0
    in_confidence = {key for key, one in catalogue().attributes.items() if one.confidential}
    assert set(mentioned) <= set(planned) | in_confidence


def test_news_have_turns_of_their_own_each_with_one_thing(plans: list[DayPlan]) -> None:
    """One thread of a talk, whose turns state nearly all one thing; the first and the last turn state nothing."""
    sessions = [session for plan in plans for session in plan.sessions]
    full = possible = 0
    for session in sessions:
        assert sum(thread.topic == NEWS for thread in session.threads) == 1
        turns = [one.turn for one in session.statements]
        assert len(turns) == len(set(turns))
        assert set(turns) <= set(news_turns(session))
        assert not {0, session.turn_count - 1} & set(turns)
        full, possible = full + len(turns), possible + len(news_turns(session))
    assert full > 0.85 * possible
    places = Counter(next(n for n, one in enumerate(session.threads) if one.topic == NEWS) for session in sessions)
    assert min(places[0], places[1]) > 0.2 * len(sessions)


def test_a_person_says_the_same_of_a_thing_to_everybody(plans: list[DayPlan]) -> None:
    values: dict[tuple[str, str, str], set[str]] = {}
    for plan in plans:
        for one in plan.mentioned:
            values.setdefault((one.fact.subject, one.fact.attribute, one.fact.item), set()).add(one.value.text)
    assert len(values) > 100
    assert all(len(found) == 1 for found in values.values())


def test_nothing_is_mentioned_that_a_statement_could_not_be(plans: list[DayPlan]) -> None:
    """To an assistant only of oneself and no finds; of others only of people one knows, and not on the first day."""
    world, told = build_world(CONFIG), 0
    for plan in plans:
        for one in plan.mentioned:
            if len(one.people) == 1:
                assert one.fact.subject == one.speaker
                assert one.fact.attribute != "find"
            elif one.fact.subject != one.speaker:
                told += 1
                assert plan.day > 0
                assert not one.fact.guarded
                assert one.fact.subject not in one.people
                assert world.edge(one.speaker, one.fact.subject).layer >= 0
    assert told > 10


def test_what_is_only_mentioned_differs_from_world_to_world() -> None:
    """So no word tells whether a question may be about it."""
    found = catalogue()
    pairs = [parted(found, key) for key in ("one", "two", "three")]
    for asked, mentioned in pairs:
        assert not set(asked.happenings) & set(mentioned.happenings)
        assert sorted((*asked.sources, *mentioned.sources)) == sorted(found.sources)
        for name, attribute in mentioned.attributes.items():
            items = found.attributes[name].items
            assert sorted((*attribute.items, *asked.attributes[name].items)) == sorted(items)
            assert len(attribute.items) == max(1, round(MENTIONED_SHARE * len(items)))
    assert len({mentioned.sources for _, mentioned in pairs}) == 3
