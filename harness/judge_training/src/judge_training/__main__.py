"""Runs ``python -m judge_training train|evaluate|ablate MODEL``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from memarena.judging.linear_model import stored_model

from judge_training import abstention
from judge_training.evaluate import KEPT_FROM, ablation, evaluate
from judge_training.task import MODELS, Task
from judge_training.training import train

TASKS: Mapping[str, Task] = {task.name: task for task in (abstention.TASK,)}
"""The models that are trained here, by name."""


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m judge_training", description=__doc__)
    parser.add_argument("command", choices=("train", "evaluate", "ablate"))
    parser.add_argument("model", choices=sorted(TASKS))
    parser.add_argument("--wrong", action="store_true", help="with evaluate: print what was read wrongly")
    arguments = parser.parse_args()
    task = TASKS[arguments.model]
    if arguments.command == "train":
        _train(task)
    elif arguments.command == "evaluate":
        _evaluate(task, wrong=arguments.wrong)
    else:
        _ablate(task)
    return 0


def _train(task: Task) -> None:
    """Train a model, write its file and print its size and hash."""
    examples = task.examples()
    model = train(examples, task.settings)
    content = model.to_bytes()
    MODELS.mkdir(exist_ok=True)
    path = MODELS / f"{task.name}.npz"
    path.write_bytes(content)
    yes = sum(example.label for example in examples)
    _say(f"{task.name}: {yes} examples of yes, {len(examples) - yes} of no; {len(model.weights)} features;")
    _say(f"{path.name}: {len(content):,} bytes, sha256 {model.sha256[:12]}")


def _evaluate(task: Task, *, wrong: bool) -> None:
    _say(f"| set | {task.missed} | {task.taken} |\n| --- | --- | --- |")
    for rates in evaluate(task, stored_model(task.name)):
        _say(f"| {rates.name} | {rates.missed} | {rates.taken} |")
        for case in rates.wrong if wrong else ():
            _say(f"    {'yes' if case.label else 'no '} | {case.question} | {case.answer!r}")


def _ablate(task: Task) -> None:
    """Print the errors without each part, and whether the part stays."""
    all_parts, without = ablation(task)
    names = [rates.name for rates in all_parts]
    _say("| left out | " + " | ".join(names) + " | stays |\n| --- |" + " --- |" * (len(names) + 1))
    _say("| nothing | " + " | ".join(f"{rates.share:.1%}" for rates in all_parts) + " | |")
    for name, rates_without in without.items():
        worse = [rates.share - full.share for rates, full in zip(rates_without, all_parts, strict=True)]
        stays = "yes" if max(worse) > KEPT_FROM else "no"
        _say(f"| {name} | " + " | ".join(f"{rates.share:.1%}" for rates in rates_without) + f" | {stays} |")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
