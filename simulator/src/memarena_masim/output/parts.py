"""Stores the finished days of an unfinished data set: each is written atomically and kept until all are there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from memarena_dataset.safe_files import write_whole
from pydantic import BaseModel, JsonValue

from memarena_masim import __version__
from memarena_masim.config import WorldConfig
from memarena_masim.engines.model import DayWords
from memarena_masim.errors import MasimError
from memarena_masim.json_files import dump

PARTS = ".days"
"""Folder of finished days inside the output folder. While it exists, the data set is not complete."""
_LEFT = ".days-done"
"""Name of that folder while it is being deleted: a process killed meanwhile leaves a complete data set."""
_STAMP = "configuration.json"


class _Note(BaseModel):
    """Counts and log entries of an engine for one day."""

    counts: dict[str, JsonValue]
    log: list[dict[str, JsonValue]]


def finished_days(out: Path) -> int:
    """Return the number of finished days of an unfinished data set; 0 if there is none."""
    return sum(1 for _ in (out / PARTS).glob("day_????.jsonl"))


def is_left(out: Path) -> bool:
    """Whether a generation was killed after its data set was complete, while it deleted the folder of days."""
    return (out / _LEFT).exists()


def clear_left(out: Path) -> None:
    """Delete what a killed generation left of the folder of days of its complete data set."""
    shutil.rmtree(out / _LEFT)


class Parts:
    """The folder of finished days of one data set."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, config: WorldConfig, engine: Mapping[str, JsonValue], out: Path) -> Parts:
        """Begin in the empty folder ``out``, or resume a generation of the same configuration and engine.

        Raises:
            MasimError: ``out`` holds something else; the line says what differs.
        """
        folder = out / PARTS
        stamp: dict[str, JsonValue] = {
            "configuration": config.model_dump(mode="json"),
            "engine": dict(engine),
            "masim": __version__,
        }
        if not folder.exists():
            if any(out.iterdir()):
                raise MasimError(f"--out {out}: not empty; an empty or new folder is expected")
            folder.mkdir()
        if not (folder / _STAMP).exists() and not finished_days(out):  # new, or killed before the stamp was written
            write_whole(folder / _STAMP, dump(stamp), durable=True)
        _check_same(folder / _STAMP, stamp, out)
        return cls(folder)

    def _day(self, day: int) -> Path:
        return self._folder / f"day_{day:04d}.jsonl"

    def _engine(self, day: int) -> Path:
        return self._folder / f"day_{day:04d}.engine.json"

    def has(self, day: int) -> bool:
        """Whether a day is finished."""
        return self._day(day).exists()

    def write(self, words: DayWords) -> None:
        """Store a finished day. Its lines are written last, because their file marks the day as complete."""
        if words.counts or words.log:
            write_whole(self._engine(words.day), [dump({"counts": words.counts, "log": list(words.log)})], durable=True)
        write_whole(self._day(words.day), words.lines, durable=True)

    def lines(self, days: int) -> Iterator[str]:
        """Yield all lines of the corpus, day by day."""
        for day in range(days):
            with self._day(day).open(encoding="utf-8") as lines:
                yield from lines

    def counts(self, days: int) -> list[dict[str, JsonValue]]:
        """Return the engine's counts of each day, including days of earlier calls."""
        return [note.counts for note in self._notes(days)]

    def log(self, days: int) -> Iterator[dict[str, JsonValue]]:
        """Yield the engine's log entries, day by day."""
        for note in self._notes(days):
            yield from note.log

    def _notes(self, days: int) -> Iterator[_Note]:
        for day in range(days):
            if self._engine(day).exists():
                yield _Note.model_validate_json(self._engine(day).read_text(encoding="utf-8"))

    def remove(self) -> None:
        """Delete the folder of days, when the data set is complete or given up.

        The folder is renamed first, atomically: a generation killed before that resumes, one killed after it has
        nothing left to do. Without the rename, a kill could leave days without their stamp.
        """
        self._folder.rename(self._folder.with_name(_LEFT))
        clear_left(self._folder.parent)


def _check_same(path: Path, stamp: Mapping[str, JsonValue], out: Path) -> None:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        written = {}
    differing = _difference(written, json.loads(dump(stamp)))
    if differing is not None:
        raise MasimError(
            f"--out {out}: holds an unfinished data set of another configuration ({differing}); choose another folder"
        )


def _difference(written: object, wanted: object, name: str = "") -> str | None:
    """Return the first difference between two values, in words; None if they are equal."""
    if written == wanted:
        return None
    if isinstance(written, dict) and isinstance(wanted, dict):
        for key in (*wanted, *written):
            difference = _difference(written.get(key), wanted.get(key), f"{name} {key}".strip())
            if difference is not None:
                return difference
    if isinstance(written, str | int | float) and isinstance(wanted, str | int | float):
        return f"{name}: {written}, now {wanted}"
    return f"{name} differs"
