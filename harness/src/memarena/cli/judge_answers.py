"""``memarena judge --answers``: judges a file of answers from anywhere against a data set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import write_err, write_out
from memarena_dataset.programs import EXIT_BAD_INPUT, EXIT_INCOMPLETE

from memarena.cli.judge_progress import JudgeProgress
from memarena.cli.judge_trust import say_what_it_took
from memarena.evaluation_of_answers import EvaluatedAnswers, as_lines, evaluate_answers, read_answers, scores_of
from memarena.judging import JudgeError
from memarena.judging.llm import AskedJudge
from memarena.report.tables.judge_error import rates_in_words

FORMATS = ("table", "json", "jsonl")


def judge_answers(answers: Path, dataset: list[Path], output: str, asked: AskedJudge | None) -> None:
    """Print a verdict for every usable row, and the scores; name the others on standard error.

    Ends with exit code 2 where a row cannot be used, else with 3 where a judge with a model gave no verdict on one.
    Raises JudgeError for a file, a format or a server that cannot be used, DatasetError for a data set that cannot be
    opened.
    """
    if output not in FORMATS:
        raise JudgeError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    if len(dataset) != 1:
        raise JudgeError(f"--answers: expected one --dataset with it, got {len(dataset)}")
    with open_dataset(dataset[0]) as opened:
        rows, bad = read_answers(answers, opened.instances, with_model=asked is not None)
        evaluated = evaluate_answers(opened, rows, asked, JudgeProgress())
    if output == "json":
        content = {"verdicts": [v.as_dict() for v in evaluated.verdicts], **scores_of(evaluated)}
        write_out(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    elif output == "jsonl":
        sys.stdout.writelines(f"{line}\n" for line in as_lines(evaluated))
    else:
        _print_table(evaluated)
    sys.stdout.flush()
    for row in sorted((*bad, *evaluated.unjudged), key=lambda row: row.line):
        write_err(f"{answers}: line {row.line}: {row.fault}\n")
    if asked is not None and evaluated.words is not None:
        say_what_it_took(asked.judge, evaluated.words)
    if bad:
        write_err(f"error: {len(bad)} of {len(bad) + len(rows)} rows could not be judged; the others were\n")
        raise typer.Exit(EXIT_BAD_INPUT)
    if evaluated.unjudged:
        raise typer.Exit(EXIT_INCOMPLETE)


def _print_table(evaluated: EvaluatedAnswers) -> None:
    for verdict in evaluated.verdicts:
        judgment, word = verdict.judgment, "right" if verdict.judgment.correct else "wrong"
        name = verdict.question.instance.instance_id
        write_out(f"{name}  {word}  {judgment.code.value}: {judgment.why}\n")
    write_out(f"{len(evaluated.verdicts)} of {evaluated.asked} questions answered\n")
    for name, score in evaluated.scores.items():
        write_out(f"{name:<4} {score.value:.3f}\n")
    write_out(f"judge {evaluated.judge} ({evaluated.judge_version[:12]})\n")
    if (error := evaluated.error) is not None:
        write_out(
            f"golds in text: {100 * error.observed:.1f}% of {error.answers} right as judged; given that "
            f"{rates_in_words(error)}, it may be {100 * error.corrected:.1f}% "
            f"({100 * error.low:.1f} to {100 * error.high:.1f}%)\n"
        )
