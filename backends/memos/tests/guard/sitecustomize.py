"""Confines a Python process that has this folder in PYTHONPATH: refuses and logs connections and writes elsewhere.

Connections may go to loopback only. ``MEMARENA_GUARD_LOG`` is the path of the log, ``MEMARENA_GUARD_FOLDERS`` are the
folders that the process may write to, separated as in PATH.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

_LOG = os.environ["MEMARENA_GUARD_LOG"]
_FOLDERS = tuple(os.path.realpath(folder) for folder in os.environ["MEMARENA_GUARD_FOLDERS"].split(os.pathsep))
_FREE = ("/dev/null", "/proc/self/")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# By audit event, the indices of the arguments that are paths to be written.
_PATHS = {
    "os.mkdir": (0,),
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "shutil.copyfile": (1,),
    "sqlite3.connect": (0,),
}


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.bind") and arguments[0].family != socket.AF_UNIX:
        _only_loopback(event, arguments[1][0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        _only_loopback(event, arguments[0])
    elif (
        event == "open"
        and isinstance(arguments[2], int)
        and arguments[2] & _WRITES
        and not isinstance(arguments[0], int)
    ):
        _only_below(event, arguments[0])
    elif event == "subprocess.Popen" and arguments[0] != "uname":  # asked by the standard library's platform
        _refuse(event, arguments[0])
    for index in _PATHS.get(event, ()):
        _only_below(event, arguments[index])


def _only_loopback(event: str, host: object) -> None:
    if host not in _LOOPBACK:
        _refuse(event, host)


def _only_below(event: str, path: Any) -> None:
    real_path = os.path.realpath(os.fsdecode(path))
    below = real_path in _FOLDERS or real_path.startswith((*(f"{folder}/" for folder in _FOLDERS), *_FREE, _LOG))
    if not below and os.fsdecode(path) != ":memory:":
        _refuse(event, real_path)


def _refuse(event: str, what: object) -> None:
    with open(_LOG, "a", encoding="utf-8") as log:  # noqa: PTH123 (before anything else is imported)
        log.write(f"{event} {what}\n")
    raise PermissionError(f"{event}: {what}")


sys.addaudithook(_watch)
