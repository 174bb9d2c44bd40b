"""Returns figures of the latency study, in the units of the paper's tables.

Each function returns None if the study has no such figure, so that a table shows what was measured so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memarena.latency.results import EfficiencyRow, IngestRow, Study, TotalCell

Value = float | None
OfStudy = Callable[[Study | None, str, str, str], Value]
"""Takes the study, a reader, a memory, and the text after the colon in the figure's name; returns the figure."""


def _cell(study: Study | None, reader: str, memory: str) -> TotalCell | None:
    cells = study.totals if study is not None else ()
    return next((cell for cell in cells if (cell.reader, _backend_name(cell.backend)) == (reader, memory)), None)


def _efficiency(study: Study | None, reader: str, memory: str) -> EfficiencyRow | None:
    rows = study.efficiency if study is not None else ()
    return next((row for row in rows if (row.reader, _backend_name(row.backend)) == (reader, memory)), None)


def _backend_name(backend: str) -> str:
    """Return a backend's name without its settings in brackets."""
    return backend.partition("[")[0]


def _ttft(study: Study | None, reader: str, memory: str, _: str) -> Value:
    cell = _cell(study, reader, memory)
    return None if cell is None else cell.ttft_ms


def _search(study: Study | None, reader: str, memory: str, _: str) -> Value:
    cell = _cell(study, reader, memory)
    return None if cell is None else cell.search_ms


def _prefill(study: Study | None, reader: str, memory: str, _: str) -> Value:
    cell = _cell(study, reader, memory)
    if cell is None or cell.ttft_ms is None or cell.search_ms is None:
        return None
    return cell.ttft_ms - cell.search_ms


def _total_ms(study: Study | None, reader: str, memory: str, _: str) -> Value:
    cell = _cell(study, reader, memory)
    return None if cell is None else cell.total_ms


def _total_s(study: Study | None, reader: str, memory: str, _: str) -> Value:
    total = _total_ms(study, reader, memory, "")
    return None if total is None else total / 1000


def _answer_tokens(study: Study | None, reader: str, memory: str, _: str) -> Value:
    row = _efficiency(study, reader, memory)
    return None if row is None else row.completion_tokens_p50


def _fit(study: Study | None, reader: str, _: str, what: str) -> Value:
    """Return a coefficient or R² of the linear fit of the whole answer; beta is per 1,000 prompt tokens."""
    fit = next((fit for fit in study.fits if fit.reader == reader), None) if study is not None else None
    if fit is None:
        return None
    linear = fit.llm.coefficients
    figures: Mapping[str, Value] = {
        "alpha": linear.alpha_ms,
        "beta": None if linear.beta_ms is None else 1000 * linear.beta_ms,
        "gamma": linear.gamma_ms,
        "r2": fit.llm.r_squared,
        "n": float(fit.n),
        "residual": fit.llm.residual_p95_ms,
    }
    return figures[what]


def _ingest(study: Study | None, reader: str, memory: str, what: str) -> Value:
    """Return a cost of ingest; energy is net of idle, None if idle was not measured."""
    rows: tuple[IngestRow, ...] = study.ingest if study is not None else ()
    row = next((row for row in rows if (row.reader, _backend_name(row.backend)) == (reader, memory)), None)
    if row is None:
        return None
    joules = row.gpu_net_j.value
    figures: Mapping[str, Value] = {
        "s": row.seconds,
        "kj": None if joules is None else joules / 1000,
        "calls": float(row.model_calls),
        "j_per_ego_day": row.gpu_net_j_per_ego_day.value,
        "w": row.gpu_w.value,
    }
    return figures[what]


OF_STUDY: Mapping[str, OfStudy] = {
    "ttft_ms": _ttft,
    "search_ms": _search,
    "prefill_ms": _prefill,
    "total_ms": _total_ms,
    "total_s": _total_s,
    "answer_tokens": _answer_tokens,
    "fit": _fit,
    "ingest": _ingest,
}
"""Functions by the figure's name in the file of tables."""
