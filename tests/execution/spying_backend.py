"""A backend that searches the machine for files with gold, as a cheat might: ``SCRIPT ADDRESS_FILE DATA_DIR``.

Every path in its arguments, its environment and the command lines of processes is a hint: it looks there and in the
folders above. It writes the gold files that it could read to ``loot.json`` in its data folder. With ``SPY_ALL`` it also
looks at environment, working folder and open files of every process; ``SPY_MARK`` is a file that it writes for a later
run, to see whether it persists. Variables such as ``SPY_TOLD`` only carry a path for it to try.
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
PARENT_LEVELS = 6


def links(process: Path) -> Iterator[Path]:
    """Yield the working folder and the open files of a process."""
    for link in (process / "cwd", *(process / "fd").glob("*")):
        with suppress(OSError):
            yield link.readlink()


def hints() -> Iterator[Path]:
    """Yield paths that may lead to the data set or the run."""
    yield Path.cwd()
    yield from map(Path, sys.argv[1:])
    words = [*os.environ.values()]
    all_processes = bool(os.environ.get("SPY_ALL"))
    with suppress(OSError):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words += (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if all_processes:
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
    """Return the files with gold that can be read at each hint and in the folders above it."""
    readable: set[str] = set()
    for hint in set(hints()):
        for folder in (hint, *list(hint.parents)[:PARENT_LEVELS]):
            for name in GOLD:
                with suppress(OSError):
                    path = folder / name
                    files = sorted(path.iterdir()) if path.is_dir() else [path]
                    readable.update(str(file.absolute()) for file in files if file.read_bytes())
    return sorted(readable)


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
