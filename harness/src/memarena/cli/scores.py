"""``memarena score`` and ``report``: read runs' logs, compute, print or write. Nothing here writes to a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from memarena import judge as judging
from memarena.log.records import EvidenceSession, GatewayCall, Question, QuestionAsked, Verdict
from memarena.log.store import LOG_NAME, read_records
from memarena.report.as_json import to_json
from memarena.report.calibration import Calibration, read_calibration
from memarena.report.document import report_document, score_document
from memarena.report.latex import to_latex
from memarena.report.layout import Document
from memarena.report.markdown import to_markdown
from memarena.report.published import PUBLISHED
from memarena.report.reported import ReportedRun, reported
from memarena.report.stories import Story, choose_stories, tell
from memarena.report.terminal import print_document
from memarena.scoring import RunFacts, ScoredRun, ScoringError, load_facts, score_run

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
    scored = score_facts(facts, run, name)
    if output == "json":
        _write(to_json([reported(facts, scored)]), None)
    else:
        _emit(score_document(scored.scores), output, None)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of one run or several.")],
    output: Annotated[str, typer.Option("--format", help="table, md, latex, html or json.")] = "table",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of printing.")] = None,
    against: Annotated[
        str | None, typer.Option(help="`published` sets the paper's cells beside ours, with what differs.")
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What `judge --calibrate --format json` printed, shown too; repeatable."),
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
    found: dict[str, ReportedRun] = {}
    for run in runs:
        made = report_run(run, name, stories=output == "html", runs=len(runs))
        if made.scores.run_id in found:
            first = runs[list(found).index(made.scores.run_id)]
            raise ScoringError(f"report: run {made.scores.run_id} is given twice, as {first} and as {run}")
        found[made.scores.run_id] = made
    _write_reported(list(found.values()), output, out, published=published, calibrations=calibrations)


def _write_reported(
    found: Sequence[ReportedRun],
    output: str,
    out: Path | None,
    *,
    published: bool,
    calibrations: Sequence[Calibration],
) -> None:
    if output == "html":
        from memarena.report.page import to_html  # noqa: PLC0415 (templates, which no other format has)

        _write(to_html(found, published=published, calibrations=calibrations), out)
    elif output == "json":
        _write(to_json(found, published=published, calibrations=calibrations), out)
    else:
        _emit(report_document(found, published=published, calibrations=calibrations), output, out)


def report_run(run: Path, name: str = judging.JUDGE_NAME, *, stories: bool = False, runs: int = 1) -> ReportedRun:
    """A run read, scored and told; ``runs`` share the stories of a report."""
    facts = load_facts(run)
    scored = score_facts(facts, run, name)
    return reported(facts, scored, _stories(run, facts, scored, runs) if stories else ())


def score_facts(facts: RunFacts, run: Path, name: str) -> ScoredRun:
    """Score a run by a judge. Raises ScoringError if no word of that judge is in the log, not even a failure."""
    if name == judging.JUDGE_NAME:
        attempts = (attempt.record for made in facts.attempts.values() for attempt in made)
        return score_run(facts, missing_verdicts(facts, attempts), name, _is_right)
    judges = sorted({v.judge for v in facts.verdicts} | {f.judge for f in facts.judging_failures})
    if name not in judges:
        there = ", ".join(judges) or "none"
        raise ScoringError(f"--judge {name}: no verdict by this judge in the log; there are: {there}")
    return score_run(facts, (), name, _is_right)


def missing_verdicts(facts: RunFacts, attempts: Iterable[QuestionAsked]) -> Iterator[Verdict]:
    """Verdicts of the value judge on attempts that have none in the log."""
    return judging.verdicts_to_add(facts.questions, facts.evidence, facts.verdicts, attempts)


def _is_right(question: Question, evidence: Sequence[EvidenceSession], answer: str) -> bool:
    return judging.judge_answer(question, evidence, answer).correct


# ------------------------------------------------------------------ stories


def _stories(run: Path, facts: RunFacts, scored: ScoredRun, runs: int) -> Iterator[Story]:
    """The sample of questions that a page tells, with the texts that scoring does not keep."""
    chosen = choose_stories(scored.scores.rows, scored.questions, runs)
    wanted = {(q.cell_id, q.instance_id) for _, q in chosen}
    asked: dict[tuple[str, str], list[QuestionAsked]] = {}
    calls: dict[tuple[str, str], list[GatewayCall]] = {}
    for cell_id in sorted({cell for cell, _ in wanted}):
        for record in read_records(run, "asked", "gateway_call", cell_id=cell_id):
            if record.kind == "asked" and (cell_id, record.instance_id) in wanted:
                asked.setdefault((cell_id, record.instance_id), []).append(record)
            elif record.kind == "gateway_call" and (cell_id, record.instance_id) in wanted:
                calls.setdefault((cell_id, record.instance_id or ""), []).append(record)
    for row, question in chosen:
        key = question.cell_id, question.instance_id
        verdicts = [v for v in facts.verdicts if (v.cell_id, v.instance_id) == key]
        wording = facts.questions[question.instance_id]
        yield tell(row, question, wording, facts.evidence, asked.get(key, ()), calls.get(key, ()), verdicts)


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
