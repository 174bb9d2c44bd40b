"""Connecting to a Ray cluster that asks for a token, or starting a Ray of our own on this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import grpc
import psutil

from memarena.sweep.errors import SweepError

TIMED = "timed"
"""Resource that nodes declare which take timed cells."""
MONITOR = "RAY_memory_monitor_refresh_ms"
"""Variable of a node's environment: how often Ray looks whether to kill what takes much memory; 0: never."""
_PREFIX = "ms-"
"""Of a Ray's folder; short, since sockets in it have long names."""
_OWNER = "owner"
_CONNECT_S = 5.0
_TOKEN_BYTES = 32


def answers(host: str, port: int) -> bool:
    """Whether anybody listens there."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def connected(address: str | None, cores: int | None, gpus: float) -> tuple[ModuleType, str | None]:
    """Ray, connected; and the folder of one that was started here."""
    for name, value in (("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0"), ("RAY_USAGE_STATS_ENABLED", "0")):
        os.environ.setdefault(name, value)
    # Whoever reaches a port of Ray can run programs there.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if address is None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
        os.environ.setdefault(MONITOR, "0")
    else:
        _check_cluster(address, _token())
    sigterm = _noted_sigterm()
    try:
        import ray  # noqa: PLC0415 (an extra)
        from ray._private import utils  # noqa: PLC0415
    except ImportError as error:
        raise SweepError("--executor ray: needs Ray", remedy="pip install 'memarena[ray]'") from error
    # Ray's own handler exits with 15 from wherever it is, also where Python ignores that.
    utils.set_sigterm_handler = lambda _: None
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    folder = own_folder() if address is None else None
    try:
        if address is None:
            own: dict[str, Any] = {
                "num_cpus": cores,
                "num_gpus": math.ceil(gpus),
                "resources": {TIMED: 1},
                "_temp_dir": folder,
            }
            arguments: dict[str, Any] = {"address": "local", "include_dashboard": False, **own}
        else:
            arguments = {"address": address, "_node_ip_address": _loopback(address)}
        with contextlib.chdir("/"):  # its workers import from the folder that is the current one now
            ray.init(**arguments, **quiet)
        _interrupt_by_sigterm()
        if sigterm:
            raise KeyboardInterrupt
    except BaseException as error:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if sigterm or isinstance(error, SystemExit | KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise SweepError(f"--address {address or 'local'}: {told_line(error)}") from error
    return ray, folder


def own_folder() -> str:
    """A new folder for a Ray of our own; those of processes that were killed are removed."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if not leftover.is_symlink() and leftover.stat().st_uid == os.getuid() and _owner_is_gone(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    me = psutil.Process()
    (Path(folder) / _OWNER).write_text(f"{me.pid} {me.create_time()!r}", encoding="utf-8")
    return folder


def _owner_is_gone(folder: Path) -> bool:
    """Whether the process that made a folder is known and does not run any more."""
    try:
        pid, began = (folder / _OWNER).read_text(encoding="utf-8").split()
        return psutil.Process(int(pid)).create_time() != float(began)
    except psutil.NoSuchProcess:
        return True
    except (OSError, ValueError, psutil.Error):
        return False


def _noted_sigterm() -> list[int]:
    """Note SIGTERM from now on, in the list; it is obeyed once Ray has started, or has failed to."""
    signals: list[int] = []
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    return signals


def _interrupt_by_sigterm() -> None:
    """SIGTERM ends what has started as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)


def _token() -> str:
    """The token of a cluster; empty where authentication is switched off by name."""
    if os.environ["RAY_AUTH_MODE"] != "token":
        return ""
    named = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    token = os.environ.get("RAY_AUTH_TOKEN") or (named.read_text(encoding="utf-8") if named.is_file() else "")
    if not token.strip():
        raise SweepError(
            f"--executor ray: no token of the cluster: expected RAY_AUTH_TOKEN, or a file {named}; "
            "docs/sweeps.md says how a cluster gets one"
        )
    return token.strip()


def _check_cluster(address: str, token: str) -> None:
    """Ask the head who it is. Ray itself waits minutes for one that is not there, and prints a line each second."""
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise SweepError(f"--address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise SweepError(f"--address {address}: nobody answers there: {error.strerror or error}") from error
    answer = _ask(address, token)
    if answer is grpc.StatusCode.UNAUTHENTICATED:
        raise SweepError(f"--address {address}: the cluster does not take the token of RAY_AUTH_TOKEN or its file")
    if answer is not grpc.StatusCode.OK:
        raise SweepError(f"--address {address}: what answers there is no head of a Ray cluster ({answer.name})")
    if token and _ask(address, "") is grpc.StatusCode.OK:
        raise SweepError(
            f"--address {address}: the cluster takes orders from anybody: start its nodes with RAY_AUTH_MODE=token, "
            "or set RAY_AUTH_MODE=disabled here"
        )


def _ask(address: str, token: str) -> grpc.StatusCode:
    """How the head answers to a request without content."""
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes]
        call = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetClusterId")
        try:
            call(b"", timeout=_CONNECT_S, metadata=(("authorization", f"Bearer {token}"),) if token else ())
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def _loopback(address: str) -> str | None:
    """The address of a node that listens on this machine alone, which Ray would take for another one."""
    host = address.rpartition(":")[0]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host
    return None


def told_line(error: BaseException) -> str:
    """The telling line of one of Ray's messages, which may hold a stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("File ", "Traceback", "ray::", "^"))] or [
        type(error).__name__
    ]
    return (told[0] if len(told) == 1 or "Error" not in told[-1] else told[-1])[:400]
