"""Reads corrections of golds and evidence that are known to be wrong, in the form of the public audit of LoCoMo.

The file is a list of objects. These keys are read: ``question_id`` (``locomo_3_qa12``: conversation and question, both
counted from 0), ``question``, ``golden_answer``, ``correct_answer``, ``correct_evidence``, ``error_type`` and
``reasoning``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memarena_dataset.errors import DatasetError, FieldError
from memarena_dataset.importers.json_reading import read_json
from memarena_dataset.importers.text import clean

_ID = re.compile(r"locomo_(\d+)_qa(\d+)")
_CITED = re.compile(r"\s*\((?:[^()]*\bD\d+:\d+[^()]*|answer is correct\b[^()]*)\)")
"""A remark that an auditor added to an answer: the turns that show it, or that only the evidence was wrong."""
_TEXTS = ("question_id", "question", "golden_answer", "correct_answer", "error_type", "reasoning")


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected question. ``answer`` is the corrected gold, ``published`` the gold that it replaces."""

    name: str
    conversation: int
    """Index from 0, in the whole data set."""
    position: int
    """Index of the question in its conversation, from 0."""
    question: str
    published: str
    answer: str
    evidence: tuple[str, ...]
    kind: str
    reason: str

    @property
    def changes_gold(self) -> bool:
        """Whether the gold was corrected, and not only the evidence."""
        return _plain(self.answer) != _plain(self.published)


class Corrections:
    """Corrections of a file, each used for one question at most."""

    def __init__(self, corrections: Sequence[Correction]) -> None:
        self._unused = list(corrections)

    def of(self, conversation: int, position: int, question: str, *, only_here: bool) -> Correction | None:
        """Return the correction of a question and mark it as used; None if there is none.

        Args:
            conversation: its index in the file, from 0.
            position: the question's index in it, from 0.
            question: its text, which must be that of the correction.
            only_here: also use a correction of another conversation index, since the file is a part of the data set.
        """
        for correction in self._unused:
            same = correction.position == position and _plain(correction.question) == _plain(question)
            if same and (correction.conversation == conversation or only_here):
                self._unused.remove(correction)
                return correction
        return None

    def unused(self) -> Iterator[Correction]:
        """Yield the corrections that no question has used."""
        yield from self._unused


def read_corrections(path: Path) -> Corrections:
    """Return the corrections of a file.

    Raises:
        DatasetError: it cannot be read, is not JSON, or an entry is not of the form above.
    """
    value, _ = read_json(path)
    try:
        if not isinstance(value, list):
            raise FieldError("file", "a list of corrections is expected")
        corrections = [_correction(item, str(position)) for position, item in enumerate(value)]
        names = [correction.name for correction in corrections]
        if again := next((name for name in names if names.count(name) > 1), None):
            raise FieldError("question_id", f"{again!r} is there more than once; one correction each is expected")
    except FieldError as error:
        raise DatasetError(f"{path}: {error.field}: {error.reason}") from error
    return Corrections(corrections)


def _correction(item: Any, field: str) -> Correction:
    """Return the correction in an entry of the file. Raises FieldError."""
    if not isinstance(item, Mapping):
        raise FieldError(field, "an object is expected")
    texts = {}
    for key in _TEXTS:
        value = item.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            raise FieldError(f"{field}.{key}", "missing; a text is expected")
        texts[key] = clean(str(value)).strip()
    evidence = item.get("correct_evidence")
    if not isinstance(evidence, list) or not all(isinstance(item, str) for item in evidence):
        raise FieldError(f"{field}.correct_evidence", "missing; a list of texts is expected")
    match = _ID.fullmatch(texts["question_id"])
    if match is None:
        raise FieldError(f"{field}.question_id", f"{texts['question_id']!r}; an id like 'locomo_3_qa12' is expected")
    return Correction(
        name=texts["question_id"],
        conversation=int(match.group(1)),
        position=int(match.group(2)),
        question=texts["question"],
        published=texts["golden_answer"],
        answer=_CITED.sub("", texts["correct_answer"]).strip() or texts["correct_answer"],
        evidence=tuple(evidence),
        kind=texts["error_type"],
        reason=texts["reasoning"],
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .")
