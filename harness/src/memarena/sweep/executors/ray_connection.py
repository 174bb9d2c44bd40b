"""Connects a sweep to a Ray cluster that requires a token, or starts its own Ray on this machine."""

from __future__ import annotations

import contextlib
import functools
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
"""Resource that a node declares if it runs timed cells."""
MONITOR = "RAY_memory_monitor_refresh_ms"
"""Variable of a node's environment: interval in ms at which Ray looks for processes to kill for memory; 0: never."""
_PREFIX = "ms-"
"""Prefix of the folder of a Ray started here; short, since paths of sockets in it are long and have a limit."""
_OWNER = "owner"
"""File in that folder: process id and start time of the process that made it."""
_CONNECT_S = 5.0
_TOKEN_BYTES = 32
_MAX_LINE_CHARS = 400


def is_listening(host: str, port: int) -> bool:
    """Whether a server listens at host:port."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def connect(address: str | None, cores: int | None, gpus: float) -> tuple[ModuleType, str | None]:
    """Connect to the cluster at ``address``, or, if it is None, start Ray with ``cores`` and ``gpus`` on this machine.

    Returns the module ``ray``, and the folder of a Ray that was started here, else None. Raises :class:`SweepError` if
    it fails, and KeyboardInterrupt if SIGTERM arrived meanwhile.
    """
    _set_environment(starts_here=address is None)
    _hold_sigterm()  # before any thread starts: threads inherit the signal mask
    try:
        if address is not None:
            _check_cluster(address, _token())
        return _started(address, cores, gpus)
    finally:
        _interrupt_by_sigterm()


def _started(address: str | None, cores: int | None, gpus: float) -> tuple[ModuleType, str | None]:
    """Start Ray or connect to it, with SIGTERM blocked; return and raise what :func:`connect` does."""
    try:
        import ray  # noqa: PLC0415 (an extra)
        from ray._private import utils  # noqa: PLC0415
    except ImportError as error:
        raise SweepError("--executor ray: needs Ray", remedy="pip install 'memarena[ray]'") from error
    # Ray's own handler exits with code 15 wherever the program is, also where Python ignores SystemExit.
    utils.set_sigterm_handler = lambda _: None
    folder = own_folder() if address is None else None
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        arguments = _init_arguments(address, cores, gpus, folder)
        with contextlib.chdir("/"):  # Ray's workers import modules from the folder that is current during init
            ray.init(**arguments, **quiet)
        _interrupt_by_sigterm()
    except BaseException as error:
        try:
            ray.shutdown()
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, SystemExit | KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise SweepError(f"--address {address or 'local'}: {summary_line(error)}") from error
    return ray, folder


def _set_environment(*, starts_here: bool) -> None:
    """Set Ray's variables; those that a user has set stay. ``starts_here``: Ray is started by this process."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Without a token, any client that reaches a port of Ray can run programs there.
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if starts_here:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(_TOKEN_BYTES))
        os.environ.setdefault(MONITOR, "0")


def _init_arguments(address: str | None, cores: int | None, gpus: float, folder: str | None) -> dict[str, Any]:
    """Return the arguments of ``ray.init`` that differ between a cluster and a Ray that is started here."""
    if address is not None:
        return {"address": address, "_node_ip_address": _loopback(address)}
    return {
        "address": "local",
        "include_dashboard": False,
        "num_cpus": cores,
        "num_gpus": math.ceil(gpus),
        "resources": {TIMED: 1},
        "_temp_dir": folder,
    }


def own_folder() -> str:
    """Return a new folder for a Ray that is started here, after removing those of processes that were killed."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if not leftover.is_symlink() and leftover.stat().st_uid == os.getuid() and _owner_is_gone(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    me = psutil.Process()
    (Path(folder) / _OWNER).write_text(f"{me.pid} {me.create_time()!r}", encoding="utf-8")
    return folder


def _owner_is_gone(folder: Path) -> bool:
    """Whether the process that made a folder is known and no longer runs."""
    try:
        pid, began = (folder / _OWNER).read_text(encoding="utf-8").split()
        return psutil.Process(int(pid)).create_time() != float(began)
    except psutil.NoSuchProcess:
        return True
    except (OSError, ValueError, psutil.Error):
        return False


def _hold_sigterm() -> None:
    """Block SIGTERM in this thread and those that it starts, but not in Ray's servers; a signal stays pending.

    Ray's core replaces the handler of SIGTERM while it starts, by one that prints a stack trace and may abort.
    """
    if threading.current_thread() is threading.main_thread():
        _release_in_children()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


@functools.cache
def _release_in_children() -> None:
    """Unblock SIGTERM in child processes: Ray stops its servers by it."""
    release = functools.partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.register_at_fork(after_in_child=release)


def _interrupt_by_sigterm() -> None:
    """Let SIGTERM interrupt this process as Ctrl-C does, from now on; raise KeyboardInterrupt if one is pending."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _token() -> str:
    """Return the token of a cluster; "" if RAY_AUTH_MODE switches authentication off."""
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
    """Ask the head for its id. Raises :class:`SweepError` if it does not answer, or not as a head with this token.

    Ray itself waits minutes for a head that does not answer, and prints a line each second.
    """
    if address == "auto":
        return
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit()):
        raise SweepError(f"--address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise SweepError(f"--address {address}: no server answers there: {error.strerror or error}") from error
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
    """Return the status with which the head answers a request without content."""
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
    """Return the host of ``address`` if it is a loopback address, since Ray would treat it as a different node."""
    host = address.rpartition(":")[0]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return host
    return None


def summary_line(error: BaseException) -> str:
    """Return the most informative line of one of Ray's messages, which may contain a stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = [line for line in lines if not line.startswith(("File ", "Traceback", "ray::", "^"))]
    if not messages:
        return type(error).__name__
    # The last line of a stack trace names the error; otherwise the first line is the message.
    return (messages[-1] if "Error" in messages[-1] else messages[0])[:_MAX_LINE_CHARS]
