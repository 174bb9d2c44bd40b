"""Writes and reads the samples file, to which the sampler appends line by line.

It is a CSV file whose lines end in the CRC-32 of the text before (eight hexadecimal digits). Kinds of line::

    memarena-samples,1,PERIOD_NS,ORIGIN_NS,ORIGIN_UNIX_NS      first line; tick k is due at ORIGIN_NS + k * PERIOD_NS
    channel,SOURCE,NAME,UNIT                                   the machine has it; samples hold one field per channel
    unavailable,SOURCE,NAME,UNIT,REASON
    ready,AT_NS                                                all sources are declared; samples follow
    sample,SOURCE,TICK,BEFORE_NS,AFTER_NS,VALUE…               a value, or "!REASON" where there was none this time
    failed,SOURCE,AT_NS,REASON                                 the source is not read any more
    end,AT_NS                                                  stopped as asked

Times are CLOCK_MONOTONIC of the machine, in ns, read before and after each source is read; they are comparable until
the machine is restarted. A line is appended with one write: a process that is killed loses at most its last line.
"""

from __future__ import annotations

import csv
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from memarena.meters.readings import Channel, Reading, SamplesError, Unavailable, one_line

_KIND, _VERSION = "memarena-samples", "1"
_TAIL_BYTES = 8192
"""More than the lines of the last two ticks on any machine."""
Nanoseconds = NDArray[np.int64]
Values = NDArray[np.float64]


def sealed(fields: Sequence[object]) -> bytes:
    """Return a line of the file with its CRC-32."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([*fields])
    line = text.getvalue().encode()
    return line + b",%08x\n" % zlib.crc32(line)


class SamplesWriter:
    """Appends to a new samples file. Raises :class:`SamplesError` if the file exists or cannot be written."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError as error:
            raise SamplesError(path, str(error.strerror)) from error
        self._path = path

    def _append(self, line: bytes) -> None:
        try:
            written = os.write(self._file, line)
        except OSError as error:
            raise SamplesError(self._path, str(error.strerror)) from error
        if written != len(line):
            raise SamplesError(self._path, f"only {written} of {len(line)} bytes could be written")

    def begin(self, period_ns: int, origin_ns: int, origin_unix_ns: int) -> None:
        """Write the first line."""
        self._append(sealed((_KIND, _VERSION, period_ns, origin_ns, origin_unix_ns)))

    def source(self, name: str, channels: Sequence[Channel], unavailable: Sequence[Unavailable]) -> None:
        """Declare the channels of a source, and the channels that it lacks."""
        for channel in channels:
            self._append(sealed(("channel", name, channel.name, channel.unit)))
        for entry in unavailable:
            fields = ("unavailable", name, entry.channel.name, entry.channel.unit, one_line(entry.reason))
            self._append(sealed(fields))

    def ready(self, at_ns: int) -> None:
        """Write that all sources are declared."""
        self._append(sealed(("ready", at_ns)))

    def sample(
        self, source: str, tick: int, before_ns: int, after_ns: int, values: Sequence[Reading | Unavailable]
    ) -> None:
        """Write the result of reading a source once."""
        values_text = [repr(v.value) if isinstance(v, Reading) else f"!{one_line(v.reason)}" for v in values]
        self._append(sealed(("sample", source, tick, before_ns, after_ns, *values_text)))

    def failed(self, source: str, at_ns: int, reason: str) -> None:
        """Write that a source failed and is not read any more."""
        self._append(sealed(("failed", source, at_ns, one_line(reason))))

    def end(self, at_ns: int) -> None:
        """Write that sampling was stopped on request."""
        self._append(sealed(("end", at_ns)))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Missing:
    """A time at which a channel had no value, and the reason."""

    at_ns: int
    reason: str


@dataclass(frozen=True, eq=False)
class Series:
    """The values of a channel: ``times_ns`` (n,), growing, the middle of each read; ``values`` (n,) in its unit."""

    channel: Channel
    times_ns: Nanoseconds
    values: Values
    missing: tuple[Missing, ...] = ()
    failed: Missing | None = None
    """Time and reason of the meter's failure, after which there are no values; None if it did not fail."""


@dataclass(frozen=True)
class Failure:
    """A source that failed, and was not read any more."""

    source: str
    at_ns: int
    reason: str


@dataclass(frozen=True)
class _Line:
    """A recorded read of a source."""

    tick: int
    middle_ns: int
    values: tuple[Reading | Unavailable, ...]


@dataclass(frozen=True)
class Samples:
    """The content of a samples file."""

    path: Path
    period_ns: int
    origin_ns: int
    origin_unix_ns: int
    sources: dict[str, tuple[Channel, ...]]
    unavailable: tuple[Unavailable, ...]
    lines: dict[str, tuple[_Line, ...]] = field(repr=False)
    failures: tuple[Failure, ...]
    ended_ns: int | None
    """When the sampler was stopped on request; None if it still runs or was killed."""
    torn: str | None
    """A message on an incomplete last line, which is left out; None if the last line is complete."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        """All channels of the machine, in the order of the file."""
        return tuple(channel for channels in self.sources.values() for channel in channels)

    def series(self, name: str) -> Series | Unavailable:
        """Return a channel's values, or the reason why there are none, also for a channel of no meter."""
        for source, channels in self.sources.items():
            for index, channel in enumerate(channels):
                if channel.name == name:
                    return self._series(source, index, channel)
        for entry in self.unavailable:
            if entry.channel.name == name:
                return entry
        return Unavailable(Channel(name, "?"), "no meter of this run has this channel")

    def _series(self, source: str, index: int, channel: Channel) -> Series:
        times, values, missing = [], [], []
        for line in self.lines[source]:
            entry = line.values[index]
            if isinstance(entry, Reading):
                times.append(line.middle_ns)
                values.append(entry.value)
            else:
                missing.append(Missing(line.middle_ns, entry.reason))
        failed = next((Missing(f.at_ns, f.reason) for f in self.failures if f.source == source), None)
        return Series(channel, np.array(times, np.int64), np.array(values, np.float64), tuple(missing), failed)

    def by_tick(self) -> list[tuple[Reading | Unavailable, ...]]:
        """Return one entry per recorded tick: every channel's value, in the order of ``channels``."""
        by_time: dict[int, dict[Channel, Reading | Unavailable]] = {}
        for lines in self.lines.values():
            for line in lines:
                by_time.setdefault(line.tick, {}).update({value.channel: value for value in line.values})
        return [
            tuple(by_time[tick].get(c, Unavailable(c, f"not read at tick {tick}")) for c in self.channels)
            for tick in sorted(by_time)
        ]


