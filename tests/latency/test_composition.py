"""Tests the composed table of times, and break-even of ingest: measured, predicted and marked, or a reason why not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from memarena.latency.composition import compose, search_times
from memarena.latency.cost_model import break_even, ingest_row
from memarena.latency.fit import fit_reader
from memarena.latency.results import EfficiencyRow, Sample, TotalCell
from memarena.log.measuring import MeterFigure, PhaseMeasured, RailMeasured
from memarena.meters.energy import FIGURES
from memarena.scoring.figures import Percentiles
from memarena.scoring.run_facts import IngestFacts, RunFacts

from ..support.logs import make_cell
from .test_fit import sample

SEARCH_MS = {"oracle": 0.5, "bm25": 2.0, "memsearch": 40.0}


def cell(reader: str, backend: str, ms_per_token: float, lengths: range) -> list[Sample]:
    return [
        sample(n, n_p, 10, 50 + ms_per_token * n_p + 100, 50 + ms_per_token * n_p).model_copy(
            update={
                "reader": reader,
                "backend": backend,
                "cell_id": f"{backend}@{reader}/s1",
                "search_ms": SEARCH_MS[backend],
            }
        )
        for n, n_p in enumerate(lengths)
    ]


SMALL = [*cell("small", "oracle", 1, range(100, 3000, 50)), *cell("small", "bm25", 1, range(200, 2000, 40))]
BIG = [*cell("big", "oracle", 8, range(100, 3000, 50))]
MEMSEARCH = cell("small", "memsearch", 1, range(500, 1500, 20))


def composed(samples: list[Sample], readers: list[str]) -> dict[tuple[str, str], TotalCell]:
    fits = {r: f for r in readers if (f := fit_reader(r, [s for s in samples if s.backend != "memsearch"]))}
    backends = list(SEARCH_MS)
    return {(c.reader, c.backend): c for c in compose(readers, backends, samples, fits)}


def test_a_measured_cell_has_its_medians_and_the_fit() -> None:
    cell_times = composed([*SMALL, *BIG, *MEMSEARCH], ["small", "big"])["small", "memsearch"]
    assert cell_times.kind == "measured"
    middle = 500 + 20 * 24.5
    assert cell_times.total_ms == pytest.approx(50 + middle + 100 + 40)
    assert cell_times.ttft_ms == pytest.approx(50 + middle + 40)
    assert cell_times.predicted_total_ms == pytest.approx(cell_times.total_ms, rel=1e-6)
    assert cell_times.n == 50


def test_a_cell_that_was_not_run_is_predicted_with_its_source() -> None:
    """By the big reader's fit over the small reader's prompts, and the backend's own Search times."""
    cell_times = composed([*SMALL, *BIG, *MEMSEARCH], ["small", "big"])["big", "memsearch"]
    assert (cell_times.kind, cell_times.prompts_from) == ("predicted", "small")
    middle = 500 + 20 * 24.5
    assert cell_times.ttft_ms == pytest.approx(50 + 8 * middle + 40, rel=1e-6)
    assert cell_times.predicted_total_ms is None
    assert cell_times.outside_range == 0


def test_a_prediction_outside_the_fits_range_states_its_share() -> None:
    far = cell("small", "memsearch", 1, range(2000, 4000, 40))
    cell_times = composed([*SMALL, *BIG, *far], ["small", "big"])["big", "memsearch"]
    assert cell_times.outside_range == pytest.approx(26 / 50)


def test_a_reader_without_a_fit_gets_a_reason_and_no_prediction() -> None:
    few = BIG[:5]
    cells = composed([*SMALL, *few, *MEMSEARCH], ["small", "big"])
    cell_times = cells["big", "memsearch"]
    assert (cell_times.kind, cell_times.total_ms) == ("none", None)
    assert "no fit" in cell_times.why
    assert cells["big", "oracle"].total_ms is None
    assert "fewer than 11" in cells["big", "oracle"].why


def test_a_backend_without_samples_gets_a_reason() -> None:
    fit = fit_reader("small", SMALL)
    assert fit is not None
    samples = [*SMALL, *cell("other", "memsearch", 1, range(100, 300, 100))]
    (cell_times,) = compose(["small"], ["memsearch"], samples, {"small": fit})
    assert (cell_times.kind, cell_times.total_ms) == ("none", None)
    assert "fewer than 11 prompts" in cell_times.why


def test_search_times_do_not_depend_on_the_reader() -> None:
    slow = [
        s.model_copy(update={"search_ms": 6.0, "reader": "big"}) for s in cell("small", "bm25", 1, range(100, 4000, 40))
    ]
    assert search_times([*SMALL, *slow])["bm25"] == 6.0
    assert search_times(BIG[:3])["oracle"] is None


