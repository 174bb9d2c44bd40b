"""Defines the records of a labelled sample of answers: agreement of annotators with each other and with the judge.

An *annotator* is a person who labels answers without seeing verdicts. A *track* is what is labelled: whether answers
are right, or what they do (D6).
"""

from __future__ import annotations

from memarena.log.records import Record


class LabelledPart(Record):
    """Items of one dimension, or all of a track."""

    name: str
    """A dimension such as ``D2``; for a whole track ``right or wrong`` or ``behaviour (D6)``."""
    items: int
    fleiss_items: int
    """Items that all annotators labelled."""
    fleiss_kappa: float | None
    """Agreement of annotators with each other; None if it is undefined."""
    majority_items: int
    """Items on which more than half of at least three annotators agree."""
    compared: int
    """Items with a majority that the judge labelled too."""
    agree: float | None
    """Share of the compared items on which the judge agrees with the majority."""
    kappa: float | None
    """Cohen's κ of the judge with the majority; None if it is undefined."""


class LabelledSample(Record):
    """A sample of a run's answers that people labelled."""

    run_id: str
    """Run of the log with the answers; in a sweep each cell is a separate run."""
    judge: str
    annotators: int
    parts: tuple[LabelledPart, ...]
    """For each track its dimensions, then the whole track."""
