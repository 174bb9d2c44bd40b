"""A life of many months: its end holds as much as its beginning, and no date is told of in the wrong tense or year."""

from __future__ import annotations

from datetime import timedelta

import pytest
from memarena_dataset.values import DateValue
from memarena_dataset.values.generous import explicit_dates_in
from memarena_masim.config import WorldConfig, preset
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.plan.day import DayPlan, Planner
from memarena_masim.plan.state import FactKind
from memarena_masim.world.build import build_world

LONG = WorldConfig(name="test", agents=6, days=200, density=0.4, question_share=0.5, seed=121)


@pytest.fixture(scope="module")
def days() -> list[DayPlan]:
    """The plans of all days of a long life of few people."""
    planner = Planner(LONG, build_world(LONG), catalogue())
    found = []
    for day in range(LONG.days):
        found.append(planner.plan(day))
        planner.commit(found[-1])
    return found


def test_the_last_months_hold_about_as_much_as_the_first(days: list[DayPlan]) -> None:
    """What people have to tell is spread over their life instead of being told in its first weeks."""
    third = LONG.days // 3
    first, last = (sum(len(plan.stated) for plan in part) for part in (days[:third], days[-third:]))
    assert last > 0.6 * first > 0


def test_short_lives_are_told_at_full_pace() -> None:
    """The presets whose size is that of the released data set or smaller."""
    assert {preset(name, 1).pace for name in ("tiny", "s", "m", "l")} == {1.0}
    assert preset("year", 1).pace < 0.1


def test_a_date_to_come_is_to_come_and_reads_as_itself(days: list[DayPlan]) -> None:
    """A month and a day without a year mean the date of the plan to whoever hears them on that day."""
    told = [
        (stated, LONG.calendar_epoch + timedelta(days=plan.day))
        for plan in days
        for stated in plan.stated
        if isinstance(stated.value.value, DateValue)
    ]
    months = {stated.value.value.date[:7] for stated, _ in told if isinstance(stated.value.value, DateValue)}
    assert len(months) > LONG.days // 30
    for stated, today in told:
        assert isinstance(stated.value.value, DateValue)
        assert {one.isoformat() for one in explicit_dates_in(stated.value.text, today)} == {stated.value.value.date}
        if stated.fact.kind is FactKind.DETAIL:
            assert stated.value.value.date >= today.isoformat()
