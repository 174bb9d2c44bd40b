"""Runs the backend and writes down whatever it does beyond its data folder and this machine.

python watched.py REPORT FOLDER… -- ARGUMENT…    a line in REPORT for each write outside the FOLDERs, each connection or
look-up of a host that is not this machine
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_HERE = ("127.0.0.1", "::1", "localhost", "", None, "0.0.0.0", "::")  # noqa: S104 (compared with, not bound)


def main() -> None:
    at = sys.argv.index("--")
    report, *folders = (Path(name).resolve() for name in sys.argv[1:at])
    told = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def outside(path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike) or os.fspath(path) in (os.devnull, ":memory:"):
            return False
        whole = Path(os.fsdecode(path)).absolute()
        return "__pycache__" not in whole.parts and not any(whole.is_relative_to(folder) for folder in folders)

    def hook(event: str, args: tuple[object, ...]) -> None:
        what: object = None
        if event == "open":
            path, mode, flags = args
            writes = any(letter in str(mode) for letter in "wax+") if mode else bool(int(str(flags)) & _WRITES)
            what = path if writes and outside(path) else None
        elif event in ("os.mkdir", "sqlite3.connect", "os.rename"):
            what = args[0] if outside(args[0]) else None
        elif event == "socket.connect":
            here = isinstance(args[1], tuple) and args[1][0] in _HERE
            what = None if here or getattr(args[0], "family", None) == socket.AF_UNIX else args[1]
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            what = None if args[0] in _HERE else args[0]
        if what is not None:
            os.write(told, f"{event} {what!r}\n".encode())

    sys.addaudithook(hook)
    sys.argv = ["memarena_backend_mem0", *sys.argv[at + 1 :]]
    runpy.run_module("memarena_backend_mem0", run_name="__main__")


if __name__ == "__main__":
    main()
