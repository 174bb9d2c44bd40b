"""Keeps the processor out of its idle states while short times are taken.

A processor that has nothing to do sleeps, and each waking adds to a time that is taken across processes: on a virtual
machine some tenths of a millisecond. Linux lets a program ask for none of it while it holds a device open (PM QoS, as
``cyclictest`` does). That costs power, so that runs, whose energy is measured, never do it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_DEVICE = "/dev/cpu_dma_latency"


@contextmanager
def awake() -> Iterator[str | None]:
    """Within it the processor does not sleep. Yields None then, else why that could not be had."""
    try:
        handle = os.open(_DEVICE, os.O_WRONLY)
    except OSError as error:
        yield f"{_DEVICE}: {error.strerror}"
        return
    try:
        os.write(handle, struct.pack("=i", 0))  # the longest time that waking may take, µs
        yield None
    finally:
        os.close(handle)
