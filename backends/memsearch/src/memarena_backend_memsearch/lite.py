"""Runs the process of Milvus Lite: starts it, waits until it listens, and restarts it after a crash.

The library itself starts the process, waits half a second and connects once; on a busy machine the process needs
longer, and the first ingest fails. It also never checks whether the process still runs.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from pathlib import Path

from memarena_backend import unavailable

with warnings.catch_warnings():
    # milvus-lite 2.5.1 warns on import that it uses pkg_resources; setuptools is pinned below the version without it.
    warnings.simplefilter("ignore")
    from milvus_lite.server_manager import server_manager_instance  # type: ignore[import-untyped]

_START_S = 60.0
"""Longest time until a started engine listens."""
_STARTS = 2
"""Number of attempts to start the engine."""
_PAUSE_S = 0.02
_ENGINE_LOG = {"GLOG_logtostderr": "1", "GLOG_minloglevel": "2"}
"""Log errors to standard error. By default each start of the engine writes log files to the folder for temporary files,
which are never removed."""


class MilvusLite:
    """The engine of one database file, shared by every namespace of this process.

    Its socket is in the folder for temporary files, since the path of a socket must be short; a symbolic link next to
    the database points to it.
    """

    def __init__(self, path: Path, start_s: float = _START_S) -> None:
        self._path = str(path)
        self._link = path.with_name(f"{path.name}.sock")
        self._start_s = start_s
        self._mutex = threading.Lock()
        self._socket: str | None = None
        self._generation = 0

    def ensure(self) -> int:
        """Start the engine unless it listens; return how often it was started, by which clients notice a restart.

        Raises CallError UNAVAILABLE if it does not start to listen.
        """
        with self._mutex:
            if self._socket is None or not _listens(self._socket):
                self._start()
            return self._generation

    def stop(self) -> None:
        """End the process. It also ends by itself when this process dies."""
        with self._mutex:
            self._socket = None
            server_manager_instance.release_all()
            self._forget_socket()

    def _start(self) -> None:
        """Start the engine, with retries, and link its socket. Raises CallError UNAVAILABLE."""
        for name, value in _ENGINE_LOG.items():
            os.environ.setdefault(name, value)
        for _attempt in range(_STARTS):
            if self._socket is not None:
                server_manager_instance.release_server(self._path)
            address = server_manager_instance.start_and_get_uri(self._path)
            if address is None:
                continue
            self._socket = address.removeprefix("unix:")
            self._forget_socket()
            self._link.symlink_to(self._socket)
            if self._comes_up():
                self._generation += 1
                return
        raise unavailable(
            f"Milvus Lite did not start for {self._path}: tried {_STARTS} times, {self._start_s:g} s each at most; "
            "is the file open in another process, or the disk full?"
        )

    def _forget_socket(self) -> None:
        """Remove the socket of an engine that has ended; it is left behind if the backend was killed."""
        if not self._link.is_symlink():
            return
        socket_path = self._link.readlink()
        if socket_path.is_socket() and not _listens(str(socket_path)):
            socket_path.unlink()
        self._link.unlink()

    def _comes_up(self) -> bool:
        assert self._socket is not None
        deadline = time.monotonic() + self._start_s
        while time.monotonic() < deadline:
            if _listens(self._socket):
                return True
            time.sleep(_PAUSE_S)
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
