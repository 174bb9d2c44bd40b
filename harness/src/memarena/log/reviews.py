"""Stores people's reviews of single answers in ``reviews.jsonl`` next to a log, without changing the log.

A line is one person's review of one answer as a whole; of several on the same answer the last one counts. Reviews are
written by people who see the verdict, so they are never mixed with the blind labels of ``memarena annotate``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memarena.log.line_file import NAME_EXPECTED, LineFile, is_name
from memarena.log.store import LogError, read_records

REVIEWS_NAME = "reviews.jsonl"
LONGEST_NOTE = 4000
"""Most characters of a note."""


class Review(BaseModel):
    """One line of the file: a person's review of an answer. Without star, note and label it withdraws the review."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    review_version: Literal[1] = 1
    at: str
    """Time of the review, in UTC."""
    author: str
    run_id: str
    cell_id: str
    instance_id: str
    attempt: int
    """Which attempt at the question was reviewed, counted from 0: an answer that came later was not."""
    judge: str
    verdict: str | None
    """Decision of this judge when the review was written; None if there was none, as for a failed answer."""
    label: str | None = None
    """The verdict that the person thinks right, in the words of ``verdict``: correct, wrong, or in D6 a behaviour."""
    starred: bool = False
    note: str = Field(default="", max_length=LONGEST_NOTE)

    @property
    def is_empty(self) -> bool:
        """Whether it has no star, note or label, and so withdraws an earlier review."""
        return not (self.starred or self.note or self.label)

    @property
    def disputes(self) -> bool:
        """Whether the person thinks the verdict wrong."""
        return self.label is not None and self.label != self.verdict

    def same_as(self, other: Review) -> bool:
        """Whether both have the same content, apart from their time."""
        return self.model_copy(update={"at": other.at}) == other


AnswerKey = tuple[str, str]
"""(cell id, instance id) of an answer."""


class Reviews:
    """The reviews of a run. Raises LogError if the file cannot be read or written, or is of another run."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._file = LineFile(folder / REVIEWS_NAME)
        self._run_id = run_id
        self._history: dict[AnswerKey, list[Review]] = {}
        self.faults: list[str] = []
        """Invalid lines, a sentence for each."""
        self._refresh()

    def write(self, review: Review) -> bool:
        """Append a review, on disk on return; return False, and write nothing, if the current review is the same."""
        try:
            with self._file.appending() as append:
                self._refresh()
                standing = self._current_reviews(review.cell_id, review.instance_id).get(review.author)
                if (standing is None and review.is_empty) or (standing is not None and review.same_as(standing)):
                    return False
                append([review.model_dump_json()])
                self._refresh()
        except OSError as error:
            raise LogError(f"{self._file.path}: cannot be written: {error.strerror}") from error
        return True

    def of(self, cell_id: str, instance_id: str) -> tuple[Review, ...]:
        """Return the current reviews of an answer, one per author."""
        return tuple(review for review in self._current_reviews(cell_id, instance_id).values() if not review.is_empty)

    def history(self, cell_id: str, instance_id: str) -> tuple[Review, ...]:
        """Return all lines on an answer, oldest first."""
        return tuple(self._history.get((cell_id, instance_id), ()))

    def all(self) -> list[Review]:
        """Return the current reviews of all answers, in order of cell and question."""
        return [review for key in sorted(self._history) for review in self.of(*key)]

    def _current_reviews(self, cell_id: str, instance_id: str) -> dict[str, Review]:
        latest = {review.author: review for review in self._history.get((cell_id, instance_id), ())}
        return dict(sorted(latest.items()))

    def _refresh(self) -> None:
        try:
            lines = self._file.new_lines()
        except OSError as error:
            raise LogError(f"{self._file.path}: cannot be read: {error.strerror}") from error
        for number, line in lines:
            self._add(number, line)

    def _add(self, number: int, line: bytes) -> None:
        """Add a line's review to the history, or note that the line is invalid."""
        try:
            review = Review.model_validate_json(line)
        except ValidationError:
            self.faults.append(f"{self._file.path}: line {number} holds no review and is passed over")
            return
        if review.run_id != self._run_id:
            raise LogError(
                f"{self._file.path}: line {number}: run_id: this review is of run {review.run_id}, the log of run "
                f"{self._run_id}"
            )
        self._history.setdefault((review.cell_id, review.instance_id), []).append(review)


def reviews_of(folder: Path) -> Reviews | None:
    """Return the reviews next to a log; None if there is no file. Raises LogError."""
    if not (folder / REVIEWS_NAME).exists():
        return None
    started = next((r for r in read_records(folder, "run_started") if r.kind == "run_started"), None)
    if started is None:
        raise LogError(f"{folder / REVIEWS_NAME}: expected the log of the reviewed run next to it; it holds no run")
    return Reviews(folder, started.run_id)


def checked_author(name: str) -> str:
    """Return a reviewer's name without surrounding blanks. Raises LogError if it is invalid."""
    if not is_name(name.strip()):
        raise LogError(f"reviewer {name[:80]!r}: {NAME_EXPECTED}")
    return name.strip()
