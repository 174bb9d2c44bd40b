"""Builds the tables of a latency study: fits, totals, questions and ingest, each with its basis."""

from __future__ import annotations

from collections.abc import Sequence

from memarena.latency.report.cells import floor_text, machine_text, meter_cell, reasons, share_cell
from memarena.latency.report.checks import held_out_section, server_check_section
from memarena.latency.results import Fit, IngestRow, Model, StudiedRun, Study, TotalCell
from memarena.report.figures import NA, at_least, milliseconds, number, whole
from memarena.report.layout import Cell, Column, Document, Fact, Section, section

SCALED_EGOS = 50
"""Size of the paper's world; figures scaled to it are computed, not measured."""


def study_document(study: Study) -> Document:
    """Return all tables of a study. Parts without a figure are omitted."""
    parts = [
        _head(study),
        _fits(study, "ttft"),
        _fits(study, "llm"),
        held_out_section(study),
        server_check_section(study),
        _totals(study),
        _efficiency(study),
        _ingest(study),
    ]
    return Document("Latency study", tuple(part for part in parts if part is not None))


# ------------------------------------------------------------------ runs, readers, machines


def _head(study: Study) -> Section:
    """Return the runs, readers and machines that the study rests on."""
    lines: list[Fact] = []
    notes: list[str] = []
    for run in study.runs:
        lines.append(Fact("run", f"{run.path} ({run.run_id}, {run.started_at})"))
        lines += [Fact("reader", f"{r.name}: {r.model}") for r in run.readers]
        lines.append(Fact("floor", floor_text(run.floor)))
        lines.append(Fact("machine", machine_text(run.versions)))
        notes += _unmetered(run)
    systems = dict.fromkeys(run.versions.platform for run in study.runs)
    if len(systems) > 1:
        notes.append(f"the runs were made on {' and on '.join(systems)}: their times differ by that, too")
    notes += [f"{cell}: {count} questions failed and have no time" for cell, count in study.failed.items()]
    notes += [
        f"{cell}: {count} samples of another process left out, since times never mix across a restart"
        for cell, count in study.left_out.items()
    ]
    return Section("Latency at concurrency 1", tuple(dict.fromkeys(lines)), notes=tuple(dict.fromkeys(notes)))


def _unmetered(run: StudiedRun) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for channel, reason in run.meters_unavailable.items():
        reasons.setdefault(reason, []).append(channel)
    return [f"unavailable: {', '.join(channels)}: {reason}" for reason, channels in reasons.items()]


# ------------------------------------------------------------------ fits and totals


def _fits(study: Study, what: str) -> Section | None:
    """Return the table of fits; ``what`` is ``ttft`` or ``llm``."""
    title = "Fit of the first token" if what == "ttft" else "Fit of the whole model call"
    formula = "α + β·N_p" + (" + γ·N_c" if what == "llm" else "") + ", with and without δ·N_p²"
    if not study.fits:
        return Section(title, notes=tuple(f"no fit for {name}: {reason}" for name, reason in study.unfitted.items()))
    columns = [
        Column("reader", align="left"),
        Column("model", formula, align="left"),
        Column("α ms"),
        Column("β ms/1k", "per thousand prompt tokens"),
        Column("γ ms", "per answer token"),
        Column("δ ms/M", "per million squared prompt tokens"),
        Column("R²"),
        Column("n", "timed questions of phase 1"),
        Column("|r| p50", "absolute residual, ms"),
        Column("|r| p95"),
        Column("held out p50", "relative error for held-out questions, five parts in turn"),
        Column("held out p95"),
    ]
    body = []
    for fit in study.fits:
        pair = (fit.ttft, fit.ttft_quadratic) if what == "ttft" else (fit.llm, fit.llm_quadratic)
        best = fit.best("ttft" if what == "ttft" else "llm")
        for name, model in zip(("linear", "quadratic"), pair, strict=True):
            body.append(_fit_row(fit, name + (" *" if model == best else ""), model))
    notes = ["* predicts held-out questions best and is used below"]
    notes += [
        f"{fit.reader}: from prompts of {fit.prompt_tokens[0]:,} to {fit.prompt_tokens[1]:,} tokens"
        for fit in study.fits
    ]
    notes += [f"no fit for {name}: {reason}" for name, reason in study.unfitted.items()]
    return section(title, columns, body, notes)


