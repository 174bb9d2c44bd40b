"""Reads the progress of a run from its log: finished and open questions, and the state of each namespace.

A resumed run goes on from it; a run in progress updates it with each attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memarena.execution.errors import RunError
from memarena.log.records import NON_ANSWERS, AnyRecord, Manifest, NonAnswer, Question, QuestionAsked, RunStarted
from memarena.log.store import read_records

MANY_NON_ANSWERS = 0.05
"""Share of a cell's answers without content above which they are reported at once."""
# The kinds of records that progress depends on; the log holds many others.
_KINDS = ("run_started", "question", "asked", "namespace", "ingest")


@dataclass
class EgoProgress:
    """The progress of one ego in one cell."""

    attempt: int | None = None
    """Number of the namespace in use, counted from 0; None before the first."""
    last_day: int | None = None
    """Last day that this namespace has committed; None before the first."""
    horizon_reached: bool = False
    """Whether a namespace of this ego has ingested all days of the world."""
    gone: bool = False
    """Whether the backend failed for the rest of this ego, so that no more days can be ingested."""


@dataclass
class CellProgress:
    """The progress of one cell. Questions are named by the ids of their instances."""

    finished: set[str] = field(default_factory=set)
    """Questions that need not be asked again."""
    answered: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    """Questions whose prompt the reader did not understand."""
    non_answers: dict[str, NonAnswer] = field(default_factory=dict)
    """Reason by question, for answers that say nothing."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Number of attempts so far, by question."""
    egos: dict[str, EgoProgress] = field(default_factory=dict)

    def ego(self, name: str) -> EgoProgress:
        """Return the progress of an ego; a new one if it has none."""
        return self.egos.setdefault(name, EgoProgress())

    def note(self, attempt: QuestionAsked) -> None:
        """Count an attempt at a question."""
        instance_id = attempt.instance_id
        self.attempts[instance_id] = attempt.attempt + 1
        # The last attempt decides: a question asked again may be open again.
        if attempt.status == "infra_failed" or attempt.lost:
            self.finished.discard(instance_id)
            return
        self.finished.add(instance_id)
        if attempt.status == "answered":
            self.answered.add(instance_id)
            if attempt.answer is not None and attempt.answer.non_answer:
                self.non_answers[instance_id] = attempt.answer.non_answer
        if attempt.status == "reader_not_applicable":
            self.unread.add(instance_id)


@dataclass
class RunProgress:
    """The progress of a run according to its log."""

    manifest: Manifest
    questions: tuple[Question, ...]
    cells: dict[str, CellProgress]

    def wholly_failed(self) -> tuple[str, ...]:
        """Return the cells in which the backend failed every question."""
        return tuple(
            cell_id
            for cell_id, cell in self.cells.items()
            if self.questions and cell.finished and not cell.answered and not cell.unread
        )

    def unread(self) -> tuple[str, ...]:
        """Return the cells with questions whose prompt the reader did not understand."""
        return tuple(cell_id for cell_id, cell in self.cells.items() if cell.unread)

    def saying_nothing(self) -> tuple[str, ...]:
        """Return a line for each cell with a share of non-answers above :data:`MANY_NON_ANSWERS`, with the reasons."""
        lines = []
        for cell_id, cell in self.cells.items():
            if len(cell.non_answers) > MANY_NON_ANSWERS * len(cell.answered):
                counts = Counter(cell.non_answers.values())
                reasons = ", ".join(f"{count} {NON_ANSWERS[reason]}" for reason, count in counts.most_common())
                lines.append(f"{cell_id}: {len(cell.non_answers)} of {len(cell.answered)} answers: {reasons}")
        return tuple(lines)

    def open_questions(self) -> int:
        """Return how many questions of all cells are still open."""
        return sum(
            1
            for cell in self.manifest.cells
            for q in self.questions
            if q.instance.instance_id not in self.cells[cell.cell_id].finished
        )


def read_progress(run_dir: Path) -> RunProgress:
    """Read the progress of the run in a folder. Raises RunError if its log has no beginning, LogError without a log."""
    return progress_of(read_records(run_dir, *_KINDS), run_dir)


def progress_of(records: Iterable[AnyRecord], run_dir: Path) -> RunProgress:
    """Return the progress from records in the order in which they were written."""
    progress: RunProgress | None = None
    questions: list[Question] = []
    for record in records:
        if isinstance(record, RunStarted):
            cells = {c.cell_id: CellProgress() for c in record.manifest.cells}
            progress = RunProgress(record.manifest, (), cells)
            continue
        if progress is None:
            break
        if record.kind == "question":
            questions.append(record)
        elif record.kind == "namespace":
            ego = progress.cells[record.cell_id].ego(record.ego)
            ego.attempt, ego.last_day = record.attempt, None
        elif record.kind == "ingest" and record.code == "OK":
            ego = progress.cells[record.cell_id].ego(record.ego)
            ego.last_day = record.day
            ego.horizon_reached |= record.day == progress.manifest.dataset.day_count - 1
        elif record.kind == "asked":
            cell = progress.cells[record.cell_id]
            # Failed without a Search: it was recorded without being asked, since the backend was gone.
            cell.ego(record.ego).gone |= record.status == "backend_failed" and record.search is None
            cell.note(record)
    if progress is None:
        raise RunError(f"{run_dir}: the log does not begin with run_started; start again with another --out")
    progress.questions = tuple(questions)
    return progress
