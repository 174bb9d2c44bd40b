"""A run's meters: phases in the log with their energy, voids with reasons, memory and disk of backends by day."""

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
    """A run of bm25 over the example; ``changes`` are settings."""
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
    return [record for record in records if isinstance(record, kind)]


def recording(path: Path, signal: Callable[[int], float], ticks: int) -> Path:
    """A samples file to replay: ``signal`` gives watts by tick."""
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
    """The log of a run that was metered by a constant 40 W and the kernel's own counters."""
    out = tmp_path_factory.mktemp("metered") / "run"
    outcome = execute(RunRequest(out=out, config=config(meters=("constant:gpu_power=40 W", "procfs"))))
    assert outcome.reason == "completed"
    assert (out / "meters" / "segment-000.csv").is_file()
    return list(read_records(out))


def test_every_phase_of_a_run_has_its_energy(metered: list[AnyRecord]) -> None:
    """A constant of 40 W gives 40 joules a second, whatever the phase."""
    phases = of(metered, PhaseMeasured)
    assert [phase.phase for phase in phases][:2] == ["prepare", "cell"]
    whole = next(phase for phase in phases if phase.phase == "cell")
    assert gross(whole).value == pytest.approx(40 * whole.duration_s, rel=1e-6)
    assert whole.cpu_s.status == "value"
    assert whole.load is not None
    if whole.duration_s > LEAST_S + 0.1:
        assert 0 <= (whole.load.others.value or 0) <= (whole.load.busy.value or 0) <= 100
    assert all(phase.load is None for phase in phases if phase.phase != "cell")
    assert whole.queries == 4


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


def test_net_energy_is_void_where_the_machine_was_never_left_alone(metered: list[AnyRecord]) -> None:
    (whole,) = [phase for phase in of(metered, PhaseMeasured) if phase.phase == "cell"]
    rail = whole.rails[0]
    assert (rail.net_j.status, rail.net_j.reason) == ("void", "no idle windows were measured")
    assert rail.gross_j_per_query.status == "void"


def test_memory_and_disk_of_a_backend_are_taken_after_every_day(metered: list[AnyRecord]) -> None:
    taken = of(metered, FootprintTaken)
    days = {(each.ego, each.day) for each in taken}
    assert len(days) == len(taken) > 2
    for each in taken:
        assert 10e6 < (each.memory.value or 0) <= (each.memory_peak.value or 0)
        assert each.disk.value is not None
    by_ego = [each.disk.value or 0 for each in taken if each.ego == taken[0].ego]
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


def test_a_meter_that_fails_half_way_voids_the_phase_and_says_so(tmp_path: Path) -> None:
    """The recording ends after three tenths of a second, long before the run does."""
    file = recording(tmp_path / "short.csv", lambda _tick: 30.0, ticks=3)
    out = tmp_path / "run"
    execute(RunRequest(out=out, config=config(meters=(f"replay:{file}",))))
    (whole,) = [phase for phase in of(list(read_records(out)), PhaseMeasured) if phase.phase == "cell"]
    assert gross(whole).status == "void"
    assert "the recording ends after 3 ticks" in gross(whole).reason


def test_a_recording_that_outlasts_the_run_gives_its_joules(tmp_path: Path) -> None:
    """A ramp of 10 W a tick, replayed: each phase has the mean of what was read in it, between lowest and highest."""
    file = recording(tmp_path / "ramp.csv", lambda tick: 10.0 * tick, ticks=3000)
    out = tmp_path / "run"
    execute(RunRequest(out=out, config=config(meters=(f"replay:{file}",))))
    (whole,) = [phase for phase in of(list(read_records(out)), PhaseMeasured) if phase.phase == "cell"]
    (channel,) = whole.channels
    assert channel.mean.value == pytest.approx((gross(whole).value or 0) / whole.duration_s)
    assert 0 < (channel.mean.value or 0) < (channel.peak.value or 0)


@pytest.mark.parametrize(
    ("meters", "told"),
    [
        (("volts",), "volts: no such meter"),
        (("none", "procfs"), "none: goes with no other meter"),
        (("auto", "procfs"), "procfs: the meter is named twice"),
        (("replay:/nowhere.csv",), "/nowhere.csv"),
    ],
)
def test_a_meter_that_cannot_be_used_ends_the_run_before_there_is_a_log(
    tmp_path: Path, meters: tuple[str, ...], told: str
) -> None:
    with pytest.raises(RunError, match="--meter") as raised:
        execute(RunRequest(out=tmp_path / "run", config=config(meters=meters)))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_spans_of_one_kind_that_follow_each_other_are_one_piece() -> None:
    phases = CellPhases(CpuLoadSpan("not read"))
    for kind, start, end in (("ingest", 10, 20), ("ingest", 25, 30), ("answer", 31, 40), ("ingest", 50, 60)):
        phases.add(kind, start, end)  # type: ignore[arg-type]
    whole, ingest, answer = phases.ended("c", "f")
    assert ingest.pieces == ((10, 30), (50, 60))
    assert answer.pieces == ((31, 40),)
    assert (whole.queries, ingest.queries, answer.queries) == (1, None, 1)


def test_phases_of_a_process_that_was_killed_are_measured_when_the_run_goes_on(tmp_path: Path) -> None:
    """Its samples and the spans of its phases are on disk; only the sum was never made."""
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
    found: list[PhaseMeasured] = []
    again.log_start(lambda *records: found.extend(r for r in records if isinstance(r, PhaseMeasured)))
    kinds = ("metering_started", "phase", "phase_measured")
    again.settle_earlier(list(read_records(tmp_path, *kinds)))
    (phase,) = found
    assert gross(phase).value == pytest.approx(8 * phase.duration_s, rel=1e-6)
    again.settle_earlier([*read_records(tmp_path, *kinds), phase])
    assert len(found) == 1


def test_rest_before_and_after_gives_net_energy_of_what_lies_between(
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


def test_a_machine_without_any_power_meter_is_not_left_alone_for_nothing(tmp_path: Path) -> None:
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


def test_a_sampler_that_dies_is_a_problem_on_the_record(tmp_path: Path) -> None:
    """It is told with the cell in which it was found, and the run goes on."""
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
    (whole,) = [phase for phase in of(records, PhaseMeasured) if phase.phase == "cell"]
    assert gross(whole).status == "void"


def test_a_figure_is_a_number_or_a_reason() -> None:
    for wrong in (
        {"status": "value"},
        {"status": "value", "value": 1.0, "reason": "but"},
        {"status": "void"},
        {"status": "unavailable", "value": 0.0, "reason": "none"},
    ):
        with pytest.raises(ValidationError):
            MeterFigure.model_validate(wrong)
