"""Tests costs: medians over the log's answers, and n/a if there are too few."""

from __future__ import annotations

import pytest
from memarena.log.records import AnyRecord
from memarena.scoring.costs import RowCosts, run_costs
from memarena.scoring.run_facts import gather
from memarena_dataset.model import Family

from ..support.logs import cloze, make_asked, make_call, make_cell, make_ingest, make_question, make_run
from ..support.scoring import score_records

CELL = make_cell("bm25")


def costs_of(count: int, *, growing: bool = True, tokens: bool = True, timed: bool = True) -> RowCosts:
    """Return the costs of ``count`` questions, one a day.

    Each day adds ten turns (with ``growing``), and a Search takes 1 ms more.
    """
    questions = [
        make_question(f"q_{n:02d}", Family.CLOZE, cloze("A", "x", "y"), "Which?", day=n if growing else 0)
        for n in range(count)
    ]
    body: list[AnyRecord] = [make_ingest(CELL, day, sessions=1) for day in range(count)]
    for n, question in enumerate(questions):
        call = make_call(f"c{n}", CELL, question, ttft_ms=100, server_ms=98)
        update = {"last_content_ns": 210_000_000, "completion_tokens": 12 if tokens else None}
        body.append(call.model_copy(update=update))
        body.append(make_asked(CELL, question, "A", search_ms=1 + n, ttft_ms=100, call_ids=[f"c{n}"]))
    records = make_run([CELL.model_copy(update={"timing": timed})], questions, [], body)
    scored = score_records(records)
    return run_costs(gather(records), scored.scores.rows, scored.questions)[0]


def test_efficiency_is_read_from_the_call_that_wrote_the_answer() -> None:
    efficiency = costs_of(12).efficiency
    assert efficiency is not None
    assert (efficiency.questions, efficiency.model_calls) == (12, 1.0)
    assert (efficiency.prompt_tokens_p50, efficiency.completion_tokens_p50) == (300, 12)
    assert efficiency.decode_tokens_per_s_p50 == pytest.approx(11 / 0.110)
    assert efficiency.answer_ms.p50 == pytest.approx(150)


def test_too_few_answers_have_no_medians() -> None:
    efficiency = costs_of(10).efficiency
    assert efficiency is not None
    assert (efficiency.prompt_tokens_p50, efficiency.decode_tokens_per_s_p50, efficiency.answer_ms.p50) == (
        None,
        None,
        None,
    )


def test_a_server_that_counts_no_tokens_has_no_speed() -> None:
    efficiency = costs_of(12, tokens=False).efficiency
    assert efficiency is not None
    assert (efficiency.completion_tokens_p50, efficiency.decode_tokens_per_s_p50) == (None, None)


def test_search_times_are_given_by_quarters_of_the_memorys_size() -> None:
    buckets = costs_of(44).history
    assert [(b.turns_low, b.turns_high) for b in buckets] == [(10, 110), (120, 220), (230, 330), (340, 440)]
    assert [b.search.p50 for b in buckets] == [6, 17, 28, 39]


def test_a_memory_that_did_not_grow_has_no_quarters() -> None:
    assert costs_of(12, growing=False).history == ()


def test_costs_by_day_of_the_life() -> None:
    days = costs_of(12, growing=False).days
    assert [day.day for day in days] == list(range(12))
    assert [day.turns_held for day in days] == [10.0 * n for n in range(1, 13)]
    assert {day.ingest_ms for day in days} == {500.0}
    assert [day.search.n for day in days] == [12] + [0] * 11
    assert days[0].search.p50 == pytest.approx(6.5)
    assert [day.search.p50 for day in costs_of(3).days] == [None, None, None]
    assert {day.ingest_ms for day in costs_of(3, timed=False).days} == {None}
