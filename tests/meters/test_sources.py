"""Tests the meters: each returns its device's values in the channels' units, and a reason for each missing value."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memarena.meters.cgroups import cgroup_source, memory_cgroup_of
from memarena.meters.hwmon import hwmon_source
from memarena.meters.nvml import NOT_INSTALLED, NvmlSource, load_nvml
from memarena.meters.procfs import procfs_source
from memarena.meters.readings import Channel, MeterError, MeterFailedError, Reading, Unavailable
from memarena.meters.samples import SamplesWriter
from memarena.meters.scripted import ReplaySource
from memarena.meters.sources import Source, open_source, open_sources


def given(source: Source) -> dict[str, float]:
    values = source.read()
    assert [value.channel for value in values] == list(source.channels)
    return {value.channel.name: value.value for value in values if isinstance(value, Reading)}


def absent(source: Source) -> dict[str, str]:
    return {entry.channel.name: entry.reason for entry in source.unavailable}


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


# ------------------------------------------------------------------ NVML


class FakeNvmlError(Exception):
    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


@dataclass
class Rates:
    gpu: int


@dataclass
class FakeNvml:
    """A GPU by the calls of ``pynvml``; ``errors`` holds the exceptions by the name of the call."""

    errors: dict[str, FakeNvmlError] = field(default_factory=dict)
    open: int = 0
    NVMLError: type[Exception] = FakeNvmlError
    NVML_ERROR_NOT_SUPPORTED: int = 3
    NVML_TEMPERATURE_GPU: int = 0
    NVML_CLOCK_SM: int = 1

    def _check(self, call: str) -> None:
        if call in self.errors:
            raise self.errors[call]

    def nvmlInit(self) -> None:
        self._check("init")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> object:
        self._check("handle")
        return ("gpu", index)

    def nvmlDeviceGetPowerUsage(self, handle: object, /) -> int:
        self._check("power")
        return 25_500

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int, /) -> int:
        return 41 + sensor

    def nvmlDeviceGetUtilizationRates(self, handle: object, /) -> Rates:
        return Rates(96)

    def nvmlDeviceGetClockInfo(self, handle: object, clock: int, /) -> int:
        self._check("clock")
        return 2400 + clock

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object, /) -> int:
        self._check("energy")
        return 123_456_789


def test_nvml_is_read_in_the_units_of_the_channels() -> None:
    nvml = FakeNvml()
    source = NvmlSource(nvml)
    assert given(source) == {
        "gpu_power": 25.5,
        "gpu_temperature": 41.0,
        "gpu_utilisation": 96.0,
        "gpu_sm_clock": 2401.0,
        "gpu_energy": 123456.789,
    }
    assert [channel.unit for channel in source.channels] == ["W", "°C", "%", "MHz", "J"]
    source.close()
    source.close()
    assert nvml.open == 0


def test_a_channel_that_the_gpu_does_not_support_is_unavailable_and_the_others_are_read() -> None:
    source = NvmlSource(FakeNvml({"energy": FakeNvmlError(3, "Not Supported")}))
    assert absent(source) == {"gpu_energy": "NVML: not supported by this GPU"}
    assert set(given(source)) == {"gpu_power", "gpu_temperature", "gpu_utilisation", "gpu_sm_clock"}


def test_a_channel_that_fails_later_gives_the_reason_and_the_others_are_read() -> None:
    nvml = FakeNvml()
    source = NvmlSource(nvml)
    nvml.errors["power"] = FakeNvmlError(15, "GPU is lost")
    assert source.read()[0] == Unavailable(Channel("gpu_power", "W"), "NVML: GPU is lost")
    assert given(source)["gpu_sm_clock"] == 2401


@pytest.mark.parametrize("call", ["init", "handle"])
def test_without_a_gpu_every_channel_has_the_reason(call: str) -> None:
    nvml = FakeNvml({call: FakeNvmlError(12, "NVML Shared Library Not Found")})
    source = NvmlSource(nvml)
    assert source.channels == ()
    assert source.read() == ()
    reasons = absent(source)
    assert set(reasons) == {"gpu_power", "gpu_temperature", "gpu_utilisation", "gpu_sm_clock", "gpu_energy"}
    assert set(reasons.values()) == {"NVML, GPU 0: NVML Shared Library Not Found"}
    source.close()
    assert nvml.open == 0


def test_without_the_optional_package_every_channel_is_unavailable() -> None:
    assert set(absent(NvmlSource(None)).values()) == {NOT_INSTALLED}


def test_the_real_library_is_read_or_gives_a_reason() -> None:
    """On any machine each channel has a value or a reason, and missing power is never 0."""
    pytest.importorskip("pynvml")
    source = NvmlSource(load_nvml())
    try:
        assert len(source.channels) + len(source.unavailable) == 5
        assert all(absent(source).values())
        assert given(source).get("gpu_power", 1.0) > 0
    finally:
        source.close()


# ------------------------------------------------------------------ hwmon

HWMON = {
    "hwmon0/name": "ina3221\n",
    "hwmon0/power1_input": "25500000\n",
    "hwmon0/power1_average": "99\n",
    "hwmon0/power1_label": "VDD IN\n",
    "hwmon0/in1_input": "19050\n",
    "hwmon0/curr1_input": "1340\n",
    "hwmon0/energy1_input": "7000000\n",
    "hwmon0/uevent": "",
    "hwmon1/name": "acpitz\n",
    "hwmon1/temp1_input": "43500\n",
    "hwmon2/name": "acpitz\n",
    "hwmon2/temp1_input": "-5000\n",
}


def test_rails_and_temperatures_are_read_in_their_units(tmp_path: Path) -> None:
    source = hwmon_source(tree(tmp_path, HWMON))
    assert given(source) == {
        "ina3221.VDD_IN.power": 25.5,
        "ina3221.in1.voltage": 19.05,
        "ina3221.curr1.current": 1.34,
        "ina3221.energy1.energy": 7.0,
        "acpitz@hwmon1.temp1.temperature": 43.5,
        "acpitz@hwmon2.temp1.temperature": -5.0,
    }
    assert source.unavailable == ()


def test_a_sensor_that_cannot_be_read_is_unavailable_with_the_reason(tmp_path: Path) -> None:
    source = hwmon_source(tree(tmp_path, {**HWMON, "hwmon1/temp1_input": "n/a\n"}))
    path = tmp_path / "hwmon1/temp1_input"
    assert absent(source) == {"acpitz@hwmon1.temp1.temperature": f"{path}: expected a whole number, found 'n/a'"}
    (tmp_path / "hwmon0/power1_input").unlink()
    (missing_value,) = [value for value in source.read() if isinstance(value, Unavailable)]
    assert missing_value.channel.name == "ina3221.VDD_IN.power"
    assert missing_value.reason.endswith("power1_input: No such file or directory")


def test_a_machine_without_power_rails_has_a_reason(tmp_path: Path) -> None:
    assert absent(hwmon_source(tmp_path / "none")) == {"rails": f"{tmp_path / 'none'} is not there"}
    source = hwmon_source(tree(tmp_path, {"hwmon0/name": "acpitz", "hwmon0/temp1_input": "40000"}))
    assert absent(source) == {"rails": f"{tmp_path} has no power sensor"}
    assert given(source) == {"acpitz.temp1.temperature": 40.0}


# ------------------------------------------------------------------ procfs and control groups

MEMINFO = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\nHugePages: 0\n"


def test_cpu_memory_and_swap_of_the_machine(tmp_path: Path) -> None:
    hz = os.sysconf("SC_CLK_TCK")
    stat = f"cpu  {3 * hz} {hz} {hz} 900 900 {hz} {hz} 500 70 70\ncpu0 1 1\n"
    assert given(procfs_source(tree(tmp_path, {"stat": stat, "meminfo": MEMINFO}))) == {
        "cpu_busy": 7.0,  # without idle, iowait, steal and guest time (which is counted in user time already)
        "memory_used": 600 * 1024,
        "memory_available": 400 * 1024,
        "swap_used": 30 * 1024,
    }


def test_values_missing_in_proc_are_unavailable(tmp_path: Path) -> None:
    source = procfs_source(tree(tmp_path, {"meminfo": "MemTotal: 1000 kB\nMemAvailable: 1 kB\n"}))
    assert absent(source) == {
        "cpu_busy": f"{tmp_path / 'stat'}: No such file or directory",
        "swap_used": f"{tmp_path / 'meminfo'}: no SwapTotal and no SwapFree",
    }


def test_this_machine_gives_cpu_time_that_grows_and_memory_in_use() -> None:
    source = procfs_source(Path("/proc"))
    first = given(source)
    sum(i * i for i in range(3_000_000))
    assert given(source)["cpu_busy"] > first["cpu_busy"]
    assert first["memory_used"] > 1e6


def test_memory_of_a_container_version_2(tmp_path: Path) -> None:
    files = {"memory.current": "4096\n", "memory.peak": "8192\n"}
    source = cgroup_source("backend", tree(tmp_path, files))
    assert given(source) == {"backend.memory": 4096, "backend.memory_peak": 8192}
    assert absent(source) == {"backend.swap": f"{tmp_path / 'memory.swap.current'}: No such file or directory"}


def test_memory_of_a_container_version_1(tmp_path: Path) -> None:
    files = {
        "memory.usage_in_bytes": "4096\n",
        "memory.max_usage_in_bytes": "8192\n",
        "memory.stat": "cache 1\nswap 3\ntotal_swap 77\n",
    }
    source = cgroup_source("backend", tree(tmp_path, files))
    assert given(source) == {"backend.memory": 4096, "backend.memory_peak": 8192, "backend.swap": 77}
    tree(tmp_path, {"memory.stat": "cache 1\n"})
    assert "does not account swap" in absent(cgroup_source("backend", tmp_path))["backend.swap"]


def test_a_missing_or_removed_container_is_unavailable(tmp_path: Path) -> None:
    assert set(absent(cgroup_source("x", tmp_path))) == {"x.memory", "x.memory_peak", "x.swap"}
    source = cgroup_source("x", tree(tmp_path, {"memory.current": "4096\n"}))
    (tmp_path / "memory.current").unlink()
    assert [type(value) for value in source.read()] == [Unavailable]


def test_the_control_group_of_a_process(tmp_path: Path) -> None:
    tree(tmp_path, {"1/cgroup": "4:memory:/box/a\n0::/\n", "2/cgroup": "0::/system.slice/b\n", "3/cgroup": "1:cpu:/\n"})
    mounted = tmp_path / "mounted"
    assert memory_cgroup_of(1, tmp_path, mounted) == mounted / "memory/box/a"
    assert memory_cgroup_of(2, tmp_path, mounted) == mounted / "system.slice/b"
    with pytest.raises(MeterError, match="no control group accounts memory"):
        memory_cgroup_of(3, tmp_path, mounted)
    with pytest.raises(MeterError, match="No such file"):
        memory_cgroup_of(4, tmp_path, mounted)


# ------------------------------------------------------------------ replay, constant, none, and their names


def test_a_recording_is_replayed_as_it_was_and_then_fails(tmp_path: Path) -> None:
    """A channel without a value at the recording's start is still a channel."""
    watt = Channel("gpu_power", "W")
    recorded: list[Reading | Unavailable] = [Unavailable(watt, "busy"), Reading(watt, 25.0), Reading(watt, 26.0)]
    with SamplesWriter(tmp_path / "s.csv") as writer:
        writer.begin(1, 2, 3)
        writer.source("nvml", [watt], [Unavailable(Channel("gpu_energy", "J"), "not supported")])
        for tick, value in enumerate(recorded):
            writer.sample("nvml", tick, tick, tick, [value])
    source = ReplaySource(tmp_path / "s.csv")
    assert source.channels == (watt,)
    assert absent(source) == {"gpu_energy": "not supported"}
    assert [source.read()[0] for _ in recorded] == recorded
    with pytest.raises(MeterFailedError, match="the recording ends after 3 ticks"):
        source.read()


def test_constant_and_none() -> None:
    assert given(open_source("constant:sys_power=25.5 W")) == {"sys_power": 25.5}
    assert absent(open_source("none")) == dict.fromkeys(("gpu_power", "sys_power"), "no meter was asked for")


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], "no meter is named"),
        (["wattmeter"], "wattmeter: no such meter; expected one of nvml, hwmon"),
        (["nvml:first"], "expected nvml or nvml:INDEX"),
        (["constant:gpu_power=25"], "name and unit must be words"),
        (["constant:gpu_power"], "expected constant:CHANNEL=VALUE UNIT"),
        (["constant:gpu_power=nan W"], "expected constant:CHANNEL=VALUE UNIT"),
        (["cgroup:backend"], "expected cgroup:NAME=FOLDER"),
        (["replay:"], "expected replay:FILE"),
        (["replay:/nowhere"], "/nowhere: No such file"),
        (["none:x"], "none takes no setting"),
        (["none", "constant:gpu_power=1 W"], "the channel gpu_power is there twice"),
        (["procfs", "procfs"], "the meter procfs is there twice"),
    ],
)
def test_unknown_meters_are_refused(specs: list[str], message: str) -> None:
    with pytest.raises(MeterError, match=message):
        open_sources(specs)
