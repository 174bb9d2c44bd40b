"""Tests times: percentiles need enough samples, failed questions have no time, and segments are not mixed."""

from __future__ import annotations

import pytest
from memarena.log.records import AnyRecord
from memarena.report.figures import at_least
from memarena.scoring.results import RowScores
from memarena.scoring.timing import percentiles
from memarena_dataset.model import Family

from ..support.logs import (
    cloze,
    make_asked,
    make_call,
    make_cell,
    make_ingest,
    make_question,
    make_run,
    resumed,
)
from ..support.scoring import score_records

CELL = make_cell("bm25")
QUESTIONS = [make_question(f"q_{n:03d}", Family.CLOZE, cloze("A", "x", "y"), "Which?") for n in range(40)]


def row_of(*rest: AnyRecord) -> RowScores:
    return score_records(make_run([CELL], QUESTIONS, [], rest)).scores.rows[0]


@pytest.mark.parametrize(
    ("n", "known"),
    [(0, ""), (10, ""), (11, "p50"), (63, "p50"), (64, "p50 p90"), (130, "p50 p90 p95"), (662, "p50 p90 p95 p99")],
)
def test_a_percentile_needs_its_least_number_of_samples(n: int, known: str) -> None:
    result = percentiles([float(i) for i in range(n)])
    assert [p for p in ("p50", "p90", "p95", "p99") if getattr(result, p) is not None] == known.split()
    assert result.n == n


def test_percentiles_skip_missing_samples() -> None:
    result = percentiles([None, *(float(i) for i in range(101))])
    assert (result.n, result.p50, result.p90) == (101, 50.0, 90.0)


def test_spans_are_search_ttft_rest_and_their_sum() -> None:
    figures = row_of(*(make_asked(CELL, q, "A", search_ms=2, ttft_ms=100) for q in QUESTIONS)).latency
    assert figures is not None
    assert [figures.search.p50, figures.ttft.p50, figures.rest.p50] == pytest.approx([2.0, 100.0, 2.0])
    assert (figures.end_to_end.p50, figures.first_delta.p50) == (102.0, 102.0)


def test_failed_questions_have_no_time() -> None:
    attempts = [make_asked(CELL, q, "A") for q in QUESTIONS[:20]]
    failed = [make_asked(CELL, q, status="backend_failed", cause="x", search_ms=9999) for q in QUESTIONS[20:]]
    figures = row_of(*attempts, *failed).latency
    assert figures is not None
    assert (figures.search.n, figures.search.p50) == (20, 1.0)


def test_a_cell_that_is_not_timed_has_no_latency() -> None:
    cell = make_cell("bm25", timing=False)
    records = make_run([cell], QUESTIONS, [], [make_asked(cell, q, "A") for q in QUESTIONS])
    assert score_records(records).scores.rows[0].latency is None


def test_no_sample_is_mixed_across_a_restart() -> None:
    first = [make_asked(CELL, q, "A", search_ms=1) for q in QUESTIONS[:12]]
    second = [make_asked(CELL, q, "A", search_ms=5) for q in QUESTIONS[12:]]
    figures = row_of(*first, resumed(), *second).latency
    assert figures is not None
    assert (figures.segment, figures.segments, figures.left_out) == (1, 2, 12)
    assert (figures.search.n, figures.search.p50) == (28, 5.0)


def test_the_harness_ttft_is_given_with_the_servers_own_for_the_same_calls() -> None:
    calls = [make_call(f"c{n}", CELL, q, ttft_ms=100, server_ms=97.5) for n, q in enumerate(QUESTIONS[:20])]
    attempts = [make_asked(CELL, q, "A", ttft_ms=100, call_ids=[f"c{n}"]) for n, q in enumerate(QUESTIONS[:20])]
    plain = [make_asked(CELL, q, "A", ttft_ms=900) for q in QUESTIONS[20:]]
    figures = row_of(*calls, *attempts, *plain).latency
    assert figures is not None
    assert (figures.gateway_ttft.n, figures.gateway_ttft.p50, figures.server_prompt.p50) == (20, 100.0, 97.5)


def test_only_the_call_of_the_first_text_is_a_cross_check() -> None:
    call = make_call("c0", CELL, QUESTIONS[0], ttft_ms=30, server_ms=10)
    figures = row_of(call, make_asked(CELL, QUESTIONS[0], "A", ttft_ms=100, call_ids=["c0"])).latency
    assert figures is not None
    assert figures.server_prompt.n == 0


def test_ingest_counts_each_day_once() -> None:
    days = [make_ingest(CELL, day, sessions=4, seconds=0.5) for day in range(4)]
    replayed = make_ingest(CELL, 0).model_copy(update={"replayed": True})
    figures = row_of(*days, replayed, make_ingest(CELL, 4, code="INTERNAL")).ingest
    assert figures is not None
    assert (figures.days, figures.sessions, figures.failed, figures.seconds) == (4, 16, 1, 2.0)
    assert [figures.sessions_per_s, figures.mb_per_s] == pytest.approx([8.0, 0.16])


def test_the_floor_is_that_of_the_null_backend_and_reader() -> None:
    scores = score_records(make_run([CELL], QUESTIONS, [], [])).scores
    assert scores.floor is not None
    assert [scores.floor.search.p50, scores.floor.gateway_hop.p50] == pytest.approx([0.3095, 0.9095])
    assert score_records(make_run([CELL], QUESTIONS, [], [], floor=False)).scores.floor is None


def ingest_call(number: int, **update: object) -> AnyRecord:
    call = make_call(f"c{number}", CELL, QUESTIONS[0], ttft_ms=10, server_ms=9)
    return call.model_copy(update={"phase": "ingest", **update})


def test_a_call_without_usage_is_counted_as_unknown_and_not_as_0_tokens() -> None:
    """The caller hung up before the usage, or the server reports none; the call's content and time are known."""
    no_usage = {"status": 499, "done_ns": None, "prompt_tokens": None, "completion_tokens": None}
    figures = row_of(
        make_ingest(CELL, 0),
        ingest_call(1),
        ingest_call(2, last_content_ns=2_000_000_000, **no_usage),
        ingest_call(3, prompt_tokens=None, completion_tokens=None),
        ingest_call(4, route="/v1/embeddings", prompt_tokens=7, completion_tokens=None),
        ingest_call(5, status=400, prompt_tokens=None, completion_tokens=None),
    ).ingest
    assert figures is not None
    assert (figures.model_calls, figures.prompt_tokens, figures.completion_tokens) == (5, 307, 12)
    assert (figures.unsized_calls, figures.untimed_calls) == (2, 1)
    assert figures.model_seconds == pytest.approx(4 * 0.05 + 2.0)


@pytest.mark.parametrize(
    ("value", "unknown", "digits", "text"),
    [
        (1234, 0, 0, "1,234"),
        (1234, 2, 0, "≥ 1,234"),
        (0, 2, 0, "n/a"),
        (0, 0, 0, "0"),
        (None, 2, 2, "n/a"),
        (1.5, 1, 2, "≥ 1.50"),
    ],
)
def test_a_sum_with_unknown_parts_is_a_lower_bound(value: float | None, unknown: int, digits: int, text: str) -> None:
    assert at_least(value, unknown, digits).text == text
