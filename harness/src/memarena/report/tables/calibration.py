"""Defines the record of a judge's calibration, reads its files, and builds the table of error rates.

A calibration asks judges about synthetic answers that are known to be right or wrong. ``memarena judge --calibrate
--format json`` writes the file, and ``memarena report --calibration`` shows it next to scores by these judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from memarena.log.records import Record
from memarena.report.figures import percent, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.scoring.errors import ScoringError
from memarena.scoring.results import RunScores


class SyntheticRates(Record):
    """A judge on synthetic answers of one family or kind. Rates are shares; None without any such answer."""

    right: int
    """Number of synthetic answers that are right."""
    wrong: int
    """Number of synthetic answers that are wrong."""
    false_rejects: int
    """Right answers that the judge calls wrong."""
    false_accepts: int
    """Wrong answers that the judge calls right."""
    unjudged: int = 0
    """Answers without a usable reply; they count in no rate."""
    false_reject_rate: float | None
    false_accept_rate: float | None


class LabelErrors(Record):
    """A label of D6 as a judge gives it."""

    synthetic: int
    """Number of synthetic answers that the label is right for."""
    others: int
    """Number of all other synthetic answers."""
    missed: int
    """Answers that should have the label and got another."""
    false: int
    """Answers that got the label and should have another."""
    missed_rate: float | None
    false_rate: float | None


class Kappa(Record):
    """Cohen's κ of two judges; None where it is not defined."""

    one: str  # words: a name of the file format
    two: str
    kappa: float | None


class CalibratedJudge(Record):
    """A judge that was calibrated, and what asking it cost."""

    name: str
    version: str
    """SHA-256 as in verdicts; empty for the token-F1 fallback, which is part of the value judge."""
    model: str = ""
    temperature: float | None = None
    seed: int | None = None
    failures: dict[str, int] = Field(default_factory=dict)
    """Answers without a usable reply, by cause."""
    unjudged: int = 0
    stopped: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None


class Calibration(Record):
    """A calibration as it is written and read. Mappings are by judge, then by family or kind."""

    schema_version: Literal[1] = 1
    phrasings: str
    seed: int
    answers: int
    phrasings_sha256: str
    value_judge_version: str
    judges: tuple[CalibratedJudge, ...] = ()
    by_family: dict[str, dict[str, SyntheticRates]]
    by_kind: dict[str, dict[str, SyntheticRates]]
    behaviour_labels: dict[str, LabelErrors]
    """Errors of the labels that the rules give."""
    behaviour_labels_by_model: dict[str, dict[str, LabelErrors]] = Field(default_factory=dict)
    """By judge: errors of the labels that its model gives; empty if no model was asked."""
    kappa: tuple[Kappa, ...]


def read_calibration(path: Path) -> Calibration:
    """Read a file of ``judge --calibrate --format json``. Raises ScoringError with file and field if invalid."""
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ScoringError(f"--calibration {path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "file"
        raise ScoringError(
            f"--calibration {path}: {field}: {first['msg'].lower()}; "
            "expected what `judge --calibrate --format json` prints"
        ) from error


def calibration_sections(calibrations: Sequence[Calibration], runs: Sequence[RunScores]) -> list[Section]:
    """Return a table for each calibration, with a note on whether it applies to the judges of the runs."""
    sections = []
    for number, calibration in enumerate(calibrations, 1):
        title = "Error rates of judges on synthetic answers" + (
            f", calibration {number}" if len(calibrations) > 1 else ""
        )
        rows = [row for judge, by_family in calibration.by_family.items() for row in _rows(judge, by_family)]
        sections.append(section(title, _COLUMNS, rows, list(_notes(calibration, runs))))
    return sections


_COLUMNS = (
    Column("judge", align="left"),
    Column("family", align="left"),
    Column("right", "synthetic answers that are right"),
    Column("wrong", "synthetic answers that are wrong"),
    Column("FR", "right answers judged wrong, percent"),
    Column("FA", "wrong answers judged right, percent"),
    Column("unjudged", "synthetic answers without a usable reply, counted in no rate"),
)


def _rows(judge: str, by_family: Mapping[str, SyntheticRates]) -> list[list[Cell]]:
    rows = [_row(judge, "all", _whole(by_family.values()))]
    return rows + [_row("", family, rates) for family, rates in by_family.items()]


def _row(judge: str, family: str, rates: SyntheticRates) -> list[Cell]:
    shares = (percent(rates.false_reject_rate), percent(rates.false_accept_rate))
    return [Cell(judge), Cell(family), whole(rates.right), whole(rates.wrong), *shares, whole(rates.unjudged)]


def _whole(parts: Iterable[SyntheticRates]) -> SyntheticRates:
    counts = {"right": 0, "wrong": 0, "false_rejects": 0, "false_accepts": 0, "unjudged": 0}
    for part in parts:
        for name in counts:
            counts[name] += getattr(part, name)
    right, wrong = counts["right"], counts["wrong"]
    return SyntheticRates(
        **counts,
        false_reject_rate=counts["false_rejects"] / right if right else None,
        false_accept_rate=counts["false_accepts"] / wrong if wrong else None,
    )


def _notes(calibration: Calibration, runs: Sequence[RunScores]) -> Iterable[str]:
    """Yield notes below a calibration's table: sample, κ, unjudged answers, errors of labels, judges that differ."""
    yield (
        f"{calibration.answers:,} synthetic answers made from gold, phrasings {calibration.phrasings} "
        f"({calibration.phrasings_sha256[:12]}), seed {calibration.seed}"
    )
    for pair in calibration.kappa:
        yield f"κ of {pair.one} with {pair.two}: " + ("n/a" if pair.kappa is None else f"{pair.kappa:.3f}")
    for judge in calibration.judges:
        if judge.failures or judge.stopped:
            causes = ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in judge.failures.items())
            reasons = "; ".join(part for part in (causes, judge.stopped) if part)
            yield f"{judge.name} left {judge.unjudged:,} answers unjudged ({reasons})"
    for name, labels in {"the rules": calibration.behaviour_labels, **calibration.behaviour_labels_by_model}.items():
        measured = {label: rates for label, rates in labels.items() if rates.missed_rate is not None}
        if measured:
            rates_text = ", ".join(
                f"{label} {100 * (rates.missed_rate or 0):.1f}%" for label, rates in measured.items()
            )
            yield f"labels of D6 by {name}, missed: {rates_text}"
    yield from dict.fromkeys(line for run in runs if (line := _fits(calibration, run)))


def _fits(calibration: Calibration, run: RunScores) -> str:
    """Return why a calibration does not apply to the judge of a run; empty if it does."""
    versions = {judge.name: judge.version for judge in calibration.judges} or {"value": calibration.value_judge_version}
    if run.judge not in versions:
        return f"the judge of run {run.run_id}, {run.judge}, is not among those calibrated"
    if run.judge_versions and run.judge_versions != (versions[run.judge],):
        versions_used = ", ".join(version[:12] for version in run.judge_versions)
        return (
            f"calibrated was another version of {run.judge} ({versions[run.judge][:12]}) than judged run {run.run_id} "
            f"({versions_used})"
        )
    return ""
