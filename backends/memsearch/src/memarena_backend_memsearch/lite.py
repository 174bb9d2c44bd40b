"""Milvus Lite's process: started, waited for until it listens, and started again when it has died.

The library starts the process, gives it half a second and connects once; on a busy machine the process needs longer,
and the first ingest failed. It also never looks whether the process still lives.
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
    # milvus-lite 2.5.1 says on import that it uses pkg_resources; setuptools is pinned below the version without it.
    warnings.simplefilter("ignore")
    from milvus_lite.server_manager import server_manager_instance  # type: ignore[import-untyped]

_START_S = 60.0
_STARTS = 2
_PAUSE_S = 0.02
_ENGINE_LOG = {"GLOG_logtostderr": "1", "GLOG_minloglevel": "2"}
"""Errors, with what the backend prints. Left alone the engine writes files of its own for every start of it to the
folder for temporary files, which nobody takes away."""


class MilvusLite:
    """The engine of one database file, shared by every namespace of this process.

    Its socket lies with the temporary files, since the path of one is short; a link beside the database names it.
    """

    def __init__(self, path: Path, start_s: float = _START_S) -> None:
        self._path = str(path)
        self._link = path.with_name(f"{path.name}.sock")
        self._start_s = start_s
        self._mutex = threading.Lock()
        self._socket: str | None = None
        self._generation = 0

    def ensure(self) -> int:
        """Have the engine listen; returns how often it was started, so that who connected to an earlier one notices.

        Raises CallError UNAVAILABLE if it cannot be brought to listen.
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
        """Take away the socket of an engine that has ended: one whose backend was killed is left behind."""
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
