"""Tests the mark of times measured while other processes kept the machine busy, in every report format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memarena.cli.scores import report_run
from memarena.log.measuring import CpuLoad, MeterFigure
from memarena.report.brief import brief_document
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.json import to_json
from memarena.report.render.markdown import to_markdown
from memarena.report.rows import backend_name, load_notes, rows_of
from memarena.scoring.results import BUSY_ALL_PERCENT, BUSY_OTHERS_PERCENT, is_busy

from .test_energy_tables import NO_GPU, phase, shown, with_records

LOCAL = MeterFigure.unavailable("a model runs at localhost:8000")


def share(percent: float) -> MeterFigure:
    return MeterFigure.measured(percent, "%")


def run_with(tmp_path: Path, *loads: CpuLoad) -> Path:
    """Write the golden run with these CPU loads of its first cell, one for each segment."""
    return with_records(
        tmp_path, lambda cell: [phase(cell, NO_GPU, NO_GPU).model_copy(update={"load": load}) for load in loads]
    )


@pytest.mark.parametrize(
    ("busy", "others", "marked"),
    [
        (share(99), share(BUSY_OTHERS_PERCENT - 1), False),  # the run itself keeps the machine busy
        (share(60), share(BUSY_OTHERS_PERCENT), True),
        (share(BUSY_ALL_PERCENT - 1), LOCAL, False),
        (share(BUSY_ALL_PERCENT), LOCAL, True),
        (LOCAL, LOCAL, False),
    ],
)
def test_load_of_others_decides_or_of_all_processes_if_it_is_unknown(
    busy: MeterFigure, others: MeterFigure, marked: bool
) -> None:
    assert is_busy(CpuLoad(busy=busy, others=others)) is marked


def test_every_format_marks_the_row_and_states_the_highest_share(tmp_path: Path) -> None:
    quiet, loaded = (CpuLoad(busy=share(90), others=share(others)) for others in (0.0, 43.4))
    run_dir = run_with(tmp_path, quiet, loaded, quiet)
    run = report_run(run_dir)
    rows = rows_of([run])
    first = next(row for row in rows if row.scores.load is not None)
    assert "busy_machine" in first.scores.marks
    assert " ◷" in backend_name(rows, first, of_times=True)
    assert "◷" not in backend_name(rows, first)
    note = f"◷ times taken while others than the run used the CPUs: {first.scores.label} 43% of all CPU time"
    documents = report_document([run]), brief_document([run])
    texts = [shown(run_dir), *map(to_markdown, documents), to_html([run])]
    for text in texts:
        assert note in " ".join(text.split())
        assert f"{first.scores.backend} ◷" in text or backend_name(rows, first, of_times=True) in text
    (row,) = [row for row in json.loads(to_json([run]))["runs"][0]["rows"] if row["load"] is not None]
    assert (row["load"]["others"]["value"], "busy_machine" in row["marks"]) == (43.4, True)


def test_an_unmeasured_load_is_reported_and_marks_no_row(tmp_path: Path) -> None:
    run = report_run(run_with(tmp_path, CpuLoad(busy=NO_GPU, others=NO_GPU)))
    rows = [row.scores for row in rows_of([run])]
    assert not any("busy_machine" in row.marks for row in rows)
    first = next(row for row in rows if row.load is not None)
    assert f"{first.label}: CPU time of others than the run not measured: NVML: no GPU" in load_notes(rows)
    assert load_notes([row for row in rows if row is not first]) == [
        "CPU time of others than the run not measured: the log does not say"
    ]


def test_an_undivided_load_is_reported_as_that_of_all_processes(tmp_path: Path) -> None:
    run = report_run(run_with(tmp_path, CpuLoad(busy=share(95), others=LOCAL)))
    (first,) = [row.scores for row in rows_of([run]) if row.scores.load is not None]
    (line,) = load_notes([first])
    assert line.startswith("◷ ")
    assert f"{first.label} 95%, whoever used it (a model runs at localhost:8000)" in line
