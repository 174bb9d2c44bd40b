"""Laws of planned days, over seeds: schedules, meetings, knowledge."""

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


def simulate(seed: int, agents: int = 9, days: int = 4, density: float = 0.6) -> tuple[Planner, list[DayPlan]]:
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
def test_feelings_count_from_the_next_day_on_and_name_where_they_come_from(seed: int) -> None:
    """Impressions: committed at midnight, of people met, with the sessions in which they were met."""
    config = WorldConfig(agents=8, days=3, density=0.5, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    met: dict[tuple[str, str], set[str]] = {}
    for day in range(3):
        before = {person: dict(known) for person, known in planner.impressions.of.items()}
        plan = planner.plan(day)
        assert {person: dict(known) for person, known in planner.impressions.of.items()} == before
        planner.commit(plan)
        for session in plan.sessions:
            people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
            for one in people:
                for other in people:
                    met.setdefault((one, other), set()).add(session.session_id)
    assert planner.impressions.of
    for person, known in planner.impressions.of.items():
        for other, seen in known.items():
            assert set(seen.session_ids) <= met[person, other]
            assert -2 <= seen.warmth <= 2


@given(seeds)
@SLOW
def test_only_those_who_could_see_an_event_talk_of_it(seed: int) -> None:
    """Everybody in a session about an event could see it, and it has happened; masks are those of the categories."""
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
def test_nobody_talks_asleep_twice_at_once_or_behind_closed_doors(seed: int) -> None:
    """Waking hours, one session at a time, opening hours."""
    planner, plans = simulate(seed)
    for plan in plans:
        seen: set[tuple[str, int]] = set()
        for session in plan.sessions:
            slot = int((session.start - plan.day) * 96 + 1e-9)
            people = [speaker.agent_id for speaker in session.speakers if not speaker.assistant]
            for person in people:
                assert plan.schedules[person].awake(slot)
                assert (person, slot) not in seen
                seen.add((person, slot))
            if session.place_id is not None:
                place = planner.world.places[session.place_id]
                assert place.opens <= slot / 4 < place.closes
                assert session.modality == "face_to_face"


@given(seeds)
@SLOW
def test_nothing_is_known_without_a_path_of_provenance(seed: int) -> None:
    """Whoever speaks of somebody else's fact heard it on an earlier day, and so did those before."""
    _, plans = simulate(seed)
    heard: dict[str, dict[str, int]] = {}
    for plan in plans:
        for stated in plan.stated:
            if stated.fact.kind is FactKind.COMMUNITY:
                continue  # what somebody lives in needs no teller; that they live in it is a law of its own
            if stated.speaker != stated.fact.subject:
                known = heard.get(stated.speaker, {}).get(stated.fact.fact_id)
                assert known is not None, stated
                assert known < plan.day
        for stated in plan.stated:
            for person in stated.people:
                if person != stated.speaker:
                    heard.setdefault(person, {}).setdefault(stated.fact.fact_id, plan.day)


@given(seeds)
@SLOW
def test_a_plan_of_a_day_does_not_know_the_day(seed: int) -> None:
    """Temporal isolation: until the commit, planning has not changed what anybody knows."""
    config = WorldConfig(agents=8, days=3, density=0.5, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    planner.commit(planner.plan(0))
    before = {person: dict(facts) for person, facts in planner.knowledge.heard.items()}
    plan = planner.plan(1)
    assert {person: dict(facts) for person, facts in planner.knowledge.heard.items()} == before
    planner.commit(plan)
    assert planner.knowledge.heard != before


@given(seeds)
@SLOW
def test_a_day_planned_twice_is_the_same_both_times(seed: int) -> None:
    """Planning changes nothing that lasts: what was chosen counts from the commit on."""
    config = WorldConfig(agents=6, days=3, density=0.5, seed=seed)
    planner = Planner(config, build_world(config), catalogue())
    for day in range(3):
        first = planner.plan(day)
        assert planner.plan(day) == first
        planner.commit(first)
    assert planner.plan(0) != first


@given(seeds)
@SLOW
def test_a_commit_makes_what_was_chosen_last(seed: int) -> None:
    """No fact is told to the same listener on two days by the one whom it is about."""
    _, plans = simulate(seed, agents=6, days=3)
    told: set[tuple[str, str]] = set()
    for plan in plans:
        for stated in plan.stated:
            if stated.role is Role.TELL:
                pairs = {(stated.fact.fact_id, one) for one in stated.people if one != stated.speaker}
                assert not pairs & told
                told |= pairs


@given(seeds)
@SLOW
def test_only_versions_change_a_value_and_each_detail_has_one_at_most(seed: int) -> None:
    """A conflict is planned, once, by somebody other than the subject and the one who told it first."""
    planner, _ = simulate(seed, agents=8, days=6, density=0.8)
    versions = [stated for stated in planner.knowledge.said if stated.role is Role.VERSION]
    assert len({stated.fact.fact_id for stated in versions}) == len(versions)
    for stated in planner.knowledge.said:
        changed = stated.value.text != stated.fact.value.text
        assert changed == (stated.role is Role.VERSION)
    for stated in versions:
        assert stated.fact.subject not in stated.people


def test_kinds_of_sessions_keep_their_shares() -> None:
    """Routine topics, events, encounters and remote talk as stated, within five points."""
    _, plans = simulate(7, agents=30, days=6, density=1.0)
    counts = Counter(session.kind for plan in plans for session in plan.sessions if not session.kind.with_assistant)
    total = sum(counts.values())
    for kind, share in KIND_SHARES:
        assert counts[kind] / total == pytest.approx(share, abs=0.05)


def test_a_reference_across_sessions_does_not_name_its_thing(small_world: object) -> None:
    """The later word on a find is spoken on a later day to one who heard the first."""
    planner, _ = simulate(11, agents=8, days=6, density=0.8)
    first: dict[str, int] = {}
    fates = 0
    for stated in planner.knowledge.said:
        if stated.role is Role.FATE:
            fates += 1
            assert first[stated.fact.fact_id] < stated.day
        elif stated.fact.attribute == "find":
            first.setdefault(stated.fact.fact_id, stated.day)
    assert fates > 5
