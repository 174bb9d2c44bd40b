"""Which machine this is, as far as times depend on it."""

from __future__ import annotations

import os
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
_KEYS = ("model name", "Model", "CPU part", "cpu model")
"""What proc_cpuinfo(5) calls a processor, by architecture: x86, some Arm boards, other Arm, MIPS and RISC-V."""


def cpu_name(cpuinfo: Path = CPUINFO) -> str:
    """The processor and how many of it there are, for example ``2 × AMD EPYC 7B13``; empty where it is unknown."""
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
