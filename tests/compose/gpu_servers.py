"""What stands in for ollama and SGLang where there is no GPU: the null reader, with the doors by which each is known.

Runs inside the image of memarena-spark, alone: python3 gpu_servers.py ollama | sglang --model-path=MODEL --port=PORT
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from memarena.readers.scripted import NullReader

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
EMBEDDING_MODEL = "bge-m3"


def ollama() -> web.Application:
    """The embedding model is all on the GPU once it was asked for anything."""
    models = NullReader(model=EMBEDDING_MODEL)
    loaded: list[dict[str, object]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/version":
            return web.json_response({"version": "0.12.6"})
        if request.path == "/api/embed":
            loaded[:] = [{"name": f"{EMBEDDING_MODEL}:latest", "size": 1000, "size_vram": 1000}]
            return web.json_response({"model": EMBEDDING_MODEL, "embeddings": [[0.1, 0.2]]})
        if request.path == "/api/ps":
            return web.json_response({"models": loaded})
        return await models.handle(request)

    return application(answer)


def sglang(model: str, flags: Sequence[str]) -> web.Application:
    """Counts what it is asked, its health too, as SGLang does with --enable-metrics, and tells its flags."""
    models = NullReader(model=model, dialect="sglang")
    asked: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked[request.path] += 1
        print("asked", request.path, flush=True)  # noqa: T201  (read by the test from the container's log)
        if request.path == "/server_info":
            given = (flag.removeprefix("--").partition("=") for flag in flags)
            told: dict[str, object] = {name.replace("-", "_"): value or True for name, _, value in given}
            return web.json_response({"version": "null", "model_path": model, **told})
        if request.path == "/metrics":
            counts = (f'sglang:http_requests_total{{endpoint="{path}"}} {n}.0' for path, n in sorted(asked.items()))
            return web.Response(text="\n".join(counts) + "\n")
        if request.path.startswith("/health"):
            return web.Response(text="")
        return await models.handle(request)

    return application(answer)


def application(answer: Handler) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("which", choices=("ollama", "sglang"))
    parser.add_argument("--model-path", default="")
    parser.add_argument("--port", type=int, default=11434)
    given, flags = parser.parse_known_args()
    app = ollama() if given.which == "ollama" else sglang(given.model_path, flags)
    web.run_app(app, host="0.0.0.0", port=given.port, print=None)


if __name__ == "__main__":
    main()
