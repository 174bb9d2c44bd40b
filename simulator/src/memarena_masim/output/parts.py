"""Finished days of an unfinished data set: each written whole or not at all, kept until the data set is complete."""

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
"""Folder of finished days inside the output folder. While it is there, the data set is not complete."""
_LEFT = ".days-done"
"""What that folder is called while it is being deleted, so that a kill meanwhile leaves a complete data set."""
_STAMP = "configuration.json"


class _Note(BaseModel):
    """What an engine noted on a day."""

    counts: dict[str, JsonValue]
    log: list[dict[str, JsonValue]]


def finished_days(out: Path) -> int:
    """How many days of an unfinished data set have words; 0 if there is none."""
    return sum(1 for _ in (out / PARTS).glob("day_????.jsonl"))


def is_left(out: Path) -> bool:
    """Whether a generation was killed when its data set was complete, while it deleted its finished days."""
    return (out / _LEFT).exists()


def clear_left(out: Path) -> None:
    """Delete what is left of those days."""
    shutil.rmtree(out / _LEFT)


class Parts:
    """The folder of finished days of one data set."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def open(cls, config: WorldConfig, engine: Mapping[str, JsonValue], out: Path) -> Parts:
        """Begin in the empty folder ``out``, or go on with what the same configuration and engine left.

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
        if not (folder / _STAMP).exists() and not finished_days(out):  # new, or killed before it could say what it is
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
        """Keep a finished day. Its lines come last: they are what says that the day is complete."""
        if words.counts or words.log:
            write_whole(self._engine(words.day), [dump({"counts": words.counts, "log": list(words.log)})], durable=True)
        write_whole(self._day(words.day), words.lines, durable=True)

    def lines(self, days: int) -> Iterator[str]:
        """All lines of the corpus, day by day."""
        for day in range(days):
            with self._day(day).open(encoding="utf-8") as lines:
                yield from lines

    def counts(self, days: int) -> list[dict[str, JsonValue]]:
        """What the engine counted on each day, of this call and of those before it."""
        return [note.counts for note in self._notes(days)]

    def log(self, days: int) -> Iterator[dict[str, JsonValue]]:
        """What the engine noted, day by day."""
        for note in self._notes(days):
            yield from note.log

    def _notes(self, days: int) -> Iterator[_Note]:
        for day in range(days):
            if self._engine(day).exists():
                yield _Note.model_validate_json(self._engine(day).read_text(encoding="utf-8"))

    def remove(self) -> None:
        """The data set is complete: its files hold everything; or there will be none.

        The folder gets another name first, in one step: a generation killed before it goes on, one killed after it
        has nothing left to do. Deleting alone could end between the stamp and the days.
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
    """The first thing in which two values differ, in words; None if they are equal."""
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
