"""Starts and stops the sampling process, from the process that measures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from memarena.meters.readings import MeterError
from memarena.meters.sampler import HZ
from memarena.meters.samples import Samples, is_ready, read_samples, sampled_after
from memarena.processes import GuardedProcess, python_module

START_S = 20.0
"""Time in which a sampler must have opened its meters."""
STOP_S = 20.0
"""Time that a sampler has to write its last line; a slow disk may delay it."""


class Sampling:
    """A running sampler, made by ``start`` or ``begin``; it ends with this process at the latest."""

    def __init__(self, process: GuardedProcess, path: Path) -> None:
        self._process = process
        self.path = path

    @classmethod
    def start(cls, meters: Sequence[str], path: Path, *, hz: float = HZ) -> Self:
        """Start sampling ``meters`` (as ``sources.open_source`` names them) into the new file ``path``.

        Returns when the meters are open and the first line is written. Raises
        :class:`~memarena.meters.readings.MeterError` with the sampler's output if that does not happen within
        ``START_S``, and :class:`~memarena.processes.ProcessError` if no process can be started.
        """
        sampling = cls.begin(meters, path, hz=hz)
        try:
            sampling.wait_ready()
        except BaseException:
            sampling._process.stop()
            raise
        return sampling

    @classmethod
    def begin(cls, meters: Sequence[str], path: Path, *, hz: float = HZ) -> Self:
        """Start like :meth:`start`, but return at once: the caller must call :meth:`wait_ready`."""
        if path.exists():
            raise MeterError(f"{path}: is already there; a samples file belongs to one sampler")
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.with_name(f"{path.name}.log")
        # Only the file's name: every process of a machine can read these arguments, and the path names a run.
        specs = [_with_absolute_file(meter) for meter in meters]
        command = python_module("memarena.meters.sampler", "--hz", str(hz), "--out", path.name, "--", *specs)
        return cls(GuardedProcess.start(command, log_path=log, cwd=path.parent), path)

    def wait_ready(self) -> None:
        """Wait until the meters are open and sampled. Raises as :meth:`start` does."""
        deadline = time.monotonic() + START_S
        while not is_ready(self.path):
            if (code := self._process.poll()) is not None:
                raise MeterError(f"the sampler ended with exit code {code}: {self._process.log_tail()}")
            if time.monotonic() > deadline:
                raise MeterError(f"the sampler wrote nothing within {START_S:g} s: {self._process.log_tail()}")
            time.sleep(0.01)

    def wait_past(self, moment_ns: int, timeout_s: float = 2.0) -> None:
        """Wait until every meter was read after a moment of CLOCK_MONOTONIC, so that a phase ending there has its edge.

        Returns also after ``timeout_s``, or if the sampler has ended: its phases are then void.
        """
        time.sleep(max(0.0, (moment_ns - time.monotonic_ns()) / 1e9))
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._process.poll() is None:
            if sampled_after(self.path, moment_ns):
                return
            time.sleep(0.02)

    def failure(self) -> str | None:
        """Return how the sampler ended, or None while it runs."""
        if (code := self._process.poll()) is None:
            return None
        return f"the sampler ended with exit code {code}: {self._process.log_tail()}"

    def check(self) -> None:
        """Raise :class:`~memarena.meters.readings.MeterError` if the sampler does not run any more."""
        if (code := self._process.poll()) is not None:
            raise MeterError(f"the sampler ended with exit code {code}: {self._process.log_tail()}")

    def stop(self) -> Samples:
        """End the sampler cleanly and read its samples. Calling it twice is fine."""
        self._process.stop(STOP_S)
        return read_samples(self.path)

    def close(self) -> None:
        """End the sampler without reading its samples. Calling it twice is fine."""
        self._process.stop(STOP_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_absolute_file(meter: str) -> str:
    kind, colon, file = meter.partition(":")
    return f"{kind}:{Path(file).absolute()}" if kind == "replay" and colon else meter
