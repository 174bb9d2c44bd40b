"""Labels as they were given: a file of JSON lines that only ever grows, written by several processes at once.

A line is one label, or one that was taken back; what counts of an annotator and item is the last line. A process killed
in the middle of a line leaves a piece of one, which is told and passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from memarena.judging.errors import JudgeError
from memarena.log.line_file import LineFile

ANNOTATIONS = "annotations"
"""The folder next to a log, where no other is named."""
SAMPLE_NAME = "sample.json"
LABELS_NAME = "labels.jsonl"
CANNOT_SAY = "cannot_say"


class LabelGiven(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Made with the form: a form that is sent twice gives one label."""
    at: str
    """When, UTC."""
    annotator: str
    item: str
    label: str | None
    """None: taken back."""
    note: str = ""
    reason: str = ""
    """Why an earlier label was changed."""
    seconds: float | None = None
    """From showing the item to the label; None where that is not known."""
    sample_sha256: str


class LabelLog:
    """The labels of one sample. Raises JudgeError where the file cannot be read or written, or is of another sample."""

    def __init__(self, folder: Path, sample_sha256: str) -> None:
        self._file = LineFile(folder / LABELS_NAME)
        self._sample = sample_sha256
        self._ids: set[str] = set()
        self._history: dict[str, dict[str, list[LabelGiven]]] = {}
        self.faults: list[str] = []
        """Lines that are none, a sentence each."""
        self.refresh()

    def refresh(self) -> None:
        """Read what others have written since."""
        try:
            lines = self._file.new_lines()
        except OSError as error:
            raise JudgeError(f"{self._file.path}: cannot be read: {error.strerror}") from error
        for number, line in lines:
            self._add(number, line)

    def append(self, labels: Sequence[LabelGiven]) -> int:
        """Write labels, on disk when this returns; those whose id is there already are left out. Returns how many."""
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
        """Lines read so far: the same number, the same labels."""
        return self._file.lines

    def current(self, annotator: str) -> dict[str, LabelGiven]:
        """What counts of an annotator, by item; without what was taken back."""
        own = self._history.get(annotator, {})
        return {item: given[-1] for item, given in own.items() if given[-1].label is not None}

    def history(self, annotator: str, item: str) -> list[LabelGiven]:
        """Every line of an annotator on an item, the first one first."""
        return list(self._history.get(annotator, {}).get(item, ()))

    def latest(self, annotator: str) -> LabelGiven | None:
        """The label that was given last and stands."""
        return max(self.current(annotator).values(), key=lambda given: given.at, default=None)

    def annotators(self) -> list[str]:
        """Everybody who gave a label, by name."""
        return sorted(self._history)

    def people(self) -> dict[str, dict[str, str]]:
        """Labels by annotator and item; what nobody could say is no label."""
        return {
            name: {
                item: given.label
                for item, given in self.current(name).items()
                if given.label is not None and given.label != CANNOT_SAY
            }
            for name in self.annotators()
        }

    def _add(self, number: int, line: bytes) -> None:
        try:
            given = LabelGiven.model_validate_json(line)
        except ValidationError:
            self.faults.append(f"line {number} of {LABELS_NAME} is no label and is passed over")
            return
        if given.sample_sha256 != self._sample:
            raise JudgeError(f"{self._file.path}: line {number}: sample_sha256: this label belongs to another sample")
        if given.id in self._ids:
            return
        self._ids.add(given.id)
        self._history.setdefault(given.annotator, {}).setdefault(given.item, []).append(given)
