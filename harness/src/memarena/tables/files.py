"""Writes tables of a run to files: Parquet, CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from memarena_dataset.printing import csv_cell
from memarena_dataset.safe_files import replacing

from memarena.tables.columns import TABLES
from memarena.tables.errors import TableError
from memarena.tables.run import Run

Format = Literal["parquet", "csv", "jsonl"]


def export(
    run: Run, out: Path, form: Format, tables: Sequence[str] = tuple(TABLES), *, gold: bool = False
) -> list[Path]:
    """Write each table to a file in the folder ``out`` and return the paths; files are replaced atomically.

    Raises:
        TableError: an unknown table or format, a missing library, or a folder that cannot be written.
    """
    if form not in get_args(Format):
        raise TableError(f"--format {form}: one of {', '.join(get_args(Format))} is expected")
    for table in tables:
        run.columns(table)  # raises TableError for an unknown table, before any file is written
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for table in tables:
            path = out / f"{table}.{form}"
            with replacing(path) as temporary:
                _write(run, table, temporary, form, gold=gold)
            written.append(path)
    except OSError as error:
        raise TableError(f"--out {out}: {error.strerror}") from error
    return written


def _write(run: Run, table: str, path: Path, form: Format, *, gold: bool) -> None:
    """Write a table to a file in one of the formats."""
    if form == "parquet":
        table_of_run = run.table(table, gold=gold)
        from pyarrow import parquet  # noqa: PLC0415 - an extra

        parquet.write_table(table_of_run, path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if form == "csv":
            names = [column.name for column in run.columns(table, gold=gold)]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {name: csv_cell(value) for name, value in row.items()} for row in run.rows(table, gold=gold)
            )
        else:
            for row in run.rows(table, gold=gold):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
