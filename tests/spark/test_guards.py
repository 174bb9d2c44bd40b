"""Tests the guards of a certified timing: the thermal gate, the lock of the node, and the canary (a benchmark).

A *guard* refuses a run whose times would be those of a hot, busy or slow machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_spark.errors import RefusedError, SparkError
from memarena_spark.facts import CanaryResult, Unknown
from memarena_spark.locking import VARIABLE, check_lock, lock_path, node_lock
from memarena_spark.machine import ThisMachine
from memarena_spark.machine import gpu_benchmark as canary
from memarena_spark.profiles import CanarySettings, Thermal
from memarena_spark.thermal import check_thermal, slope_c_per_min, wait_until_stable

from .nodes import FakeNode

GATE = Thermal(required=True, slope_c_per_min=0.5, window_s=60, every_s=5, wait_s=600)


# ------------------------------------------------------------------ heat


@given(st.floats(-20, 20), st.floats(20, 90), st.integers(2, 50))
def test_the_slope_of_a_straight_line_is_its_slope(slope: float, start: float, n: int) -> None:
    times = [float(i) for i in range(n)]
    assert slope_c_per_min(times, [start + slope * t / 60 for t in times]) == pytest.approx(slope, abs=1e-6)


def test_a_node_with_stable_temperature_passes_after_one_window() -> None:
    gate = wait_until_stable(FakeNode(), GATE)
    assert (gate.settled, gate.waited_s) == (True, 60.0)
    assert not list(check_thermal(gate, GATE))


def test_the_gate_waits_for_a_node_that_cools_down() -> None:
    """It loses 4 °C a minute for five minutes, then stays: the gate opens once a whole window is flat."""
    node = FakeNode(sensors_at=lambda now: {"soc": 70 - 4 * min(now, 300) / 60, "gpu": 50.0})
    gate = wait_until_stable(node, GATE)
    assert gate.settled
    assert 300 < gate.waited_s <= 365
    assert gate.sensor == "soc"


@pytest.mark.parametrize("direction", [1, -1])
def test_a_node_whose_temperature_keeps_changing_is_refused_with_the_sensor(direction: int) -> None:
    node = FakeNode(sensors_at=lambda now: {"soc": 50 + direction * now / 60, "gpu": 50.0})
    gate = wait_until_stable(node, GATE)
    (refused,) = check_thermal(gate, GATE)
    assert refused.code == "thermal"
    assert f"after 600 s soc still changes by {direction:+.2f} °C a minute" in refused.reason


def test_a_node_without_sensors_is_refused_only_where_they_are_required() -> None:
    gate = wait_until_stable(FakeNode(sensors=Unknown(unknown="no sensor")), GATE)
    assert [r.reason for r in check_thermal(gate, GATE)] == ["cannot be told: no sensor"]
    assert not list(check_thermal(gate, GATE.model_copy(update={"required": False})))


# ------------------------------------------------------------------ lock

HOLD = """
import sys, time
from pathlib import Path
from memarena_spark.locking import node_lock
with node_lock(Path(sys.argv[1]), "boot-7", Path("runs/a")):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock_holder(tmp_path: Path) -> Any:
    path = tmp_path / "node.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield SimpleNamespace(path=path, process=process)
        process.kill()


def test_a_second_run_is_refused_with_the_process_that_has_the_lock(lock_holder: Any) -> None:
    with pytest.raises(RefusedError) as refused, node_lock(lock_holder.path, "boot", Path("runs/b")):
        pass
    (reason,) = refused.value.refusals
    assert reason.code == "locked"
    assert f"process {lock_holder.process.pid} has run into runs/a since" in reason.reason


def test_the_lock_of_a_killed_run_is_free_and_its_note_is_returned(lock_holder: Any) -> None:
    lock_holder.process.send_signal(signal.SIGKILL)
    lock_holder.process.wait()
    with node_lock(lock_holder.path, "boot-8", Path("runs/b")) as note:
        assert note is not None
        assert (note.out, note.boot_id, note.pid) == ("runs/a", "boot-7", lock_holder.process.pid)
    with node_lock(lock_holder.path, "boot-8", Path("runs/c")) as note:
        assert note is None


def test_a_released_lock_has_no_note_even_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(ValueError, match="x"), node_lock(path, "boot", tmp_path):
        raise ValueError("x")
    assert path.read_bytes() == b""


def test_an_unreadable_note_in_the_lock_file_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"\xff rubbish")
    with node_lock(path, "boot", tmp_path) as note:
        assert note is None


def test_a_lock_that_cannot_be_created_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"lock .*: No such file"), node_lock(tmp_path / "no" / "lock", "b", tmp_path):
        pass


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may read, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_files_of_another_user_are_reported_with_the_remedy(shared: Path) -> None:
    """The lock and the output folder belong to root, and user 65534 checks them."""
    lock, out = shared / "lock", shared / "out"
    lock.touch(mode=0o600)
    out.mkdir(mode=0o755)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from memarena_spark.errors import SparkError\nfrom memarena_spark.locking import check_lock\n"
        "from memarena_spark.machine.host import may_not_write\n"
        "lock, out = map(Path, sys.argv[1:])\nos.setuid(65534)\nprint(may_not_write(out / 'new'))\n"
        "try: check_lock(lock)\nexcept SparkError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, lock, out], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        f"user 65534 may not write in {out}, which belongs to user 0",
        f"lock {lock}: user 65534 may not write it, {lock} belongs to user 0; remove it, or set {VARIABLE} to a path "
        "of your own",
    ]


