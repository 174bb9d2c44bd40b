"""A report as JSON, and the schema that it follows."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.resources import files

from pydantic import JsonValue

from memarena.log.records import Record
from memarena.paper.published import load_published
from memarena.paper.published_types import GridCell, Published
from memarena.report.people import LabelledSample
from memarena.report.provenance import Provenance
from memarena.report.report_input import ReportInput
from memarena.report.reviews import RowReviews
from memarena.report.tables.calibration import Calibration
from memarena.scoring.costs import RowCosts
from memarena.scoring.results import RunScores

REPORT_VERSION = 1
DIGITS = 6
"""Figures are rounded to so many decimals, so that the same log gives the same bytes everywhere."""


class JsonReport(Record):
    """The scores of one run or several, with what made them. The lists run in parallel."""

    report_version: int = REPORT_VERSION
    runs: tuple[RunScores, ...]
    provenance: tuple[Provenance | None, ...]
    costs: tuple[tuple[RowCosts, ...], ...]
    """Of each run its rows, in the order of the run."""
    reviews: tuple[tuple[RowReviews, ...], ...] = ()
    """Of each run the rows with answers that people reviewed."""
    people: tuple[tuple[LabelledSample, ...], ...] = ()
    """Of each run the samples of its answers that people labelled."""
    published: tuple[GridCell, ...] = ()
    """The paper's main grid in percent, where it was asked for."""
    published_tables: Published | None = None
    """All of the paper's tables, the grid among them, where they were asked for."""
    calibrations: tuple[Calibration, ...] = ()
    """Error rates of judges on synthetic answers, where files of ``memarena judge --calibrate`` were given."""


def to_json(runs: Sequence[ReportInput], *, published: bool = False, calibrations: Sequence[Calibration] = ()) -> str:
    """The report as indented JSON; ends in a newline."""
    content = JsonReport(
        runs=tuple(run.scores for run in runs),
        provenance=tuple(run.provenance for run in runs),
        costs=tuple(run.costs for run in runs),
        reviews=tuple(run.reviews for run in runs),
        people=tuple(run.people for run in runs),
        published=load_published().grid if published else (),
        published_tables=load_published() if published else None,
        calibrations=tuple(calibrations),
    ).model_dump(mode="json")
    return json.dumps(_rounded(content), indent=2, ensure_ascii=False) + "\n"


def schema() -> str:
    """JSON Schema of a report, as committed in ``schema/report.v1.json``."""
    return json.dumps(JsonReport.model_json_schema(mode="serialization"), indent=2, sort_keys=True) + "\n"


def committed_schema() -> str:
    """The schema file of this package."""
    return (files("memarena.report") / "schema" / f"report.v{REPORT_VERSION}.json").read_text(encoding="utf-8")


def _rounded(value: JsonValue) -> JsonValue:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


if __name__ == "__main__":
    sys.stdout.write(schema())
