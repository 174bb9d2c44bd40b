"""``memarena demo``: eighteen questions to three memories, read by a real LLM on the CPU, at an edge budget."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from memarena.cli import scores
from memarena.cli.data_files import SCORING_FILES
from memarena.cli.run import EDGE_ANSWER_TOKENS, EDGE_CONTEXT_TOKENS, finish, read_ids, run_request
from memarena.run.config import ReaderConfig, RunConfig
from memarena.run.errors import RunError
from memarena.run.request import RunRequest

BACKENDS = ("bm25", "vanilla", "oracle")


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("runs/demo"),
    dataset: Annotated[Path, typer.Option(help="Data set to ask about.")] = Path("tests/data/example"),
    questions: Annotated[Path, typer.Option(help="File with the instance ids to ask.")] = Path(
        "tests/data/demo_questions.txt"
    ),
) -> None:
    """Run the demonstration: about three minutes on two cores. Every run gets a folder of its own."""
    config = RunConfig(
        dataset=dataset,
        backends=BACKENDS,
        readers=(ReaderConfig(spec="embedded"),),
        question_ids=tuple(read_ids(questions)),
        max_context_tokens=EDGE_CONTEXT_TOKENS,
        max_answer_tokens=EDGE_ANSWER_TOKENS,
    )
    folder = _fresh(out)
    sys.stderr.write(
        f"{len(config.question_ids)} questions × {', '.join(BACKENDS)} × embedded reader, "
        f"{EDGE_CONTEXT_TOKENS} context tokens, {EDGE_ANSWER_TOKENS} answer tokens\n"
    )
    outcome = run_request(RunRequest(out=folder, config=config, scoring_files=SCORING_FILES))
    if outcome.reason == "completed":
        scores.report([folder])
    finish(outcome, folder)


def _fresh(out: Path) -> Path:
    """The folder itself if it is free, else the first free one with a number; nothing is ever overwritten."""
    for number in range(1, 10_000):
        folder = out if number == 1 else out.with_name(f"{out.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"--out {out}: no free folder beside it")
