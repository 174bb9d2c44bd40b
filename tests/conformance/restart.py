"""Starts a backend, killing it with SIGKILL first if it runs: ``restart.py STATE``, JSON with argv, log and pid.

Tests pass it to ``memarena conformance --restart-command``, as an operator passes a command that restarts a service.
The suite calls it to check that days survive a kill.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def kill(pid: int) -> None:
    """End a process that need not be a child of this one."""
    os.kill(pid, signal.SIGKILL)
    stat = Path(f"/proc/{pid}/stat")
    while stat.exists() and ") Z " not in stat.read_text(encoding="utf-8"):
        time.sleep(0.01)


def restart(state: Path) -> None:
    """Kill what was started last, start the command again, detached, and note its id."""
    noted = json.loads(state.read_text(encoding="utf-8"))
    if "pid" in noted:
        with suppress(ProcessLookupError):  # it may have died by itself
            kill(noted["pid"])
    with Path(noted["log"]).open("ab") as log:
        process = subprocess.Popen(noted["argv"], stderr=log, stdout=log, start_new_session=True)
    state.write_text(json.dumps({**noted, "pid": process.pid}), encoding="utf-8")


if __name__ == "__main__":
    restart(Path(sys.argv[1]))
