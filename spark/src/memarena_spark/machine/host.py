"""Reads facts of the host from /proc, /sys and the kernel's clock. ``root``: the folder that holds /proc and /sys."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
from pathlib import Path

import psutil
from memarena.meters.hwmon import hwmon_source
from memarena.meters.readings import Reading

from memarena_spark.facts import Identity, Memory, Unknown

_TIME_ERROR = 5
"""Return value of adjtimex(2): the clock is not synchronised."""
_STA_UNSYNC = 0x40
_TIMEX_BYTES = 208
"""struct timex on 64-bit Linux; ``modes`` is its first field, ``status`` the int at byte 40."""
_STATUS_AT = 40


def identity(root: Path) -> Identity:
    """Return name, processor, memory, kernel and boot id of this machine."""
    return Identity(
        name=platform.node(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(root),
        cpu_count=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        boot_id=_text(root / "proc/sys/kernel/random/boot_id") or "unknown",
    )


def _cpu_model(root: Path) -> str:
    """Return the name of the processor; on Arm, where the kernel has no name, implementer and part number."""
    lines = _text(root / "proc/cpuinfo").splitlines()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    arm = f"CPU implementer {fields.get('CPU implementer', '?')} part {fields.get('CPU part', '?')}"
    return fields.get("model name") or arm


def memory(root: Path) -> Memory | Unknown:
    """Return available memory and swap in use. Unified memory counts as memory: NVML does not distinguish it."""
    sizes: dict[str, int] = {}
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, amount = line.partition(":")
        if amount.endswith(" kB") and amount[:-3].strip().isdigit():
            sizes[name] = int(amount[:-3]) * 1024
    missing = [name for name in ("MemAvailable", "SwapTotal", "SwapFree") if name not in sizes]
    if missing:
        return Unknown(unknown=f"{root / 'proc/meminfo'} has no {missing[0]}")
    return Memory(available_bytes=sizes["MemAvailable"], swap_used_bytes=sizes["SwapTotal"] - sizes["SwapFree"])


def free_bytes(folder: Path) -> int | Unknown:
    """Return the free bytes of the file system where ``folder`` is or will be."""
    existing = _nearest(folder)
    try:
        return shutil.disk_usage(existing).free
    except OSError as error:
        return Unknown(unknown=f"{existing}: {error.strerror}")


def may_not_write(folder: Path) -> str:
    """Return why this user cannot write in ``folder``, or create it if it is missing; empty if they can."""
    existing = _nearest(folder)
    try:
        if not existing.is_dir():
            return f"{existing} is no folder"
        if os.access(existing, os.W_OK | os.X_OK):
            return ""
        return f"user {os.getuid()} may not write in {existing}, which belongs to user {existing.stat().st_uid}"
    except OSError as error:
        return f"{existing}: {error.strerror}"


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest ancestor that exists. A path that may not be read counts as missing."""
    path = folder.absolute()
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def cpu_busy_percent() -> float | Unknown:
    """Return the load of all CPUs together over a second, in percent."""
    try:
        return psutil.cpu_percent(interval=1.0)
    except (OSError, RuntimeError) as error:
        return Unknown(unknown=f"CPU times: {error}")


def clock_synchronised() -> bool | Unknown:
    """Return whether the kernel's clock is synchronised, which any time daemon reports to it; needs no rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = int(libc.adjtimex(buffer))
    if state < 0:
        return Unknown(unknown=f"adjtimex: {os.strerror(ctypes.get_errno())}")
    status = int.from_bytes(buffer.raw[_STATUS_AT : _STATUS_AT + 4], "little")
    return state != _TIME_ERROR and not status & _STA_UNSYNC


def on_battery(root: Path) -> bool | Unknown:
    """Return whether a battery discharges, or a mains supply is off. A machine without either is on the mains."""
    folder = root / "sys/class/power_supply"
    if not folder.is_dir():
        return False
    try:
        for supply in sorted(folder.iterdir()):
            kind = _text(supply / "type")
            if _text(supply / "scope") == "Device":
                continue  # a mouse's battery
            if kind == "Battery" and _text(supply / "status") == "Discharging":
                return True
            if kind == "Mains" and _text(supply / "online") == "0":
                return True
    except OSError as error:
        return Unknown(unknown=f"{folder}: {error.strerror}")
    return False


def governors(root: Path) -> tuple[str, ...] | Unknown:
    """Return the distinct frequency governors of the CPUs, sorted."""
    paths = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    names = tuple(sorted({text for path in paths if (text := _text(path))}))
    return names or Unknown(unknown="the kernel gives no frequency governor (no cpufreq)")


def temperatures(root: Path) -> dict[str, float] | Unknown:
    """Return the temperatures of /sys/class/hwmon and /sys/class/thermal in °C, by sensor."""
    source = hwmon_source(root / "sys/class/hwmon")
    celsius = {r.channel.name: r.value for r in source.read() if isinstance(r, Reading) and r.channel.unit == "°C"}
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        text = _text(zone / "temp")
        if text.removeprefix("-").isdigit():
            celsius[f"{zone.name}.{_text(zone / 'type')}"] = int(text) / 1000
    return celsius or Unknown(unknown="no sensor in /sys/class/hwmon or /sys/class/thermal gives a temperature")


def _text(path: Path) -> str:
    """Return the text of a small file of the kernel; empty if it is missing or unreadable."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
