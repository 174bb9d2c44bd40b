"""Is what a log says of its data set in the data set? Questions with their gold, evidence, sources of items."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.plan import choose_questions
from memarena.execution.planning.questions import evidence_texts
from memarena.log.records import EvidenceText, QuestionAsked
from memarena.log.store import read_records
from memarena_dataset.io.reading import Dataset, open_dataset

from memarena_spark.bundle.derived import Facts


def gold_faults(facts: Facts, log_folder: Path, folder: Path) -> Iterator[str]:
    """What differs from the data set in ``folder``, a line for the first of each kind.

    Raises :class:`memarena_dataset.errors.DatasetError` where the folder is no data set.
    """
    with open_dataset(folder) as dataset:
        stated = facts.run.manifest.dataset.sha256
        if dataset.sha256 != stated:
            yield f"the log was made with another data set: its SHA-256 is {stated}, that of {folder} {dataset.sha256}"
            return
        yield from _questions(facts, dataset, folder)
        yield from _evidence(log_folder, dataset, facts)
        if (line := next(_sources(log_folder, dataset), None)) is not None:
            yield line


def _questions(facts: Facts, dataset: Dataset, folder: Path) -> Iterator[str]:
    """The questions that the run's settings choose, each as the data set has it."""
    config = RunConfig.model_validate_json(facts.run.manifest.config_json).model_copy(update={"dataset": folder})
    wanted = {q.instance.instance_id: q for q in choose_questions(config, dataset, facts.run.manifest.order_seed)}
    for name in sorted({*wanted, *facts.run.questions}):
        if name not in facts.run.questions:
            yield f"{name} is among the questions that the run's settings choose and not in the log"
            return
        if name not in wanted:
            yield f"{name} is in the log and not among the questions that the run's settings choose"
            return
        if facts.run.questions[name] != wanted[name]:
            yield f"{name}: question or gold is not that of the data set"
            return


def _evidence(log_folder: Path, dataset: Dataset, facts: Facts) -> Iterator[str]:
    there = {each.session.session_id: each for each in evidence_texts(dataset, facts.run.questions.values())}
    logged = [each for each in read_records(log_folder, "evidence") if isinstance(each, EvidenceText)]
    for each in logged:
        if there.get(each.session.session_id) != each:
            yield f"evidence {each.session.session_id}: is not that of the data set"
            return
    if len(logged) != len(there):
        yield f"{len(logged)} evidence sessions are in the log, expected {len(there)}"


def _sources(log_folder: Path, dataset: Dataset) -> Iterator[str]:
    """Sessions that items name are some that the backend had ingested when the question was asked."""
    days = cache(lambda ego: {s: d for d in range(dataset.day_count) for s in dataset.corpus.day_session_ids(ego, d)})
    for asked in read_records(log_folder, "asked"):
        if not isinstance(asked, QuestionAsked):
            continue
        items = (*(asked.search.items if asked.search else ()), *(asked.answer.items if asked.answer else ()))
        for session_id in {session_id for item in items for session_id in item.session_ids}:
            if (day := days(asked.ego).get(session_id)) is None or day > asked.day:
                what = "no session of this life" if day is None else f"of day {day}, asked after day {asked.day}"
                yield f"{asked.cell_id}: {asked.instance_id}: an item names session {session_id}, {what}"
