"""Tests energy and memory in reports: figures, or reasons why there are none, and never 0 J for a missing meter."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

from memarena.cli.scores import report_run
from memarena.log.records import FootprintTaken, MeterFigure, PhaseMeasured, RailMeasured
from memarena.log.store import LogWriter
from memarena.report.document import report_document
from memarena.report.render.html import to_html
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document

SMALL_RUN = Path(__file__).parent.parent / "golden" / "small_run"
NO_GPU = MeterFigure(status="unavailable", reason="NVML: no GPU")
NO_WALL = MeterFigure(status="unavailable", reason="no wall meter")
SCATTERED = MeterFigure(status="void", reason="in pieces too short (6 of 0.1 s)")


def value(number: float, unit: str) -> MeterFigure:
    return MeterFigure(status="value", value=number, unit=unit)


def rail(name: str, figure: MeterFigure) -> RailMeasured:
    return RailMeasured(
        name=name,
        gross_j=figure,
        mean_power_w=figure,
        counter_difference_percent=figure,
        idle_w=figure,
        idle_j=figure,
        net_j=figure,
        gross_j_per_query=figure,
        net_j_per_query=figure,
    )


def phase(cell_id: str, gpu: MeterFigure, cpu: MeterFigure) -> PhaseMeasured:
    return PhaseMeasured(
        phase="cell",
        cell_id=cell_id,
        samples_file="meters/segment-000.csv",
        start_mono_ns=0,
        duration_s=75.0,
        pieces=1,
        queries=10,
        rails=(rail("gpu_rail_j", gpu), rail("sys_j", NO_WALL)),
        cpu_s=cpu,
    )


def with_records(tmp_path: Path, make: Callable[[str], list[PhaseMeasured | FootprintTaken]]) -> Path:
    """Write the golden run with more records about its first cell."""
    run_dir = Path(shutil.copytree(SMALL_RUN, tmp_path / "run"))
    cell_id = report_run(run_dir).scores.rows[0].cells[0].cell_id
    with LogWriter(run_dir) as log:
        log.append(*make(cell_id))
    return run_dir


def shown(run_dir: Path) -> str:
    file = io.StringIO()
    print_document(report_document([report_run(run_dir)]), file)
    return file.getvalue()


def test_figures_are_in_every_format_of_the_report(tmp_path: Path) -> None:
    run_dir = with_records(tmp_path, lambda cell: [phase(cell, value(1234.0, "J"), value(55.5, "s"))])
    run = report_run(run_dir)
    for text in (shown(run_dir), to_markdown(report_document([run])), to_html([run])):
        assert "1,234" in text
        assert "55.5" in text
        assert "sys_j unavailable: no wall meter" in text
        assert "looks nearly free" in text


def test_a_machine_without_a_gpu_gives_a_reason_and_no_joules(tmp_path: Path) -> None:
    text = shown(with_records(tmp_path, lambda cell: [phase(cell, NO_GPU, value(55.5, "s"))]))
    energy = text[text.index("\nEnergy\n") :]
    assert "gpu_rail_j unavailable: NVML: no GPU" in energy
    assert "GPU rail J" not in energy.partition("gpu_rail_j unavailable")[0]
    assert "nearly free" not in energy


def test_a_run_without_meters_has_one_line_with_the_reason(tmp_path: Path) -> None:
    run_dir = with_records(tmp_path, lambda cell: [phase(cell, NO_GPU, NO_GPU)])
    text = shown(run_dir)
    assert "unavailable  NVML: no GPU" in text
    assert "GPU rail" not in text


def test_a_void_figure_is_given_with_its_reason(tmp_path: Path) -> None:
    text = shown(with_records(tmp_path, lambda cell: [phase(cell, SCATTERED, value(1.0, "s"))]))
    assert "gpu_rail_j void in 1 of the phases" in text
    assert "6 of 0.1 s" in text
    assert " void " in text.partition("gpu_rail_j void")[0]


def test_void_figures_are_counted_by_kind_of_phase_whatever_their_reasons_say(tmp_path: Path) -> None:
    long_gap = MeterFigure(status="void", reason="a gap of 950 ms")

    def phases(cell: str) -> list[PhaseMeasured | FootprintTaken]:
        phase_records = [phase(cell, figure, value(1.0, "s")) for figure in (SCATTERED, long_gap, long_gap)]
        return [*phase_records[:2], phase_records[2].model_copy(update={"phase": "answer"})]

    text = " ".join(shown(with_records(tmp_path, phases)).split())
    assert "gpu_rail_j void in 2 of the phases, first" in text
    assert "gpu_rail_j void in 1 of the phases, first" in text
    assert "answer: a gap of 950 ms" in text
    assert text.count("sys_j unavailable: no wall meter") == 1


def test_memory_and_disk_are_those_of_the_last_day_and_the_peak_of_all_days(tmp_path: Path) -> None:
    def taken(cell: str, day: int, memory: float, peak: float) -> FootprintTaken:
        return FootprintTaken(
            cell_id=cell,
            ego="a",
            day=day,
            taken_mono_ns=day,
            memory=value(memory * 1e6, "B"),
            memory_peak=value(peak * 1e6, "B"),
            disk=MeterFigure(status="unavailable", reason="its data is elsewhere"),
        )

    run_dir = with_records(tmp_path, lambda cell: [taken(cell, 0, 50, 91.5), taken(cell, 1, 62.5, 80)])
    text = shown(run_dir)
    table = text[text.index("Memory and disk of backends") :]
    assert "62.5" in table
    assert "91.5" in table
    assert "unavailable: its data is elsewhere" in table
