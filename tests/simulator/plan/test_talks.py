"""Tests the plan of talks between people: two stories, or a story and news, with facts that their listeners add."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from memarena_dataset.model import Family
from memarena_masim.config import ASIDES, FACTS_PER_TALK, PLANNED, WorldConfig, preset, sized
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.phrases.library import library
from memarena_masim.plan.day import DayPlan, Planner
from memarena_masim.plan.model import NEWS, Invite, SessionPlan, Statement
from memarena_masim.plan.state import FactKind, Role, StatedFact
from memarena_masim.world.build import build_world
from memarena_masim.world.model import World

CONFIG = WorldConfig(agents=16, days=6, density=0.5, seed=331)


@pytest.fixture(scope="module")
def planned() -> tuple[World, list[DayPlan]]:
    """A world and the plans of its days."""
    return _plans_of(CONFIG)


@pytest.fixture(scope="module")
def small() -> tuple[World, list[DayPlan]]:
    """A world of preset s and the plans of its days."""
    return _plans_of(preset("s", 2))


def _plans_of(config: WorldConfig) -> tuple[World, list[DayPlan]]:
    planner = Planner(config, build_world(config), catalogue())
    plans = []
    for day in range(config.days):
        plans.append(planner.plan(day))
        planner.commit(plans[-1])
    return planner.world, plans


@pytest.fixture(scope="module")
def talks(planned: tuple[World, list[DayPlan]]) -> list[SessionPlan]:
    """The talks between people."""
    return [session for plan in planned[1] for session in plan.sessions if not session.kind.with_assistant]


def _facts(plans: list[DayPlan]) -> dict[str, StatedFact]:
    """Return the facts of all statements and mentions, by statement and session."""
    return {
        f"{stated_fact.session_id} {stated_fact.statement_id}": stated_fact
        for plan in plans
        for stated_fact in (*plan.stated, *plan.mentioned)
    }


def _news(talk: SessionPlan) -> list[Statement]:
    """Return the statements of the thread for news, in order."""
    return sorted(
        (statement for statement in talk.statements if talk.in_news(statement.turn)),
        key=lambda statement: statement.turn,
    )


def test_about_half_of_the_talks_tell_two_stories_by_two_tellers(talks: list[SessionPlan]) -> None:
    stories = [talk for talk in talks if all(thread.scene for thread in talk.threads)]
    assert 0.45 < len(stories) / len(talks) < 0.65
    for talk in stories:
        first, second = talk.threads
        assert first.scene != second.scene
        assert second.narrator == (first.narrator + 1) % len(talk.speakers)


def test_news_comes_after_the_story_or_is_one_fact_that_is_asked_for_at_once(talks: list[SessionPlan]) -> None:
    counts: Counter[int] = Counter()
    at_once = 0
    for talk in talks:
        if all(thread.scene for thread in talk.threads):
            continue
        first, second = talk.threads
        news = _news(talk)
        counts[len(news)] += 1
        if first.topic == NEWS:
            at_once += 1
            assert [(statement.turn, statement.invite is Invite.NONE) for statement in news] == [(1, False)]
            assert second.scene
        else:
            assert second.topic == NEWS
            assert all(first.turns <= statement.turn < talk.turn_count - 1 for statement in news)
    assert 0.2 < at_once / counts.total() < 0.4  # half of those that have one fact, which are two thirds
    assert set(counts) == set(FACTS_PER_TALK)
    assert min(counts.values()) > 0.2 * counts.total()


def test_who_answers_a_beat_of_a_story_may_add_one_fact_that_the_teller_takes_up(talks: list[SessionPlan]) -> None:
    """At most once in a talk, between two people and if the news has fewer than two facts; it has no more lines."""
    added_to, possible, after_story, turns = 0, 0, 0, Counter[int]()
    for talk in talks:
        asides = [statement for statement in talk.statements if not talk.in_news(statement.turn)]
        fits = len(talk.speakers) == 2 and len(_news(talk)) < 2
        possible += fits
        added_to += bool(asides)
        assert len(asides) <= fits
        first = 0
        for thread, following in zip(talk.threads, (*talk.threads[1:], None), strict=True):
            for aside in asides if thread.scene else []:
                if not first <= aside.turn < first + thread.turns:
                    continue
                turns[aside.turn] += 1
                assert talk.speaker_index(aside.turn) != thread.narrator
                assert first < aside.turn
                if aside.turn == first + thread.turns - 1:
                    after_story += 1
                    assert following is not None
                    assert following.scene
                    assert talk.speaker_index(aside.turn + 1) == thread.narrator
                assert aside.invite is Invite.NONE
                assert not aside.later
                assert aside.opinion is None
            first += thread.turns
    assert 0.75 * ASIDES < added_to / possible < 0.99
    assert after_story > 10
    assert len(turns) > 6
    assert max(turns.values()) < 0.4 * added_to


def test_about_half_of_the_facts_in_talks_are_only_mentioned(talks: list[SessionPlan]) -> None:
    facts = [statement.statement_id.startswith("stmt") for talk in talks for statement in talk.statements]
    assert 0.35 < sum(facts) / len(facts) < 0.55


def test_between_two_facts_of_the_news_the_first_is_taken_up_and_its_teller_says_more(
    talks: list[SessionPlan],
) -> None:
    """The teller's next turn states nothing and mostly has further lines of the kind."""
    pairs = later = 0
    for talk in talks:
        news = _news(talk)
        turns = [statement.turn for statement in news]
        assert all(turn + len(talk.speakers) < other for turn, other in pairwise(turns))
        assert not turns or turns[-1] + len(talk.speakers) < talk.turn_count
        pairs += len(turns) > 1
        later += sum(bool(statement.later) for statement in news)
        assert all(not set(statement.later) & set(statement.more) for statement in talk.statements)
    assert pairs > 30
    assert later > 0.8 * sum(len(_news(talk)) for talk in talks)


