"""``memarena latency``: chooses queries, runs the two phases of a study, reports it, measures growth with history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import write_err, write_out
from memarena_dataset.programs import EXIT_INCOMPLETE, EXIT_INTERRUPTED

from memarena.cli.data_files import SCORING_FILES
from memarena.cli.latency_flags import DatasetOption, FormatOption, GrowthFlags, StudyFlags
from memarena.cli.progress import ProgressDisplay
from memarena.cli.records import command_of
from memarena.cli.run import cell_token, run_request, sigterm_as_interrupt
from memarena.cli.run_config import run_settings, with_models
from memarena.cli.run_flags import RunFlags
from memarena.cli.setting_flags import FlagValues, fields_of
from memarena.configs import read_file
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.flag_values import split_list
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.latency.errors import LatencyError
from memarena.latency.growth import growth_config, read_growth
from memarena.latency.pipeline import FIT_BACKENDS, read_samples_of, study_runs
from memarena.latency.report.files import write_growth, write_study
from memarena.latency.report.growth import growth_document
from memarena.latency.report.tables import study_document
from memarena.latency.results import Growth, Study
from memarena.latency.selection import EGOS, PER_FAMILY, select_queries, write_selection
from memarena.latency.sidecar_footprint import MeasuringDisplay, sidecars
from memarena.latency.study import (
    IDLE_S,
    PHASE1,
    QUERIES_FILE,
    SET_BY_THE_STUDY,
    WARM_UP,
    StudyPlan,
    run_dirs,
    run_study,
)
from memarena.log.records import NamedConfiguration
from memarena.readers.starting import API_KEY_VARIABLE
from memarena.report.layout import Document
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document

app = typer.Typer(no_args_is_help=True)

_FORMATS = ("table", "md", "json")


@app.command("select")
def select(
    dataset: DatasetOption,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The list: one instance id per line.")],
    egos: Annotated[int, typer.Option(help="People (egos) whose memory phase 2 times.")] = EGOS,
    per_family: Annotated[int, typer.Option(help="Latest queries of each family.")] = PER_FAMILY,
) -> None:
    """Choose the queries of a study: the same data set always gives the same list."""
    with open_dataset(dataset) as opened:
        selection = select_queries(opened, egos=egos, per_family=per_family)
    write_selection(selection, out)
    write_err(f"{len(selection.instance_ids)} queries of {len(selection.egos)} egos in {out}\n")
    for family, count in selection.short().items():
        write_err(f"warning: family {family}: only {count} of {per_family} queries in these egos\n")


def _run(flags: StudyFlags) -> None:
    """Run a study, or resume one: phase 1 (readers over memories without models), then phase 2.

    Phase 1 gives the time of an answer as a function of the prompt's length;
    phase 2 times the memories that need their own models.

    Example:
      memarena latency run --dataset DIR --reader embedded --out runs/latency

    MEMARENA_CELL_TOKEN is the key that a memory's own server sends to the
    gateway, as with memarena run.
    """
    settings, configuration = study_settings(flags.settings, flags.config)
    plan = StudyPlan(
        config=settings,
        out=flags.out,
        phase2=() if flags.phase2 in ("", "none") else tuple(split_list(flags.phase2)),
        queries=flags.queries,
        egos=flags.egos,
        per_family=flags.per_family,
        vanilla_tokens=flags.vanilla_tokens,
        cell_token=cell_token(),
        reader_api_key=os.environ.get(API_KEY_VARIABLE),
        scoring_files=SCORING_FILES,
        configuration=configuration,
    )
    _note_unused_flags(flags)
    again = f"memarena latency run … --out {flags.out}"
    with going_on(again):
        phases = run_study(plan, run_request)
    for phase in phases:
        write_err(f"{phase.folder}: {_outcome_text(phase.outcome)}\n")
    worst = phases[-1].outcome
    if worst.reason == "completed":
        write_err(f"tables: memarena latency report {flags.out}\n")
    _leave(worst, again)


run = app.command("run")(command_of(StudyFlags, _run))


def _note_unused_flags(flags: StudyFlags) -> None:
    """Print a note if flags that choose a list have no effect, because the study has a list already."""
    study_list = flags.out / QUERIES_FILE
    existing = study_list if study_list.exists() else flags.queries
    if existing is not None and existing.is_file() and (flags.egos, flags.per_family) != (EGOS, PER_FAMILY):
        write_err(f"note: --egos and --per-family choose a list; this study has one already: {existing}\n")


@app.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="STUDY…", help="Folders of studies, or of runs.")],
    output: FormatOption = "table",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the study's data files, tables and figures there, too.")
    ] = None,
    fit_backend: Annotated[str, typer.Option(help="Backends whose samples are used for the fits.")] = ",".join(
        FIT_BACKENDS
    ),
) -> None:
    """Fits, composed totals, cost of questions and of ingest, from the logs of a study."""
    _check_format(output)
    folders = [folder for study in runs for folder in run_dirs(study)]
    figures = study_runs(folders, fit_backends=split_list(fit_backend))
    document = study_document(figures)
    if out is not None:
        write_study(figures, read_samples_of(folders), document, out)
        write_err(f"files of the study in {out}\n")
    _emit(figures, document, output)


def _growth(flags: GrowthFlags) -> None:
    """Search, memory and disk of memories after 1, 5, 10, 15 days of history.

    MEMARENA_CELL_TOKEN is the key that a memory's own server sends to the gateway, as with memarena run.
    """
    _check_format(flags.output)
    if flags.runs is not None:
        _report_growth(flags.runs, flags)
        return
    if "dataset" not in flags.settings or flags.out is None:
        raise LatencyError("expected a RUN to report, or --dataset and --out to make one")
    outcome = _grow(flags, flags.out)
    again = f"memarena run --out {flags.out} --resume"
    if outcome.reason != "interrupted":
        _report_growth(flags.out, flags)
    _leave(outcome, again)


growth = app.command("growth")(command_of(GrowthFlags, _growth))


def _grow(flags: GrowthFlags, out: Path) -> RunOutcome:
    values = with_models(fields_of(flags.settings), flags.settings)
    config = growth_config(values, ego=flags.ego)
    measured_sidecars = sidecars(flags.beside or [], flags.beside_disk or [])
    request = RunRequest(
        out=out,
        config=config,
        reader_api_key=os.environ.get(API_KEY_VARIABLE),
        cell_token=cell_token(),
        scoring_files=SCORING_FILES,
    )
    with going_on(f"memarena latency growth … --out {out}"):
        return run_request(request, MeasuringDisplay(ProgressDisplay(), measured_sidecars, config.search_days, out))


def _report_growth(run: Path, flags: GrowthFlags) -> None:
    measurements = read_growth(run)
    document = growth_document(measurements)
    if flags.files is not None:
        write_growth(measurements, document, flags.files)
        write_err(f"files in {flags.files}\n")
    _emit(measurements, document, flags.output)


def _emit(measurements: Study | Growth, document: Document, output: str) -> None:
    if output == "json":
        write_out(measurements.model_dump_json(indent=2) + "\n")
    elif output == "md":
        write_out(to_markdown(document))
    else:
        print_document(document)


def _check_format(output: str) -> None:
    if output not in _FORMATS:
        raise LatencyError(f"--format {output}: expected one of {', '.join(_FORMATS)}")


@contextmanager
def going_on(again: str) -> Iterator[None]:
    """Exit with 130 and the command that resumes on SIGTERM or Ctrl-C within the context, also between runs."""
    try:
        with sigterm_as_interrupt():
            yield
    except KeyboardInterrupt:
        write_err(f"interrupted; resume with: {again}\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _outcome_text(outcome: RunOutcome) -> str:
    return f"{outcome.reason}: {outcome.left} questions left" if outcome.left else outcome.reason


def _leave(outcome: RunOutcome, again: str) -> None:
    """Exit with the code of an incomplete run and print how to resume it; return if it is complete."""
    if outcome.reason == "completed":
        return
    write_err(f"resume with: {again}\n")
    raise typer.Exit(EXIT_INTERRUPTED if outcome.reason == "interrupted" else EXIT_INCOMPLETE)


def study_settings(flags: FlagValues, file: Path | None) -> tuple[RunConfig, NamedConfiguration | None]:
    """Return the configuration of phase 1: flags override the file, and both override the study's defaults.

    Raises :class:`LatencyError` for a file with a field that the study sets itself, RunError naming file and field, or
    the flag, for an invalid value.
    """
    in_file = {} if file is None else read_file(file).run
    for name in SET_BY_THE_STUDY:
        if name in in_file:
            raise LatencyError(f"--config {file}: {name}: set by the study itself ({SET_BY_THE_STUDY[name]})")
    defaults = {"backend": ",".join(PHASE1), "idle_s": IDLE_S, "warm_up": WARM_UP}
    needed_defaults = {name: value for name, value in defaults.items() if name not in in_file}
    config, configuration = run_settings(
        RunFlags(name=None if file is None else str(file), settings={**needed_defaults, **flags})
    )
    if config is None:
        raise LatencyError("memarena latency run: nothing was asked for")
    return config, configuration
