"""``memarena score`` and ``report``: score runs from their logs and write reports; logs are only read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

import typer
from memarena_dataset.printing import echo, write_err, write_out

from memarena import judging
from memarena.cli.completion import one_of, report_tables
from memarena.cli.people import labelled_sample
from memarena.evaluation import answer_records, evaluate, load_facts
from memarena.log.reviews import Review, reviews_of
from memarena.log.store import LOG_NAME
from memarena.report.brief import MOST_LINES, brief_candidates
from memarena.report.brief_rows import FEWEST_QUESTIONS
from memarena.report.document import report_document, score_document
from memarena.report.layout import Document
from memarena.report.paper.sections import PUBLISHED
from memarena.report.parts import only_tables, without_small_cells
from memarena.report.people import LabelledSample
from memarena.report.question_view.making import answer_view, question_view
from memarena.report.question_view.records import QuestionView
from memarena.report.question_view.sample import sample_questions
from memarena.report.render.json import to_json
from memarena.report.render.latex import to_latex
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document, print_fitting
from memarena.report.report_input import ReportInput, report_input
from memarena.report.tables.calibration import Calibration, read_calibration
from memarena.report.tables.items import items_document
from memarena.scoring.errors import ScoringError
from memarena.scoring.items import item_statistics
from memarena.scoring.joining import join_facts
from memarena.scoring.results import QuestionScore
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.sweep.results import is_sweep, missing, swept_worlds

FORMATS = ("table", "md", "latex", "html", "json")
SCORE_FORMATS = ("table", "md", "json")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
JudgeOption = Annotated[str, typer.Option("--judge", help="Whose verdicts count; `value` needs no model.")]


def score(
    run: RunArgument,
    output: Annotated[
        str, typer.Option("--format", help="table, md or json.", autocompletion=one_of(SCORE_FORMATS))
    ] = "table",
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the dimension scores of a run. Missing verdicts are computed on the way and not written."""
    _check_format(output, SCORE_FORMATS)
    source = RunSource(run, (run_folder(run),))
    facts, _ = source.load()
    scored = evaluate(facts, name)
    if output == "json":
        _write(to_json([report_input(facts, scored, reviews=source.reviews(), people=source.people(name))]), None)
    else:
        _emit(score_document(scored.scores), output, None)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of one run or several.")],
    output: Annotated[
        str, typer.Option("--format", help="table, md, latex, html or json.", autocompletion=one_of(FORMATS))
    ] = "table",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of printing.")] = None,
    against: Annotated[
        str | None, typer.Option(help="`published` adds the paper's figures and how its protocol differs.")
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Output of `judge --calibrate --format json`, shown too; repeatable."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Every table, not the summary alone.")] = False,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Only this table, whole; repeatable. Names: --list-tables.",
            autocompletion=report_tables,
        ),
    ] = None,
    list_tables: Annotated[bool, typer.Option("--list-tables", help="Name the tables that this report has.")] = False,
    small: Annotated[
        bool, typer.Option("--small", help=f"Also shares that rest on fewer than {FEWEST_QUESTIONS} questions.")
    ] = False,
    items: Annotated[
        bool, typer.Option("--items", help="Item statistics alone: difficulty, discrimination, reliability.")
    ] = False,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the summary of one run or several; --full prints every table. Works while a run goes on.

    On a terminal the summary takes at most 50 lines. The other forms hold
    everything; of md and latex, --table takes a part.

    Examples:
      memarena report runs/first
      memarena report runs/first --format html --out report.html
      memarena report runs/first --list-tables
    """
    _check_format(output, FORMATS)
    if (tables or list_tables) and output in ("html", "json"):
        raise ScoringError(f"--{'table' if tables else 'list-tables'}: goes with --format table, md or latex")
    if against not in (None, PUBLISHED):
        raise ScoringError(f"--against {against}: expected {PUBLISHED}; two runs are compared by `memarena compare`")
    if items:
        if tables or list_tables or full or against or calibration or output in ("html", "latex"):
            raise ScoringError("--items: goes with --format table, md or json, and with no other table")
        _write_items(runs, output, out, name)
        return
    calibrations = [read_calibration(path) for path in calibration or []]
    shown = Shown(full=full, tables=tuple(tables or ()), names_only=list_tables, small=small)
    write_report(runs, output, out, name, published=against == PUBLISHED, calibrations=calibrations, shown=shown)


@dataclass(frozen=True)
class Shown:
    """Parts of a report to print."""

    full: bool = False
    tables: tuple[str, ...] = ()
    """Keys of the tables to print; empty: the summary, or with ``full`` all tables."""
    names_only: bool = False
    small: bool = False
    """Whether to print shares of fewer than :data:`FEWEST_QUESTIONS` questions too."""


def write_report(
    runs: Sequence[Path],
    output: str,
    out: Path | None = None,
    name: str = judging.JUDGE_NAME,
    *,
    published: bool = False,
    calibrations: Sequence[Calibration] = (),
    shown: Shown = Shown(),
) -> None:
    """Write a report of runs in a format, to a file or standard output. Raises ScoringError for a run given twice.

    The folder of a sweep stands for one run for each of its worlds.
    """
    inputs = _inputs(runs, name, traces=output == "html")
    _write_reported(inputs, output, out, published=published, calibrations=calibrations, shown=shown)


def _inputs(runs: Sequence[Path], name: str, *, traces: bool = False) -> list[ReportInput]:
    """Read and score the runs of a report. Raises ScoringError for a run given twice."""
    inputs: dict[str, ReportInput] = {}
    paths: dict[str, Path] = {}
    sources = [source for run in runs for source in run_sources(run)]
    for source in sources:
        report = report_source(source, name, traces=traces, runs=len(sources))
        run_id = report.scores.run_id
        if run_id in inputs:
            raise ScoringError(f"report: run {run_id} is given twice, as {paths[run_id]} and as {source.path}")
        inputs[run_id], paths[run_id] = report, source.path
    return list(inputs.values())


def _write_items(runs: Sequence[Path], output: str, out: Path | None, name: str) -> None:
    inputs = _inputs(runs, name)
    if output == "json":
        records = [
            {
                "run_id": run.scores.run_id,
                "items": [item.model_dump(mode="json") for item in item_statistics(run.scores.rows, run.questions)],
            }
            for run in inputs
        ]
        _write(json.dumps({"runs": records}, indent=2, ensure_ascii=False) + "\n", out)
    else:
        _emit(items_document(inputs), output, out)


def _write_reported(
    inputs: Sequence[ReportInput],
    output: str,
    out: Path | None,
    *,
    published: bool,
    calibrations: Sequence[Calibration],
    shown: Shown,
) -> None:
    least = 0 if shown.small else FEWEST_QUESTIONS
    if output == "html":
        from memarena.report.render.html import to_html  # noqa: PLC0415 (templates, which no other format has)

        _write(to_html(inputs, published=published, calibrations=calibrations, least_questions=least), out)
    elif output == "json":
        _write(to_json(inputs, published=published, calibrations=calibrations), out)
    elif output == "table" and not (shown.full or shown.tables or shown.names_only or published or calibrations):
        with _file_or_stdout(out) as file:
            print_fitting(brief_candidates(inputs), MOST_LINES, file)
    else:
        document = report_document(inputs, published=published, calibrations=calibrations)
        document = without_small_cells(document, least)
        if shown.names_only:
            _write("".join(f"{part.anchor}\n" for part in document.sections if part.table), out)
        else:
            _emit(only_tables(document, shown.tables) if shown.tables else document, output, out)


def run_folder(run: Path) -> Path:
    """Return the folder of a run that was named by its folder or its log."""
    return run.parent if run.name == LOG_NAME and run.is_file() else run


@dataclass(frozen=True)
class RunSource:
    """The logs of a run: one, or those of a sweep's cells over one world, joined under ``run_id``."""

    path: Path
    logs: tuple[Path, ...]
    run_id: str | None = None

    def reviews(self) -> list[Review]:
        """Return the reviews of its answers. Raises LogError."""
        reviews: list[Review] = []
        for log in self.logs:
            if (log_reviews := reviews_of(log)) is not None:
                reviews += log_reviews.all()
                write_err("".join(f"warning: {fault}\n" for fault in log_reviews.faults))
        return reviews

    def people(self, judge: str) -> Iterator[LabelledSample]:
        """Return the samples that people labelled, from ``annotations`` next to each log. Raises JudgeError."""
        for log in self.logs:
            if (sample := labelled_sample(log, judge)) is not None:
                yield sample

    def load(self) -> tuple[RunFacts, dict[str, Path]]:
        """Return the run's facts, and by cell id the folder of its log."""
        parts = [load_facts(log) for log in self.logs]
        where = {cell.cell_id: log for log, part in zip(self.logs, parts, strict=True) for cell in part.manifest.cells}
        return (parts[0] if self.run_id is None else join_facts(parts, self.run_id)), where