def test_only_things_that_the_asker_heard_of_are_asked_for_by_name(
    planned: tuple[World, list[DayPlan]], talks: list[SessionPlan]
) -> None:
    """Other news is asked for openly, or its speaker brings it up."""
    hearing_days: dict[tuple[str, str], int] = {}
    by_key = _facts(planned[1])
    invites: Counter[Invite] = Counter()
    for talk in talks:
        for statement in talk.statements:
            stated_fact = by_key[f"{talk.session_id} {statement.statement_id}"]
            invites[statement.invite] += talk.in_news(statement.turn)
            if statement.invite is Invite.THING:
                asker = talk.speakers[talk.speaker_index(statement.turn - 1)].agent_id
                fact = stated_fact.fact.supersedes or stated_fact.fact.fact_id
                assert hearing_days[asker, fact] < talk.day
        for statement in talk.statements:
            stated_fact = by_key[f"{talk.session_id} {statement.statement_id}"]
            for person in stated_fact.people:
                hearing_days.setdefault((person, stated_fact.fact.fact_id), talk.day)
    assert invites[Invite.THING] > 5
    assert min(invites[Invite.OPEN], invites[Invite.NONE]) > 0.2 * invites.total()


def test_no_person_is_told_of_a_group_of_theirs(
    planned: tuple[World, list[DayPlan]], small: tuple[World, list[DayPlan]]
) -> None:
    kinds = ("group_membership", "group_place", "group_members")
    count = 0
    for world, plans in (planned, small):
        members = {group.name: set(group.members) for group in world.groups}
        group_facts = [
            stated_fact for plan in plans for stated_fact in plan.stated if stated_fact.fact.attribute in kinds
        ]
        assert all(
            not members[stated_fact.fact.item] & (set(stated_fact.people) - {stated_fact.speaker})
            for stated_fact in group_facts
        )
        count += len(group_facts)
    assert count > 5


def test_news_is_mostly_of_the_themes_of_the_story(
    planned: tuple[World, list[DayPlan]], talks: list[SessionPlan]
) -> None:
    """More often than by chance: than that of another talk. What a story's listener adds always goes with it."""
    fact_catalogue, by_key = catalogue(), _facts(planned[1])
    themed = [talk for talk in talks if talk.statements and talk.topic in fact_catalogue.themes_of_topics]
    kinds = [
        [
            by_key[f"{talk.session_id} {statement.statement_id}"]
            for statement in _news(talk)
            if statement.statement_id[:4] == "stmt"
        ]
        for talk in themed
    ]
    pairs = [
        (talk.topic, [stated_fact for stated_fact in facts if stated_fact.role is Role.TELL])
        for talk, facts in zip(themed, kinds, strict=True)
    ]
    topics = [topic for topic, _ in pairs]

    def fitting(shift: int) -> float:
        fits = [
            stated_fact.fact.theme_kind in fact_catalogue.themes_of_topics[topics[(number + shift) % len(topics)]]
            for number, (_, facts) in enumerate(pairs)
            for stated_fact in facts
        ]
        return sum(fits) / len(fits)

    for talk in talks:
        first = 0
        for thread in talk.threads:
            for statement in talk.statements:
                if thread.scene and first <= statement.turn < first + thread.turns:
                    kind = by_key[f"{talk.session_id} {statement.statement_id}"].fact.theme_kind
                    assert kind in fact_catalogue.themes_of_topics.get(thread.topic, {kind})
                    assert kind not in fact_catalogue.attributes or not fact_catalogue.attributes[kind].sensitive
            first += thread.turns
    assert fitting(0) > 0.6
    assert fitting(0) > fitting(7) + 0.15


