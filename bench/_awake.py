"""Keeps the processor out of its idle states while short times are measured.

An idle processor sleeps, and each waking adds to a time that is measured across processes: some tenths of a millisecond
on a virtual machine. On Linux, a program can forbid idle states by holding ``/dev/cpu_dma_latency`` open (PM QoS, as
``cyclictest`` does). This costs power, so a run, whose energy is measured, never does it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_DEVICE = "/dev/cpu_dma_latency"


@contextmanager
def awake() -> Iterator[str | None]:
    """Keep the processor awake inside the block. Yields None on success, else the reason why it is not possible."""
    try:
        handle = os.open(_DEVICE, os.O_WRONLY)
    except OSError as error:
        yield f"{_DEVICE}: {error.strerror}"
        return
    try:
        os.write(handle, struct.pack("=i", 0))  # maximum time that waking may take, µs
        yield None
    finally:
        os.close(handle)