def run_sources(run: Path) -> list[RunSource]:
    """Return the runs that a path stands for: one, or one for each world of a sweep."""
    if not is_sweep(run):
        folder = run_folder(run)
        return [RunSource(run, (folder,))]
    worlds = swept_worlds(run, lambda line: echo(line, err=True))
    if unsealed := missing(run):
        write_err(f"{run}: {len(unsealed)} cells of this sweep are not sealed and left out: {', '.join(unsealed[:3])}")
        write_err(", …\n" if len(unsealed) > 3 else "\n")
    return [RunSource(run, world.runs, world.run_id) for world in worlds]


def report_run(run: Path, name: str = judging.JUDGE_NAME, *, traces: bool = False, runs: int = 1) -> ReportInput:
    """Read and score a run for a report; ``traces``: of sampled questions, shared by the ``runs`` of the report."""
    return report_source(RunSource(run, (run,)), name, traces=traces, runs=runs)


def report_source(
    source: RunSource, name: str = judging.JUDGE_NAME, *, traces: bool = False, runs: int = 1
) -> ReportInput:
    """Read and score a run that may have several logs; arguments as for the run of one log."""
    facts, where = source.load()
    scored = evaluate(facts, name)
    shown = _traces(where, facts, scored, runs, name) if traces else ()
    return report_input(facts, scored, shown, source.reviews(), source.people(name))


