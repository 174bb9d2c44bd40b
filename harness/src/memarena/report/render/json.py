"""Writes a report as JSON, and the JSON schema of such reports.

``python -m memarena.report.render.json`` prints the schema. It has the docstrings of the records as descriptions, so
a change of one must be committed in ``schema/`` too.
"""

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
"""Decimals to which figures are rounded, so that the same log gives the same bytes on every machine."""


class JsonReport(Record):
    """The scores of one run or several, with what made them. The lists run in parallel."""

    report_version: int = REPORT_VERSION
    runs: tuple[RunScores, ...]
    provenance: tuple[Provenance | None, ...]
    costs: tuple[tuple[RowCosts, ...], ...]
    """For each run the costs of its rows, in their order."""
    reviews: tuple[tuple[RowReviews, ...], ...] = ()
    """For each run the counts of its rows that have reviews."""
    people: tuple[tuple[LabelledSample, ...], ...] = ()
    """For each run the samples of its answers that people labelled."""
    published: tuple[GridCell, ...] = ()
    """The paper's main grid in percent, if requested; else empty."""
    published_tables: Published | None = None
    """All tables of the paper, its grid included, if requested; else None."""
    calibrations: tuple[Calibration, ...] = ()
    """Error rates of judges on synthetic answers, from files of ``memarena judge --calibrate``."""


def to_json(runs: Sequence[ReportInput], *, published: bool = False, calibrations: Sequence[Calibration] = ()) -> str:
    """Return the report as indented JSON with a final newline."""
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
    """Return the JSON Schema of a report, which must equal the committed ``schema/report.v1.json``."""
    return json.dumps(JsonReport.model_json_schema(mode="serialization"), indent=2, sort_keys=True) + "\n"


def committed_schema() -> str:
    """Return the content of the committed schema file."""
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
