"""Runs a module until its standard input is closed: ``python -m memarena_dataset_quality.while_held MODULE …``.

The process that started it holds the other end, so a model server ends with that process, even if it is killed.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def main() -> None:
    """Run the module; kill this process when its standard input is closed."""
    threading.Thread(target=_wait, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _wait() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
