"""Breaks figures down by family, dimension, lag, difficulty, tier, interference and wording, in one pass.

Questions are summed by kind first (:class:`_Kind`), and the sums of a kind are added to every part that it belongs to.
That is faster than adding each question to up to seven parts, since there are far more questions than kinds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from statistics import fmean
from typing import Any, Literal

import numpy as np
from memarena_dataset.model import WORDINGS

from memarena.log.records import UNMEASURED, Outcome
from memarena.scoring.figures import Score, Slice
from memarena.scoring.metrics import counts_of
from memarena.scoring.results import QuestionScore
from memarena.scoring.tally import GROUPS, Array, figures_of

By = Literal["family", "dimension", "lag", "difficulty", "tier", "interference", "wording"]

LAGS = ((0, "0"), (3, "1–3"), (7, "4–7"), (14, "8–14"))
"""Upper end, included, and name of each bucket of days between evidence and question; longer lags are ``15+``."""

INTERFERENCES = ((0, "0"), (1, "1"), (4, "2–4"), (16, "5–16"))
"""Upper end, included, and name of each bucket of the number of interfering facts; larger numbers are ``17+``.

A fact interferes with the one asked for if it is similar: of another person, or of another time."""

FAMILY_ORDER = (
    "d5_cloze", "d6_metadata", "d7_qa", "d8_temporal", "d10_counterfactual", "d1_conflict", "d2_anaphora",
    "d3_confabulation", "d4_permission", "x1_witness",
)  # fmt: skip
"""Families in the order of their dimensions."""


def lag_bucket(days: int | None) -> str | None:
    """Return the name of a lag's bucket; None without evidence."""
    if days is None:
        return None
    return next((name for end, name in LAGS if days <= end), "15+")


def interference_bucket(count: int | None) -> str | None:
    """Return the name of the bucket of a count of interfering facts; None if the data set has no count."""
    if count is None:
        return None
    return next((name for end, name in INTERFERENCES if count <= end), "17+")


_ORDER: dict[By, tuple[str, ...]] = {
    "family": FAMILY_ORDER,
    "dimension": ("D1", "D2", "D3", "D4", "D5", "D6"),
    "lag": (*(name for _, name in LAGS), "15+"),
    "difficulty": ("easy", "medium", "hard"),
    "tier": ("single_session", "cross_session", "full_ego"),
    "interference": (*(name for _, name in INTERFERENCES), "17+"),
    "wording": WORDINGS,
}
"""Breakdowns in their order, each with the order of its keys; other keys follow by name."""
_CUT: tuple[By, ...] = ("lag", "difficulty", "tier", "interference", "wording")
"""Breakdowns whose parts hold questions of all dimensions, so that the figures are computed again over each part."""
FIGURES = ("D1", "D2", "D3", "D4", "D5", "D5*", "D6", "P", "U", "J", "Rec", "Rea", "Trust", "Avg", "Avg*")
"""Figures that are computed over each part of a breakdown in ``_CUT``."""
_COLUMN = {name: column for column, name in enumerate(GROUPS)}
"""Column of each group of questions in the arrays of :func:`figures_of`."""


@dataclass(frozen=True)
class _Kind:
    """Key of the questions that are in the same parts of all breakdowns, and in the same groups."""

    family: str
    dimension: str
    half: str | None
    allowed: bool | None
    lag: str | None
    difficulty: str | None
    tier: str | None
    interference: str | None
    wording: str | None

    def slices(self) -> Iterator[tuple[By, str]]:
        """Yield the parts that such questions belong to, each as breakdown and key."""
        yield "family", self.family
        if self.dimension == "X1":
            return
        yield "dimension", self.dimension
        keys: tuple[tuple[By, str | None], ...] = (
            ("lag", self.lag),
            ("difficulty", self.difficulty),
            ("tier", self.tier),
            ("interference", self.interference),
            ("wording", self.wording),
        )
        for by, key in keys:
            if key is not None:
                yield by, key

    def groups(self) -> tuple[str, ...]:
        """Return the groups of :mod:`memarena.scoring.tally` that such questions count in."""
        if self.dimension == "D6":
            return ("all", "ALLOW" if self.allowed else "DENY")
        return ("all", f"D5 {self.half}" if self.dimension == "D5" else self.dimension)


def _none_yet() -> defaultdict[Any, int]:
    return defaultdict(int)


