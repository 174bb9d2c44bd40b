"""Implements ``masim bars`` and ``masim reading-sheet``: reads data sets, returns the table or writes the sheet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from memarena_dataset.errors import DatasetError
from memarena_dataset.importers.locomo import import_locomo
from memarena_dataset.io.files import CORPUS

from memarena_dataset_quality.bar_table import as_json, as_lines
from memarena_dataset_quality.blind_reading.sheet import write_sheet
from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.measures import Setting, measure
from memarena_dataset_quality.repetition import locomo_texts
from memarena_dataset_quality.world import World, read_world

LOCOMO = Path("data/locomo/locomo5.json")
"""Where LoCoMo lies in the shared folder (MEMARENA_SHARED, else ../shared)."""


def world_folders(folders: Sequence[Path]) -> list[Path]:
    """Return the data sets among folders; a folder that holds several of them counts as all of those.

    Raises:
        QualityError: a folder has no data set.
    """
    result: list[Path] = []
    for folder in folders:
        inside = [folder] if _is_world(folder) else sorted(child for child in _children(folder) if _is_world(child))
        if not inside:
            raise QualityError(f"{folder}: no data set; a folder with {CORPUS}[.gz], or with such folders, is expected")
        result += inside
    return result


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_world(folder: Path) -> bool:
    return (folder / CORPUS).is_file() or (folder / f"{CORPUS}.gz").is_file()


def find_locomo(path: Path | None) -> Path | None:
    """Return the file of ``--locomo``; without one, that of the shared folder if it exists, else None."""
    if path is not None:
        if not path.is_file():
            raise QualityError(f"--locomo {path}: no such file")
        return path
    default = Path(os.environ.get("MEMARENA_SHARED", "../shared")) / LOCOMO
    return default if default.is_file() else None


def bars(
    folders: Sequence[Path],
    train: Sequence[Path],
    *,
    locomo: Path | None,
    llm: bool,
    json_file: Path | None,
    say: Callable[[str], None],
) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether no bar was missed.

    Raises:
        QualityError: a folder or file cannot be measured, or a world is given both to learn from and to measure.
    """
    _check_table_file(json_file)
    tested, learned = world_folders(folders), world_folders(train)
    both = {folder.resolve() for folder in tested} & {folder.resolve() for folder in learned}
    if both:
        raise QualityError(f"--train {min(both)}: is also measured; what is learned from cannot be reported")
    locomo_file = find_locomo(locomo)
    with tempfile.TemporaryDirectory() as scratch:
        say(f"reading {len(tested) + len(learned)} worlds")
        setting = Setting(
            worlds=[read_world(folder) for folder in tested],
            train=[read_world(folder) for folder in learned],
            locomo_texts=locomo_texts(locomo_file) if locomo_file else None,
            locomo=_locomo_world(locomo_file, Path(scratch) / "locomo") if locomo_file else None,
            llm=llm,
        )
        table = measure(setting, say)
    if json_file is not None:
        text = as_json(table, [str(folder) for folder in tested], [str(folder) for folder in learned])
        json_file.write_text(f"{text}\n", encoding="utf-8")
    return as_lines(table, with_locomo=locomo_file is not None), all(row.met is not False for row in table)


def reading_sheet(folder: Path, *, locomo: Path | None, out: Path, key: Path, sessions: int, seed: int) -> None:
    """Write the sheet of a blind reading of the data set in ``folder`` and of LoCoMo.

    Raises:
        QualityError: data set, LoCoMo or what is to be written cannot be used.
    """
    locomo_file = find_locomo(locomo)
    if locomo_file is None:
        raise QualityError("--locomo: not in the shared folder; a LoCoMo file to compare with is expected")
    with tempfile.TemporaryDirectory() as scratch:
        other = _locomo_world(locomo_file, Path(scratch) / "locomo")
        write_sheet(read_world(folder), other, out, key, sessions=sessions, seed=seed)


def _check_table_file(path: Path | None) -> None:
    """Check, before the minutes of measuring, that the table can be written to ``path``."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise QualityError(f"--json {path}: its folder does not exist")
    existed = path.exists()
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise QualityError(f"--json {path}: {error.strerror}; a file that can be written is expected") from error
    if not existed:
        path.unlink()


def _locomo_world(source: Path, out: Path) -> World:
    """Read LoCoMo as a data set, so that its questions are measured in the same way."""
    try:
        import_locomo(source, out)
    except DatasetError as error:
        raise QualityError(f"--locomo {source}: {error}") from error
    return read_world(out)
