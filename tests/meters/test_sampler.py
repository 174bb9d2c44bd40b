"""Tests the sampling process: it keeps its schedule, survives failing meters, and loses at most a line if killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from memarena.log.measuring import MeterFigure
from memarena.meters.energy import phase_energy
from memarena.meters.integrals import Window
from memarena.meters.readings import Channel, MeterError, MeterFailedError, Reading, Unavailable
from memarena.meters.sampler import sample_until_stopped
from memarena.meters.samples import Samples, SamplesWriter, Series, read_samples
from memarena.meters.sampling import Sampling

from tests.support.psutil_processes import command_lines_below

WATT = Channel("gpu_power", "W")


@dataclass
class FakeClock:
    """A clock that advances only by waits and slow reads; each wait takes a little too long."""

    end_ns: int
    now: int = 5_000_000_000

    def now_ns(self) -> int:
        return self.now

    def stopped_before(self, due_ns: int) -> bool:
        self.now = max(self.now, due_ns) + 3_000_000
        return self.now >= self.end_ns


@dataclass
class FakeMeter:
    """A meter whose n-th read takes ``cost_ns(n)``, and which fails for good at read ``fails_at``."""

    clock: FakeClock
    cost_ns: Callable[[int], int] = lambda _n: 1_000_000
    fails_at: int | None = None
    name: str = "fake"
    reads: int = 0
    channels: Sequence[Channel] = (WATT,)
    unavailable: Sequence[Unavailable] = field(default_factory=tuple)

    def read(self) -> Sequence[Reading | Unavailable]:
        self.reads += 1
        self.clock.now += self.cost_ns(self.reads)
        if self.reads == self.fails_at:
            raise MeterFailedError("pulled out")
        return [Reading(WATT, 25.0)]

    def close(self) -> None:
        pass


def sampled(path: Path, clock: FakeClock, *meters: FakeMeter) -> Samples:
    with SamplesWriter(path) as writer:
        sample_until_stopped(meters, writer, 100_000_000, clock)
    return read_samples(path)


def power(samples: Samples) -> Series:
    series = samples.series("gpu_power")
    assert isinstance(series, Series)
    return series


def test_the_schedule_does_not_drift(tmp_path: Path) -> None:
    """Each wait is 3 ms late and each read takes 1 ms; after a thousand ticks the lateness is still 3 ms."""
    clock = FakeClock(end_ns=105_000_000_000)
    series = power(sampled(tmp_path / "s.csv", clock, FakeMeter(clock)))
    assert len(series.times_ns) == 1000
    assert series.times_ns[-1] == 5_000_000_000 + 999 * 100_000_000 + 3_500_000


def test_a_slow_read_skips_ticks_and_later_ones_are_on_time(tmp_path: Path) -> None:
    clock = FakeClock(end_ns=7_000_000_000)
    samples = sampled(tmp_path / "s.csv", clock, FakeMeter(clock, lambda n: 450_000_000 if n == 5 else 0))
    ticks = [line.tick for line in samples.lines["fake"]]
    assert ticks == [0, 1, 2, 3, 4, *range(8, 20)]
    late = [int(time_ns - 5_000_000_000) % 100_000_000 for time_ns in power(samples).times_ns[6:]]
    assert set(late) == {3_000_000}


def test_a_failed_meter_is_recorded_and_read_no_more(tmp_path: Path) -> None:
    clock = FakeClock(end_ns=15_000_000_000)
    other_meter = FakeMeter(clock, name="other", channels=())
    meter = FakeMeter(clock, fails_at=50)
    samples = sampled(tmp_path / "s.csv", clock, meter, other_meter)
    assert [(f.source, f.reason) for f in samples.failures] == [("fake", "pulled out")]
    assert meter.reads == 50
    assert samples.ended_ns is not None
    figure = phase_energy(samples, Window(6_000_000_000, 14_000_000_000)).gpu_rail.gross_j
    assert figure == MeterFigure.void("gpu_power: the meter failed at +3.9 s of the phase: pulled out")


def test_a_real_sampler_measures_a_constant_and_ends_cleanly(tmp_path: Path) -> None:
    with Sampling.start(["constant:gpu_power=25 W", "procfs"], tmp_path / "s.csv", hz=50) as sampling:
        time.sleep(0.3)
        start_ns = time.monotonic_ns()
        time.sleep(0.5)
        end_ns = time.monotonic_ns()
        time.sleep(0.3)
        sampling.check()
        samples = sampling.stop()
    assert samples.ended_ns is not None
    assert samples.failures == ()
    assert len(samples.channels) == 5
    series = power(samples)
    assert set(series.values) == {25.0}
    assert samples.origin_ns < start_ns < samples.ended_ns
    figure = phase_energy(samples, Window(start_ns, end_ns)).gpu_rail.gross_j
    # On a busy machine the sampler may be delayed: then the figure is void, never wrong.
    if figure.status == "value":
        assert figure.value == pytest.approx(25 * (end_ns - start_ns) / 1e9, rel=1e-6)
    else:
        assert figure.status == "void"
    with pytest.raises(MeterError, match="the sampler ended with exit code 0"):
        sampling.check()


def test_a_recording_can_be_replayed_by_another_sampler(tmp_path: Path) -> None:
    """The replay returns the recorded values and then a failed meter; the sampler goes on."""
    watts = [25.0, 31.5, 0.1 + 0.2]
    with SamplesWriter(tmp_path / "recorded.csv") as writer:
        writer.begin(1, 2, 3)
        writer.source("nvml", [WATT], [])
        for tick, value in enumerate(watts):
            writer.sample("nvml", tick, tick, tick, [Reading(WATT, value)])
    with Sampling.start([f"replay:{tmp_path / 'recorded.csv'}"], tmp_path / "s.csv", hz=100) as sampling:
        deadline = time.monotonic() + 20
        while not read_samples(tmp_path / "s.csv").failures and time.monotonic() < deadline:
            time.sleep(0.02)
        sampling.check()
        samples = sampling.stop()
    assert list(power(samples).values) == watts
    failed = power(samples).failed
    assert failed is not None
    assert "the recording ends after 3 ticks" in failed.reason


def test_a_sampler_that_is_killed_keeps_all_but_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    with Sampling.start(["constant:gpu_power=25 W"], path, hz=100) as sampling:
        deadline = time.monotonic() + 20
        while len(power(read_samples(path)).times_ns) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        below = command_lines_below(psutil.Process(sampling._process.pid))
        (child,) = [process for process, words in below if path.name in words]
        samples_before = len(power(read_samples(path)).times_ns)
        child.send_signal(signal.SIGKILL)
        _, alive = psutil.wait_procs([child], timeout=10)
        assert not alive
        killed = sampling.stop()
    assert killed.ended_ns is None
    ticks = [line.tick for line in killed.lines["constant gpu_power"]]
    assert len(ticks) >= samples_before >= 20
    assert ticks == sorted(set(ticks))
    complete = path.read_bytes()
    complete = complete[: complete.rindex(b"\n") + 1]
    path.write_bytes(complete + b"sample,constant gpu_po")  # as after a power cut during a write
    torn = read_samples(path)
    assert torn.torn is not None
    assert torn.torn.startswith(f"line {len(complete.splitlines()) + 1} was not written whole")
    assert torn.by_tick() == killed.by_tick()
    assert phase_energy(torn, Window(torn.origin_ns, 2**62)).gpu_rail.gross_j.status == "void"


@pytest.mark.parametrize(
    ("meters", "hz", "message"),
    [
        (["wattmeter"], 10, "exit code 2: error: wattmeter: no such meter"),
        (["procfs"], 5000, r"exit code 2: error: --hz 5000"),
    ],
)
def test_a_sampler_that_cannot_start_gives_the_reason(
    tmp_path: Path, meters: list[str], hz: float, message: str
) -> None:
    with pytest.raises(MeterError, match=message):
        Sampling.start(meters, tmp_path / "s.csv", hz=hz)
    assert not (tmp_path / "s.csv").exists()


def test_a_samples_file_belongs_to_one_sampler(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("", encoding="utf-8")
    with pytest.raises(MeterError, match="is already there"):
        Sampling.start(["none"], tmp_path / "s.csv")
