"""Tests plan/day.py over many seeds: schedules, meetings, and what people know and feel from the next day on."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memarena_masim.config import WorldConfig
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.plan.day import DayPlan, Planner
from memarena_masim.plan.meetings import KIND_SHARES
from memarena_masim.plan.state import FactKind, Role
from memarena_masim.world.build import build_world

SLOW = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 10**6)


def simulate(seed: int, agents: int = 9, days: int = 4, density: float = 0.3) -> tuple[Planner, list[DayPlan]]:
    config = WorldConfig(agents=agents, days=days, density=density, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    plans = []
    for day in range(days):
        plan = planner.plan(day)
        planner.commit(plan)
        plans.append(plan)
    return planner, plans


@given(seeds)
@SLOW
def test_impressions_change_only_at_commit_and_name_their_sessions(seed: int) -> None:
    """An impression is of a person who was met, lists sessions with that person, and has a warmth from -2 to 2."""
    config = WorldConfig(agents=8, days=3, density=0.25, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    sessions_of_pair: dict[tuple[str, str], set[str]] = {}
    for day in range(3):
        before = {person: dict(known) for person, known in planner.impressions.of.items()}
        plan = planner.plan(day)
        assert {person: dict(known) for person, known in planner.impressions.of.items()} == before
        planner.commit(plan)
        for session in plan.sessions:
            people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
            for agent in people:
                for other in people:
                    sessions_of_pair.setdefault((agent, other), set()).add(session.session_id)
    assert planner.impressions.of
    for person, known in planner.impressions.of.items():
        for other, impression in known.items():
            assert set(impression.session_ids) <= sessions_of_pair[person, other]
            assert -2 <= impression.warmth <= 2


@given(seeds)
@SLOW
def test_all_speakers_of_a_session_about_an_event_could_see_it(seed: int) -> None:
    """The event is over when the session starts; the number of people who could see it fits its category."""
    planner, plans = simulate(seed)
    events = {event.event_id: event for plan in plans for event in plan.events}
    for event in events.values():
        if event.category == "private":
            assert len(event.mask) == 1
        if event.category == "dyadic":
            assert len(event.mask) == 2
        if event.category == "global":
            assert len(event.mask) == len(planner.world.people)
    for plan in plans:
        for session in plan.sessions:
            for event_id in session.event_ids:
                people = [speaker.agent_id for speaker in session.speakers]
                assert set(people) <= set(events[event_id].mask)
                assert events[event_id].time <= session.start


@given(seeds)
@SLOW
def test_people_in_a_session_are_awake_in_one_session_and_within_opening_hours(seed: int) -> None:
    """No person is in two sessions of a quarter hour; a session with a place is face to face."""
    planner, plans = simulate(seed)
    for plan in plans:
        busy_slots: set[tuple[str, int]] = set()
        for session in plan.sessions:
            slot = int((session.start - plan.day) * 96 + 1e-9)
            people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
            for person in people:
                assert plan.schedules[person].awake(slot)
                assert (person, slot) not in busy_slots
                busy_slots.add((person, slot))
            if session.place_id is not None:
                place = planner.world.places[session.place_id]
                assert place.opens <= slot / 4 < place.closes
                assert session.modality == "face_to_face"


@given(seeds)
@SLOW
def test_speakers_heard_other_people_s_facts_on_an_earlier_day(seed: int) -> None:
    """Every statement has a path of provenance back to the fact's subject."""
    _, plans = simulate(seed)
    hearing_days: dict[str, dict[str, int]] = {}
    for plan in plans:
        for statement in plan.stated:
            if statement.fact.kind is FactKind.COMMUNITY:
                continue  # facts of homes, workplaces and groups are known without having been heard
            if statement.speaker != statement.fact.subject:
                known = hearing_days.get(statement.speaker, {}).get(statement.fact.fact_id)
                assert known is not None, statement
                assert known < plan.day
        for statement in plan.stated:
            for person in statement.people:
                if person != statement.speaker:
                    hearing_days.setdefault(person, {}).setdefault(statement.fact.fact_id, plan.day)


