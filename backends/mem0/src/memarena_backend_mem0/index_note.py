"""Records which model made the vectors of a namespace, since vectors of different models cannot be compared."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

_FILE = "index.json"


@dataclass(frozen=True, slots=True)
class IndexNote:
    """The embedding model and the length of its vectors."""

    model: str
    dimension: int


def read_note(folder: Path) -> IndexNote | None:
    """Return the note of a folder; None if no text was embedded yet."""
    path = folder / _FILE
    return IndexNote(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def write_note(folder: Path, note: IndexNote) -> None:
    """Write the note to a folder."""
    (folder / _FILE).write_text(json.dumps(asdict(note)), encoding="utf-8")
