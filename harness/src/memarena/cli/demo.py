"""``memarena demo``: a world made on the spot, eighteen questions to four memories, a real LLM on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.io.reading import open_dataset

from memarena.cli import scores
from memarena.cli.data_files import SCORING_FILES
from memarena.cli.demo_questions import choose_questions
from memarena.cli.demo_world import SEED, make_world
from memarena.cli.run import finish, run_request
from memarena.cli.run_config import EDGE_ANSWER_TOKENS, read_ids
from memarena.execution.errors import RunError
from memarena.execution.planning.config import HelperConfig, ReaderConfig, RunConfig
from memarena.execution.planning.request import RunRequest

BACKENDS = ("bm25", "memsearch", "vanilla", "oracle")
CONTEXT_TOKENS = 384
"""Less than the edge budget: reading prompts is most of the demonstration, which is to end within six minutes."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("runs/demo"),
    dataset: Annotated[Path | None, typer.Option(help="Data set to ask about; one is made if none is given.")] = None,
    questions: Annotated[
        Path | None, typer.Option(help="File with the instance ids to ask; two of each family if none is given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help=f"Seed of the world that is made ({SEED}).")] = None,
) -> None:
    """Run the demonstration: five to six minutes on two cores. Every run gets a folder of its own."""
    if dataset is not None and seed is not None:
        raise RunError("--seed: no world is made where --dataset is given")
    folder = _fresh(out)
    if dataset is None:
        dataset = _world_of(folder)
        make_world(dataset, SEED if seed is None else seed)
    if questions is not None:
        ids = tuple(read_ids(questions))
    else:
        with open_dataset(dataset) as opened:
            ids = choose_questions(opened.instances)
    config = RunConfig(
        dataset=dataset,
        backends=BACKENDS,
        readers=(ReaderConfig(spec="embedded"),),
        embedder=HelperConfig(spec="embedded"),
        question_ids=ids,
        max_context_tokens=CONTEXT_TOKENS,
        max_answer_tokens=EDGE_ANSWER_TOKENS,
    )
    sys.stderr.write(
        f"{dataset}: {len(config.question_ids)} questions × {', '.join(BACKENDS)} × embedded reader, "
        f"{CONTEXT_TOKENS} context tokens, {EDGE_ANSWER_TOKENS} answer tokens\n"
    )
    outcome = run_request(RunRequest(out=folder, config=config, scoring_files=SCORING_FILES))
    if outcome.reason == "completed":
        scores.report([folder])
        scores.write_report([folder], "html", folder / "report.html")
        sys.stderr.write(f"report with charts and question traces: {folder / 'report.html'}\n")
    finish(outcome, folder)


def _world_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-world")


def _fresh(out: Path) -> Path:
    """The folder if it and its world's are free, else the first free one with a number; nothing is overwritten."""
    for number in range(1, 10_000):
        folder = out if number == 1 else out.with_name(f"{out.name}-{number}")
        if not folder.exists() and not _world_of(folder).exists():
            return folder
    raise RunError(f"--out {out}: no free folder beside it")
