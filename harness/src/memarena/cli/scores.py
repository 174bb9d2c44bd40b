"""``memarena score`` and ``report``: read runs' logs, compute, print or write. Nothing here writes to a log."""

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
    """What of a report is shown."""

    full: bool = False
    tables: tuple[str, ...] = ()
    """Only these, by name; empty: the summary, or with ``full`` all."""
    names_only: bool = False
    small: bool = False
    """Also shares of fewer than :data:`FEWEST_QUESTIONS` questions."""


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
    """Report runs in a format, to a file or standard output. Raises ScoringError if one is given twice.

    A folder of a sweep stands for a run of each of its worlds.
    """
    found = _inputs(runs, name, traces=output == "html")
    _write_reported(found, output, out, published=published, calibrations=calibrations, shown=shown)


def _inputs(runs: Sequence[Path], name: str, *, traces: bool = False) -> list[ReportInput]:
    """What a report of the runs is made of. Raises ScoringError if one is given twice."""
    found: dict[str, ReportInput] = {}
    given: dict[str, Path] = {}
    sources = [source for run in runs for source in run_sources(run)]
    for source in sources:
        made = report_source(source, name, traces=traces, runs=len(sources))
        run_id = made.scores.run_id
        if run_id in found:
            raise ScoringError(f"report: run {run_id} is given twice, as {given[run_id]} and as {source.given}")
        found[run_id], given[run_id] = made, source.given
    return list(found.values())


def _write_items(runs: Sequence[Path], output: str, out: Path | None, name: str) -> None:
    found = _inputs(runs, name)
    if output == "json":
        records = [
            {
                "run_id": run.scores.run_id,
                "items": [each.model_dump(mode="json") for each in item_statistics(run.scores.rows, run.questions)],
            }
            for run in found
        ]
        _write(json.dumps({"runs": records}, indent=2, ensure_ascii=False) + "\n", out)
    else:
        _emit(items_document(found), output, out)


