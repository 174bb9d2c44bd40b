"""Estimates when the turns of a session are spoken, for data sets that state only when the session starts."""

from __future__ import annotations

from collections.abc import Sequence

SECONDS_PER_DAY = 86_400
_SECONDS_PER_TURN = 10.0
"""Seconds of pause before a turn."""
_SECONDS_PER_WORD = 0.4
"""Seconds of speech for a word: 150 words a minute."""


def turn_times(start: float, texts: Sequence[str]) -> list[float]:
    """Return the time of each turn in simulated days, estimated from the lengths of the texts, and the session's end.

    Times are compressed if the session would end after midnight.
    """
    spans = [_SECONDS_PER_TURN + _SECONDS_PER_WORD * len(text.split()) for text in texts]
    seconds_to_midnight = (int(start) + 1 - start) * SECONDS_PER_DAY - 1
    scale = min(1.0, max(seconds_to_midnight, 0.0) / sum(spans)) if spans else 1.0
    times, elapsed = [start], 0.0
    for span in spans:
        elapsed += span * scale
        times.append(round(start + elapsed / SECONDS_PER_DAY, 7))
    return times


def times_of_day(start: float, sessions: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return the times of consecutive sessions of a day, for each session as :func:`turn_times` does."""
    times = turn_times(start, [text for texts in sessions for text in texts])
    blocks, first = [], 0
    for texts in sessions:
        blocks.append(times[first : first + len(texts) + 1])
        first += len(texts)
    return blocks
