"""Tests the samples file: it returns what was written, and damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena.meters.readings import Channel, MeterError, Reading, Unavailable, reading
from memarena.meters.samples import Failure, Samples, SamplesWriter, read_samples, sealed

POWER, HEAT = Channel("gpu_power", "W"), Channel("gpu_temperature", "°C")
ABSENT = Unavailable(Channel("gpu_energy", "J"), 'not "supported", here')


def written(path: Path, values: list[tuple[float, float | str]]) -> Samples:
    with SamplesWriter(path) as writer:
        writer.begin(100_000_000, 10**15, 1_700_000_000_000_000_000)
        writer.source("nvml", [POWER, HEAT], [ABSENT])
        for tick, (watts, heat) in enumerate(values):
            second = Unavailable(HEAT, heat) if isinstance(heat, str) else Reading(HEAT, heat)
            time_ns = 10**15 + tick * 100_000_000
            writer.sample("nvml", tick, time_ns, time_ns + 1000, [Reading(POWER, watts), second])
    return read_samples(path)


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)


@given(values=st.lists(st.tuples(numbers, numbers | texts), max_size=8))
def test_written_samples_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[float, float | str]]
) -> None:
    """Floats are exact; reasons stay on one line, whatever characters they contain."""
    samples = written(tmp_path_factory.mktemp("samples") / "s.csv", values)
    assert samples.unavailable == (ABSENT,)
    assert samples.torn is None
    assert samples.ended_ns is None
    expected = [
        (
            Reading(POWER, watts),
            Unavailable(HEAT, " ".join(heat.split())) if isinstance(heat, str) else Reading(HEAT, heat),
        )
        for watts, heat in values
    ]
    assert samples.by_tick() == expected


def test_a_truncated_file_loses_only_its_last_line_with_a_note(tmp_path: Path) -> None:
    complete_samples = written(tmp_path / "whole.csv", [(25.0, 40.0), (26.5, "sensor busy"), (27.0, 41.0)])
    data = (tmp_path / "whole.csv").read_bytes()
    lines = data.splitlines(keepends=True)
    cut = tmp_path / "cut.csv"
    for size in range(len(lines[0]), len(data)):
        cut.write_bytes(data[:size])
        samples = read_samples(cut)
        complete = data[:size].count(b"\n")
        assert samples.by_tick() == complete_samples.by_tick()[: max(0, complete - 4)]
        partial_bytes = size - sum(len(line) for line in lines[:complete])
        note = f"line {complete + 1} was not written whole ({partial_bytes} bytes) and is left out"
        assert samples.torn == (note if partial_bytes else None)


def test_every_changed_byte_is_detected(tmp_path: Path) -> None:
    written(tmp_path / "s.csv", [(25.0, 40.0), (26.5, 41.0)])
    data = (tmp_path / "s.csv").read_bytes()
    for offset in range(len(data) - 1):
        (tmp_path / "s.csv").write_bytes(data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :])
        with pytest.raises(MeterError, match=r"line \d+ is damaged|line \d+ "):
            read_samples(tmp_path / "s.csv")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("sample", "nvml", 0, 1, 2, 3.0), "line 5 is not a line of a samples file"),
        (("sample", "other", 0, 1, 2, 3.0), "line 5 is not a line of a samples file: 'other'"),
        (("sample", "nvml", 0, 1, 2, "x", 3.0), "could not convert"),
        (("guess", 1), "line 5 is not a line of a samples file: 'guess'"),
    ],
)
def test_a_complete_but_invalid_line_is_named(tmp_path: Path, line: tuple[object, ...], message: str) -> None:
    written(tmp_path / "s.csv", [])
    with (tmp_path / "s.csv").open("ab") as file:
        file.write(sealed(line))
    with pytest.raises(MeterError, match=message):
        read_samples(tmp_path / "s.csv")


@pytest.mark.parametrize("content", [b"", b"time,power\n1,2\n", sealed(("memarena-samples", 2, 1, 1, 1))])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(MeterError, match="line 1"):
        read_samples(tmp_path / "s.csv")
    with pytest.raises(MeterError, match="No such file"):
        read_samples(tmp_path / "absent.csv")


def test_a_samples_file_is_never_overwritten(tmp_path: Path) -> None:
    written(tmp_path / "s.csv", [(1.0, 1.0)])
    with pytest.raises(MeterError, match="File exists"):
        SamplesWriter(tmp_path / "s.csv")


def test_a_failure_is_recorded_with_its_time_and_source(tmp_path: Path) -> None:
    with SamplesWriter(tmp_path / "s.csv") as writer:
        writer.begin(100, 5, 6)
        writer.source("nvml", [POWER], [])
        writer.failed("nvml", 77, "lost,\nfor good")
        writer.end(99)
    samples = read_samples(tmp_path / "s.csv")
    assert samples.failures == (Failure("nvml", 77, "lost, for good"),)
    assert samples.ended_ns == 99


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_no_readings(value: float) -> None:
    assert isinstance(reading(POWER, value), Unavailable)
    assert reading(POWER, 0) == Reading(POWER, 0.0)
