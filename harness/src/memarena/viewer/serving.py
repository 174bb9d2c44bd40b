"""Listens until it is told to end."""

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
    told: Callable[[str], None],
    token: str | None = None,
) -> None:
    """Serve an application until SIGINT or SIGTERM; ``told`` gets the address to open, with its token.

    ``token``: the one that lets in; None: a new one.

    Raises ViewerError if the address cannot be listened on.
    """
    listening = listening_socket(host, port)
    door = Door.new(host, listening.getsockname()[1], token)
    runner = web.AppRunner(make(door), shutdown_timeout=1.0)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        told(door.address)
        await ended.wait()
    finally:
        await runner.cleanup()


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that takes connections. Raises ViewerError, which names the flags."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ViewerError(f"--host {host}: {error.strerror}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen()
    except OSError as error:
        found.close()
        raise ViewerError(f"--host {host} --port {port}: cannot be listened on: {error.strerror}") from error
    return found