@dataclass
class _Part:
    """Sums over questions of one kind, or of one part."""

    outcomes: defaultdict[Outcome | None, int] = field(default_factory=_none_yet)
    token_f1: list[float] = field(default_factory=list)
    recalls: list[float] = field(default_factory=list)
    says_sources: bool = False
    """Whether any item counts for a session; without that, recall is n/a instead of 0."""
    right: defaultdict[str, int] = field(default_factory=_none_yet)
    total: defaultdict[str, int] = field(default_factory=_none_yet)
    lost: defaultdict[str, int] = field(default_factory=_none_yet)
    """By group, number of unmeasured questions, which say nothing about the memory."""

    def take(self, question: QuestionScore) -> None:
        """Add a question."""
        self.outcomes[question.outcome] += 1
        if question.token_f1 is not None:
            self.token_f1.append(question.token_f1)
        retrieved = question.retrieved
        if retrieved is not None and retrieved.evidence_sessions:
            self.says_sources = self.says_sources or retrieved.items_with_ids > 0
            self.recalls.append(retrieved.found_at_k / retrieved.evidence_sessions)

    def add(self, other: _Part, groups: Iterable[str]) -> None:
        """Add the sums of another part, whose questions count in these groups."""
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] += count
        self.token_f1 += other.token_f1
        self.recalls += other.recalls
        self.says_sources = self.says_sources or other.says_sources
        for group in groups:
            self.total[group] += sum(other.outcomes.values()) - other.outcomes[None]
            self.right[group] += other.outcomes[Outcome.CORRECT]
            self.lost[group] += _unmeasured(other.outcomes)


def slices(questions: Sequence[QuestionScore]) -> tuple[Slice, ...]:
    """Compute every breakdown, each in a fixed order of keys, with extensions and without D6 items outside of F1_PU.

    Seeds are pooled: P and U are shares over the items of all seeds, and F1_PU is computed from those shares.
    """
    sums: dict[_Kind, _Part] = {}
    by_instance: dict[str, _Part] = {}
    for question in questions:
        if question.outside_f1:
            continue
        # A question is of the same kind in every cell, so its kind is computed once.
        part = by_instance.get(question.instance_id)
        if part is None:
            part = by_instance[question.instance_id] = sums.setdefault(_kind(question), _Part())
        part.take(question)
    parts: dict[By, dict[str, _Part]] = {by: {} for by in _ORDER}
    for kind, part in sums.items():
        for by, key in kind.slices():
            parts[by].setdefault(key, _Part()).add(part, kind.groups() if by in _CUT else ())
    return tuple(part_slice for by, own in parts.items() for part_slice in _slices(by, own))


def _kind(question: QuestionScore) -> _Kind:
    return _Kind(
        family=question.family,
        dimension=question.dimension,
        half=question.half,
        allowed=question.allowed,
        lag=lag_bucket(question.lag_days),
        difficulty=question.difficulty,
        tier=question.context_tier,
        interference=interference_bucket(question.interference),
        wording=question.wording,
    )


def _slices(by: By, parts: dict[str, _Part]) -> Iterator[Slice]:
    """Yield the parts of one breakdown, in its usual order, then other parts by name."""
    keys = [key for key in _ORDER[by] if key in parts]
    keys += sorted(set(parts) - set(keys))
    figures = _figures([parts[key] for key in keys]) if by in _CUT else [{} for _ in keys]
    for key, scores in zip(keys, figures, strict=True):
        part = parts[key]
        counts = counts_of(part.outcomes)
        yield Slice(
            by=by,
            key=key,
            counts=counts,
            score=counts.accuracy,
            token_f1=fmean(part.token_f1) if part.token_f1 else None,
            recall_at_k=fmean(part.recalls) if part.recalls and part.says_sources else None,
            figures=scores,
        )


def _figures(parts: Sequence[_Part]) -> list[dict[str, Score]]:
    """Compute every figure of each part that has questions for it; a range if some are unmeasured."""
    right, total, lost = (_array([getattr(part, name) for part in parts]) for name in ("right", "total", "lost"))
    low, high = figures_of(right, total), figures_of(right + lost, total)
    by_part: list[dict[str, Score]] = []
    for row, part in enumerate(parts):
        exact = not _unmeasured(part.outcomes)
        ends = {name: (float(low[name][row]), float(high[name][row])) for name in FIGURES}
        by_part.append(
            {name: Score(value=a if exact else None, low=a, high=b) for name, (a, b) in ends.items() if not isnan(a)}
        )
    return by_part


def _unmeasured(outcomes: Mapping[Outcome | None, int]) -> int:
    return sum(outcomes.get(outcome, 0) for outcome in UNMEASURED)


def _array(sums: Sequence[Mapping[str, int]]) -> Array:
    array = np.zeros((len(sums), len(GROUPS)))
    for row, counts in enumerate(sums):
        for group, count in counts.items():
            array[row, _COLUMN[group]] = count
    return array
