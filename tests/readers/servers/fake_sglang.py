"""A program that serves like SGLang, version by version, on a CPU: ``python -m sglang.launch_server`` runs it in tests.

It takes the real flags, tells them back under the names that its version uses, streams a fixed reply, and flushes as
that version does. The environment variable FAKE_SGLANG holds settings as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket

from aiohttp import web
from memarena.readers import wire
from memarena.readers.serving import serve
from pydantic import JsonValue

SETTINGS = json.loads(os.environ.get("FAKE_SGLANG", "{}"))
VERSION = SETTINGS.get("version", "0.5.23")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("model-path", "host", "port", "attention-backend", "served-model-name"):
        parser.add_argument(f"--{name}")
    for name in ("max-running-requests", "context-length", "stream-interval", "random-seed"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--mem-fraction-static", type=float)
    for name in ("enable-cache-report", "enable-metrics", "disable-radix-cache"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def told(args: argparse.Namespace) -> dict[str, object]:
    info = {**vars(args), "version": VERSION, **SETTINGS.get("told", {})}
    return {key: value for key, value in info.items() if key not in SETTINGS.get("untold", ())}


def make(args: argparse.Namespace) -> object:
    model = args.served_model_name or args.model_path
    flushes = {"count": 0}
    info_route = "/get_server_info" if VERSION.startswith("0.5.3") else "/server_info"

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        body = json.loads(raw) if raw else {}
        fixed = {"/v1/models": wire.model_list(model), info_route: told(args), "/flushes": flushes}
        if request.path == "/tokenize":
            fixed["/tokenize"] = {"count": [len(text.split()) for text in body["prompt"]], "tokens": []}
        if request.path in fixed:
            return web.json_response(fixed[request.path])
        if request.path == "/flush_cache":
            flushes["count"] += 1
            busy = flushes["count"] <= SETTINGS.get("busy_flushes", 0)
            status = SETTINGS.get("flush_status", 400 if busy else 200)
            return web.Response(status=status, text="Cache flushed.\nPlease check backend logs for more details.")
        if request.path != "/v1/chat/completions":
            return web.json_response({"detail": "Not Found"}, status=404)
        return await complete(request, body)

    async def complete(request: web.BaseRequest, body: dict[str, JsonValue]) -> web.StreamResponse:
        words = SETTINGS.get("reply", "Hello there")
        cached = SETTINGS.get("cached_tokens", 0)
        # 0.5.3 leaves the details out where nothing was cached.
        usage = wire.token_usage(
            sum(len(message.content.split()) for message in wire.chat_messages(body)), 2, cached or None
        )
        if not body.get("stream"):
            return web.json_response(wire.chat_completion(model, {"content": words}, "stop", usage))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(wire.sse(wire.chat_chunk(model, {"role": "assistant", "content": ""})))
        await response.write(wire.sse(wire.chat_chunk(model, {"content": words})))
        await response.write(wire.sse(wire.chat_chunk(model, {}, "stop")))
        await response.write(wire.sse(wire.usage_chunk(model, usage)) + wire.DONE)
        await response.write_eof()
        return response

    return handle


async def main() -> None:
    args = arguments()
    if SETTINGS.get("dies"):
        raise SystemExit(f"RuntimeError: {SETTINGS['dies']}")
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await serve(make(args), socket.create_server(("127.0.0.1", int(args.port))), stopping)  # type: ignore[arg-type]


if __name__ == "__main__":
    asyncio.run(main())