def test_check_lock_leaves_a_free_lock_free_and_refuses_a_held_one(tmp_path: Path, lock_holder: Any) -> None:
    check_lock(tmp_path / "free")
    check_lock(tmp_path / "free")
    with pytest.raises(RefusedError):
        check_lock(lock_holder.path)


def test_the_variable_sets_the_path_of_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/somewhere/else")
    assert lock_path() == Path("/somewhere/else")
    monkeypatch.delenv(VARIABLE)
    assert lock_path().name == "memarena-spark.lock"


# ------------------------------------------------------------------ canary


def settings(**changes: object) -> CanarySettings:
    values = {
        "device": "cpu", "dtype": "float32", "size": 128, "seconds": 0.05, "tflops_at_least": 0,
        "golden_required": False, "golden_share": 0.95, **changes,
    }  # fmt: skip
    return CanarySettings.model_validate(values)


def test_the_canary_of_the_cpu_runs_in_its_own_process() -> None:
    result = ThisMachine().canary(settings())
    assert isinstance(result, CanaryResult)
    assert (result.device, result.size, result.windows >= 1) == ("cpu", 128, True)
    assert 0 < result.tflops_low <= result.tflops


def test_a_canary_counts_the_operations_of_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock moves by a quarter of a second a product: four products of 2 n³ operations in each second."""
    clock = SimpleNamespace(now=0.0)

    def multiply() -> None:
        clock.now += 0.25

    monkeypatch.setattr("memarena_spark.machine.gpu_benchmark.time.monotonic", lambda: clock.now)
    engine = canary.Engine(multiply, lambda: None, lambda: 2000.0, mark=lambda: lambda: True)
    windows, mhz = canary.measure(engine, size=1000, seconds=3)
    assert windows == pytest.approx([4 * 2e9 / 1e12] * len(windows))
    assert (len(windows), mhz) == (3, 2000.0)


@dataclass
class Queue:
    """A device with a queue: each product takes 20 ms, and time passes while its clock is read."""

    now: float = 0.0
    free_at: float = 0.0
    reading_s: float = 0.005
    products: int = 0

    def multiply(self) -> None:
        self.free_at = max(self.free_at, self.now) + 0.02
        self.products += 1

    def finish(self) -> None:
        self.now = max(self.now, self.free_at)

    def mark(self) -> Callable[[], bool]:
        done_at = self.free_at
        return lambda: self.now < done_at

    def clock_mhz(self) -> float:
        """Return 210 MHz when idle, 2,300 at work."""
        at_work = self.now < self.free_at
        self.now += self.reading_s
        return 2300.0 if at_work else 210.0

    def engine(self) -> canary.Engine:
        return canary.Engine(self.multiply, self.finish, self.clock_mhz, self.mark, ahead_s=0.1)


def test_the_clock_of_a_device_is_read_while_it_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue()
    monkeypatch.setattr("memarena_spark.machine.gpu_benchmark.time.monotonic", lambda: queue.now)
    windows, mhz = canary.measure(queue.engine(), size=1000, seconds=3)
    assert mhz == 2300.0
    assert windows == pytest.approx([2e9 / 0.02 / 1e12] * len(windows))


def test_a_clock_read_after_the_work_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(reading_s=0.5)
    monkeypatch.setattr("memarena_spark.machine.gpu_benchmark.time.monotonic", lambda: queue.now)
    _, mhz = canary.measure(queue.engine(), size=1000, seconds=3)
    assert mhz == Unknown(unknown="the device had done its work before its clock was read")


def test_without_torch_the_canary_of_a_gpu_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module that raises ModuleNotFoundError replaces torch, whether torch is installed or not."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('torch')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = ThisMachine().canary(settings(device="cuda"))
    assert isinstance(result, Unknown)
    assert "torch is not installed" in result.unknown


STAND_IN = '''
"""As much of torch as the canary uses, on numpy."""
import numpy as np
__version__ = "0-stand-in"
bfloat16 = float32 = "float32"
class cuda:
    waited = 0
    is_available = staticmethod(lambda: {available})
    get_device_name = staticmethod(lambda n: "Stand-in GPU")
    @staticmethod
    def synchronize():
        cuda.waited += 1
    class Event:
        def record(self): pass
        def query(self): return False
class version:
    cuda = "13.0"
def device(kind, index): return (kind, index)
def manual_seed(seed): pass
def rand(rows, columns, device, dtype):
    assert device == ("cuda", 0)
    return np.random.default_rng(0).random((rows, columns), dtype=dtype)
empty_like = np.empty_like
def matmul(a, b, out): np.matmul(a, b, out=out)
'''


@pytest.mark.parametrize("available", [True, False])
def test_the_canary_of_a_gpu_multiplies_by_torch(
    available: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text(STAND_IN.format(available=available))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = ThisMachine().canary(settings(device="cuda", dtype="bfloat16"))
    if available:
        assert isinstance(result, CanaryResult)
        assert result.engine == "torch 0-stand-in, CUDA 13.0, Stand-in GPU"
        assert (result.device, result.dtype) == ("cuda", "bfloat16")
    else:
        assert result == Unknown(unknown="the canary failed: torch finds no CUDA device")


def test_a_canary_that_dies_is_unknown_with_its_last_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('CUDA error: out of memory')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = ThisMachine().canary(settings(device="cuda"))
    assert result == Unknown(unknown="the canary failed: RuntimeError: CUDA error: out of memory")