def test_worlds_with_many_questions_have_more_talks_instead_of_more_facts_in_each() -> None:
    small, large, year = (preset(name, 1) for name in ("s", "l", "year"))
    assert small.talks_per_agent_day > large.talks_per_agent_day == year.talks_per_agent_day
    assert 0.4 < small.news_share == large.news_share < 0.6
    assert year.news_share < 0.1
    questions = sum(small.questions(family) for family in Family)
    assert small.statements_between_people > questions


def test_where_more_talks_do_not_suffice_more_of_their_facts_are_planned() -> None:
    """The shorter a life is, the fewer of its talks can refer to earlier ones."""
    tiny, small, large = (preset(name, 1) for name in ("tiny", "s", "l"))
    assert large.planned == pytest.approx(PLANNED)
    assert PLANNED < small.planned < 0.7
    assert 0.75 < tiny.planned <= sized(preset("tiny", 1), days=2).planned < 0.9


def test_people_state_a_detail_to_several_on_one_day(small: tuple[World, list[DayPlan]]) -> None:
    tellings = Counter(
        (plan.day, stated_fact.fact.fact_id)
        for plan in small[1]
        for stated_fact in plan.stated
        if stated_fact.role is Role.TELL and stated_fact.fact.kind is FactKind.DETAIL and len(stated_fact.people) > 1
    )
    assert sum(count > 1 for (day, _), count in tellings.items() if day == 0) > 5


def test_no_code_address_or_account_number_answers_what_is_new(
    planned: tuple[World, list[DayPlan]], small: tuple[World, list[DayPlan]]
) -> None:
    """They come up in the same talks, when their owner begins with them."""
    invites: Counter[Invite] = Counter()
    for _, plans in (planned, small):
        by_key = _facts(plans)
        for plan in plans:
            for talk in (session for session in plan.sessions if not session.kind.with_assistant):
                for statement in talk.statements:
                    fact = by_key[f"{talk.session_id} {statement.statement_id}"].fact
                    if fact.sensitive in ("credentials", "home_address", "payment_number"):
                        invites[statement.invite] += 1
    assert set(invites) == {Invite.NONE}
    assert invites[Invite.NONE] > 10


def test_topics_with_themes_are_topics_of_the_public_pack() -> None:
    assert set(catalogue().themes_of_topics) <= set(library().topics)


def test_no_two_facts_of_a_talk_are_of_one_kind(planned: tuple[World, list[DayPlan]], talks: list[SessionPlan]) -> None:
    by_key, pairs = _facts(planned[1]), 0
    for talk in talks:
        kinds = [by_key[f"{talk.session_id} {statement.statement_id}"].fact.theme_kind for statement in talk.statements]
        assert len(kinds) == len(set(kinds))
        pairs += len(kinds) > 1
    assert pairs > 30


def test_wishes_are_withdrawn_or_contradicted_to_who_heard_them_on_an_earlier_day(
    small: tuple[World, list[DayPlan]],
) -> None:
    """About as often as _AIMS says, though most talks keep to the themes of their story."""
    hearing_days: dict[tuple[str, str], int] = {}
    second = 0
    for plan in small[1]:
        for stated_fact in plan.stated:
            listeners = [person for person in stated_fact.people if person != stated_fact.speaker]
            if "." in stated_fact.wish.form:
                second += 1
                assert all(hearing_days[listener, stated_fact.fact.fact_id] < plan.day for listener in listeners)
            for listener in listeners:
                hearing_days.setdefault((listener, stated_fact.fact.fact_id), plan.day)
    assert second > 20