# ------------------------------------------------------------------ traces


def _traces(
    where: Mapping[str, Path], facts: RunFacts, scored: ScoredRun, runs: int, judge: str
) -> Iterator[QuestionView]:
    """Yield the traces of sampled questions, whose texts are read again from the logs; ``where``: log by cell id."""
    sample = sample_questions(scored.scores.rows, scored.questions, runs)
    views: dict[tuple[str, str], QuestionView] = {}
    for log in dict.fromkeys(where.values()):
        for view in views_of(log, facts, [score for score in sample if where[score.cell_id] == log], judge):
            views[view.answers[0].cell_id, view.instance_id] = view
    yield from (views[score.cell_id, score.instance_id] for score in sample)


def views_of(log: Path, facts: RunFacts, scores: Sequence[QuestionScore], judge: str) -> Iterator[QuestionView]:
    """Yield for each score the view of its question in its cell. Raises LogError."""
    records = answer_records(log, [(score.cell_id, score.instance_id) for score in scores])
    cells = {cell.cell_id: cell for cell in facts.manifest.cells}
    for score in scores:
        question, attempts = facts.questions[score.instance_id], records[score.cell_id, score.instance_id]
        judged = attempts.judged_with_rules(question, facts.evidence, judge)
        answer = answer_view(
            question, facts.evidence, cells[score.cell_id], score, attempts.asked, attempts.calls, judged
        )
        yield question_view(question, facts.evidence, [answer])


# ------------------------------------------------------------------ printing


def _emit(document: Document, output: str, out: Path | None) -> None:
    if output != "table":
        _write(to_markdown(document) if output == "md" else to_latex(document), out)
        return
    with _file_or_stdout(out) as file:
        print_document(document, file)


@contextmanager
def _file_or_stdout(out: Path | None) -> Iterator[TextIO | None]:
    """Yield the file to write to, or None for standard output."""
    if out is None:
        yield None
        return
    with _report_file(out) as file:
        yield file


def _write(text: str, out: Path | None) -> None:
    if out is None:
        write_out(text)
        return
    with _report_file(out) as file:
        file.write(text)


@contextmanager
def _report_file(out: Path) -> Iterator[TextIO]:
    """Open the file of a report to overwrite it. Raises ScoringError for a folder or a run's log, or if it cannot."""
    if out.is_dir():
        raise ScoringError(f"--out {out}: expected a file, this is a folder")
    if out.name == LOG_NAME:
        raise ScoringError(f"--out {out}: this is the name of a run's log, which is never overwritten")
    try:
        # Closing writes too, and may be where a full disk shows, so it is in the try block.
        with out.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise ScoringError(f"--out {out}: cannot be written: {error.strerror}") from error


def _check_format(output: str, known: Sequence[str]) -> None:
    if output not in known:
        raise ScoringError(f"--format {output}: expected one of {', '.join(known)}")
