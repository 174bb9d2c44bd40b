"""Writes the files of a latency study: samples and tables as CSV, everything as JSON, the text, the figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from memarena_dataset.printing import csv_cell
from pydantic import BaseModel, JsonValue

from memarena.latency.report.figures import growth_figure, split_figure
from memarena.latency.results import Growth, Sample, Study
from memarena.report.layout import Document
from memarena.report.render.markdown import to_markdown


def write_study(study: Study, samples: Sequence[Sample], document: Document, folder: Path) -> None:
    """Write ``study.json``, ``study.md``, CSV files of tables and samples, and, if there is a split, its SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in study_files(study, samples, document).items():
        _write(folder / name, text)


def study_files(study: Study, samples: Sequence[Sample], document: Document) -> dict[str, str]:
    """Return the content of the files of :func:`write_study` by name; the same study always gives the same text."""
    tables: dict[str, Sequence[BaseModel]] = {
        "samples": samples,
        "fits": study.fits,
        "totals": study.totals,
        "server_checks": study.server_checks,
        "efficiency": study.efficiency,
        "ingest": study.ingest,
    }
    files = {"study.json": study.model_dump_json(indent=2) + "\n", "study.md": to_markdown(document)}
    files |= {f"{name}.csv": to_csv(rows) for name, rows in tables.items()}
    if (drawing := split_figure(study)) is not None:
        files["ttft-split.svg"] = drawing
    return files


def write_growth(growth: Growth, document: Document, folder: Path) -> None:
    """Write ``growth.json``, ``growth.md``, ``growth.csv``; ``growth.svg`` if there is something to draw."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "growth.json", growth.model_dump_json(indent=2) + "\n")
    _write(folder / "growth.md", to_markdown(document))
    _write(folder / "growth.csv", to_csv(growth.points))
    if (drawing := growth_figure(growth)) is not None:
        _write(folder / "growth.svg", drawing)


def to_csv(rows: Sequence[BaseModel]) -> str:
    """Return records as CSV: nested fields have dotted names, unknown values are empty."""
    flat = [_flat(row.model_dump(mode="json")) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(value) for name, value in row.items()} for row in flat)
    return text.getvalue()


def _flat(value: dict[str, JsonValue], before: str = "") -> dict[str, JsonValue]:
    """Return a record's leaves by dotted name; ``before`` is the prefix of the names."""
    leaves: dict[str, JsonValue] = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            leaves |= _flat(inner, f"{before}{name}.")
        elif isinstance(inner, list) and any(isinstance(part, dict) for part in inner):
            for index, part in enumerate(inner):
                leaves |= _flat({str(index): part}, f"{before}{name}.")
        elif isinstance(inner, list):
            leaves[f"{before}{name}"] = " ".join(str(part) for part in inner)
        else:
            leaves[f"{before}{name}"] = inner
    return leaves


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
