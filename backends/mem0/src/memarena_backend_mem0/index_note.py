"""What the vectors of a namespace were made with, kept beside them: another model's cannot be compared with them."""

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
    """The note of a folder; None where nothing was embedded yet."""
    path = folder / _FILE
    return IndexNote(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def write_note(folder: Path, note: IndexNote) -> None:
    """Keep the note in a folder."""
    (folder / _FILE).write_text(json.dumps(asdict(note)), encoding="utf-8")
