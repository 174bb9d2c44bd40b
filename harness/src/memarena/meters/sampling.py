"""Starting and stopping the sampling process, from the process that measures."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from memarena.meters.readings import MeterError
from memarena.meters.sampler import HZ
from memarena.meters.samples import Samples, read_samples
from memarena.processes import GuardedProcess

START_S = 20.0


class Sampling:
    """A sampler that runs. ``start`` is the way to make one; it ends with this process at the latest."""

    def __init__(self, process: GuardedProcess, path: Path) -> None:
        self._process = process
        self.path = path

    @classmethod
    def start(cls, meters: Sequence[str], path: Path, *, hz: float = HZ) -> Self:
        """Start sampling ``meters`` (as ``sources.open_source`` names them) into the new file ``path``.

        Returns when the meters are open and the first line is written. Raises
        :class:`~memarena.meters.readings.MeterError` with the sampler's own words if that does not come to pass within
        ``START_S``, and :class:`~memarena.processes.ProcessError` if no process can be started.
        """
        if path.exists():
            raise MeterError(f"{path}: is already there; a samples file belongs to one sampler")
        log = path.with_name(f"{path.name}.log")
        command = [sys.executable, "-m", "memarena.meters.sampler", "--hz", str(hz), "--out", str(path), "--", *meters]
        sampling = cls(GuardedProcess.start(command, log_path=log), path)
        try:
            sampling._wait_for_the_first_line()
        except BaseException:
            sampling._process.stop()
            raise
        return sampling

    def _wait_for_the_first_line(self) -> None:
        deadline = time.monotonic() + START_S
        while not (self.path.exists() and b"\n" in self.path.read_bytes()):
            if (code := self._process.poll()) is not None:
                raise MeterError(f"the sampler ended with exit code {code}: {self._process.log_tail()}")
            if time.monotonic() > deadline:
                raise MeterError(f"the sampler wrote nothing within {START_S:g} s: {self._process.log_tail()}")
            time.sleep(0.01)

    def check(self) -> None:
        """Raise :class:`~memarena.meters.readings.MeterError` if the sampler does not run any more."""
        if (code := self._process.poll()) is not None:
            raise MeterError(f"the sampler ended with exit code {code}: {self._process.log_tail()}")

    def stop(self) -> Samples:
        """End the sampler in order and read what it wrote. Calling it twice is fine."""
        self._process.stop()
        return read_samples(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()