def _write_reported(
    found: Sequence[ReportInput],
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

        _write(to_html(found, published=published, calibrations=calibrations, least_questions=least), out)
    elif output == "json":
        _write(to_json(found, published=published, calibrations=calibrations), out)
    elif output == "table" and not (shown.full or shown.tables or shown.names_only or published or calibrations):
        with _place(out) as file:
            print_fitting(brief_candidates(found), MOST_LINES, file)
    else:
        document = report_document(found, published=published, calibrations=calibrations)
        document = without_small_cells(document, least)
        if shown.names_only:
            _write("".join(f"{part.anchor}\n" for part in document.sections if part.table), out)
        else:
            _emit(only_tables(document, shown.tables) if shown.tables else document, output, out)


def run_folder(run: Path) -> Path:
    """The folder of a run that was given as it, or as the log in it."""
    return run.parent if run.name == LOG_NAME and run.is_file() else run


@dataclass(frozen=True)
class RunSource:
    """A run as it is read: one log, or those of a sweep's cells over one world, joined under ``run_id``."""

    given: Path
    logs: tuple[Path, ...]
    run_id: str | None = None

    def reviews(self) -> list[Review]:
        """What people remarked on its answers. Raises LogError."""
        reviews: list[Review] = []
        for log in self.logs:
            if (own := reviews_of(log)) is not None:
                reviews += own.all()
                write_err("".join(f"warning: {fault}\n" for fault in own.faults))
        return reviews

    def people(self, judge: str) -> Iterator[LabelledSample]:
        """Samples that people labelled in ``annotations`` next to the log. Raises JudgeError."""
        for log in self.logs:
            if (own := labelled_sample(log, judge)) is not None:
                yield own

    def load(self) -> tuple[RunFacts, dict[str, Path]]:
        """Its facts, and the log of each cell."""
        parts = [load_facts(log) for log in self.logs]
        where = {cell.cell_id: log for log, part in zip(self.logs, parts, strict=True) for cell in part.manifest.cells}
        return (parts[0] if self.run_id is None else join_facts(parts, self.run_id)), where


def run_sources(run: Path) -> list[RunSource]:
    """The runs that a path stands for: itself, or one for each world of a sweep."""
    if not is_sweep(run):
        folder = run_folder(run)
        return [RunSource(run, (folder,))]
    worlds = swept_worlds(run, lambda line: echo(line, err=True))
    if left := missing(run):
        write_err(f"{run}: {len(left)} cells of this sweep are not sealed and left out: {', '.join(left[:3])}")
        write_err(", …\n" if len(left) > 3 else "\n")
    return [RunSource(run, world.runs, world.run_id) for world in worlds]


def report_run(run: Path, name: str = judging.JUDGE_NAME, *, traces: bool = False, runs: int = 1) -> ReportInput:
    """A run read, scored and traced; ``runs`` share the traces of a report."""
    return report_source(RunSource(run, (run,)), name, traces=traces, runs=runs)


def report_source(
    source: RunSource, name: str = judging.JUDGE_NAME, *, traces: bool = False, runs: int = 1
) -> ReportInput:
    """The same for a run that may be joined from several logs."""
    facts, where = source.load()
    scored = evaluate(facts, name)
    shown = _traces(where, facts, scored, runs, name) if traces else ()
    return report_input(facts, scored, shown, source.reviews(), source.people(name))


# ------------------------------------------------------------------ traces


def _traces(
    where: Mapping[str, Path], facts: RunFacts, scored: ScoredRun, runs: int, judge: str
) -> Iterator[QuestionView]:
    """The sampled questions of a page, with the texts that scoring does not keep; ``where``: the log of each cell."""
    chosen = sample_questions(scored.scores.rows, scored.questions, runs)
    made: dict[tuple[str, str], QuestionView] = {}
    for log in dict.fromkeys(where.values()):
        for view in views_of(log, facts, [score for score in chosen if where[score.cell_id] == log], judge):
            made[view.answers[0].cell_id, view.instance_id] = view
    yield from (made[score.cell_id, score.instance_id] for score in chosen)


def views_of(log: Path, facts: RunFacts, scores: Sequence[QuestionScore], judge: str) -> Iterator[QuestionView]:
    """The view of each question in one cell. Raises LogError."""
    records = answer_records(log, [(score.cell_id, score.instance_id) for score in scores])
    cells = {cell.cell_id: cell for cell in facts.manifest.cells}
    for score in scores:
        question, kept = facts.questions[score.instance_id], records[score.cell_id, score.instance_id]
        judged = kept.judged_with_rules(question, facts.evidence, judge)
        answer = answer_view(question, facts.evidence, cells[score.cell_id], score, kept.asked, kept.calls, judged)
        yield question_view(question, facts.evidence, [answer])


# ------------------------------------------------------------------ printing


def _emit(document: Document, output: str, out: Path | None) -> None:
    if output != "table":
        _write(to_markdown(document) if output == "md" else to_latex(document), out)
        return
    with _place(out) as file:
        print_document(document, file)


@contextmanager
def _place(out: Path | None) -> Iterator[TextIO | None]:
    """The file, or None for standard output."""
    if out is None:
        yield None
        return
    with _opened(out) as file:
        yield file


def _write(text: str, out: Path | None) -> None:
    if out is None:
        write_out(text)
        return
    with _opened(out) as file:
        file.write(text)


@contextmanager
def _opened(out: Path) -> Iterator[TextIO]:
    """The file that a report goes to. A report is written anew each time; a run's log is never taken for one."""
    if out.is_dir():
        raise ScoringError(f"--out {out}: expected a file, this is a folder")
    if out.name == LOG_NAME:
        raise ScoringError(f"--out {out}: this is the name of a run's log, which is never overwritten")
    try:
        # Closing writes too: a full disk shows there at the latest.
        with out.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise ScoringError(f"--out {out}: cannot be written: {error.strerror}") from error


def _check_format(output: str, known: Sequence[str]) -> None:
    if output not in known:
        raise ScoringError(f"--format {output}: expected one of {', '.join(known)}")
