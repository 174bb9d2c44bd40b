"""Determines the name of this machine's processor, on which times depend."""

from __future__ import annotations

import os
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
_KEYS = ("model name", "Model", "CPU part", "cpu model")
"""Keys of a processor's name in proc_cpuinfo(5): of x86, some Arm boards, other Arm, MIPS and RISC-V."""


def cpu_name(cpuinfo: Path = CPUINFO) -> str:
    """Return the number of CPUs and the processor's name, for example ``2 × AMD EPYC 7B13``; empty if unknown."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), " ".join(value.split()))
    name = next((fields[key] for key in _KEYS if fields.get(key)), "")
    return f"{os.cpu_count()} × {name}" if name else ""
