"""Rows of the files of a data set, read back for showing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from masim.errors import MasimError


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a file, plain or compressed. MasimError if there is neither."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            return
    raise MasimError(f"{folder}: {name} is missing")
