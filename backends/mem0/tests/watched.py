"""Runs the backend mem0 under an audit hook that reports writes outside its data folder and connections elsewhere.

python watched.py REPORT FOLDER… -- ARGUMENT…    writes a line to REPORT for each write outside the FOLDERs, and for
each connection to or look-up of a host that is not this machine
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost", "", None, "0.0.0.0", "::")  # noqa: S104 (compared with, not bound)


def main() -> None:
    separator = sys.argv.index("--")
    report, *folders = (Path(name).resolve() for name in sys.argv[1:separator])
    report_fd = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def outside(path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike) or os.fspath(path) in (os.devnull, ":memory:"):
            return False
        absolute = Path(os.fsdecode(path)).absolute()
        return "__pycache__" not in absolute.parts and not any(absolute.is_relative_to(folder) for folder in folders)

    def hook(event: str, args: tuple[object, ...]) -> None:
        target: object = None
        if event == "open":
            path, mode, flags = args
            writes = any(letter in str(mode) for letter in "wax+") if mode else bool(int(str(flags)) & _WRITES)
            target = path if writes and outside(path) else None
        elif event in ("os.mkdir", "sqlite3.connect", "os.rename"):
            target = args[0] if outside(args[0]) else None
        elif event == "socket.connect":
            is_local = isinstance(args[1], tuple) and args[1][0] in _LOCAL_HOSTS
            target = None if is_local or getattr(args[0], "family", None) == socket.AF_UNIX else args[1]
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            target = None if args[0] in _LOCAL_HOSTS else args[0]
        if target is not None:
            os.write(report_fd, f"{event} {target!r}\n".encode())

    sys.addaudithook(hook)
    sys.argv = ["memarena_backend_mem0", *sys.argv[separator + 1 :]]
    runpy.run_module("memarena_backend_mem0", run_name="__main__")


if __name__ == "__main__":
    main()
