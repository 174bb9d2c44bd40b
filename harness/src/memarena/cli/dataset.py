"""``memarena dataset``: checks, counts, imports and describes data set folders."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.checks.findings import Finding
from memarena_dataset.croissant import FILE_NAME as CROISSANT
from memarena_dataset.croissant import About, croissant
from memarena_dataset.errors import DatasetError
from memarena_dataset.importers.account import Account
from memarena_dataset.importers.beam import Rubrics, import_beam
from memarena_dataset.importers.gatemem import import_gatemem
from memarena_dataset.importers.halumem import import_halumem
from memarena_dataset.importers.locomo import import_locomo
from memarena_dataset.importers.longmemeval import import_longmemeval
from memarena_dataset.importers.personamem import History, import_personamem
from memarena_dataset.importers.personamem_v1 import import_personamem_v1, is_version_1
from memarena_dataset.printing import echo
from memarena_dataset.programs import EXIT_FAULTS
from memarena_dataset.stats import Stats, markdown, stats, table
from memarena_dataset.validate import Profile, Validation, validate
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Data set folder.", show_default=False)]


class ListFormat(str, Enum):
    """Output formats of ``validate``."""

    TEXT = "text"
    JSON = "json"


class TableFormat(str, Enum):
    """Output formats of ``stats``."""

    TABLE = "table"
    JSON = "json"
    MD = "md"


class HistoryLength(str, Enum):
    """Length of the histories of PersonaMem-v2, in tokens."""

    SHORT = "32k"
    LONG = "128k"


@app.command("validate")
def validate_command(
    folder: Folder,
    profile: Annotated[
        Profile, typer.Option(help="structural: any data set. full: also that every question has one right answer.")
    ] = Profile.STRUCTURAL,
    output: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.TEXT,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Also how often the judge errs on answers made around this gold.")
    ] = False,
) -> None:
    """Say what is wrong with a data set, one line per fault; exit 1 if there is any."""
    result = validate(folder, profile)
    rates = _calibration(folder) if calibrate else None
    if output is ListFormat.JSON:
        shown = _validation_json(result) | ({"calibration": rates} if rates else {})
        echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        _print_validation(folder, result)
        if rates:
            echo(rates)
    if not result.valid:
        raise typer.Exit(EXIT_FAULTS)


def _calibration(folder: Path) -> str:
    """Return the calibration of the judge on a data set; imported only here, since a judge takes a second to load."""
    from memarena.cli.judge_trust import calibration_summary, questions_of  # noqa: PLC0415

    return calibration_summary(questions_of(None, [folder]))


def _print_validation(folder: Path, result: Validation) -> None:
    for finding in result.errors:
        echo(str(finding.problem))
    for finding in result.warnings:
        echo(f"warning: {finding.problem}")
    for missing in result.not_checked:
        echo(f"not checked: {missing}")
    verdict = "valid" if result.valid else "not valid"
    counts = f"{_count(len(result.errors), 'fault')}, {_count(len(result.warnings), 'warning')}"
    echo(f"{folder}: {verdict} ({result.profile.value}): {counts}", err=not result.valid)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _validation_json(result: Validation) -> dict[str, object]:
    return {
        "profile": result.profile.value,
        "valid": result.valid,
        "errors": [_finding_json(finding) for finding in result.errors],
        "warnings": [_finding_json(finding) for finding in result.warnings],
        "not_checked": list(result.not_checked),
    }


def _finding_json(finding: Finding) -> dict[str, object]:
    return {"check": finding.check, **dataclasses.asdict(finding.problem)}


@app.command("stats")
def stats_command(
    folder: Folder,
    output: Annotated[TableFormat, typer.Option("--format", help="How to print.")] = TableFormat.TABLE,
) -> None:
    """Print how large a data set is: the paper's summary table."""
    summary = stats(folder)
    if output is TableFormat.JSON:
        echo(json.dumps(dataclasses.asdict(summary), ensure_ascii=False, indent=2))
    elif output is TableFormat.MD:
        echo(markdown(summary))
    else:
        Console().print(_rich_table(summary))


def _rich_table(summary: Stats) -> Table:
    shown = Table(title=Text(f"{summary.name} (from {summary.calendar_epoch}, sha256 {summary.sha256[:12]})"))
    shown.add_column("statistic")
    shown.add_column("value", justify="right")
    for statistic, value in table(summary):
        shown.add_row(Text(statistic), Text(value))
    return shown