def _fit_row(fit: Fit, name: str, model: Model) -> list[Cell]:
    coefficients = model.coefficients
    return [
        Cell(fit.reader),
        Cell(name),
        number(coefficients.alpha_ms),
        number(coefficients.beta_ms * 1e3),
        number(coefficients.gamma_ms, 2),
        number(None if coefficients.delta_ms is None else coefficients.delta_ms * 1e6, 2),
        number(model.r_squared, 4),
        whole(fit.n),
        milliseconds(model.residual_p50_ms),
        milliseconds(model.residual_p95_ms),
        share_cell(model.held_out_error_p50),
        share_cell(model.held_out_error_p95),
    ]


def _totals(study: Study) -> Section | None:
    """Return the table of totals by reader and backend; None without any."""
    if not study.totals:
        return None
    columns = [
        Column("reader", align="left"),
        Column("backend", align="left"),
        Column("n"),
        Column("search", "p50 over all questions of this backend, whatever the reader, ms"),
        Column("first token", "search and the model's first token, p50, ms"),
        Column("· by fit", "what the fit predicts for the same prompts"),
        Column("total", "search and the model's whole call, p50, ms"),
        Column("· by fit "),
        Column("· off", "the fit's total against the measured one"),
    ]
    notes = [f"† predicted: {_donors(study.totals)}"] if any(c.kind == "predicted" for c in study.totals) else []
    notes += [
        f"{c.reader} · {c.backend}: {100 * c.outside_range:.0f}% of the prompts lie outside the range of the fit"
        for c in study.totals
        if c.outside_range
    ]
    notes += [f"n/a, {c.reader} · {c.backend}: {c.why}" for c in study.totals if c.why]
    return section("Totals", columns, [_total_row(cell) for cell in study.totals], notes)


def _donors(cells: Sequence[TotalCell]) -> str:
    donors = dict.fromkeys(cell.prompts_from for cell in cells if cell.kind == "predicted")
    return f"the reader's fit with prompt lengths measured with {', '.join(donors)}, and this backend's Search"


def _total_row(cell: TotalCell) -> list[Cell]:
    """Return a row of the table of totals; predicted figures are slanted and marked with †."""
    predicted = cell.kind == "predicted"
    off = None
    if cell.kind == "measured" and cell.total_ms and cell.predicted_total_ms is not None:
        off = cell.predicted_total_ms / cell.total_ms - 1

    def told(value: float | None) -> Cell:
        cell = milliseconds(value)
        return Cell(f"{cell.text} †", slanted=True) if predicted and value is not None else cell

    return [
        Cell(cell.reader),
        Cell(cell.backend),
        whole(cell.n),
        milliseconds(cell.search_ms),
        told(cell.ttft_ms),
        milliseconds(cell.predicted_ttft_ms),
        told(cell.total_ms),
        milliseconds(cell.predicted_total_ms),
        NA if off is None else Cell(f"{100 * off:+.1f}%"),
    ]


# ------------------------------------------------------------------ questions and days


def _efficiency(study: Study) -> Section | None:
    """Return the table of the cost of a question; None without any."""
    if not study.efficiency:
        return None
    columns = [
        Column("reader", align="left"),
        Column("backend", align="left"),
        Column("n", "timed questions"),
        Column("N_p", "prompt tokens, p50"),
        Column("N_c", "answer tokens, p50"),
        Column("cached", "prompt tokens that came from the server's cache, all questions together"),
        Column("search p50", "ms"),
        Column("TTFT p50", "at the gateway, ms"),
        Column("· p90"),
        Column("rest p50", "the remainder of Answer until its first text"),
        Column("call p50", "the whole model call"),
        Column("· p90 "),
        Column("GPU J", "gross joules of the GPU per question"),
        Column("net J", "less the machine at rest"),
        Column("system J"),
    ]
    body = [
        [
            Cell(row.reader),
            Cell(row.backend),
            whole(row.ttft.n),
            number(row.prompt_tokens_p50, 0),
            number(row.completion_tokens_p50, 0),
            whole(row.cached_tokens),
            milliseconds(row.search.p50),
            milliseconds(row.ttft.p50),
            milliseconds(row.ttft.p90),
            milliseconds(row.rest.p50),
            milliseconds(row.llm.p50),
            milliseconds(row.llm.p90),
            meter_cell(row.gpu_j_per_query, 2),
            meter_cell(row.gpu_net_j_per_query, 2),
            meter_cell(row.system_j_per_query, 2),
        ]
        for row in study.efficiency
    ]
    figures = [("GPU J", row.gpu_j_per_query) for row in study.efficiency]
    figures += [("net J", row.gpu_net_j_per_query) for row in study.efficiency]
    figures += [("system J", row.system_j_per_query) for row in study.efficiency]
    notes = ["n/a: too few samples (p50 needs 11, p90 64) or nothing to measure", *reasons(figures)]
    return section("Cost of a question", columns, body, notes)


