"""Starts SGLang for a single stream, reads its settings back, and checks that they are those requested.

Two classes of results are never mixed: ``cold_prefill`` (no prefix cache, so that every prompt is read whole) and
``warm_prefix`` (prefixes are cached within a cell and flushed before it). Flags and endpoints are those of SGLang 0.5.3
to 0.5.23; a setting that a version does not report is noted, a setting that differs from the request is an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.processes import GuardedProcess, ProcessError
from memarena.readers import remote
from memarena.readers.sglang_settings import SglangSettings, launch_flags, wanted_settings
from memarena.readers.types import ReaderError, RunningReader

START_TIMEOUT_S = 1800.0
"""Loading the weights of a large model takes minutes."""

_POLL_S = 0.2
_NOT_INSTALLED = "No module named 'sglang'"
_SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""As ``-P``, for whichever Python serves and the workers that it starts: files of the current folder are no modules."""
_HOLDER = "import os,subprocess,sys; r,_=os.pipe(); sys.exit(subprocess.call(sys.argv[1:], stdin=r))"
"""Runs a command with a pipe as its standard input that closes when this process ends, however it ends."""
_IN_CONTAINER = (
    'exec 3<&0; python3 -m sglang.launch_server "$@" & server=$!; (cat <&3 >/dev/null; kill $server) & wait $server'
)
"""In the container: ends the server when standard input closes, so that a killed harness leaves no container behind.

The input is kept under another number, since a shell gives what runs in the background none.
"""


def start_sglang(settings: SglangSettings, *, work_dir: Path, timeout_s: float = START_TIMEOUT_S) -> RunningReader:
    """Start a server as a process or, with an image, as a container; return when it serves with the right settings.

    Raises :class:`ReaderError`, in one line, if it does not start or reports other settings than requested.
    """
    port = _free_port()
    command = server_command(settings, port)
    try:
        process = GuardedProcess.start(command, log_path=work_dir / "reader-sglang.log", env=_SAFE_PATH)
    except ProcessError as error:
        raise ReaderError(f"reader sglang: {error}") from error
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        _wait_until_serving(process, base_url, timeout_s)
        return connected(settings, base_url, process)
    except BaseException:
        process.stop()
        raise


def server_command(settings: SglangSettings, port: int) -> list[str]:
    """Return the command that serves until it is terminated; a container ends when its standard input closes."""
    flags = launch_flags(settings, port=port)
    if settings.image is None:
        return [*settings.program, "-m", "sglang.launch_server", *flags]
    mounted = Path(settings.model_path)
    volume = ["--volume", f"{mounted.resolve()}:{settings.model_path}:ro"] if mounted.exists() else []
    name = f"memarena-sglang-{secrets.token_hex(4)}"
    container = [
        "docker", "run", "--rm", "--interactive", "--init", "--name", name, "--gpus", "all", "--network", "host",
        "--ipc", "host", *volume, "--entrypoint", "/bin/sh", settings.image, "-c", _IN_CONTAINER, "sglang",
    ]  # fmt: skip
    return [sys.executable, "-P", "-c", _HOLDER, *container, *flags]


def connected(settings: SglangSettings, base_url: str, process: GuardedProcess | None) -> RunningReader:
    """Return the reader of a running server, after comparing the server's settings with those requested."""
    model = remote.choose_model(base_url, None, settings.served_name).name
    server = remote.identify(base_url, None)
    if server.kind != "sglang":
        raise ReaderError(f"reader sglang: {base_url} tells nothing of itself by /server_info or /get_server_info")
    untold = check_settings(settings, server.details)
    expected = planned(settings)
    upstream = dataclasses.replace(expected.upstream, model=model, upstream_model=model, base_url=base_url)
    upstream = dataclasses.replace(upstream, tokenizer=remote.usable_tokenizer(upstream))
    details = {**server.details, **expected.ref.details, "not_told": ", ".join(untold)}
    reported = {
        "name": model,
        "model": model,
        "base_url": base_url,
        "counts_tokens": upstream.counts_tokens,
        "details": {key: value for key, value in details.items() if value},
    }
    return RunningReader(expected.ref.model_copy(update=reported), upstream, process)


def planned(settings: SglangSettings) -> RunningReader:
    """Return the reader as known before its server starts: without an address and without details."""
    model = settings.served_name or settings.model_path
    upstream = Upstream(
        model=model,
        base_url="",
        upstream_model=model,
        context_window_tokens=settings.context_tokens,
        no_system_role=settings.no_system_role,
        tokenizer="sglang",
        identity=settings.model_path,
    )
    details = {"launch_flags": " ".join(launch_flags(settings, port=0)), "image": settings.image or ""}
    ref = ReaderRef(
        name=model,
        kind="sglang",
        model=model,
        context_window_tokens=settings.context_tokens,
        no_system_role=settings.no_system_role,
        counts_tokens=upstream.counts_tokens,
        result_class=settings.result_class,
        details={key: value for key, value in details.items() if value},
    )
    return RunningReader(ref, upstream)


def check_settings(settings: SglangSettings, reported: Mapping[str, str]) -> list[str]:
    """Compare the settings that a server reports with those requested; return the names of those it does not report.

    Raises :class:`ReaderError` naming the first that differs.
    """
    unreported = []
    for name, expected in wanted_settings(settings).items():
        if name not in reported:
            unreported.append(name)
        elif not _same(reported[name], expected):
            raise ReaderError(f"reader sglang: the server runs with {name} {reported[name]}, asked for was {expected}")
    return unreported


def _same(reported: str, expected: str) -> bool:
    with contextlib.suppress(ValueError):
        return float(reported) == float(expected)
    return reported == expected


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_until_serving(process: GuardedProcess, base_url: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not remote.answers(f"{base_url}/models"):
        if process.poll() is not None:
            log_tail = process.log_tail(3)
            hint = "; memarena readers install sglang" if _NOT_INSTALLED in log_tail else ""
            raise ReaderError(f"reader sglang: it ended while starting; its log says: {log_tail}{hint}")
        if time.monotonic() > deadline:
            raise ReaderError(f"reader sglang: it did not serve after {timeout_s:g} s: {process.log_tail(3)}")
        time.sleep(_POLL_S)
