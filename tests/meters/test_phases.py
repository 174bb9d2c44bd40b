"""Tests phases in several pieces, means and peaks of their channels, and the footprint of a program."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from memarena.log.measuring import PhaseEnded
from memarena.meters.choice import AUTO, chosen_meters
from memarena.meters.energy import Phase, phase_energy
from memarena.meters.footprint import disk_bytes, footprint_of_cgroup, footprint_of_processes
from memarena.meters.integrals import Window
from memarena.meters.phases import measure_phase, unmetered_phase
from memarena.meters.readings import Channel, MeterError
from memarena.meters.samples import sampled_after
from memarena.meters.sampling import Sampling

from .conftest import ORIGIN_NS, Recorded


def span(start_s: float, end_s: float) -> tuple[int, int]:
    return ORIGIN_NS + round(start_s * 1e9), ORIGIN_NS + round(end_s * 1e9)


def pieces(*spans: tuple[float, float]) -> list[Window]:
    return [Window(*span(a, b)) for a, b in spans]


def test_the_pieces_of_a_phase_add_up(recorded: Recorded) -> None:
    """A ramp of 1 W a second: 0 to 20 s hold 200 J, 40 to 70 s hold 1,650 J."""
    samples = recorded(lambda t: t, 100)
    gpu = phase_energy(samples, pieces((0, 20), (40, 70)), queries=10).gpu_rail
    assert gpu.gross_j.value == pytest.approx(1850, rel=1e-4)
    assert gpu.mean_power_w.value == pytest.approx(1850 / 50, rel=1e-4)
    assert gpu.gross_j_per_query.status == "void", "50 s in all are less than 60"


def test_a_counter_is_compared_over_the_pieces_only(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 10, 200, counter=lambda t: 10 * t if t < 50 or t > 100 else 5000 + t)
    gpu = phase_energy(samples, pieces((0, 40), (110, 180))).gpu_rail
    assert gpu.counter_difference_percent.value == pytest.approx(0, abs=0.01)


def test_pieces_shorter_than_ten_seconds_on_average_are_void(recorded: Recorded) -> None:
    samples = recorded(lambda _t: 10, 100)
    short = phase_energy(samples, pieces((0, 9), (20, 30.9))).gpu_rail.gross_j
    assert short.status == "void"
    assert "2 of 9.9 s on average" in short.reason
    assert phase_energy(samples, pieces((0, 9), (20, 31))).gpu_rail.gross_j.status == "value"
    assert phase_energy(samples, pieces((0, 3))).gpu_rail.gross_j.status == "value", "one piece is itself"


def test_a_gap_in_any_piece_voids_the_phase(recorded: Recorded) -> None:
    gap = range(10 * 50, 10 * 50 + 20)
    samples = recorded(lambda _t: 10, 100, left_out=gap)
    assert phase_energy(samples, pieces((0, 20), (40, 70))).gpu_rail.gross_j.status == "void"
    assert phase_energy(samples, pieces((0, 20), (60, 90))).gpu_rail.gross_j.status == "value"


def test_pieces_out_of_order_or_no_piece_are_refused() -> None:
    for wrong in ([], pieces((5, 9), (0, 4)), pieces((0, 5), (4, 9))):
        with pytest.raises(MeterError):
            Phase(tuple(wrong))
    assert Phase(tuple(pieces((0, 5), (5, 9)))).duration_s == pytest.approx(9)


def test_mean_and_peak_of_a_channel_are_those_of_the_phase_only(recorded: Recorded) -> None:
    samples = recorded(lambda t: t, 100, channel=Channel("gpu_temperature", "°C"))
    ended = PhaseEnded(phase="cell", samples_file="f", pieces=(span(10, 20), span(30, 40)))
    phase = measure_phase(samples, ended, system_channel="sys_power")
    assert phase is not None
    (channel,) = phase.channels
    assert channel.mean.value == pytest.approx(25)
    assert channel.peak.value == pytest.approx(40)
    assert phase.rails[0].gross_j.status == "unavailable"


def test_cpu_seconds_are_the_growth_of_the_counter(recorded: Recorded) -> None:
    samples = recorded(lambda t: 1000 + 1.5 * t, 100, channel=Channel("cpu_busy", "s"))
    ended = PhaseEnded(phase="cell", samples_file="f", pieces=(span(10, 20),))
    phase = measure_phase(samples, ended, system_channel="sys_power")
    assert phase is not None
    assert phase.cpu_s.value == pytest.approx(15)
    assert phase.cpu_s.unit == "s"
    assert phase.channels == (), "a counter has no mean"


def test_a_phase_of_no_length_has_no_figures(recorded: Recorded) -> None:
    ended = PhaseEnded(phase="ingest", samples_file="f", pieces=(span(1, 1),))
    assert measure_phase(recorded(lambda t: t, 3), ended, system_channel="s") is None
    assert unmetered_phase(ended, "why", system_channel="s") is None


@pytest.mark.parametrize(
    ("words", "specs"), [(["auto"], AUTO), (["none"], ("none",)), (["nvml:1", "procfs"], ("nvml:1", "procfs"))]
)
def test_meter_specs_are_parsed(words: list[str], specs: tuple[str, ...]) -> None:
    assert chosen_meters(words) == specs


# ------------------------------------------------------------------ footprint


@pytest.fixture
def program(tmp_path: Path) -> subprocess.Popen[bytes]:
    """A process whose child uses 40 MB and has freed 30 MB more."""
    code = "import time; a = bytearray(b'x' * 40_000_000); b = bytearray(b'y' * 30_000_000); del b; print(flush=True)"
    child = f"{code}; time.sleep(60)"
    guard = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", guard], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_programs_memory_includes_its_children(program: subprocess.Popen[bytes], tmp_path: Path) -> None:
    try:
        footprint = footprint_of_processes(program.pid, tmp_path)
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()
    memory, peak = footprint.memory.value or 0, footprint.memory_peak.value or 0
    assert 40e6 < memory < 69e6
    assert peak > memory + 25e6


def test_a_program_that_has_ended_has_no_footprint(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    footprint = footprint_of_processes(process.pid, tmp_path)
    assert footprint.memory.status == footprint.memory_peak.status == "unavailable"
    assert str(process.pid) in footprint.memory.reason
    assert footprint.disk.status == "value"


def test_disk_usage_counts_blocks_and_each_file_once(tmp_path: Path) -> None:
    bytes_before = disk_bytes(tmp_path)
    (tmp_path / "data").write_bytes(os.urandom(1_000_000))
    os.link(tmp_path / "data", tmp_path / "again")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(50_000_000)
    (tmp_path / "link").symlink_to("/usr")
    assert 1_000_000 <= disk_bytes(tmp_path) - bytes_before < 1_000_000 + 16 * mmap.PAGESIZE


def test_a_folder_elsewhere_is_unavailable_not_empty(tmp_path: Path) -> None:
    footprint = footprint_of_processes(os.getpid(), None)
    assert footprint.disk.status == "unavailable"


def test_a_container_is_measured_by_its_control_group(tmp_path: Path) -> None:
    (tmp_path / "memory.current").write_text("123456\n")
    (tmp_path / "memory.peak").write_text("234567\n")
    footprint = footprint_of_cgroup(tmp_path, None)
    assert (footprint.memory.value, footprint.memory_peak.value) == (123456, 234567)
    (tmp_path / "memory.peak").unlink()
    assert footprint_of_cgroup(tmp_path, None).memory_peak.status == "unavailable"
    assert footprint_of_cgroup(tmp_path / "none", None).memory.status == "unavailable"


# ------------------------------------------------------------------ the sampler's edge


def test_waiting_past_a_time_includes_the_phases_last_sample(tmp_path: Path) -> None:
    with Sampling.start(["constant:gpu_power=5 W"], tmp_path / "s.csv") as sampling:
        moment = time.monotonic_ns() + 150_000_000
        sampling.wait_past(moment)
        assert sampled_after(sampling.path, moment)
        assert not sampled_after(sampling.path, moment + 60_000_000_000)
        samples = sampling.stop()
    gross = phase_energy(samples, Window(moment - 100_000_000, moment)).gpu_rail.gross_j
    assert gross.status == "value"


def test_there_is_no_wait_for_a_sampler_that_has_ended(tmp_path: Path) -> None:
    sampling = Sampling.start(["constant:gpu_power=5 W"], tmp_path / "s.csv")
    sampling.close()
    began = time.monotonic()
    sampling.wait_past(time.monotonic_ns(), timeout_s=30)
    assert time.monotonic() - began < 10
    assert sampling.failure() is not None
