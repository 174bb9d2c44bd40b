"""Sums by ego that a summary keeps of a row, so that its questions need not be read again to compare it."""

from __future__ import annotations

import numpy as np

from memarena.log.base import Record
from memarena.scoring.compare import SideSums, choose, side_sums
from memarena.scoring.results import ANSWERABLE
from memarena.scoring.run import ScoredRun
from memarena.scoring.tally import GROUPS, Array, Tally
from memarena.scoring.uncertainty.bootstrap import draw_rows

FIGURES = {ANSWERABLE: "answerable", "all": "right answers"}
"""Figures of which the sums are kept, with their names."""
_COLUMNS = [position for position, group in enumerate(GROUPS) if group == "all" or group.startswith(ANSWERABLE)]

Sums = tuple[tuple[int, ...], ...]
"""Egos by the groups of questions of these figures."""


class EgoSums(Record):
    """Questions right and asked, by headline seed, over questions with an outcome under every seed."""

    label: str
    """Of the row."""
    questions: int
    right: tuple[Sums, ...]
    asked: tuple[Sums, ...]

    def side(self, dataset_sha256: str) -> SideSums:
        """A side of an unpaired comparison, for these figures alone."""
        tallies = tuple(
            Tally(_array(right), _array(asked)) for right, asked in zip(self.right, self.asked, strict=True)
        )
        return SideSums(self.questions, tallies, draw_rows(len(self.asked[0]), dataset_sha256))


def ego_sums_of(scored: ScoredRun) -> tuple[EgoSums, ...]:
    """The sums of every row that has a question with an outcome."""
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
