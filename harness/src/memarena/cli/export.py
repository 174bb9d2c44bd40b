"""``memarena export``: tables of a run as Parquet, CSV or JSON lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from memarena import judging
from memarena.cli.scores import JudgeOption
from memarena.tables.columns import TABLES
from memarena.tables.files import Format
from memarena.tables.files import export as write
from memarena.tables.run import open_run


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the files; files of the same name are replaced.")
    ],
    form: Annotated[
        str, typer.Option("--format", help="csv, jsonl, or parquet (pip install 'memarena\\[export]').")
    ] = "csv",
    tables: Annotated[
        list[str] | None, typer.Option("--table", help=f"Only this table; repeatable: {', '.join(TABLES)}.")
    ] = None,
    gold: Annotated[bool, typer.Option("--gold", help="With the columns that tell right answers.")] = False,
    judge: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Write a run's cells, scores, questions, answers, timings and verdicts as files.

    docs/python-api.md says what each column means.

    Examples:
      memarena export R --out tables
      memarena export R --out tables --format parquet --table answers --gold
    """
    for path in write(open_run(run, judge), out, cast(Format, form), tables or tuple(TABLES), gold=gold):
        sys.stdout.write(f"{path}\n")
