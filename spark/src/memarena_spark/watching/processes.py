"""Inspects processes that listen on a port: program, weights, arguments and connections."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from memarena_dataset.safe_files import sha256_of

from memarena_spark.facts import Unknown
from memarena_spark.files import sha256
from memarena_spark.watching.addresses import is_loopback
from memarena_spark.watching.records import ModelFiles

_SECRET = re.compile(r"(key|token|secret|password|passwd|credentials?|auth|authorization)$", re.IGNORECASE)
"""Matches the end of the name of an option or variable whose value must not be published."""
_SECRET_VALUE = re.compile(r"^(sk|hf|ghp|pk)[-_]\w{8,}|authorization|bearer ", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
_HIDDEN = "(hidden)"
_WEIGHTS = (".gguf", ".safetensors", ".bin", ".pt", ".pth", ".onnx")
_MOST_WORDS, _MOST_CHARACTERS = 200, 500
_LISTINGS, _LISTING_PAUSE_S = 4, 0.05
"""Maximum number of listings, and the pause between two: connections and processes are listed one after the other, so
a connection of a process that starts or ends meanwhile has no owner in one listing."""
_CLOSING = frozenset(
    {psutil.CONN_FIN_WAIT1, psutil.CONN_FIN_WAIT2, psutil.CONN_TIME_WAIT, psutil.CONN_CLOSING, psutil.CONN_LAST_ACK}
)
"""States of a connection that its process has closed; without a process it belongs to the kernel alone."""


class Link(NamedTuple):
    """A connection of a process, seen from it."""

    local_port: int
    remote: str
    remote_port: int
    tcp: bool


def listeners(port: int) -> tuple[list[psutil.Process], str]:
    """Return the processes that listen on a port of loopback or of all addresses, and the reason if there are none."""

    def owners() -> list[int | None]:
        return [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
            and _takes_loopback(connection.laddr.ip)
        ]

    return _processes(owners, f"port {port}", f"no process listens on port {port}")


def peers(link: Link) -> tuple[list[psutil.Process], str]:
    """Return the processes at the other end of a connection over loopback, and the reason if none can be inspected."""

    def owners() -> list[int | None]:
        return [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.laddr
            and connection.laddr.port == link.remote_port
            and (
                connection.status == psutil.CONN_LISTEN
                or (connection.raddr and connection.raddr.port == link.local_port)
            )
            and (connection.pid or connection.status not in _CLOSING)
        ]

    return _processes(owners, f"port {link.remote_port}, which it is connected to", "")


def _processes(owners: Callable[[], Sequence[int | None]], what: str, nothing: str) -> tuple[list[psutil.Process], str]:
    """Return the owners that run, and the reason if there are none: ``nothing`` if no connection is listed."""
    for listing in range(_LISTINGS):
        if listing:
            time.sleep(_LISTING_PAUSE_S)
        pids = owners()
        if not pids:
            return [], nothing
        running = []
        for pid in sorted({pid for pid in pids if pid}):
            with contextlib.suppress(psutil.Error):
                running.append(psutil.Process(pid))
        if running:
            return running, ""
    return [], f"{what}: its process belongs to another user, or to another container (start it as the run's user)"


def _takes_loopback(address: str) -> bool:
    return address in ("0.0.0.0", "::") or is_loopback(address)  # noqa: S104 (compared, not bound)


def links(process: psutil.Process) -> tuple[list[Link], set[int]]:
    """Return a process's connections by TCP and connected UDP, and its listening ports. Raises psutil.Error."""
    connections = process.net_connections("inet")
    listening = {connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN}
    connected = [
        Link(connection.laddr.port, connection.raddr.ip, connection.raddr.port, connection.status != psutil.CONN_NONE)
        for connection in connections
        if connection.raddr
    ]
    return connected, listening


def command_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command line with secrets hidden: values of options with such a name, user and password of URLs."""
    shown: list[str] = []
    hide_next = False
    for word in words[:_MOST_WORDS]:
        option, equals, _ = word.partition("=")
        if hide_next and not word.startswith("--"):
            shown.append(_HIDDEN)
        elif equals and _SECRET.search(option):
            shown.append(f"{option}={_HIDDEN}")
        elif _SECRET_VALUE.match(word):
            shown.append(_HIDDEN)
        else:
            shown.append(_USER_INFO.sub(f"{_HIDDEN}@", word)[:_MOST_CHARACTERS])
        hide_next = word.startswith("-") and not equals and _SECRET.search(word) is not None
    return tuple(shown)


def executable_of(process: psutil.Process) -> tuple[str, str | Unknown]:
    """Return path and SHA-256 of the program that a process runs, even if its file was replaced since.

    Raises psutil.NoSuchProcess if the process has ended, or is ending and has no program any more.
    """
    try:
        name = process.exe()
        return name, sha256_of(Path(f"/proc/{process.pid}/exe"))
    except psutil.NoSuchProcess:
        raise
    except (FileNotFoundError, ProcessLookupError) as error:
        raise psutil.NoSuchProcess(process.pid) from error
    except (psutil.Error, OSError) as error:
        return "", Unknown(unknown=f"the program of process {process.pid} cannot be read: {type(error).__name__}")


def weights_of(process: psutil.Process) -> Iterator[Path]:
    """Yield files and folders with weights in a process's arguments, and weight files that it has mapped to memory."""
    folder = Path(process.cwd())
    for word in process.cmdline():
        path = folder / (word.partition("=")[2] or word)
        try:
            if _is_weights(path) or (path.is_dir() and any(map(_is_weights, path.iterdir()))):
                yield path.resolve()
        except (OSError, ValueError):
            continue
    for region in process.memory_maps():
        if _is_weights(Path(region.path)):
            yield Path(region.path)


def _is_weights(path: Path) -> bool:
    return path.suffix in _WEIGHTS and path.is_file()


def hash_weights(path: Path) -> ModelFiles:
    """Return size and hash of a file or folder of weights. Raises OSError."""
    if path.is_file():
        return ModelFiles(name=path.name, bytes=path.stat().st_size, sha256=sha256_of(path))
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = "".join(f"{sha256_of(file)}  {file.relative_to(path).as_posix()}\n" for file in files)
    size = sum(file.stat().st_size for file in files)
    return ModelFiles(name=path.name, bytes=size, sha256=sha256(lines.encode()))
