"""Entry of ``python -m memarena_backend_gated``."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

from memarena_backend import Memory, MemoryFactory, ServeError, run_backend

from memarena_backend_gated.memory import UNCLEAR, GatedMemory
from memarena_backend_gated.remote import RemoteMemory
from memarena_backend_gated.settings import read_settings
from memarena_backend_gated.store import STORE_NAME, RecordStore

LIBRARIES = "memarena.memories"
"""Group of entry points of memories that can be used as a library: functions from a data folder to a memory."""


def make_memory(data_dir: Path) -> GatedMemory:
    """Return the gate, with the memory beneath it, by the settings of the environment. Raises ServeError."""
    settings = read_settings()
    beneath = RemoteMemory(settings.remote) if settings.remote else _library(settings.memory, data_dir)
    try:
        if UNCLEAR in {option.key for option in beneath.describe().options}:
            raise ServeError(f"the memory beneath has an option {UNCLEAR} itself: expected one without a gate")
        return GatedMemory(beneath, RecordStore(data_dir / STORE_NAME, settings.extraction), settings)
    except BaseException:
        beneath.close()
        raise


def _library(name: str, data_dir: Path) -> Memory:
    """Return the memory of an installed library by its name. Raises ServeError if there is none of that name."""
    libraries = {entry.name: entry for entry in entry_points(group=LIBRARIES)}
    if name not in libraries:
        known = ", ".join(sorted(libraries)) or "none is installed"
        raise ServeError(f"GATED_MEMORY: expected one of {known}, got {name!r}")
    make: MemoryFactory = libraries[name].load()
    folder = data_dir / "beneath"
    folder.mkdir(exist_ok=True)
    return make(folder)


def main() -> None:
    """Serve until SIGTERM."""
    sys.exit(run_backend(make_memory))


if __name__ == "__main__":
    main()
