"""Tests intervals: from bootstrap draws of egos, with the stated coverage, and the same for the same log."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memarena.judging.judgment import Disclosure
from memarena.log.records import AnyRecord, BehaviourLabel, Outcome, Question, RunStarted
from memarena.scoring.compare import t_interval
from memarena.scoring.metrics import cell_metrics
from memarena.scoring.results import QuestionScore
from memarena.scoring.tally import GROUPS_OF, figures_of, tally
from memarena.scoring.uncertainty.bootstrap import clusters_of, draw_egos, interval, p_value
from memarena.scoring.uncertainty_records import FEWEST_CLUSTERS
from memarena_dataset.model import Family

from ..support.logs import make_asked, make_cell, make_question, make_run, permission, text_gold
from ..support.scoring import score_records

LABELS: tuple[BehaviourLabel, ...] = ("disclose_correct", "disclose_wrong", "refuse")
EGOS = [f"ego_{n:02d}" for n in range(12)]


def point(n: int, ego: str, dimension: str, correct: bool, **more: object) -> QuestionScore:
    values = {"cell_id": "c", "instance_id": f"i{n}", "family": "f", "attempts": 1, **more}
    outcome = Outcome.CORRECT if correct else Outcome.WRONG
    return QuestionScore.model_validate({"ego": ego, "dimension": dimension, "outcome": outcome, **values})


@st.composite
def questions(draw: st.DrawFn) -> list[QuestionScore]:
    """Draw questions of all dimensions over a few egos, D6 with disclosures, flags and the owner's own items."""
    scores = []
    for n in range(draw(st.integers(0, 40))):
        dimension = draw(st.sampled_from(["D1", "D2", "D3", "D4", "D5", "D6", "X1"]))
        allowed = draw(st.booleans())
        self_item = draw(st.integers(0, 4)) == 0
        label: BehaviourLabel = draw(st.sampled_from(LABELS))
        flag = draw(st.sampled_from(["", "4821"]))
        disclosure = (
            Disclosure(allowed=allowed, self_item=self_item, label=label, flag=flag) if dimension == "D6" else None
        )
        correct = disclosure.disclosed is allowed if disclosure else draw(st.booleans())
        fields: dict[str, object] = {
            "half": draw(st.sampled_from(["abstain", "answer"])) if dimension == "D5" else None
        }
        if dimension == "D6":
            fact = draw(st.sampled_from(["a", "b"]))
            fields |= {"allowed": allowed, "self_item": self_item, "disclosure": disclosure, "fact_key": fact}
        scores.append(point(n, draw(st.sampled_from(EGOS[:4])), dimension, correct, **fields))
    return scores


@given(questions())
def test_sums_per_ego_give_the_same_figures_as_all_questions_together(scores: list[QuestionScore]) -> None:
    sums = tally(scores, {ego: row for row, ego in enumerate(EGOS)})
    figures = figures_of(sums.right.sum(axis=0, keepdims=True), sums.total.sum(axis=0, keepdims=True))
    for name, score in cell_metrics(scores, {}).items():
        if name in GROUPS_OF:
            value = float(figures[name][0])
            assert (None if math.isnan(value) else pytest.approx(value)) == score.value, name


def test_every_draw_has_items_of_both_actions_and_is_seeded() -> None:
    """Two egos of six have all ALLOW items: unstratified draws would often have none of them."""
    attempts = [point(n, EGOS[n % 6], "D6", n % 4 > 0, allowed=n % 6 < 2) for n in range(24)]
    draws = draw_egos(attempts, "seed", 500)
    sums = tally(attempts, draws.rows)
    assert not np.isnan(draws.figures(sums)["J"]).any()
    plain = np.random.default_rng(0).multinomial(6, np.full(6, 1 / 6), size=500)
    assert (plain[:, :2].sum(axis=1) == 0).any(), "the world is one in which stratifying matters"
    assert (draw_egos(attempts, "seed", 500).figures(sums)["J"] == draws.figures(sums)["J"]).all()
    assert (draw_egos(attempts, "other", 500).weigh(sums.right) != draws.weigh(sums.right)).any()


