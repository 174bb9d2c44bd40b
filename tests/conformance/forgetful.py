"""A backend that says it is durable and is not: it empties its data folder whenever it starts."""

from __future__ import annotations

import sys
from pathlib import Path

from memarena_backend import run_backend

from tests.conformance.sound import SoundMemory

if __name__ == "__main__":
    for path in Path(sys.argv[sys.argv.index("--data-dir") + 1]).iterdir():
        path.unlink()
    sys.exit(run_backend(lambda _: SoundMemory()))
