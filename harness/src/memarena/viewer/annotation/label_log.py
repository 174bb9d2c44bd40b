"""Reads and appends labels of annotators: an append-only file of JSON lines that several processes may write.

A line is a label or its withdrawal; the last line of an annotator and item counts. A process killed while it writes
leaves an incomplete line, which is reported and ignored.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from memarena.judging.errors import JudgeError
from memarena.log.line_file import LineFile

ANNOTATIONS = "annotations"
"""Default folder of a campaign, in the run's folder."""
SAMPLE_NAME = "sample.json"
LABELS_NAME = "labels.jsonl"
CANNOT_SAY = "cannot_say"
"""Label of an annotator who cannot decide; it counts in no agreement."""


class LabelEntry(BaseModel):
    """One line of a label file: an annotator's label of an item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Id of the form, so that a form sent twice gives one label."""
    at: str
    """Time, UTC."""
    annotator: str
    item: str
    label: str | None
    """None: the annotator withdrew the label."""
    note: str = ""
    reason: str = ""
    """Why an earlier label was changed."""
    seconds: float | None = None
    """Seconds from showing the item to the label; None if unknown."""
    sample_sha256: str


class LabelLog:
    """The labels of one sample; threads may share it.

    Raises JudgeError if the file cannot be read or written, or is of another sample.
    """

    def __init__(self, folder: Path, sample_sha256: str) -> None:
        self._file = LineFile(folder / LABELS_NAME)
        self._sample = sample_sha256
        self._lock = threading.Lock()
        """For the position in the file and what was read: two threads that read at once would skip lines."""
        self._ids: set[str] = set()
        self._history: dict[str, dict[str, list[LabelEntry]]] = {}
        self.faults: list[str] = []
        """A sentence for each line that could not be parsed."""
        self.refresh()

    def refresh(self) -> None:
        """Read the lines that were appended since the last read."""
        with self._lock:
            try:
                lines = self._file.new_lines()
            except OSError as error:
                raise JudgeError(f"{self._file.path}: cannot be read: {error.strerror}") from error
            for number, line in lines:
                self._add(number, line)

    def append(self, labels: Sequence[LabelEntry]) -> int:
        """Write labels durably, without those whose id is in the file already; return how many were written."""
        try:
            with self._file.appending() as append:
                self.refresh()
                new = [label for label in labels if label.id not in self._ids]
                if new:
                    append([label.model_dump_json() for label in new])
                self.refresh()
        except OSError as error:
            raise JudgeError(f"{self._file.path}: cannot be written: {error.strerror}") from error
        return len(new)

    @property
    def lines(self) -> int:
        """Number of lines read so far; it identifies a state of the file."""
        return self._file.lines

    def current(self, annotator: str) -> dict[str, LabelEntry]:
        """Return the present labels of an annotator by item, without those that were withdrawn."""
        with self._lock:
            by_item = self._history.get(annotator, {})
            return {item: lines[-1] for item, lines in by_item.items() if lines[-1].label is not None}

    def history(self, annotator: str, item: str) -> list[LabelEntry]:
        """Return every line of an annotator on an item, oldest first."""
        with self._lock:
            return list(self._history.get(annotator, {}).get(item, ()))

    def latest(self, annotator: str) -> LabelEntry | None:
        """Return the most recent of an annotator's present labels; None if there is none."""
        return max(self.current(annotator).values(), key=lambda label: label.at, default=None)

    def annotators(self) -> list[str]:
        """Return the names of all annotators with a line in the file, sorted."""
        with self._lock:
            return sorted(self._history)

    def people(self) -> dict[str, dict[str, str]]:
        """Return present labels by annotator and item, without :data:`CANNOT_SAY`."""
        return {
            name: {
                item: label.label
                for item, label in self.current(name).items()
                if label.label is not None and label.label != CANNOT_SAY
            }
            for name in self.annotators()
        }

    def _add(self, number: int, line: bytes) -> None:
        """Add a line of the file; record invalid lines as faults. Raises JudgeError for a label of another sample."""
        try:
            label = LabelEntry.model_validate_json(line)
        except ValidationError:
            self.faults.append(f"line {number} of {LABELS_NAME} is no label and is passed over")
            return
        if label.sample_sha256 != self._sample:
            raise JudgeError(f"{self._file.path}: line {number}: sample_sha256: this label belongs to another sample")
        if label.id in self._ids:
            return
        self._ids.add(label.id)
        self._history.setdefault(label.annotator, {}).setdefault(label.item, []).append(label)
