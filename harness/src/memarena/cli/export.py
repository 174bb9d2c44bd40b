"""``memarena export``: writes tables of a run as Parquet, CSV or JSON lines, or its scores to MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer
from memarena_dataset.printing import write_out

from memarena import judging
from memarena.cli.completion import one_of
from memarena.cli.scores import JudgeOption
from memarena.tables.columns import TABLES
from memarena.tables.errors import TableError
from memarena.tables.files import Format
from memarena.tables.files import export as write
from memarena.tables.mlflow import export_to_mlflow
from memarena.tables.run import open_run


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the files; files of the same name are replaced.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="csv, jsonl, or parquet (pip install 'memarena\\[export]').")
    ] = "csv",
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", help=f"Only this table; repeatable: {', '.join(TABLES)}.", autocompletion=one_of(list(TABLES))
        ),
    ] = None,
    gold: Annotated[bool, typer.Option("--gold", help="With the columns that tell right answers.")] = False,
    mlflow: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Instead of files: scores to this MLflow tracking server (pip install 'memarena\\[mlflow]').",
        ),
    ] = None,
    experiment: Annotated[str, typer.Option(help="With --mlflow: the experiment.")] = "memarena",
    judge: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Write a run's cells, scores, questions, answers, timings and verdicts as files.

    docs/python-api.md says what each column means.

    Examples:
      memarena export R --out tables
      memarena export R --out tables --format parquet --table answers --gold
      memarena export R --mlflow http://HOST:5000
    """
    if (out is None) == (mlflow is None):
        raise TableError("export: expected either --out DIR or --mlflow URI")
    if mlflow is not None:
        if tables or gold:
            raise TableError(f"--{'table' if tables else 'gold'}: goes with --out, not with --mlflow")
        written = export_to_mlflow(open_run(run, judge), mlflow, experiment)
    else:
        assert out is not None
        chosen = tables or tuple(TABLES)
        written = [str(path) for path in write(open_run(run, judge), out, cast(Format, form), chosen, gold=gold)]
    write_out("".join(f"{line}\n" for line in written))