@dataclass
class _Reader:
    """Collects the lines of a file: a method per kind of line, with the line's fields as arguments."""

    path: Path
    sources: dict[str, list[Channel]] = field(default_factory=dict)
    unavailable: list[Unavailable] = field(default_factory=list)
    lines: dict[str, list[_Line]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    ended_ns: int | None = None

    def channel(self, source: str, name: str, unit: str) -> None:
        self.sources.setdefault(source, []).append(Channel(name, unit))
        self.lines.setdefault(source, [])

    def absent(self, _source: str, name: str, unit: str, reason: str) -> None:
        self.unavailable.append(Unavailable(Channel(name, unit), reason))

    def sample(self, source: str, tick: str, before: str, after: str, *values: str) -> None:
        entries = tuple(
            Unavailable(channel, value[1:]) if value.startswith("!") else Reading(channel, float(value))
            for channel, value in zip(self.sources[source], values, strict=True)
        )
        self.lines[source].append(_Line(int(tick), (int(before) + int(after)) // 2, entries))

    def ready(self, at: str) -> None:
        int(at)

    def failed(self, source: str, at: str, reason: str) -> None:
        self.failures.append(Failure(source, int(at), reason))

    def end(self, at: str) -> None:
        self.ended_ns = int(at)

    def take(self, fields: Sequence[str]) -> None:
        """Add a line. Raises ValueError, TypeError or KeyError if it is not a line of the format."""
        kinds: dict[str, Callable[..., None]] = {
            "channel": self.channel,
            "unavailable": self.absent,
            "ready": self.ready,
            "sample": self.sample,
            "failed": self.failed,
            "end": self.end,
        }
        kinds[fields[0]](*fields[1:])


def is_ready(path: Path) -> bool:
    """Whether the sampler has declared all its sources."""
    return path.exists() and any(line.startswith(b"ready,") for line in path.read_bytes().split(b"\n")[:-1])


def sampled_after(path: Path, moment_ns: int) -> bool:
    """Whether every source that is sampled was read after a moment of CLOCK_MONOTONIC, or has failed.

    Reads only the end of the file, so that it can be called often.
    """
    with path.open("rb") as file:
        cut = max(0, path.stat().st_size - _TAIL_BYTES)
        file.seek(cut)
        lines_of_tail = file.read().split(b"\n")[1 if cut else 0 : -1]
    lines = list(csv.reader(line.decode() for line in lines_of_tail))
    sampled = [(line[1], int(line[3])) for line in lines if line[0] == "sample"]
    failed = {line[1] for line in lines if line[0] == "failed"}
    return {source for source, _ in sampled} <= failed | {source for source, at_ns in sampled if at_ns > moment_ns}


def _checked(path: Path, whole: Sequence[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield number and fields of each line that ended in a newline."""
    for number, line in enumerate(whole, 1):
        body, _, check = line.rpartition(b",")
        if check != b"%08x" % zlib.crc32(body):
            raise SamplesError(path, f"line {number} is damaged, its check does not match")
        yield number, next(csv.reader([body.decode()]))


def read_samples(path: Path) -> Samples:
    """Read a samples file, also one that is still being written or whose writer was killed.

    An incomplete last line is left out and reported in ``torn``. Raises :class:`SamplesError`, naming the line, for
    any other damage.
    """
    try:
        *complete_lines, remainder = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SamplesError(path, str(error.strerror)) from error
    lines = _checked(path, complete_lines)
    _, head = next(lines, (1, []))
    if len(head) != 5 or head[:2] != [_KIND, _VERSION]:
        raise SamplesError(path, f"line 1: expected {_KIND},{_VERSION},PERIOD_NS,ORIGIN_NS,ORIGIN_UNIX_NS")
    reader = _Reader(path)
    for number, fields in lines:
        try:
            reader.take(fields)
        except (ValueError, TypeError, KeyError) as error:
            raise SamplesError(path, f"line {number} is not a line of a samples file: {one_line(error)}") from error
    period_ns, origin_ns, origin_unix_ns = (int(text) for text in head[2:])
    return Samples(
        path=path,
        period_ns=period_ns,
        origin_ns=origin_ns,
        origin_unix_ns=origin_unix_ns,
        sources={name: tuple(channels) for name, channels in reader.sources.items()},
        unavailable=tuple(reader.unavailable),
        lines={name: tuple(entries) for name, entries in reader.lines.items()},
        failures=tuple(reader.failures),
        ended_ns=reader.ended_ns,
        torn=f"line {len(complete_lines) + 1} was not written whole ({len(remainder)} bytes) and is left out"
        if remainder
        else None,
    )