def row(backend: str, joules: float | None) -> EfficiencyRow:
    nothing = Percentiles(n=0, p50=None, p90=None, p95=None, p99=None)
    figure = (
        MeterFigure(status="unavailable", reason="no GPU")
        if joules is None
        else MeterFigure(status="value", value=joules, unit="J")
    )
    return EfficiencyRow(
        cell_id=f"{backend}@r/s1",
        reader="r",
        backend=backend,
        prompt_tokens_p50=None,
        completion_tokens_p50=None,
        search=nothing,
        ttft=nothing,
        rest=nothing,
        llm=nothing,
        end_to_end=nothing,
        cached_tokens=None,
        gpu_j_per_query=figure,
        gpu_net_j_per_query=figure,
        system_j_per_query=figure,
    )


def joules_of(efficiency_row: EfficiencyRow) -> float | None:
    return efficiency_row.gpu_j_per_query.value


def test_break_even_divides_ingest_by_the_saving_per_question() -> None:
    assert break_even(3000.0, row("memobase", 10), row("oracle", 40), joules_of, "joules") == (100.0, "")


@pytest.mark.parametrize(
    ("ingest", "own", "oracle", "why"),
    [
        (3000.0, row("memobase", 40), row("oracle", 40), "never"),
        (3000.0, row("memobase", 50), row("oracle", 40), "never"),
        (None, row("memobase", 10), row("oracle", 40), "ingest joules were not measured"),
        (3000.0, None, row("oracle", 40), "no question was timed"),
        (3000.0, row("memobase", None), row("oracle", 40), "joules of a question were not measured"),
        (3000.0, row("memobase", 10), None, "no Oracle"),
        (3000.0, row("oracle", 10), row("oracle", 10), ""),
    ],
)
def test_break_even_is_unknown_without_a_saving_or_a_measurement(
    ingest: float | None, own: EfficiencyRow | None, oracle: EfficiencyRow | None, why: str
) -> None:
    questions, reason = break_even(ingest, own, oracle, joules_of, "joules")
    assert questions is None
    assert why in reason


NO_IDLE = MeterFigure.unavailable("no idle windows")


@pytest.mark.parametrize("idle", [600.0, None])
def test_ingest_has_gross_and_net_joules_with_the_subtracted_idle_power(idle: float | None) -> None:
    """3,000 J gross over 4 days of egos; a question takes 10 J of Oracle's 40, net 4 of 10."""
    cell = make_cell("memobase")
    joules = {"gross_j": 3000.0, "idle_j": idle, "net_j": None if idle is None else 3000.0 - idle}
    figures = {
        name: NO_IDLE if value is None else MeterFigure(status="value", value=value, unit="J")
        for name, value in joules.items()
    }
    rail = RailMeasured(name="gpu_rail_j", **{**dict.fromkeys(FIGURES, MeterFigure.unavailable("not read")), **figures})
    phase = PhaseMeasured(
        phase="ingest", cell_id=cell.cell_id, samples_file="x", start_mono_ns=0, duration_s=60.0, pieces=1,
        rails=(rail,), cpu_s=NO_IDLE,
    )  # fmt: skip
    cost = IngestFacts(committed={(ego, day) for ego in "ab" for day in (0, 1)}, duration_ns=10**9)
    facts = cast(RunFacts, SimpleNamespace(ingests={cell.cell_id: cost}, phases=(phase,)))
    rows = [
        row(name, gross).model_copy(
            update={
                "cell_id": cell.cell_id if name == "memobase" else "other",
                "reader": cell.reader,
                "gpu_net_j_per_query": MeterFigure(status="value", value=net, unit="J"),
            }
        )
        for name, gross, net in (("memobase", 10.0, 4.0), ("oracle", 40.0, 10.0))
    ]
    ingest_row_of_cell = ingest_row(cell, facts, rows)
    assert ingest_row_of_cell is not None
    assert (
        ingest_row_of_cell.gpu_j.value,
        ingest_row_of_cell.gpu_j_per_ego_day.value,
        ingest_row_of_cell.break_even_queries_j,
    ) == (3000.0, 750.0, 100.0)
    of_net = (
        ingest_row_of_cell.gpu_idle_j.value,
        ingest_row_of_cell.gpu_net_j.value,
        ingest_row_of_cell.gpu_net_j_per_ego_day.value,
    )
    assert of_net == ((600.0, 2400.0, 600.0) if idle else (None, None, None))
    assert ingest_row_of_cell.break_even_queries_net_j == (400.0 if idle else None)
    assert ingest_row_of_cell.gpu_net_j_per_ego_day.reason == ("" if idle else "no idle windows")
    assert ("ingest net joules were not measured" in ingest_row_of_cell.why_no_break_even) == (idle is None)
