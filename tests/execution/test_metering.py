"""Tests a run's meters: energy of each phase, void figures with reasons, memory and disk of backends by day."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from memarena.execution.display import SilentDisplay
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.metering import CellPhases, RunMetering
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.planning.request import RunRequest
from memarena.log.records import (
    AnyRecord,
    FootprintTaken,
    MeterFigure,
    MeteringStarted,
    PhaseEnded,
    PhaseMeasured,
    Problem,
)
from memarena.log.store import LogWriter, read_records
from memarena.meters.cpu_load import LEAST_S, CpuLoadSpan
from memarena.meters.readings import Channel, Reading
from memarena.meters.samples import SamplesWriter
from pydantic import ValidationError

EXAMPLE = Path(__file__).parent.parent / "data" / "example"
R = TypeVar("R")


def config(**changes: object) -> RunConfig:
    """Return a run of bm25 over the example; ``changes`` are fields of the configuration."""
    base = RunConfig(
        dataset=EXAMPLE,
        backends=("bm25",),
        readers=(ReaderConfig(spec="extractive"),),
        limit=4,
        protocol="end_of_horizon",
        floor_samples=0,
    )
    return base.model_copy(update=changes)


def of(records: list[AnyRecord], kind: type[R]) -> list[R]:
    """Return the records of one type."""
    return [record for record in records if isinstance(record, kind)]


def recording(path: Path, signal: Callable[[int], float], ticks: int) -> Path:
    """Write a samples file to replay; ``signal`` returns watts by tick."""
    with SamplesWriter(path) as writer:
        writer.begin(100_000_000, 0, 0)
        writer.source("meter", [Channel("gpu_power", "W")], [])
        for tick in range(ticks):
            writer.sample("meter", tick, tick, tick, [Reading(Channel("gpu_power", "W"), signal(tick))])
        writer.end(ticks)
    return path


def gross(phase: PhaseMeasured) -> MeterFigure:
    (rail,) = [rail for rail in phase.rails if rail.name == "gpu_rail_j"]
    return rail.gross_j


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory) -> list[AnyRecord]:
    """Records of a run that was metered with a constant 40 W and the kernel's own counters."""
    out = tmp_path_factory.mktemp("metered") / "run"
    outcome = execute(RunRequest(out=out, config=config(meters=("constant:gpu_power=40 W", "procfs"))))
    assert outcome.reason == "completed"
    assert (out / "meters" / "segment-000.csv").is_file()
    return list(read_records(out))


def test_every_phase_of_a_run_has_its_energy(metered: list[AnyRecord]) -> None:
    """A constant of 40 W gives 40 joules a second, whatever the phase."""
    phases = of(metered, PhaseMeasured)
    assert [phase.phase for phase in phases][:2] == ["prepare", "cell"]
    cell_phase = next(phase for phase in phases if phase.phase == "cell")
    assert gross(cell_phase).value == pytest.approx(40 * cell_phase.duration_s, rel=1e-6)
    assert cell_phase.cpu_s.status == "value"
    assert cell_phase.load is not None
    if cell_phase.duration_s > LEAST_S + 0.1:
        assert 0 <= (cell_phase.load.others.value or 0) <= (cell_phase.load.busy.value or 0) <= 100
    assert all(phase.load is None for phase in phases if phase.phase != "cell")
    assert cell_phase.queries == 4


def test_days_and_questions_lie_within_their_cell(metered: list[AnyRecord]) -> None:
    ended = {phase.phase: phase for phase in of(metered, PhaseEnded)}
    ((start, end),) = ended["cell"].pieces
    for kind in ("ingest", "answer"):
        assert ended[kind].pieces
        assert all(start <= a < b <= end for a, b in ended[kind].pieces)
    assert ended["ingest"].queries is None
    assert ended["answer"].queries == 4


def test_a_machine_without_a_whole_machine_rail_says_unavailable_and_never_0(metered: list[AnyRecord]) -> None:
    for phase in of(metered, PhaseMeasured):
        (rail,) = [rail for rail in phase.rails if rail.name == "sys_j"]
        assert rail.gross_j.status == "unavailable"
        assert rail.gross_j.value is None
        assert "whole machine" in rail.gross_j.reason