@given(seeds)
@SLOW
def test_planning_does_not_change_knowledge_before_the_commit(seed: int) -> None:
    """Temporal isolation: what is said on a day is known to no person before its commit."""
    config = WorldConfig(agents=8, days=3, density=0.25, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    planner.commit(planner.plan(0))
    before = {person: dict(facts) for person, facts in planner.knowledge.heard.items()}
    plan = planner.plan(1)
    assert {person: dict(facts) for person, facts in planner.knowledge.heard.items()} == before
    planner.commit(plan)
    assert planner.knowledge.heard != before


@given(seeds)
@SLOW
def test_planning_a_day_twice_gives_the_same_plan(seed: int) -> None:
    """Choices of a plan that is not committed have no effect."""
    config = WorldConfig(agents=6, days=3, density=0.25, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    for day in range(3):
        first = planner.plan(day)
        assert planner.plan(day) == first
        planner.commit(first)
    assert planner.plan(0) != first


@given(seeds)
@SLOW
def test_no_subject_tells_a_fact_to_a_listener_on_two_days(seed: int) -> None:
    """A commit makes the planner's choices permanent."""
    _, plans = simulate(seed, agents=6, days=3)
    told_pairs: set[tuple[str, str]] = set()
    for plan in plans:
        for statement in plan.stated:
            if statement.role is Role.TELL:
                pairs = {(statement.fact.fact_id, person) for person in statement.people if person != statement.speaker}
                assert not pairs & told_pairs
                told_pairs |= pairs


@given(seeds)
@SLOW
def test_only_versions_change_a_value_and_all_of_a_detail_to_the_same_one(seed: int) -> None:
    """Each listener heard the detail before, and hears one version; who states a version heard none.

    The fact's subject is not in the session in which another person states a version.
    """
    planner, _ = simulate(seed, agents=8, days=6, density=0.8)
    statements = planner.knowledge.said
    for statement in statements:
        assert (statement.value.text != statement.fact.value.text) == (statement.role is Role.VERSION)
    values: dict[str, set[str]] = {}
    sides: dict[str, tuple[set[str], list[str]]] = {}
    for version in (candidate for candidate in statements if candidate.role is Role.VERSION):
        assert version.fact.subject not in version.people
        values.setdefault(version.fact.fact_id, set()).add(version.value.text)
        tellers, contradicted = sides.setdefault(version.fact.fact_id, (set(), []))
        tellers.add(version.speaker)
        [listener] = set(version.people) - {version.speaker}
        contradicted.append(listener)
        before = [
            candidate
            for candidate in statements
            if candidate.fact.fact_id == version.fact.fact_id and candidate.day < version.day
        ]
        assert {listener, version.speaker} <= {
            person for earlier_statement in before for person in earlier_statement.people
        }
    assert all(len(texts) == 1 for texts in values.values())
    assert all(
        len(set(listeners)) == len(listeners) and not tellers & set(listeners) for tellers, listeners in sides.values()
    )


def test_what_two_people_agree_on_may_be_contradicted_to_several() -> None:
    """A small world has few details that two people both heard."""
    planner, _ = simulate(5, agents=8, days=6, density=0.8)
    versions = Counter(statement.fact.fact_id for statement in planner.knowledge.said if statement.role is Role.VERSION)
    assert max(versions.values()) > 1


def test_kinds_of_sessions_keep_their_shares() -> None:
    """The shares of KIND_SHARES, within five points."""
    _, plans = simulate(7, agents=30, days=6, density=1.0)
    counts = Counter(session.kind for plan in plans for session in plan.sessions if not session.kind.with_assistant)
    total = sum(counts.values())
    for kind, share in KIND_SHARES:
        assert counts[kind] / total == pytest.approx(share, abs=0.05)


def test_a_fate_is_stated_on_a_later_day_than_its_find(small_world: object) -> None:
    """A fate (what became of a find) refers to the earlier session without naming the find."""
    planner, _ = simulate(11, agents=8, days=6, density=0.8)
    first_day: dict[str, int] = {}
    fates = 0
    for statement in planner.knowledge.said:
        if statement.role is Role.FATE:
            fates += 1
            assert first_day[statement.fact.fact_id] < statement.day
        elif statement.fact.attribute == "find":
            first_day.setdefault(statement.fact.fact_id, statement.day)
    assert fates > 5
