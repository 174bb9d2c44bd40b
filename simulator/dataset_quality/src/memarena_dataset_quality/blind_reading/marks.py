"""Reads the marks of a blind reading: means with intervals by source, their difference, and how far readers agree."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from memarena_dataset_quality.bar_table import BarRow, bounded
from memarena_dataset_quality.blind_reading.sheet import LOCOMO, OURS
from memarena_dataset_quality.errors import QualityError

LOWEST, HIGHEST = 1, 5
LEAST_MEAN, MOST_BELOW = 4.0, 0.5
"""The bar: mean of our sessions, and how far it may lie below LoCoMo's."""
LEAST_READERS = 2
_RESAMPLES = 10_000
_Marks = NDArray[np.float64]


class _Item(BaseModel):
    model_config = ConfigDict(extra="forbid")

    item: int
    source: str
    session_id: str


class _Key(BaseModel):
    model_config = ConfigDict(extra="forbid")

    seed: int
    world: str
    items: list[_Item]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95% interval, percentile bootstrap over sessions."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def report(key: Path, marks: Sequence[Path]) -> tuple[list[str], bool]:
    """Return the lines to print, and whether both bars are met.

    Raises:
        QualityError: a file cannot be read, or a mark is missing or not from 1 to 5.
    """
    if len(marks) < LEAST_READERS:
        raise QualityError(f"{len(marks)} file of marks: {LEAST_READERS} or more readers are expected")
    sources = _sources(key)
    readers = [_marks(path, sources) for path in marks]
    by_source = {source: _of(source, sources, readers) for source in (OURS, LOCOMO)}
    means = {source: _mean(rows.mean(axis=0)) for source, rows in by_source.items()}
    lines = [f"{'':<28}{'this world':>20}{'LoCoMo':>20}"]
    lines.append(f"{'sessions':<28}{by_source[OURS].shape[1]:>20}{by_source[LOCOMO].shape[1]:>20}")
    lines.append(f"{'mean of all readers':<28}{means[OURS]!s:>20}{means[LOCOMO]!s:>20}")
    for index, path in enumerate(marks):
        ours, reference = (_mean(by_source[source][index]) for source in (OURS, LOCOMO))
        lines.append(f"{path.name:<28}{ours!s:>20}{reference!s:>20}")
    gap = _gap(by_source[OURS].mean(axis=0), by_source[LOCOMO].mean(axis=0))
    lines.append(f"difference of the means: {gap} (95% intervals, bootstrap over sessions)")
    for (path, first_marks), (other_path, other_marks) in combinations(zip(marks, readers, strict=True), 2):
        lines.append(f"agreement of {path.name} and {other_path.name}: {agreement(first_marks, other_marks)}")
    rows = bars(means[OURS].value, means[LOCOMO].value)
    lines += [f"{row.name}: {row.figure:.2f}, {row.bar}: {row.verdict}" for row in rows]
    return lines, all(row.met is not False for row in rows)


def bars(ours: float, reference: float) -> list[BarRow]:
    """Return the two bars of a blind reading."""
    return [
        bounded("reading", "mean", ours, f"at least {LEAST_MEAN}", LEAST_MEAN, HIGHEST),
        bounded("reading", "below LoCoMo", reference - ours, f"at most {MOST_BELOW}", -HIGHEST, MOST_BELOW),
    ]


def _sources(path: Path) -> dict[int, str]:
    try:
        key = _Key.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise QualityError(f"--key {path}: {error.strerror}") from error
    except ValidationError as error:
        raise QualityError(f"--key {path}: a key written by masim reading-sheet is expected") from error
    return {item.item: item.source for item in key.items}


def _marks(path: Path, sources: dict[int, str]) -> dict[int, int]:
    """Read a reader's marks by item. QualityError unless each item of the key has one valid mark."""
    marks: dict[int, int] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames != ["item", "mark"]:
                raise QualityError(f"{path}: the columns item and mark are expected")
            for row in rows:
                item, mark = (str(row[name] or "").strip() for name in ("item", "mark"))
                if not item.isdecimal() or int(item) not in sources or int(item) in marks:
                    raise QualityError(f"{path}:{rows.line_num}: item {item}: each item of the key once is expected")
                if mark not in {str(allowed) for allowed in range(LOWEST, HIGHEST + 1)}:
                    where = f"{path}:{rows.line_num}: mark {mark!r}"
                    raise QualityError(f"{where}: a whole number from {LOWEST} to {HIGHEST} is expected")
                marks[int(item)] = int(mark)
    except OSError as error:
        raise QualityError(f"{path}: {error.strerror}") from error
    missing = sorted(set(sources) - set(marks))
    if missing:
        raise QualityError(f"{path}: item {missing[0]} has no mark; all {len(sources)} are expected")
    return marks


def _of(source: str, sources: dict[int, str], readers: Sequence[dict[int, int]]) -> _Marks:
    """Return the marks of a source, shape (readers, sessions)."""
    items = [item for item, item_source in sorted(sources.items()) if item_source == source]
    if not items:
        raise QualityError(f"--key: no item of {source}")
    return np.array([[reader[item] for item in items] for reader in readers], dtype=np.float64)


def _mean(values: _Marks) -> Mean:
    return _interval(float(values.mean()), _resample_means(values, 0))


def _gap(ours: _Marks, reference: _Marks) -> Mean:
    return _interval(float(ours.mean() - reference.mean()), _resample_means(ours, 0) - _resample_means(reference, 1))


def _resample_means(values: _Marks, seed: int) -> _Marks:
    """Return the means of samples with replacement, shape (10,000,)."""
    indices = np.random.default_rng(seed).integers(0, len(values), (_RESAMPLES, len(values)))
    return np.asarray(values[indices].mean(axis=1))


def _interval(value: float, draws: _Marks) -> Mean:
    low, high = np.percentile(draws, (2.5, 97.5))
    return Mean(value, float(low), float(high))


def agreement(reader: dict[int, int], other: dict[int, int]) -> str:
    """Return shares of equal marks and of marks at most one apart, and kappa with quadratic weights (Cohen 1968)."""
    pairs = [(reader[item], other[item]) for item in sorted(reader)]
    same = sum(left == right for left, right in pairs) / len(pairs)
    near = sum(abs(left - right) <= 1 for left, right in pairs) / len(pairs)
    kappa = weighted_kappa(pairs)
    kappa_text = "not defined, one reader gave one mark only" if kappa is None else f"{kappa:.2f}"
    return f"equal {same:.0%}, at most one apart {near:.0%}, weighted kappa {kappa_text}"


def weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Return 1 less the mean squared distance over that expected by chance; None if the expected distance is 0."""
    observed = sum((left - right) ** 2 for left, right in pairs) / len(pairs)
    chance = sum((left - right) ** 2 for left, _ in pairs for _, right in pairs) / len(pairs) ** 2
    return None if not chance else 1 - observed / chance
