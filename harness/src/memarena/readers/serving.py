"""Runs the harness's small model servers: in a thread of this process, or as a child process."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

from aiohttp import web
from memarena_dataset.safe_files import write_whole

from memarena.readers import wire

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
MAX_BODY_BYTES = 16 << 20


def write_address(path: Path, address: str) -> None:
    """Write the address of a server to a file: ``HOST:PORT`` and a line end."""
    write_whole(path, f"{address}\n")


def model_routes(
    model: str, route: str, answer: Callable[[web.BaseRequest, bytes], Awaitable[web.StreamResponse]]
) -> Handler:
    """Return the routes of a server of one model: its list of models, and ``route``, which ``answer`` handles."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response(wire.model_list(model))
        if request.path != route:
            return web.json_response(wire.error(f"no such route: {request.path}", "not_found"), status=404)
        raw = bytearray()
        while part := await request.content.readany():
            raw += part
            if len(raw) > MAX_BODY_BYTES:
                return web.json_response(wire.error("the body is too large", "body_too_large"), status=413)
        return await answer(request, bytes(raw))

    return handle


async def serve(handler: Handler, listener: socket.socket, stopping: asyncio.Event) -> None:
    """Serve HTTP on a listening socket until ``stopping`` is set."""

    async def quietly(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConnectionError as error:  # the caller went away: aiohttp closes the connection and logs nothing
            raise asyncio.CancelledError from error

    handlers = web.Server(quietly, handler_cancellation=True, access_log=None)
    server = await asyncio.get_running_loop().create_server(handlers, sock=listener)
    await stopping.wait()
    server.close()
    await handlers.shutdown(timeout=0.5)
    await server.wait_closed()


async def serve_as_child(handler: Handler, address_file: Path) -> None:
    """Serve on a free port of the loopback, write the address to a file, and end on SIGTERM."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    write_address(address_file, f"127.0.0.1:{listener.getsockname()[1]}")
    await serve(handler, listener, stopping)


class ThreadedServer:
    """An HTTP server on loopback in a thread of this process. Start it with ``with``."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._handler = handler
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self.port = 0

    def start(self) -> None:
        """Listen on a free port."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listener)), name=self._name, daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._ready.set()
        await serve(self._handler, listener, self._stopping)

    def stop(self) -> None:
        """Stop. Calling it twice is fine."""
        if self._thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
