"""Runs a module until its standard input is closed: ``python -m memarena_dataset_quality.while_held MODULE …``.

``server_process.py`` starts model servers by it. The process that started it holds the other end of the pipe, so a
server ends with that process, even if it is killed, and does not keep a model in memory.
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
    del sys.argv[0]  # what is left is MODULE and its arguments
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _wait() -> None:
    """Kill this process at the end of its standard input: an exit in this thread would end the thread alone."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