def test_net_energy_is_void_without_a_measured_idle_phase(metered: list[AnyRecord]) -> None:
    (cell_phase,) = [phase for phase in of(metered, PhaseMeasured) if phase.phase == "cell"]
    rail = cell_phase.rails[0]
    assert (rail.net_j.status, rail.net_j.reason) == ("void", "no idle windows were measured")
    assert rail.gross_j_per_query.status == "void"


def test_memory_and_disk_of_a_backend_are_measured_after_every_day(metered: list[AnyRecord]) -> None:
    footprints = of(metered, FootprintTaken)
    days = {(footprint.ego, footprint.day) for footprint in footprints}
    assert len(days) == len(footprints) > 2
    for footprint in footprints:
        assert 10e6 < (footprint.memory.value or 0) <= (footprint.memory_peak.value or 0)
        assert footprint.disk.value is not None
    by_ego = [footprint.disk.value or 0 for footprint in footprints if footprint.ego == footprints[0].ego]
    assert by_ego[-1] >= by_ego[0] > 0


def test_without_a_meter_no_sampler_runs_and_every_figure_is_unavailable(tmp_path: Path) -> None:
    out = tmp_path / "run"
    execute(RunRequest(out=out, config=config(meters=("none",), limit=1)))
    assert not (out / "meters").exists()
    records = list(read_records(out))
    assert of(records, MeteringStarted)[0].samples_file == ""
    for phase in of(records, PhaseMeasured):
        assert {gross(phase).reason, phase.cpu_s.reason} == {"no meter was asked for"}
        assert phase.load is None or phase.load.others.reason == "no meter was asked for"


def test_a_meter_that_fails_during_a_phase_voids_it_with_a_reason(tmp_path: Path) -> None:
    """The recording ends after three tenths of a second, long before the run does."""
    file = recording(tmp_path / "short.csv", lambda _tick: 30.0, ticks=3)
    out = tmp_path / "run"
    execute(RunRequest(out=out, config=config(meters=(f"replay:{file}",))))
    (cell_phase,) = [phase for phase in of(list(read_records(out)), PhaseMeasured) if phase.phase == "cell"]
    assert gross(cell_phase).status == "void"
    assert "the recording ends after 3 ticks" in gross(cell_phase).reason


def test_a_recording_longer_than_the_run_gives_the_energy_of_each_phase(tmp_path: Path) -> None:
    """The recording rises by 10 W a tick: each phase's mean power lies between the lowest and highest sample in it."""
    file = recording(tmp_path / "ramp.csv", lambda tick: 10.0 * tick, ticks=3000)
    out = tmp_path / "run"
    execute(RunRequest(out=out, config=config(meters=(f"replay:{file}",))))
    (cell_phase,) = [phase for phase in of(list(read_records(out)), PhaseMeasured) if phase.phase == "cell"]
    (channel,) = cell_phase.channels
    assert channel.mean.value == pytest.approx((gross(cell_phase).value or 0) / cell_phase.duration_s)
    assert 0 < (channel.mean.value or 0) < (channel.peak.value or 0)


@pytest.mark.parametrize(
    ("meters", "message"),
    [
        (("volts",), "volts: no such meter"),
        (("none", "procfs"), "none: goes with no other meter"),
        (("auto", "procfs"), "procfs: the meter is named twice"),
        (("replay:/nowhere.csv",), "/nowhere.csv"),
    ],
)
def test_a_meter_that_cannot_be_used_ends_the_run_before_there_is_a_log(
    tmp_path: Path, meters: tuple[str, ...], message: str
) -> None:
    with pytest.raises(RunError, match="--meter") as raised:
        execute(RunRequest(out=tmp_path / "run", config=config(meters=meters)))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_consecutive_spans_of_one_kind_are_merged() -> None:
    phases = CellPhases(CpuLoadSpan("not read"))
    for kind, start, end in (("ingest", 10, 20), ("ingest", 25, 30), ("answer", 31, 40), ("ingest", 50, 60)):
        phases.add(kind, start, end)  # type: ignore[arg-type]
    cell_phase, ingest, answer = phases.ended("c", "f")
    assert ingest.pieces == ((10, 30), (50, 60))
    assert answer.pieces == ((31, 40),)
    assert (cell_phase.queries, ingest.queries, answer.queries) == (1, None, 1)


