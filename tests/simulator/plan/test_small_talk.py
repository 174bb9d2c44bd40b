"""Tests plan/small_talk.py: about as many mentions as statements, of the same kinds, none fit for a question."""

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
    day_plans = []
    for day in range(config.days):
        plan = planner.plan(day)
        planner.commit(plan)
        day_plans.append(plan)
    return day_plans


def test_items_and_finds_of_small_talk_are_never_those_of_statements(plans: list[DayPlan]) -> None:
    """No item, happening or source of a statement is mentioned, nor the thing of a find."""
    planned = {(statement.fact.attribute, statement.fact.item) for plan in plans for statement in plan.stated}
    mentioned = {(mention.fact.attribute, mention.fact.item) for plan in plans for mention in plan.mentioned}
    assert len(mentioned) > 50
    assert not planned & mentioned
    things = [
        {
            stated_fact.value.text
            for plan in plans
            for stated_fact in stated_facts
            if stated_fact.fact.attribute == "find"
        }
        for plan in plans
        for stated_facts in (plan.stated, plan.mentioned)
    ]
    assert not set().union(*things[::2]) & set().union(*things[1::2])


def test_mentions_are_about_as_many_as_statements_and_of_the_same_kinds(plans: list[DayPlan]) -> None:
    """Between people, and with an assistant, who is told more of them."""
    planned = Counter(statement.fact.attribute for plan in plans for statement in plan.stated)
    mentioned = Counter(mention.fact.attribute for plan in plans for mention in plan.mentioned)
    in_confidence = {key for key, attribute in catalogue().attributes.items() if attribute.confidential}
    assert set(mentioned) <= set(planned) | in_confidence
    for between_people, least, most in ((False, 0.7, 3.0), (True, 0.7, 1.5)):
        statement_count, mention_count = (
            sum((len(stated_fact.people) > 1) == between_people for stated_fact in stated_facts)
            for stated_facts in (
                [statement for plan in plans for statement in plan.stated],
                [mention for plan in plans for mention in plan.mentioned],
            )
        )
        assert least < mention_count / statement_count < most


def test_an_assistant_hears_no_detail_in_passing_whose_kind_the_talk_has_already(plans: list[DayPlan]) -> None:
    details = set(catalogue().attributes)
    mentioned = {mention.statement_id for plan in plans for mention in plan.mentioned}
    with_others = 0
    for session in (session for plan in plans for session in plan.sessions if session.kind.with_assistant):
        kinds = Counter(statement.frame_parts.attribute for statement in session.statements)
        with_others += len(details & set(kinds)) > 1
        for statement in session.statements:
            if statement.statement_id in mentioned and statement.frame_parts.attribute in details:
                assert kinds[statement.frame_parts.attribute] == 1
    assert with_others > 20


def test_a_session_with_an_assistant_states_facts_in_nearly_all_turns_for_news(plans: list[DayPlan]) -> None:
    """It has one thread for them, before or after its scene; the first and last turn state none."""
    sessions = [session for plan in plans for session in plan.sessions if session.kind.with_assistant]
    full = possible = 0
    for session in sessions:
        assert sum(thread.topic == NEWS for thread in session.threads) == 1
        turns = [statement.turn for statement in session.statements]
        assert len(turns) == len(set(turns))
        assert set(turns) <= set(news_turns(session))
        assert not {0, session.turn_count - 1} & set(turns)
        full, possible = full + len(turns), possible + len(news_turns(session))
    assert full > 0.85 * possible
    places = Counter(
        next(n for n, thread in enumerate(session.threads) if thread.topic == NEWS) for session in sessions
    )
    assert min(places[0], places[1]) > 0.2 * len(sessions)


def test_a_person_mentions_the_same_value_of_an_item_to_all(plans: list[DayPlan]) -> None:
    values: dict[tuple[str, str, str], set[str]] = {}
    for plan in plans:
        for mention in plan.mentioned:
            values.setdefault((mention.fact.subject, mention.fact.attribute, mention.fact.item), set()).add(
                mention.value.text
            )
    assert len(values) > 100
    assert all(len(texts) == 1 for texts in values.values())


def test_mentions_keep_to_what_their_speaker_can_know(plans: list[DayPlan]) -> None:
    """To an assistant, only about the speaker and no finds; about others, only people whom the speaker knows."""
    world, about_others = build_world(CONFIG), 0
    for plan in plans:
        for mention in plan.mentioned:
            if len(mention.people) == 1:
                assert mention.fact.subject == mention.speaker
                assert mention.fact.attribute != "find"
            elif mention.fact.subject != mention.speaker:
                about_others += 1
                assert plan.day > 0
                assert not mention.fact.guarded
                assert mention.fact.subject not in mention.people
                assert world.edge(mention.speaker, mention.fact.subject).layer >= 0
    assert about_others > 10


def test_items_reserved_for_small_talk_differ_between_worlds() -> None:
    """So no word tells whether a question can be about it."""
    whole = catalogue()
    pairs = [parted(whole, key) for key in ("one", "two", "three")]
    for question_catalogue, mention_catalogue in pairs:
        assert not set(question_catalogue.happenings) & set(mention_catalogue.happenings)
        assert sorted((*question_catalogue.sources, *mention_catalogue.sources)) == sorted(whole.sources)
        for name, attribute in mention_catalogue.attributes.items():
            items = whole.attributes[name].items
            assert sorted((*attribute.items, *question_catalogue.attributes[name].items)) == sorted(items)
            assert len(attribute.items) == max(1, round(MENTIONED_SHARE * len(items)))
    assert len({mention_catalogue.sources for _, mention_catalogue in pairs}) == 3
