"""Computes sums by ego that a summary stores for each row, to compare rows without their questions.

An ego is the person whose memory is measured. Intervals draw egos, so that counts by ego suffice for them, and a site
need not publish the questions of a data set that is not public.
"""

from __future__ import annotations

import numpy as np

from memarena.log.base import Record
from memarena.scoring.compare import SideSums, choose, side_sums
from memarena.scoring.results import ANSWERABLE
from memarena.scoring.run import ScoredRun
from memarena.scoring.tally import GROUPS, Array, Tally
from memarena.scoring.uncertainty.bootstrap import draw_rows

FIGURES = {ANSWERABLE: "answerable", "all": "right answers"}
"""Figure whose sums are stored: its name on pages."""
_COLUMNS = [position for position, group in enumerate(GROUPS) if group == "all" or group.startswith(ANSWERABLE)]

Sums = tuple[tuple[int, ...], ...]
"""Count by ego (rows) and group of questions (columns, as in :data:`_COLUMNS`)."""


class EgoSums(Record):
    """Numbers of right and of asked questions of a row, over the questions with an outcome in every headline seed."""

    label: str
    """Label of the row."""
    questions: int
    right: tuple[Sums, ...]
    """For each headline seed: those that the row's figures average."""
    asked: tuple[Sums, ...]
    """For each headline seed."""

    def side(self, dataset_sha256: str) -> SideSums:
        """Return a side of an unpaired comparison, for the figures of :data:`FIGURES`."""
        tallies = tuple(
            Tally(_array(right), _array(asked)) for right, asked in zip(self.right, self.asked, strict=True)
        )
        return SideSums(self.questions, tallies, draw_rows(len(self.asked[0]), dataset_sha256))


def ego_sums_of(scored: ScoredRun) -> tuple[EgoSums, ...]:
    """Return the sums of every row that has a question with an outcome."""
    sides = [
        (row.label, side_sums(choose(scored, row.label), resamples=1))
        for row in scored.scores.rows
        if row.headline_seeds
    ]
    return tuple(
        EgoSums(
            label=label,
            questions=side.questions,
            right=tuple(_sums(tally.right) for tally in side.tallies),
            asked=tuple(_sums(tally.total) for tally in side.tallies),
        )
        for label, side in sides
        if side.questions
    )


def _sums(by_group: Array) -> Sums:
    return tuple(tuple(int(count) for count in row) for row in by_group[:, _COLUMNS])


def _array(sums: Sums) -> Array:
    by_group = np.zeros((len(sums), len(GROUPS)))
    by_group[:, _COLUMNS] = sums
    return by_group