def test_phases_of_a_killed_process_are_measured_when_the_run_is_resumed(tmp_path: Path) -> None:
    """Samples and spans are on disk; only their sum was never written."""
    metering = RunMetering(("constant:gpu_power=8 W",), tmp_path, system_channel=None, idle_s=0)
    metering.begin()
    metering.wait_ready()
    with LogWriter(tmp_path) as log:
        metering.log_start(log.append)
        start = time.monotonic_ns()
        time.sleep(0.5)
        metering.ended("cell", start)
        time.sleep(0.3)
        metering.close()  # killed: finish() never came
    again = RunMetering(("none",), tmp_path, system_channel=None, idle_s=0)
    measured: list[PhaseMeasured] = []
    again.log_start(lambda *records: measured.extend(r for r in records if isinstance(r, PhaseMeasured)))
    kinds = ("metering_started", "phase", "phase_measured")
    again.settle_earlier(list(read_records(tmp_path, *kinds)))
    (phase,) = measured
    assert gross(phase).value == pytest.approx(8 * phase.duration_s, rel=1e-6)
    again.settle_earlier([*read_records(tmp_path, *kinds), phase])
    assert len(measured) == 1


def test_idle_phases_before_and_after_give_net_energy_of_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memarena.meters.energy.IDLE_S", 0.2)
    metering = RunMetering(("constant:gpu_power=8 W",), tmp_path, system_channel=None, idle_s=0.25)
    metering.begin()
    metering.wait_ready()
    with LogWriter(tmp_path) as log:
        metering.log_start(log.append)
        metering.idle("idle_before")
        start = time.monotonic_ns()
        time.sleep(0.3)
        metering.ended("cell", start)
        metering.idle("idle_after")
        metering.finish()
        metering.close()
    measured = {phase.phase: phase for phase in of(list(read_records(tmp_path)), PhaseMeasured)}
    assert list(measured) == ["idle_before", "cell", "idle_after"]
    rail = measured["cell"].rails[0]
    assert rail.idle_w.value == pytest.approx(8)
    assert rail.net_j.value is not None
    assert math.isclose(rail.net_j.value, 0, abs_tol=1e-6)
    assert measured["idle_after"].rails[0].net_j.status == "void"


def test_a_machine_without_a_power_meter_gets_no_idle_phases(tmp_path: Path) -> None:
    metering = RunMetering(("procfs",), tmp_path, system_channel=None, idle_s=600)
    metering.begin()
    metering.wait_ready()
    try:
        with LogWriter(tmp_path) as log:
            metering.log_start(log.append)
            began = time.monotonic()
            metering.idle("idle_before")
            assert time.monotonic() - began < 60
    finally:
        metering.close()


def test_a_dead_sampler_is_logged_as_a_problem(tmp_path: Path) -> None:
    """The problem names the cell in which it was detected, and the run goes on."""
    out = tmp_path / "run"

    class Killing(SilentDisplay):
        """Kills the sampler as soon as the first cell begins."""

        def cell(self, name: str, days: int) -> None:
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):  # another child that has just ended
                    if "memarena.meters.sampler" in " ".join(child.cmdline()):
                        child.kill()

    outcome = execute(RunRequest(out=out, config=config(meters=("constant:gpu_power=4 W",))), Killing())
    assert outcome.reason == "completed"
    records = list(read_records(out))
    assert [p.where for p in of(records, Problem)] == ["meters"]
    (cell_phase,) = [phase for phase in of(records, PhaseMeasured) if phase.phase == "cell"]
    assert gross(cell_phase).status == "void"


def test_a_figure_is_a_number_or_a_reason() -> None:
    for wrong in (
        {"status": "value"},
        {"status": "value", "value": 1.0, "reason": "but"},
        {"status": "void"},
        {"status": "unavailable", "value": 0.0, "reason": "none"},
    ):
        with pytest.raises(ValidationError):
            MeterFigure.model_validate(wrong)
