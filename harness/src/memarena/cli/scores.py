"""``memarena score`` and ``report``: read runs' logs, compute, print or write. Nothing here writes to a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from memarena import judging
from memarena.evaluation import answer_records, evaluate, load_facts
from memarena.log.store import LOG_NAME
from memarena.report.document import report_document, score_document
from memarena.report.layout import Document
from memarena.report.paper.sections import PUBLISHED
from memarena.report.question_trace.sample import QuestionTrace, sample_questions, trace_question
from memarena.report.render.json import to_json
from memarena.report.render.latex import to_latex
from memarena.report.render.markdown import to_markdown
from memarena.report.render.terminal import print_document
from memarena.report.report_input import ReportInput, report_input
from memarena.report.tables.calibration import Calibration, read_calibration
from memarena.scoring import RunFacts, ScoredRun, ScoringError

FORMATS = ("table", "md", "latex", "html", "json")
SCORE_FORMATS = ("table", "md", "json")

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
JudgeOption = Annotated[str, typer.Option("--judge", help="Whose verdicts count; `value` needs no model.")]


def score(
    run: RunArgument,
    output: Annotated[str, typer.Option("--format", help="table, md or json.")] = "table",
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the dimension scores of a run. Missing verdicts are computed on the way and not written."""
    _check_format(output, SCORE_FORMATS)
    facts = load_facts(run)
    scored = evaluate(facts, name)
    if output == "json":
        _write(to_json([report_input(facts, scored)]), None)
    else:
        _emit(score_document(scored.scores), output, None)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of one run or several.")],
    output: Annotated[str, typer.Option("--format", help="table, md, latex, html or json.")] = "table",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of printing.")] = None,
    against: Annotated[
        str | None, typer.Option(help="`published` adds the paper's figures and how its protocol differs.")
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Output of `judge --calibrate --format json`, shown too; repeatable."),
    ] = None,
    name: JudgeOption = judging.JUDGE_NAME,
) -> None:
    """Print the whole report of one run or several. Works while a run goes on."""
    _check_format(output, FORMATS)
    if against not in (None, PUBLISHED):
        raise ScoringError(f"--against {against}: expected {PUBLISHED}; two runs are compared by `memarena compare`")
    calibrations = [read_calibration(path) for path in calibration or []]
    write_report(runs, output, out, name, published=against == PUBLISHED, calibrations=calibrations)


def write_report(
    runs: Sequence[Path],
    output: str,
    out: Path | None = None,
    name: str = judging.JUDGE_NAME,
    *,
    published: bool = False,
    calibrations: Sequence[Calibration] = (),
) -> None:
    """Report runs in a format, to a file or standard output. Raises ScoringError if one is given twice."""
    found: dict[str, ReportInput] = {}
    for run in runs:
        made = report_run(run, name, traces=output == "html", runs=len(runs))
        if made.scores.run_id in found:
            first = runs[list(found).index(made.scores.run_id)]
            raise ScoringError(f"report: run {made.scores.run_id} is given twice, as {first} and as {run}")
        found[made.scores.run_id] = made
    _write_reported(list(found.values()), output, out, published=published, calibrations=calibrations)


def _write_reported(
    found: Sequence[ReportInput],
    output: str,
    out: Path | None,
    *,
    published: bool,
    calibrations: Sequence[Calibration],
) -> None:
    if output == "html":
        from memarena.report.render.html import to_html  # noqa: PLC0415 (templates, which no other format has)

        _write(to_html(found, published=published, calibrations=calibrations), out)
    elif output == "json":
        _write(to_json(found, published=published, calibrations=calibrations), out)
    else:
        _emit(report_document(found, published=published, calibrations=calibrations), output, out)


def report_run(run: Path, name: str = judging.JUDGE_NAME, *, traces: bool = False, runs: int = 1) -> ReportInput:
    """A run read, scored and traced; ``runs`` share the traces of a report."""
    facts = load_facts(run)
    scored = evaluate(facts, name)
    return report_input(facts, scored, _traces(run, facts, scored, runs) if traces else ())


# ------------------------------------------------------------------ traces


def _traces(run: Path, facts: RunFacts, scored: ScoredRun, runs: int) -> Iterator[QuestionTrace]:
    """The sampled questions of a page, with the texts that scoring does not keep."""
    chosen = sample_questions(scored.scores.rows, scored.questions, runs)
    records = answer_records(run, ((q.cell_id, q.instance_id) for _, q in chosen))
    for row, question in chosen:
        key = question.cell_id, question.instance_id
        verdicts = [v for v in facts.verdicts if (v.cell_id, v.instance_id) == key]
        wording = facts.questions[question.instance_id]
        yield trace_question(row, question, wording, facts.evidence, records[key].asked, records[key].calls, verdicts)


# ------------------------------------------------------------------ printing


def _emit(document: Document, output: str, out: Path | None) -> None:
    if output != "table":
        _write(to_markdown(document) if output == "md" else to_latex(document), out)
    elif out is None:
        print_document(document)
    else:
        with _opened(out) as file:
            print_document(document, file)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
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
