"""``python -m memarena_dataset_quality.while_held MODULE …`` runs a module until its standard input is closed.

Whoever started it holds the other end, so a model server ends with its user, however that one ends.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Run the module; the process is killed when no process holds its standard input any more."""
    threading.Thread(target=_wait, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _wait() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
