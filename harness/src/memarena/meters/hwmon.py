"""Reads rails and temperatures under /sys/class/hwmon.

Files and units: the kernel's Documentation/hwmon/sysfs-interface (µW, m°C, mV, mA, µJ).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from memarena.meters.files import FileSource
from memarena.meters.readings import Channel, Unavailable

# A rail that has both power1_input and power1_average is read once, from the first.
# Files of sensors, such as power1_input, energy2_input, temp3_input, in1_input, curr1_average.
_FILE = re.compile(r"(power|energy|temp|in|curr)(\d+)_(input|average)")
# Unit of a channel, and the factor from the file's number to it (from µW to W).
_UNITS = {"power": ("W", 1e-6), "energy": ("J", 1e-6), "temp": ("°C", 1e-3), "in": ("V", 1e-3), "curr": ("A", 1e-3)}
_WORDS = {"power": "power", "energy": "energy", "temp": "temperature", "in": "voltage", "curr": "current"}


def _value(path: Path, factor: float) -> float:
    text = path.read_text(encoding="ascii").strip()
    try:
        return int(text) * factor
    except ValueError:
        raise ValueError(f"{path}: expected a whole number, found {text[:40]!r}") from None


def _text(path: Path, otherwise: str) -> str:
    return "_".join(path.read_text(encoding="utf-8").split()) or otherwise if path.is_file() else otherwise


def _sensors(chip: Path) -> dict[tuple[str, int], Path]:
    """Return the files of a chip by kind and number."""
    by_sensor: dict[tuple[str, int], Path] = {}
    for path in sorted(chip.iterdir(), reverse=True):  # "input" comes before "average" and wins
        if match := _FILE.fullmatch(path.name):
            by_sensor.setdefault((match[1], int(match[2])), path)
    return dict(sorted(by_sensor.items()))


def hwmon_source(root: Path) -> FileSource:
    """Open every sensor below ``root``; channels are ``CHIP.LABEL.power`` and so on, with the kernel's labels.

    Chips of the same name are distinguished by their folder (``acpitz@hwmon1``), labels by the sensor's number.
    """
    if not root.is_dir():
        return FileSource.opened("hwmon", {}, [Unavailable(Channel("rails", "W"), f"{root} is not there")])
    chips = [path for path in sorted(root.iterdir()) if path.is_dir()]
    names = [_text(chip / "name", chip.name) for chip in chips]
    readers = {}
    for chip, name in zip(chips, names, strict=True):
        chip_name = f"{name}@{chip.name}" if names.count(name) > 1 else name
        for (kind, number), path in _sensors(chip).items():
            unit, factor = _UNITS[kind]
            label = _text(chip / f"{kind}{number}_label", f"{kind}{number}")
            channel = Channel(f"{chip_name}.{label}.{_WORDS[kind]}", unit)
            if channel in readers:
                channel = Channel(f"{chip_name}.{label}_{number}.{_WORDS[kind]}", unit)
            readers[channel] = partial(_value, path, factor)
    absent = []
    if not any(channel.unit == "W" for channel in readers):
        absent = [Unavailable(Channel("rails", "W"), f"{root} has no power sensor")]
    return FileSource.opened("hwmon", readers, absent)
