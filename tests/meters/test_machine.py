"""Tests the processor's name, read from /proc/cpuinfo of several architectures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from memarena.meters.machine import cpu_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "processor\t: 0\nmodel name\t: AMD EPYC  7B13\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 7B13\n",
            "AMD EPYC 7B13",
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd85\n", "0xd85"),
        ("processor\t: 0\nCPU part\t: 0xd08\n\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"),
    ],
)
def test_a_processor_is_named_as_its_architecture_names_it(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_name(tmp_path / "cpuinfo") == f"{os.cpu_count()} × {name}"


def test_a_system_without_the_name_gives_none(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor: 0\n")
    assert cpu_name(tmp_path / "cpuinfo") == cpu_name(tmp_path / "missing") == ""
