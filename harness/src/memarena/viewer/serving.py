"""Serves an aiohttp application on a host and port until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

from aiohttp import web

from memarena.viewer.errors import ViewerError
from memarena.viewer.security import Door


async def serve(
    make: Callable[[Door], web.Application],
    host: str,
    port: int,
    report_address: Callable[[str], None],
    token: str | None = None,
) -> None:
    """Serve an application until SIGINT or SIGTERM.

    Args:
        make: returns the application for a door.
        host: name or address to listen on.
        port: 0 for any free one.
        report_address: called with the address to open, token included, once the server listens.
        token: None for a new one.

    Raises ViewerError if the address cannot be listened on.
    """
    listening = listening_socket(host, port)
    door = Door.new(host, listening.getsockname()[1], token)
    runner = web.AppRunner(make(door), shutdown_timeout=1.0)
    ended = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, ended.set)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        report_address(door.address)
        await ended.wait()
    finally:
        await runner.cleanup()


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ViewerError, which names the flags."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ViewerError(f"--host {host}: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise ViewerError(f"--host {host} --port {port}: cannot be listened on: {error.strerror}") from error
    return listening
