"""The null reader in a process of its own, where nothing of the harness competes with it for an interpreter.

``python -m memarena.readers.null_server --address-file F --first-token-delay-ms N`` serves until SIGTERM; the
timings of each reply tell how long its first token was really held back.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from memarena.readers.scripted import NullReader, Script
from memarena.readers.serving import serve_as_child


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description="A reader that answers by a script, for checking the stopwatch.")
    parser.add_argument("--address-file", type=Path, required=True)
    parser.add_argument("--first-token-delay-ms", type=float, default=0.0)
    arguments = parser.parse_args()
    reader = NullReader(Script(first_token_delay_s=arguments.first_token_delay_ms / 1e3, tells_delay=True))
    asyncio.run(serve_as_child(reader.handle, arguments.address_file))


if __name__ == "__main__":
    main()