@pytest.mark.parametrize("egos", [8, 20])
def test_a_nominal_95_percent_interval_covers_about_that(egos: int) -> None:
    """An ego's questions correlate; of 400 simulated worlds 90 to 99% have the truth in their interval."""
    rng = np.random.default_rng(egos)
    names = [f"e{n:02d}" for n in range(egos)]
    truth, hits = 0.5, 0
    base = [point(n, names[n % egos], "D1", True) for n in range(egos * 10)]
    draws = draw_egos(base, f"coverage {egos}", 1000)
    columns = [draws.rows[q.ego] for q in base]
    template = tally(base, draws.rows)
    for _ in range(400):
        skill = rng.beta(2, 2, size=egos)
        correct = rng.random(len(base)) < skill[columns]
        right = np.zeros_like(template.right)
        np.add.at(right, (columns, 0), correct)
        values = figures_of(draws.weigh(right), draws.weigh(template.total))["D1"]
        estimate = interval(values, clusters_of(template.total, "D1"))
        assert estimate is not None
        hits += estimate.low <= truth <= estimate.high
    assert 0.90 <= hits / 400 <= 0.99, hits / 400


def test_intervals_that_ignore_clusters_cover_too_little() -> None:
    """The control of the test above: with each question as its own cluster, the interval would miss too often."""
    rng = np.random.default_rng(1)
    egos, per_ego, hits = 20, 10, 0
    base = [point(n, f"q{n:03d}", "D1", True) for n in range(egos * per_ego)]
    draws = draw_egos(base, "naive", 500)
    template = tally(base, draws.rows)
    for _ in range(200):
        skill = np.repeat(rng.beta(2, 2, size=egos), per_ego)
        right = np.zeros_like(template.right)
        right[:, 0] = rng.random(egos * per_ego) < skill
        estimate = interval(figures_of(draws.weigh(right), draws.weigh(template.total))["D1"], egos * per_ego)
        assert estimate is not None
        hits += estimate.low <= 0.5 <= estimate.high
    assert hits / 200 < 0.90


def test_the_t_interval_over_worlds_covers_at_eight() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(2000):
        estimate, p = t_interval(list(rng.normal(0.1, 0.05, size=FEWEST_CLUSTERS)))
        hits += estimate.low <= 0.1 <= estimate.high
        assert (p < 0.05) is not (estimate.low <= 0 <= estimate.high)
    assert 0.93 <= hits / 2000 <= 0.97


def test_one_ego_has_no_interval_and_undefined_draws_have_none() -> None:
    values = np.array([0.5, 0.5, 0.6])
    assert interval(values, 1) is None
    assert interval(np.array([0.5, math.nan, math.nan]), 9) is None
    assert interval(np.array([math.nan, math.nan]), 9) is None


def test_the_p_value_counts_the_draws_beyond_zero() -> None:
    many = 10**7
    assert p_value(np.array([1.0] * 999), many) == pytest.approx(2 / 1000, rel=1e-4)
    assert p_value(np.array([1.0, -1.0] * 500), many) == 1.0
    assert p_value(np.array([math.nan]), many) is None
    assert p_value(np.array([1.0] * 999), 1) is None


@pytest.mark.parametrize("egos", [5, 12, 50])
def test_p_and_interval_agree_for_any_number_of_egos(egos: int) -> None:
    """Draws around a mean that moves past 0: p is below 5% exactly where the interval excludes 0."""
    around = np.random.default_rng(egos).normal(0.0, 1.0, 20_000)
    p_values = []
    for mean in np.linspace(0.0, 20.0, 401):
        estimate, p = interval(around + mean, egos), p_value(around + mean, egos)
        assert estimate is not None
        assert p is not None
        edge = min(abs(estimate.low), abs(estimate.high)) < 0.1
        assert edge or (p < 0.05) == (estimate.low > 0)
        p_values.append(p)
    assert p_values == sorted(p_values, reverse=True)


@pytest.mark.parametrize("egos", [2, 3])
def test_two_or_three_egos_never_have_a_small_p(egos: int) -> None:
    """With so few egos no number of draws reaches the outer percentiles."""
    draws = np.random.default_rng(egos).normal(50.0, 1.0, 20_000)
    p = p_value(draws, egos)
    assert p is not None
    assert p > 0.05


def test_few_egos_have_a_larger_p_than_many() -> None:
    draws = np.random.default_rng(1).normal(2.2, 1.0, 20_000)
    p = [p_value(draws, egos) for egos in (3, 6, 20, 10_000)]
    assert p == sorted(p, key=lambda value: -(value or 0.0))
    assert p[0] is not None
    assert p[-1] is not None
    assert p[-1] < 0.05 < p[0], "by the plain share of draws every one of them would be below 5%"


