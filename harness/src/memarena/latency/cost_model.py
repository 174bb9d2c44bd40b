"""Computes what questions and days cost in joules, seconds and calls, and when ingest breaks even with Oracle.

Oracle is a diagnostic backend: it gets the evidence of each question, and calls no model on ingest. A memory that
spends energy on ingest must save it on its questions. A phase is a cell's days (``ingest``) or its questions
(``answer``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memarena.latency.composition import median_of
from memarena.latency.results import EfficiencyRow, IngestRow
from memarena.latency.samples import CellSamples, backend_label
from memarena.log.measuring import MeterFigure, PhaseMeasured
from memarena.log.records import Cell
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.timing import percentiles

GPU, SYSTEM = "gpu_rail_j", "sys_j"
ORACLE = "oracle"
NOT_MEASURED = MeterFigure(status="unavailable", reason="this phase was not metered")


def efficiency_row(found: CellSamples, facts: RunFacts) -> EfficiencyRow:
    """Return the cost of a cell's questions."""
    samples, cell = found.samples, found.cell
    answer = phase_of(facts, cell, "answer")
    cached = [s.cached_tokens for s in samples]
    return EfficiencyRow(
        cell_id=cell.cell_id,
        reader=cell.reader,
        backend=backend_label(cell),
        prompt_tokens_p50=median_of([float(s.prompt_tokens) for s in samples]),
        completion_tokens_p50=median_of([float(s.completion_tokens) for s in samples]),
        search=percentiles(s.search_ms for s in samples),
        ttft=percentiles(s.ttft_ms for s in samples),
        rest=percentiles(s.rest_ms for s in samples),
        llm=percentiles(s.llm_ms for s in samples),
        end_to_end=percentiles(_plus(s.search_ms, s.ttft_ms) for s in samples),
        cached_tokens=None if None in cached else sum(c or 0 for c in cached),
        gpu_j_per_query=rail_figure(answer, GPU, "gross_j_per_query"),
        gpu_net_j_per_query=rail_figure(answer, GPU, "net_j_per_query"),
        system_j_per_query=rail_figure(answer, SYSTEM, "gross_j_per_query"),
    )


def ingest_row(cell: Cell, facts: RunFacts, rows: Sequence[EfficiencyRow]) -> IngestRow | None:
    """Return the cost of a cell's days; None if none was ingested.

    ``rows`` are the costs of questions of all cells, including Oracle's.
    """
    cost = facts.ingests.get(cell.cell_id)
    if cost is None or not cost.committed:
        return None
    days = len(cost.committed)
    phase = phase_of(facts, cell, "ingest")
    gross, net = rail_figure(phase, GPU, "gross_j"), rail_figure(phase, GPU, "net_j")
    seconds = cost.duration_ns / 1e9
    own_row = next((row for row in rows if row.cell_id == cell.cell_id), None)
    oracle_row = next((row for row in rows if row.reader == cell.reader and row.backend.startswith(ORACLE)), None)
    joules, why_joules = break_even(gross.value, own_row, oracle_row, lambda row: row.gpu_j_per_query.value, "joules")
    net_joules, why_net = break_even(
        net.value, own_row, oracle_row, lambda row: row.gpu_net_j_per_query.value, "net joules"
    )
    waited, why_waited = break_even(seconds, own_row, oracle_row, _waiting_s, "seconds")
    return IngestRow(
        cell_id=cell.cell_id,
        reader=cell.reader,
        backend=backend_label(cell),
        egos=len({namespace for namespace, _ in cost.committed}),
        ego_days=days,
        seconds=seconds,
        model_calls=cost.model_calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        model_seconds=cost.model_ns / 1e9,
        unsized_calls=cost.unsized_calls,
        untimed_calls=cost.untimed_calls,
        gpu_j=gross,
        gpu_idle_j=rail_figure(phase, GPU, "idle_j"),
        gpu_net_j=net,
        gpu_w=rail_figure(phase, GPU, "mean_power_w"),
        system_j=rail_figure(phase, SYSTEM, "gross_j"),
        gpu_j_per_ego_day=_divided(gross, days),
        gpu_net_j_per_ego_day=_divided(net, days),
        break_even_queries_j=joules,
        break_even_queries_net_j=net_joules,
        break_even_queries_s=waited,
        why_no_break_even="; ".join(dict.fromkeys(why for why in (why_joules, why_net, why_waited) if why)),
    )


def break_even(
    ingest: float | None,
    own: EfficiencyRow | None,
    oracle: EfficiencyRow | None,
    per_query: Callable[[EfficiencyRow], float | None],
    unit: str,
) -> tuple[float | None, str]:
    """Return after how many queries a memory with the cost ``ingest`` is cheaper than Oracle, or None and why.

    ``per_query`` returns a row's cost of a query, in the same ``unit`` as ``ingest``; the reason names the unit.
    """
    if own is None or own.backend.startswith(ORACLE):
        return None, "no question was timed" if own is None else ""
    if ingest is None:
        return None, f"ingest {unit} were not measured"
    if oracle is None:
        return None, "no Oracle cell with this reader"
    own_cost, oracle_cost = per_query(own), per_query(oracle)
    if own_cost is None or oracle_cost is None:
        return None, f"{unit} of a question were not measured"
    if own_cost >= oracle_cost:
        return None, f"never in {unit}: a question costs no less than with Oracle"
    return ingest / (oracle_cost - own_cost), ""


def phase_of(facts: RunFacts, cell: Cell, name: str) -> PhaseMeasured | None:
    """Return the measured phase of a cell; None if there is none, or several (in a resumed run)."""
    matches = [phase for phase in facts.phases if (phase.cell_id, phase.phase) == (cell.cell_id, name)]
    return matches[0] if len(matches) == 1 else None


def rail_figure(phase: PhaseMeasured | None, rail: str, figure: str) -> MeterFigure:
    """Return a figure (a field of `RailMeasured`) of one rail in a phase, or an unavailable one with the reason."""
    if phase is None:
        return NOT_MEASURED
    figures: Mapping[str, object] = {
        rail_measured.name: getattr(rail_measured, figure) for rail_measured in phase.rails
    }
    value = figures.get(rail)
    return value if isinstance(value, MeterFigure) else NOT_MEASURED


def _waiting_s(row: EfficiencyRow) -> float | None:
    waited_ms = _plus(row.search.p50, row.llm.p50)
    return None if waited_ms is None else waited_ms / 1e3


def _divided(figure: MeterFigure, by: int) -> MeterFigure:
    return figure if figure.value is None else figure.model_copy(update={"value": figure.value / by})


def _plus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
