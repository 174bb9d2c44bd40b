"""The memory of a backend that runs on this machine, known by the port that it listens on."""

from __future__ import annotations

import os
from collections.abc import Callable

import psutil

_LOCAL = {"127.0.0.1", "localhost", "[::1]", "::1"}


def memory_reader(target: str) -> Callable[[], int | None]:
    """A function that reads the resident bytes of the process behind ``target`` (``HOST:PORT``) and its children.

    It gives None where that process runs elsewhere, belongs to another user, is this one, or has ended.
    """
    process = _listener(target)

    def read() -> int | None:
        if process is None:
            return None
        try:
            return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))
        except psutil.Error:
            return None

    return read


def _listener(target: str) -> psutil.Process | None:
    host, _, port = target.rpartition(":")
    if host not in _LOCAL or not port.isdigit():
        return None
    try:
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr[1] == int(port) and each.pid:
                return psutil.Process(each.pid) if each.pid != os.getpid() else None
    except psutil.Error:
        return None
    return None
