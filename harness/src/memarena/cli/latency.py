"""``memarena latency``: which queries, the two phases, the study's tables and files, Search by length of history."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from memarena.cli.data_files import SCORING_FILES
from memarena.cli.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from memarena.cli.latency_files import write_growth, write_study
from memarena.cli.latency_growth_tables import growth_document
from memarena.cli.latency_settings import day_numbers, study_settings, words
from memarena.cli.latency_tables import study_document
from memarena.cli.progress import ProgressDisplay
from memarena.cli.run import cell_token, run_request, sigterm_as_interrupt
from memarena.cli.run_flags import RunFlags
from memarena.dataset.reading import open_dataset
from memarena.latency.beside import WatchingDisplay, servers
from memarena.latency.errors import LatencyError
from memarena.latency.growth import DAYS, growth_config, read_growth
from memarena.latency.protocol import (
    PHASE1,
    PHASE2,
    QUERIES_FILE,
    VANILLA_TOKENS,
    WARM_UP,
    StudyPlan,
    run_dirs,
    run_study,
)
from memarena.latency.results import Growth, Study
from memarena.latency.selection import EGOS, PER_FAMILY, select_queries, write_selection
from memarena.latency.studying import FIT_BACKENDS, read_samples_of, study_runs
from memarena.report.layout import Document
from memarena.report.markdown import to_markdown
from memarena.report.terminal import print_document
from memarena.run.request import RunOutcome, RunRequest

app = typer.Typer(no_args_is_help=True)

_FORMATS = ("table", "md", "json")

DatasetOption = Annotated[Path, typer.Option(help="Data set folder.")]
EmbedderOption = Annotated[str | None, typer.Option(help="Embedding model for memories: embedded, or an API's URL.")]
EmbedderModelOption = Annotated[str | None, typer.Option(help="Model behind the embedder's URL.")]
ExtractorOption = Annotated[str | None, typer.Option(help="URL of the model that extracts facts; default: the reader.")]
ExtractorModelOption = Annotated[str | None, typer.Option(help="Model behind the extractor's URL.")]
GatewayPortOption = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port of the gateway, for a memory whose server is told it once; 0: any."),
]
ModelOption = Annotated[str | None, typer.Option(help="Model behind the reader's URL, where it serves several.")]
FormatOption = Annotated[str, typer.Option("--format", help="table, md or json.")]


@app.command("select")
def select(
    dataset: DatasetOption,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The list: one instance id per line.")],
    egos: Annotated[int, typer.Option(help="Egos whose memory phase 2 times.")] = EGOS,
    per_family: Annotated[int, typer.Option(help="Latest queries of each family.")] = PER_FAMILY,
) -> None:
    """Choose the queries of a study: the same data set always gives the same list."""
    with open_dataset(dataset) as opened:
        selection = select_queries(opened, egos=egos, per_family=per_family)
    write_selection(selection, out)
    sys.stderr.write(f"{len(selection.instance_ids)} queries of {len(selection.egos)} egos in {out}\n")
    for family, count in selection.short().items():
        sys.stderr.write(f"warning: family {family}: only {count} of {per_family} queries in these egos\n")


@app.command("run")
def run(
    out: Annotated[Path, typer.Option(help="Folder of the study: queries.txt, phase1, phase2, its files.")],
    dataset: Annotated[Path | None, typer.Option(help="Data set folder.")] = None,
    reader: Annotated[
        str | None,
        typer.Option(help="Readers, separated by commas: embedded, an API's URL or sglang:MODEL; or in --config."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="YAML or TOML with settings of memarena run, its readers among them; flags win."
        ),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help=f"Backends of phase 1, which the fits rest on; default {','.join(PHASE1)}.")
    ] = None,
    phase2: Annotated[
        str, typer.Option(help="Backends of phase 2, asked of the first reader; none: no phase 2.")
    ] = ",".join(PHASE2),
    queries: Annotated[Path | None, typer.Option(help="A list made by memarena latency select.")] = None,
    egos: Annotated[int, typer.Option(help="Egos, where no list is given.")] = EGOS,
    per_family: Annotated[
        int, typer.Option(help="Latest queries of each family, where no list is given.")
    ] = PER_FAMILY,
    model: ModelOption = None,
    reader_window: Annotated[int | None, typer.Option(help="Context window of the reader in tokens.")] = None,
    embedder: EmbedderOption = None,
    embedder_model: EmbedderModelOption = None,
    extractor: ExtractorOption = None,
    extractor_model: ExtractorModelOption = None,
    vanilla_tokens: Annotated[int, typer.Option(help="Budget of vanilla's context, in tokens.")] = VANILLA_TOKENS,
    max_context_tokens: Annotated[
        int | None, typer.Option(help="Tokens of context that a reader may see; default 8192.")
    ] = None,
    max_answer_tokens: Annotated[int | None, typer.Option(help="Tokens of an answer; default 400.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="BACKEND.KEY=VALUE, repeatable.")] = None,
    meter: Annotated[str | None, typer.Option(help="Meters, separated by commas; default auto.")] = None,
    system_rail: Annotated[str | None, typer.Option(help="Channel of the rail that feeds the whole machine.")] = None,
    idle_s: Annotated[
        float | None, typer.Option(help="Seconds of rest before and after, for net energy; default 120.")
    ] = None,
    warm_up: Annotated[
        int | None, typer.Option(help=f"Requests to each reader before anything is timed; default {WARM_UP}.")
    ] = None,
    floor_samples: Annotated[
        int | None, typer.Option(help="Round trips to measure for the floor; default 200, 0: none.")
    ] = None,
    order_seed: Annotated[int | None, typer.Option(help="Seed of the order of questions; default 0.")] = None,
    gateway_port: GatewayPortOption = None,
) -> None:
    """Run a study, or go on with one: phase 1 (readers over memories that cost nothing), then phase 2.

    MEMARENA_CELL_TOKEN is the key that a memory's own server sends to the gateway, as with memarena run.
    """
    flags = RunFlags(
        dataset=dataset,
        backend=backend,
        reader=reader,
        model=model,
        reader_window=reader_window,
        embedder=embedder,
        embedder_model=embedder_model,
        extractor=extractor,
        extractor_model=extractor_model,
        max_context_tokens=max_context_tokens,
        max_answer_tokens=max_answer_tokens,
        option=option,
        meter=meter,
        system_rail=system_rail,
        idle_s=idle_s,
        warm_up=warm_up,
        floor_samples=floor_samples,
        order_seed=order_seed,
        gateway_port=gateway_port,
    )
    settings, configuration = study_settings(flags, config)
    plan = StudyPlan(
        config=settings,
        out=out,
        phase2=() if phase2 in ("", "none") else tuple(words(phase2)),
        queries=queries,
        egos=egos,
        per_family=per_family,
        vanilla_tokens=vanilla_tokens,
        cell_token=cell_token(),
        reader_api_key=os.environ.get("MEMARENA_READER_API_KEY"),
        scoring_files=SCORING_FILES,
        configuration=configuration,
    )
    listed = out / QUERIES_FILE if (out / QUERIES_FILE).exists() else queries
    if listed is not None and listed.is_file() and (egos, per_family) != (EGOS, PER_FAMILY):
        sys.stderr.write(f"note: --egos and --per-family choose a list; this study has one already: {listed}\n")
    again = f"memarena latency run … --out {out}"
    with going_on(again):
        done = run_study(plan, run_request)
    for phase in done:
        sys.stderr.write(f"{phase.folder}: {_told(phase.outcome)}\n")
    worst = done[-1].outcome
    if worst.reason == "completed":
        sys.stderr.write(f"tables: memarena latency report {out}\n")
    _leave(worst, again)


@app.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="STUDY…", help="Folders of studies, or of runs.")],
    output: FormatOption = "table",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the study's data files, tables and figures there, too.")
    ] = None,
    fit_backend: Annotated[str, typer.Option(help="Backends whose samples make the fits.")] = ",".join(FIT_BACKENDS),
) -> None:
    """Fits, composed totals, cost of questions and of ingest, from the logs of a study."""
    _check_format(output)
    folders = [folder for study in runs for folder in run_dirs(study)]
    found = study_runs(folders, fit_backends=words(fit_backend))
    document = study_document(found)
    if out is not None:
        write_study(found, read_samples_of(folders), document, out)
        sys.stderr.write(f"files of the study in {out}\n")
    _emit(found, document, output)


@app.command("growth")
def growth(
    runs: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run made by this command before: only its tables.")
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Data set folder.")] = None,
    backend: Annotated[str, typer.Option(help="Backends, separated by commas.")] = "bm25,memsearch,memobase",
    out: Annotated[Path | None, typer.Option(help="Folder of the run to make.")] = None,
    days: Annotated[str, typer.Option(help="Days of history after which Search is timed.")] = ",".join(map(str, DAYS)),
    ego: Annotated[
        str | None, typer.Option(help="Whose history; default: the ego with most questions. One run, one ego.")
    ] = None,
    searches: Annotated[int, typer.Option(help="Searches after each of those days.")] = 130,
    reader: Annotated[str, typer.Option(help="Reader for memories that extract facts with it.")] = "extractive",
    model: ModelOption = None,
    embedder: EmbedderOption = None,
    embedder_model: EmbedderModelOption = None,
    extractor: ExtractorOption = None,
    extractor_model: ExtractorModelOption = None,
    meter: Annotated[str, typer.Option(help="Meters, separated by commas; see memarena run.")] = "auto",
    gateway_port: GatewayPortOption = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PID|FOLDER",
            help="A server beside the backends, by process or by the folder of its control group; repeatable.",
        ),
    ] = None,
    beside_disk: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FOLDER", help="Where such a server keeps its data; repeatable.")
    ] = None,
    output: FormatOption = "table",
    files: Annotated[Path | None, typer.Option(metavar="DIR", help="Write data, table and figure there, too.")] = None,
) -> None:
    """Search, memory and disk of memories after 1, 5, 10, 15 days of history.

    MEMARENA_CELL_TOKEN is the key that a memory's own server sends to the gateway, as with memarena run.
    """
    _check_format(output)
    outcome = None
    if runs is None:
        if dataset is None or out is None:
            raise LatencyError("expected a RUN to tell of, or --dataset and --out to make one")
        config = growth_config(
            dataset.absolute(),
            words(backend),
            days=day_numbers(days),
            ego=ego,
            searches=searches,
            reader={"spec": reader, "model": model},
            embedder=_helper(embedder, embedder_model, "embedder"),
            extractor=_helper(extractor, extractor_model, "extractor"),
            meters=words(meter),
            gateway_port=gateway_port or 0,
        )
        watched = servers(beside or [], beside_disk or [])
        request = RunRequest(
            out=out,
            config=config,
            reader_api_key=os.environ.get("MEMARENA_READER_API_KEY"),
            cell_token=cell_token(),
            scoring_files=SCORING_FILES,
        )
        with going_on(f"memarena latency growth … --out {out}"):
            outcome = run_request(request, WatchingDisplay(ProgressDisplay(), watched, config.search_days, out))
        if outcome.reason == "interrupted":
            _leave(outcome, f"memarena run --out {out} --resume")
        runs = out
    found = read_growth(runs)
    document = growth_document(found)
    if files is not None:
        write_growth(found, document, files)
        sys.stderr.write(f"files in {files}\n")
    _emit(found, document, output)
    if outcome is not None:
        _leave(outcome, f"memarena run --out {out} --resume")


def _emit(found: Study | Growth, document: Document, output: str) -> None:
    if output == "json":
        sys.stdout.write(found.model_dump_json(indent=2) + "\n")
    elif output == "md":
        sys.stdout.write(to_markdown(document))
    else:
        print_document(document)


def _check_format(output: str) -> None:
    if output not in _FORMATS:
        raise LatencyError(f"--format {output}: expected one of {', '.join(_FORMATS)}")


def _helper(spec: str | None, model: str | None, role: str) -> dict[str, object] | None:
    if spec is None and model is not None:
        raise LatencyError(f"--{role}-model {model}: names a model behind --{role} URL, which is missing")
    return None if spec is None else {"spec": spec, "model": model}


@contextmanager
def going_on(again: str) -> Iterator[None]:
    """SIGTERM and Ctrl-C end a command with 130 and the way to go on, also where no run is under way just then."""
    try:
        with sigterm_as_interrupt():
            yield
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted; go on with: {again}\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _told(outcome: RunOutcome) -> str:
    return f"{outcome.reason}: {outcome.left} questions left" if outcome.left else outcome.reason


def _leave(outcome: RunOutcome, again: str) -> None:
    """Exit with the code of a run that is not done; say how to go on."""
    if outcome.reason == "completed":
        return
    sys.stderr.write(f"go on with: {again}\n")
    raise typer.Exit(EXIT_INTERRUPTED if outcome.reason == "interrupted" else EXIT_INCOMPLETE)
