"""Runs the command line of a backend: parses flags and serves a memory; a bad flag prints a line and exits with 2."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from memarena_backend.server import CLOSE_GRACE_S, STOP_GRACE_S, BackendServer, MemoryFactory, Security, ServeError
from memarena_backend.store import StoreError

EXIT_BAD_INPUT = 2

_LOG_LEVELS = ("debug", "info", "warning", "error")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Arguments:
    variant: str
    listen: str
    address_file: Path | None
    data_dir: Path
    bearer_token_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    log_level: str


class _UsageError(Exception):
    """The command line cannot be used; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def run_backend(memories: MemoryFactory | Mapping[str, MemoryFactory], argv: Sequence[str] | None = None) -> int:
    """Serve a memory until SIGTERM or SIGINT; return the exit code.

    If a package offers several memories, pass them by name; ``--variant`` then chooses.
    """
    variants = {"": memories} if callable(memories) else dict(memories)
    try:
        arguments = _parse(variants, argv)
        logging.basicConfig(
            stream=sys.stderr,
            level=arguments.log_level.upper(),
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        # These log several lines for each question, which `compose up` would show during a run.
        for name in ("httpx", "httpx2"):
            logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
        server = BackendServer(
            variants[arguments.variant],
            arguments.data_dir,
            arguments.listen,
            _security(arguments),
        )
    except (_UsageError, StoreError, ServeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_BAD_INPUT
    return _serve_until_signal(server, arguments.address_file)


def _serve_until_signal(server: BackendServer, address_file: Path | None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    stopping = threading.Event()

    def on_signal(number: int, _: FrameType | None) -> None:
        stopping.set()
        _exit_after_grace()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        _log.info("listening on %s", server.address)
        if address_file is not None:
            _write_address(address_file, server.address)
        stopping.wait()
    except OSError as error:
        sys.stderr.write(f"error: --address-file {address_file}: {error.strerror}\n")
        return EXIT_BAD_INPUT
    finally:
        server.stop()
    return 0


def _exit_after_grace() -> None:
    """Force the exit after the grace period even if a call still blocks a thread.

    The port is closed by then: a process that lingered would look alive and answer nothing, and its supervisor could
    not restart it. Nothing is lost, since a committed day is durable before its Ingest returns.
    """
    overdue = threading.Timer(STOP_GRACE_S + CLOSE_GRACE_S, os._exit, (0,))
    overdue.daemon = True
    overdue.start()


def _write_address(path: Path, address: str) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(f"{address}\n", encoding="utf-8")
    temporary.replace(path)


def _parse(variants: Mapping[str, MemoryFactory], argv: Sequence[str] | None) -> _Arguments:
    """Parse the command line; ``variants`` with several names require ``--variant``. Raises _UsageError."""
    parser = _Parser(description="Serves a memory over the MemoryBackend contract.", allow_abbrev=False)
    if list(variants) != [""]:
        parser.add_argument("--variant", choices=list(variants), required=True, help="which memory to serve")
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="port 0 picks a free one")
    parser.add_argument("--address-file", type=Path, metavar="PATH", help="where to write HOST:PORT once healthy")
    parser.add_argument("--data-dir", type=Path, required=True, metavar="DIR", help="where committed days are kept")
    parser.add_argument("--bearer-token-file", type=Path, metavar="PATH", help="demand this token of every call")
    parser.add_argument("--tls-cert", type=Path, metavar="PATH", help="certificate chain in PEM")
    parser.add_argument("--tls-key", type=Path, metavar="PATH", help="private key in PEM")
    parser.add_argument("--log-level", choices=_LOG_LEVELS, default="info")
    parsed = parser.parse_args(argv)
    return _Arguments(
        variant=getattr(parsed, "variant", ""),
        listen=parsed.listen,
        address_file=parsed.address_file,
        data_dir=parsed.data_dir,
        bearer_token_file=parsed.bearer_token_file,
        tls_cert=parsed.tls_cert,
        tls_key=parsed.tls_key,
        log_level=parsed.log_level,
    )


def _security(arguments: _Arguments) -> Security:
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise _UsageError("--tls-cert and --tls-key go together")
    tls = None
    if arguments.tls_cert is not None and arguments.tls_key is not None:
        tls = (_file_bytes("--tls-cert", arguments.tls_cert), _file_bytes("--tls-key", arguments.tls_key))
    token = None
    if arguments.bearer_token_file is not None:
        token = _file_bytes("--bearer-token-file", arguments.bearer_token_file).decode(errors="replace").strip()
        if not token:
            raise _UsageError(f"--bearer-token-file {arguments.bearer_token_file}: expected a token, the file is empty")
    return Security(tls, token)


def _file_bytes(flag: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _UsageError(f"{flag} {path}: {error.strerror}") from error
