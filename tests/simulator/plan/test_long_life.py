"""Tests planning over 200 days: statements spread evenly, and dates are future and read without a year."""

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
    """The plans of all days of LONG."""
    planner = Planner(LONG, build_world(LONG), catalogue())
    plans = []
    for day in range(LONG.days):
        plans.append(planner.plan(day))
        planner.commit(plans[-1])
    return plans


def test_the_last_months_hold_about_as_much_as_the_first(days: list[DayPlan]) -> None:
    """People's facts are spread over their life instead of being told in its first weeks."""
    third = LONG.days // 3
    first, last = (sum(len(plan.stated) for plan in part) for part in (days[:third], days[-third:]))
    assert last > 0.6 * first > 0


def test_presets_up_to_l_have_pace_1_and_year_has_less() -> None:
    """Up to the size of the released data set (l), statements are made at full pace."""
    assert {preset(name, 1).pace for name in ("tiny", "s", "m", "l")} == {1.0}
    assert preset("year", 1).pace < 0.1


def test_dates_of_details_are_in_the_future_and_read_unambiguously(days: list[DayPlan]) -> None:
    """Month and day without a year, read on the day of the statement, give the planned date."""
    dated = [
        (statement, LONG.calendar_epoch + timedelta(days=plan.day))
        for plan in days
        for statement in plan.stated
        if isinstance(statement.value.value, DateValue)
    ]
    months = {statement.value.value.date[:7] for statement, _ in dated if isinstance(statement.value.value, DateValue)}
    assert len(months) > LONG.days // 30
    for statement, today in dated:
        assert isinstance(statement.value.value, DateValue)
        assert {date.isoformat() for date in explicit_dates_in(statement.value.text, today)} == {
            statement.value.value.date
        }
        if statement.fact.kind is FactKind.DETAIL:
            assert statement.value.value.date >= today.isoformat()
