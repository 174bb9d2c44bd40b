"""Writes a data set folder atomically, and never over an existing one.

Files are written to a folder next to the target, which is renamed to the target when it is complete.
``ground_truth_of`` is the inverse of ``parse_gold``.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from memarena_dataset.errors import DatasetError
from memarena_dataset.gold import AbstainGold, Gold, TextGold
from memarena_dataset.model import Family


def refuse_to_overwrite(out: Path) -> None:
    """Raise DatasetError unless ``out`` is absent or an empty folder."""
    if out.is_dir() and not any(out.iterdir()):
        return
    if out.exists() or out.is_symlink():
        what = "not empty" if out.is_dir() else "not a folder"
        raise DatasetError(f"{out}: exists and is {what}; a new or empty folder is expected")


class FolderWriter:
    """Writes a data set folder. Use it as a context manager; the folder appears at ``out`` if the block raises nothing.

    Raises (everywhere):
        DatasetError: ``out`` exists, or the operating system refuses (disk full, no permission).
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._streams: dict[str, IO[str]] = {}
        self._temporary: Path | None = None

    def __enter__(self) -> Self:
        refuse_to_overwrite(self._out)
        try:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._temporary = Path(tempfile.mkdtemp(prefix=f".{self._out.name}.", dir=self._out.parent))
        except OSError as error:
            raise DatasetError(f"{self._out}: cannot be written: {error.strerror}") from error
        return self

    def add(self, file: str, row: Mapping[str, Any]) -> None:
        """Append a row to a ``.jsonl`` file."""
        try:
            self._stream(file).write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        except OSError as error:
            raise DatasetError(f"{self._out / file}: cannot be written: {error.strerror}") from error

    def put(self, file: str, value: Any) -> None:
        """Write a ``.json`` file."""
        try:
            self._stream(file).write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
        except OSError as error:
            raise DatasetError(f"{self._out / file}: cannot be written: {error.strerror}") from error

    def _stream(self, file: str) -> IO[str]:
        if file not in self._streams:
            if self._temporary is None:
                raise RuntimeError("FolderWriter is a context manager")
            path = self._temporary / file
            path.parent.mkdir(parents=True, exist_ok=True)
            self._streams[file] = path.open("w", encoding="utf-8", newline="\n")
        return self._streams[file]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is None:
            return
        try:
            for stream in self._streams.values():
                stream.close()
            if error is None:
                # mkdtemp makes a folder that only its owner can read.
                self._temporary.chmod(0o777 & ~_umask())
                self._temporary.replace(self._out)
        except OSError as failure:
            if error is None:
                raise DatasetError(f"{self._out}: cannot be written: {failure.strerror}") from failure
        finally:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def ground_truth_of(family: Family, gold: Gold) -> dict[str, Any]:
    """Return the ``ground_truth`` object from which ``parse_gold`` makes this gold again."""
    fields = _gold_fields(gold)
    if isinstance(gold, AbstainGold):
        return {"expected_response": "abstain", **fields}
    if gold.kind == "cloze":
        fields["blank_word"] = fields.pop("answer_text")
        return fields
    if isinstance(gold, TextGold):
        return _text_truth(family, gold, fields)
    return fields


def _gold_fields(gold: Gold) -> dict[str, Any]:
    """Return the fields of a gold that differ from their default; nulls and empty lists within them are left out."""
    fields = gold.model_dump(mode="json", exclude={"kind"})
    unset = {name for name, field in type(gold).model_fields.items() if getattr(gold, name) == field.default}
    return {name: _without_nothing(value) for name, value in fields.items() if name not in unset}


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(item) for key, item in value.items() if item is not None and item != []}
    return [_without_nothing(item) for item in value] if isinstance(value, list) else value


def _text_truth(family: Family, gold: TextGold, fields: dict[str, Any]) -> dict[str, Any]:
    answers = fields.pop("answers")
    attribute = fields.pop("attribute", None)
    shown = answers[0] if len(answers) == 1 else answers
    if family in (Family.CONFABULATION, Family.WITNESS):
        return {"expected_response": "answer", "correct_fact": shown, **fields}
    if family is Family.METADATA:
        return {"answer": shown, **({"attribute": attribute} if attribute else {}), **fields}
    if family is Family.TEMPORAL:
        return {"answer": shown, **({"temporal_type": attribute} if attribute else {}), **fields}
    return {"answer": shown, **fields}
