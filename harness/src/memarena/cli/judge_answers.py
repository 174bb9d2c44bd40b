"""``memarena judge --answers``: judges a file of answers from anywhere against a data set."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import write_err, write_out

from memarena.cli.errors import EXIT_BAD_INPUT
from memarena.evaluation_of_answers import EvaluatedAnswers, as_lines, evaluate_answers, read_answers, scores_of
from memarena.judging import JudgeError

FORMATS = ("table", "json", "jsonl")


def judge_answers(answers: Path, dataset: list[Path], output: str) -> None:
    """Print a verdict for every usable row, and the scores; name the others on standard error and exit with 2.

    Raises JudgeError for a file or a format that cannot be used, DatasetError for a data set that cannot be opened.
    """
    if output not in FORMATS:
        raise JudgeError(f"--format {output}: expected one of {', '.join(FORMATS)}")
    if len(dataset) != 1:
        raise JudgeError(f"--answers: expected one --dataset beside it, found {len(dataset)}")
    with open_dataset(dataset[0]) as opened:
        rows, bad = read_answers(answers, opened.instances)
        evaluated = evaluate_answers(opened, rows)
    if output == "json":
        whole = {"verdicts": [v.as_dict() for v in evaluated.verdicts], **scores_of(evaluated)}
        write_out(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
    elif output == "jsonl":
        sys.stdout.writelines(f"{line}\n" for line in as_lines(evaluated))
    else:
        _print_table(evaluated)
    sys.stdout.flush()
    for row in bad:
        write_err(f"{answers}: line {row.line}: {row.fault}\n")
    if bad:
        write_err(f"error: {len(bad)} of {len(bad) + len(rows)} rows could not be judged; the others were\n")
        raise typer.Exit(EXIT_BAD_INPUT)


def _print_table(evaluated: EvaluatedAnswers) -> None:
    for verdict in evaluated.verdicts:
        judgment, word = verdict.judgment, "right" if verdict.judgment.correct else "wrong"
        name = verdict.question.instance.instance_id
        write_out(f"{name}  {word}  {judgment.code.value}: {judgment.why}\n")
    write_out(f"{len(evaluated.verdicts)} of {evaluated.asked} questions answered\n")
    for name, score in evaluated.scores.items():
        write_out(f"{name:<4} {score.value:.3f}\n")
