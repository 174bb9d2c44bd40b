"""Checks a log against its data set: questions with their gold, evidence, sources of items.

``verify --dataset`` uses it: a bundle does not contain the data set, so a log alone cannot show that its gold is right.
"""

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
    """Yield how a log differs from the data set in ``folder``, a line for the first difference of each kind.

    Raises :class:`memarena_dataset.errors.DatasetError` if the folder is not a data set.
    """
    with open_dataset(folder) as dataset:
        logged_sha256 = facts.run.manifest.dataset.sha256
        if dataset.sha256 != logged_sha256:
            sha256 = dataset.sha256
            yield f"the log was made with another data set: its SHA-256 is {logged_sha256}, that of {folder} {sha256}"
            return
        yield from _questions(facts, dataset, folder)
        yield from _evidence(log_folder, dataset, facts)
        if (line := next(_sources(log_folder, dataset), None)) is not None:
            yield line


def _questions(facts: Facts, dataset: Dataset, folder: Path) -> Iterator[str]:
    """Check that the questions are those that the run's settings select, each as in the data set."""
    config = RunConfig.model_validate_json(facts.run.manifest.config_json).model_copy(update={"dataset": folder})
    chosen_questions = {
        q.instance.instance_id: q for q in choose_questions(config, dataset, facts.run.manifest.order_seed)
    }
    for name in sorted({*chosen_questions, *facts.run.questions}):
        if name not in facts.run.questions:
            yield f"{name} is among the questions that the run's settings choose and not in the log"
            return
        if name not in chosen_questions:
            yield f"{name} is in the log and not among the questions that the run's settings choose"
            return
        if facts.run.questions[name] != chosen_questions[name]:
            yield f"{name}: question or gold is not that of the data set"
            return


def _evidence(log_folder: Path, dataset: Dataset, facts: Facts) -> Iterator[str]:
    there = {text.session.session_id: text for text in evidence_texts(dataset, facts.run.questions.values())}
    texts = [text for text in read_records(log_folder, "evidence") if isinstance(text, EvidenceText)]
    for text in texts:
        if there.get(text.session.session_id) != text:
            yield f"evidence {text.session.session_id}: is not that of the data set"
            return
    if len(texts) != len(there):
        yield f"{len(texts)} evidence sessions are in the log, expected {len(there)}"


def _sources(log_folder: Path, dataset: Dataset) -> Iterator[str]:
    """Check that the backend had ingested the sessions that items name when the question was asked."""
    days = cache(lambda ego: {s: d for d in range(dataset.day_count) for s in dataset.corpus.day_session_ids(ego, d)})
    for attempt in read_records(log_folder, "asked"):
        if not isinstance(attempt, QuestionAsked):
            continue
        items = (*(attempt.search.items if attempt.search else ()), *(attempt.answer.items if attempt.answer else ()))
        for session_id in {session_id for item in items for session_id in item.session_ids}:
            if (day := days(attempt.ego).get(session_id)) is None or day > attempt.day:
                origin = "no session of this life" if day is None else f"of day {day}, asked after day {attempt.day}"
                yield f"{attempt.cell_id}: {attempt.instance_id}: an item names session {session_id}, {origin}"