# ------------------------------------------------------------------ through a log


def world(egos: int, per_ego: int) -> list[Question]:
    return [
        make_question(f"q_{e:02d}_{n:02d}", Family.METADATA, text_gold("Porto"), "Where?", ego=f"e{e:02d}")
        for e in range(egos)
        for n in range(per_ego)
    ]


def played(pool: list[Question], share_right: float, seeds: tuple[str, ...] = ("s2", "s3", "s4")) -> list[AnyRecord]:
    cells = [make_cell("bm25", seed=s) for s in seeds]
    rng = np.random.default_rng(0)
    attempts: list[AnyRecord] = [
        make_asked(c, q, "Porto" if rng.random() < share_right else "Lisbon") for c in cells for q in pool
    ]
    return make_run(cells, pool, [], attempts)


def test_the_same_answers_in_another_run_have_the_same_intervals() -> None:
    started, *others = played(world(10, 6), 0.6)
    assert isinstance(started, RunStarted)
    (row,) = score_records([started, *others]).scores.rows
    (other_row,) = score_records([started.model_copy(update={"run_id": "another"}), *others]).scores.rows
    assert (other_row.intervals, other_row.variances) == (row.intervals, row.variances)


def test_a_rows_interval_includes_its_figure_and_names_its_method() -> None:
    (row,) = score_records(played(world(10, 6), 0.6)).scores.rows
    estimate, value = row.intervals["D2"], row.metrics["D2"].value
    assert value is not None
    assert estimate.low < value < estimate.high
    assert (estimate.method, estimate.clusters, estimate.few_clusters) == ("bootstrap_egos", 10, False)
    assert set(row.intervals) == {"D2", "Rec", "all"}
    (variance,) = [v for v in row.variances if v.metric == "D2"]
    assert variance.answer_sd == row.metrics["D2"].sd
    assert variance.ego_se == estimate.se
    assert variance.smallest_difference is not None
    assert variance.smallest_difference > 2.8 * math.sqrt(2) * estimate.se
    assert (variance.judge_sd, variance.judge_repeats) == (None, 1)
    for cell in row.cells:
        assert cell.intervals["D2"].high - cell.intervals["D2"].low > 0


def test_few_egos_are_noted() -> None:
    (row,) = score_records(played(world(3, 6), 0.6)).scores.rows
    assert row.intervals["D2"].few_clusters
    (alone,) = score_records(played(world(1, 6), 0.6)).scores.rows
    assert alone.intervals == {}


def test_a_cell_with_a_range_has_no_interval() -> None:
    pool = world(10, 4)
    cell = make_cell("bm25", seed="s2")
    attempts: list[AnyRecord] = [make_asked(cell, q, "Porto") for q in pool[:-1]]
    attempts.append(make_asked(cell, pool[-1], status="infra_failed", cause="reader: connection refused"))
    (row,) = score_records(make_run([cell], pool, [], attempts)).scores.rows
    assert row.metrics["D2"].value is None
    assert row.intervals == {}


@settings(max_examples=3)
@given(st.integers(0, 3))
def test_the_same_log_gives_the_same_intervals(salt: int) -> None:
    records = played(world(9, 3), 0.3 + salt / 10)
    assert score_records(records).scores == score_records(records).scores


def test_perfect_gating_has_an_interval_of_j_with_a_width() -> None:
    """At P = U = 1 draws of egos show no spread; Newcombe's interval over the items does."""
    pool = [
        make_question(
            f"p_{e}_{action}", Family.PERMISSION, permission("4821", action), "Code?", ego=f"e{e:02d}", asker="bob"
        )
        for e in range(10)
        for action in ("disclose", "withhold")
    ]
    cell = make_cell("keeper")
    attempts = [make_asked(cell, q, "4821" if q.instance.instance_id.endswith("disclose") else "I can't share that.")
             for q in pool]  # fmt: skip
    (row,) = score_records(make_run([cell], pool, [], attempts)).scores.rows
    estimate = row.intervals["J"]
    assert (estimate.method, estimate.high) == ("bootstrap_egos_or_items", 1.0)
    assert 0.3 < estimate.low < 0.95
    assert row.permission is not None
    assert (row.permission.j_low, row.permission.gates) == (estimate.low, True)