def _ingest(study: Study) -> Section | None:
    """Return the table of the cost of ingest; None without any."""
    if not study.ingest:
        return None
    columns = [
        Column("reader", align="left"),
        Column("backend", align="left"),
        Column("egos"),
        Column("days", "days of all egos"),
        Column("s", "all Ingest calls"),
        Column("s/day", "per ego and day"),
        Column("calls", "model calls through the gateway"),
        Column("tokens in", "read by models"),
        Column("tokens out", "written by models; embeddings write none"),
        Column("models s", "of it, time of the models"),
        Column("GPU kJ", "gross, the GPU"),
        Column("idle kJ", "what the GPU at rest would have taken in the same time"),
        Column("net kJ", "GPU kJ less idle kJ"),
        Column("GPU W", "mean power"),
        Column("system kJ", "gross, the whole machine where a meter covers it"),
        Column("J/day", "gross joules per ego and day"),
        Column("net J/day", "net joules per ego and day, as in the paper"),
        Column(f"kJ × {SCALED_EGOS}", f"scaled to {SCALED_EGOS} egos: arithmetic, not measured"),
        Column("pays in J", "questions after which its gross joules break even with Oracle"),
        Column("pays in net J", "the same in net joules, as in the paper"),
        Column("pays in s", "the same in seconds of waiting"),
    ]
    figures = [("GPU kJ", row.gpu_j) for row in study.ingest]
    figures += [("idle kJ, net kJ and net J/day", row.gpu_net_j) for row in study.ingest]
    figures += [("system kJ", row.system_j) for row in study.ingest]
    notes = [*reasons(figures)]
    notes += [
        f"{row.cell_id}: {row.unsized_calls:,} calls of unknown size: cut short, or the server reports no tokens"
        for row in study.ingest
        if row.unsized_calls
    ]
    notes += [
        f"{row.cell_id}: {row.untimed_calls:,} calls without an observed end: counted to the last content or not at all"
        for row in study.ingest
        if row.untimed_calls
    ]
    notes += [f"{row.cell_id}: no break-even: {row.why_no_break_even}" for row in study.ingest if row.why_no_break_even]
    return section("Cost of keeping the memory", columns, [_ingest_cells(row) for row in study.ingest], notes)


def _ingest_cells(row: IngestRow) -> list[Cell]:
    scaled = row.gpu_j
    if scaled.value is not None:
        scaled = scaled.model_copy(update={"value": scaled.value * SCALED_EGOS / row.egos})
    return [
        Cell(row.reader),
        Cell(row.backend),
        whole(row.egos),
        whole(row.ego_days),
        number(row.seconds, 2),
        number(None if row.seconds is None else row.seconds / row.ego_days, 3),
        whole(row.model_calls),
        at_least(row.prompt_tokens, row.unsized_calls),
        at_least(row.completion_tokens, row.unsized_calls),
        at_least(row.model_seconds if row.model_calls else None, row.untimed_calls, 2),
        meter_cell(row.gpu_j, 2, 1e3),
        meter_cell(row.gpu_idle_j, 2, 1e3),
        meter_cell(row.gpu_net_j, 2, 1e3),
        meter_cell(row.gpu_w, 1),
        meter_cell(row.system_j, 2, 1e3),
        meter_cell(row.gpu_j_per_ego_day, 1),
        meter_cell(row.gpu_net_j_per_ego_day, 1),
        meter_cell(scaled, 1, 1e3),
        number(row.break_even_queries_j, 0),
        number(row.break_even_queries_net_j, 0),
        number(row.break_even_queries_s, 0),
    ]
