"""A backend in a process of its own that looks for the gold wherever a curious one would: ``SCRIPT ADDRESS DATA_DIR``.

What it reads goes to ``loot.json`` in its data folder. ``SPY_TOLD`` may name a folder that it is told of, ``SPY_ALL``
has it look at every process it sees, ``SPY_MARK`` is a file that it leaves for a later run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution.capture import CapturingBackend

GOLD = ("eval_instances", "run.sqlite")
ABOVE = 6


def links(process: Path) -> Iterator[Path]:
    """Folder and open files of a process."""
    for link in (process / "cwd", *(process / "fd").glob("*")):
        with suppress(OSError):
            yield link.readlink()


def leads() -> Iterator[Path]:
    yield Path.cwd()
    yield from map(Path, sys.argv[1:])
    words = [*os.environ.values()]
    everything = bool(os.environ.get("SPY_ALL"))
    with suppress(OSError):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words += (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if everything:
                with suppress(OSError):
                    words += (process / "environ").read_bytes().decode(errors="replace").split("\0")
                yield from links(process)
    yield from links(Path(f"/proc/{os.getppid()}"))
    yield from links(Path("/proc/self"))
    for word in words:
        for part in (word, word.partition("=")[2]):
            if "/" in part and len(part) < 4000:
                yield Path(part)


def loot() -> list[str]:
    """Files with gold that can be read, from every lead and the folders above it."""
    found: set[str] = set()
    for lead in set(leads()):
        for folder in (lead, *list(lead.parents)[:ABOVE]):
            for name in GOLD:
                with suppress(OSError):
                    path = folder / name
                    files = sorted(path.iterdir()) if path.is_dir() else [path]
                    found.update(str(file.absolute()) for file in files if file.read_bytes())
    return sorted(found)


def main() -> None:
    address_file, data = map(Path, sys.argv[1:3])
    result = {"gold": loot(), "mark": False}
    if mark := os.environ.get("SPY_MARK"):
        result["mark"] = Path(mark).exists()
        Path(mark).write_text("seen before", encoding="utf-8")
    (data / "loot.json").write_text(json.dumps(result), encoding="utf-8")
    with CapturingBackend() as backend:
        address_file.write_text(backend.address, encoding="utf-8")
        threading.Event().wait()


if __name__ == "__main__":
    main()