# ------------------------------------------------------------------ import

import_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.add_typer(import_app, name="import", help="Bring another data set into the layout of a data set folder.")

Source = Annotated[Path, typer.Argument(metavar="FILE", help="The file as published.", show_default=False)]
SourceFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder as published.", show_default=False)]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="New or empty folder.", show_default=False)]


LeaveOut = Annotated[
    list[str] | None,
    typer.Option("--leave-out", metavar="ID", help="Id of a question that is not imported; repeatable."),
]


@import_app.command("locomo")
def locomo_command(
    source: Source,
    out: Out,
    corrections: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Corrected golds and evidence, in the form of the public audit (errors.json)."
        ),
    ] = None,
) -> None:
    """Import LoCoMo: one ego per conversation, every question imported or named."""
    _print_account(import_locomo(source, out, corrections), out)


@import_app.command("longmemeval")
def longmemeval_command(source: Source, out: Out, leave_out: LeaveOut = None) -> None:
    """Import LongMemEval (_s, _m or _oracle): one ego per question."""
    _print_account(import_longmemeval(source, out, leave_out or ()), out)


@import_app.command("beam")
def beam_command(
    source: SourceFolder,
    out: Out,
    with_rubrics: Annotated[
        bool, typer.Option("--with-rubrics", help="Also what a rubric alone decides: it needs a judge with a model.")
    ] = False,
    by_rubrics: Annotated[
        bool, typer.Option("--by-rubrics", help="Every question by its rubric, as BEAM scores: a judge with a model.")
    ] = False,
) -> None:
    """Import BEAM (100K, 500K or 1M, or one chat): one ego per chat; what a rubric alone decides is left out."""
    chosen: Rubrics = "all" if by_rubrics else "needed" if with_rubrics else "none"
    _print_account(import_beam(source, out, rubrics=chosen), out)


@import_app.command("gatemem")
def gatemem_command(source: SourceFolder, out: Out) -> None:
    """Import GateMem (one domain, or the folder of all): who may be told what, by a memory that people share."""
    _print_account(import_gatemem(source, out), out)


@import_app.command("halumem")
def halumem_command(source: Source, out: Out) -> None:
    """Import HaluMem (Medium or Long): one ego per user; its questions, not what it compares with stored memories."""
    _print_account(import_halumem(source, out), out)


@import_app.command("personamem")
def personamem_command(
    source: Annotated[Path, typer.Argument(metavar="CSV", help="The table of questions.", show_default=False)],
    out: Out,
    history: Annotated[HistoryLength, typer.Option(help="v2: which of the two histories of each person.")] = (
        HistoryLength.SHORT
    ),
) -> None:
    """Import PersonaMem (v2, or v1 by its columns): which of several replies suits a person.

    Histories are read from the folders of the table.
    """
    chosen: History = history.value
    account = import_personamem_v1(source, out) if is_version_1(source) else import_personamem(source, out, chosen)
    _print_account(account, out)


def _print_account(account: Account, out: Path) -> None:
    for note in account.notes:
        echo(str(note))
    counts = ", ".join(f"{count:,} {what}" for what, count in account.counts.items())
    noted = _count(len(account.notes), "note")
    echo(f"{account.source} imported to {out}: {counts}; {noted} (in pipeline_report.json too)")


@app.command("croissant")
def croissant_command(
    folder: Folder,
    name: Annotated[str | None, typer.Option(help="Name of the data set. Default: that of the folder.")] = None,
    description: Annotated[str | None, typer.Option(help="A sentence on what it is.")] = None,
    license_: Annotated[str | None, typer.Option("--license", metavar="URL", help="Its licence.")] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Where it is published.")] = None,
    creator: Annotated[str | None, typer.Option(help="Who made it.")] = None,
    published: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="When it was published.")] = None,
    version: Annotated[str | None, typer.Option(help="Its version, such as 1.0.0.")] = None,
    cite_as: Annotated[str | None, typer.Option(help="How to cite it.")] = None,
) -> None:
    """Describe a data set for catalogues: write DIR/croissant.json, with the hash of every file (Croissant 1.0)."""
    about = About(name, description, license_, url, creator, published, version, cite_as)
    path = folder / CROISSANT
    content = json.dumps(croissant(folder, about), ensure_ascii=False, indent=2) + "\n"
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written: {error.strerror}") from error
    echo(str(path))
