"""Draws the charts of quality against cost of a ranking, with the front: the memories that no other beats in both.

Charts of times and energy are separate for each device, as such figures of two devices are not comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from memarena.report.charts.svg import Figure
from memarena.report.charts.tradeoff import right_over
from memarena.report.rows import ReportRow
from memarena.scoring.results import ANSWERABLE
from memarena.site.boards import Board

_BETTER = "Better is up and to the left. The dashed line joins the memories that no other one beats in both."
_BYTES_PER_MB = 1e6


def fronts_of(board: Board) -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """Yield (device, charts of times and energy of its rows); first ("", charts of costs independent of devices)."""
    rows = [replace(board_row.row, tag=_letter(position)) for position, board_row in enumerate(board.rows)]
    devices: dict[str, list[ReportRow]] = {}
    for board_row, row in zip(board.rows, rows, strict=True):
        devices.setdefault(board_row.entry.device, []).append(row)
    yield "", _drawn(rows, board.key, _ANYWHERE)
    for position, (device, device_rows) in enumerate(devices.items()):
        yield device, _drawn(device_rows, f"{board.key}-{position}", _ON_DEVICE)


def _drawn(rows: list[ReportRow], ending: str, costs: dict[str, Cost]) -> tuple[Figure, ...]:
    figures = (
        right_over(
            rows, cost, f"front-{key}-{ending}", f"{words} against {title}", across, _BETTER, figure=figure,
            up=f"{words.lower()}, %", front=True,
        )
        for key, (title, across, cost) in costs.items()
        for figure, words in _QUALITY
        if key.startswith(figure)
    )  # fmt: skip
    return tuple(figure for figure in figures if figure is not None)


def _ttft(row: ReportRow) -> float | None:
    latency = row.scores.latency
    return latency.end_to_end.p50 if latency is not None and row.scores.real_reader else None


def _tokens(row: ReportRow) -> float | None:
    return row.scores.retrieval.context_tokens if row.scores.retrieval is not None else None


def _disk(row: ReportRow) -> float | None:
    sizes = [footprint.disk.value for footprint in row.costs.footprints] if row.costs else []
    return max((size / _BYTES_PER_MB for size in sizes if size is not None), default=None)


def _energy(rail: str) -> Callable[[ReportRow], float | None]:
    def cost(row: ReportRow) -> float | None:
        phases = row.costs.phases if row.costs else ()
        rails = [
            rail_energy for phase in phases if phase.queries for rail_energy in phase.rails if rail_energy.name == rail
        ]
        values = [rail_energy.gross_j_per_query.value for rail_energy in rails]
        numbers = [value for value in values if value is not None]
        return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None

    return cost


Cost = tuple[str, str, Callable[[ReportRow], float | None]]
_QUALITY = ((ANSWERABLE, "Answerable"), ("all", "Right answers"))
# A key begins with the figure of _QUALITY that the chart shows against the cost.
_ANYWHERE: dict[str, Cost] = {
    f"{ANSWERABLE}-tokens": ("tokens of context", "tokens that Search returned, mean (bytes over 4)", _tokens),
    "all-tokens": ("tokens of context", "tokens that Search returned, mean (bytes over 4)", _tokens),
    f"{ANSWERABLE}-disk": ("disk", "files of the memory after its last day, MB", _disk),
}
_ON_DEVICE: dict[str, Cost] = {
    "all-ttft": ("time to the first token", "S+TTFT p50, ms", _ttft),
    "all-energy-gpu": ("energy of the GPU", "GPU rail, gross, J per question", _energy("gpu_rail_j")),
    "all-energy-sys": ("energy of the machine", "whole machine, gross, J per question", _energy("sys_j")),
}


def _letter(position: int) -> str:
    """Return the mark of a row in the charts: A to Z, then AA, AB and so on."""
    head, tail = divmod(position, 26)
    return (_letter(head - 1) if head else "") + chr(ord("A") + tail)
