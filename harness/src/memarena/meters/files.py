"""Meters that are files of the kernel: one number, or one reason, per file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memarena.meters.readings import Channel, Reading, Unavailable, one_line, reading


@dataclass(frozen=True)
class FileSource:
    """A meter of which each channel is read by a function; its OSError or ValueError makes the reading unavailable.

    Use :meth:`opened` to make it.
    """

    name: str
    readers: Mapping[Channel, Callable[[], float]]
    unavailable: Sequence[Unavailable]

    @property
    def channels(self) -> Sequence[Channel]:
        """Channels that could be read at opening."""
        return tuple(self.readers)

    @classmethod
    def opened(
        cls, name: str, readers: Mapping[Channel, Callable[[], float]], absent: Sequence[Unavailable] = ()
    ) -> FileSource:
        """Read every channel once; a channel that cannot be read now stays unavailable.

        ``absent`` are channels that are known to be missing.
        """
        first = [attempt(channel, reader) for channel, reader in readers.items()]
        readable = {entry.channel for entry in first if isinstance(entry, Reading)}
        readers_kept = {channel: reader for channel, reader in readers.items() if channel in readable}
        return cls(name, readers_kept, (*(entry for entry in first if isinstance(entry, Unavailable)), *absent))

    def read(self) -> Sequence[Reading | Unavailable]:
        """Read ``channels``, in that order."""
        return tuple(attempt(channel, reader) for channel, reader in self.readers.items())

    def close(self) -> None:
        """Do nothing: no file is open between reads."""


def attempt(channel: Channel, reader: Callable[[], float]) -> Reading | Unavailable:
    """Return the value that ``reader`` gives, or why it gave none."""
    try:
        return reading(channel, reader())
    except OSError as error:
        return Unavailable(channel, f"{error.filename}: {error.strerror}" if error.filename else one_line(error))
    except ValueError as error:
        return Unavailable(channel, one_line(error))
