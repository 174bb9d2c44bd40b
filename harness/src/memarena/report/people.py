"""Samples of answers that people labelled: how far they agree with each other and with the judge."""

from __future__ import annotations

from memarena.log.records import Record


class LabelledPart(Record):
    """Items of one dimension, or all of a track."""

    name: str
    """``D2``; ``right or wrong`` or ``behaviour (D6)`` for a track."""
    items: int
    fleiss_items: int
    """Items that all annotators labelled."""
    fleiss_kappa: float | None
    """People with each other; None where it is not defined."""
    majority_items: int
    """Items on which more than half of at least three annotators agree."""
    compared: int
    """Of those, items that the judge labelled too."""
    agree: float | None
    """Share of them on which the judge agrees with the majority."""
    kappa: float | None
    """Cohen's κ of the judge with the majority; None where it is not defined."""


class LabelledSample(Record):
    """A sample of a run's answers that people labelled."""

    run_id: str
    """Of the log that holds the answers: in a sweep each cell has its own."""
    judge: str
    annotators: int
    parts: tuple[LabelledPart, ...]
    """Dimensions, and after those of a track the whole of it."""
