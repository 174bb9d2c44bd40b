"""Imitates SGLang and ollama where there is no GPU: programs with their flags and routes that serve scripted replies.

python3 -m tests.support.gpu_servers ollama [--port PORT]
python3 -m tests.support.gpu_servers sglang --model-path=MODEL --port=PORT [flags of SGLang]

``python -m sglang.launch_server`` of a test and the containers of compose/spark.yaml run it. The environment variable
FAKE_SGLANG holds settings as JSON:

``version``        the version that it reports, by which its routes differ
``told``           settings that it reports with another value than its flags have
``untold``         settings that it does not report
``busy_flushes``   number of cache flushes that it refuses at first
``flush_status``   HTTP status of every cache flush
``reply``          text of every reply
``cached_tokens``  cached tokens that it reports with every reply
``dies``           it ends at its start with this message
``refuses``        a model that it cannot load
``gpu``            a file that it locks as the GPU, so that a second server cannot start; FILE.loads lists loaded models
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.model_script import Body, Script, words_of
from tests.support.model_server import ModelServer, Route

EMBEDDING_MODEL = "bge-m3"
SWITCHES = ("disable_radix_cache", "enable_cache_report", "enable_metrics")


def ollama(port: int) -> ModelServer:
    """Return a server of embeddings whose model is completely on the GPU after the first request."""
    loaded: list[dict[str, object]] = []

    def vectors(body: Body) -> object:
        loaded[:] = [{"name": f"{EMBEDDING_MODEL}:latest", "size": 1000, "size_vram": 1000}]
        return {"model": EMBEDDING_MODEL, "embeddings": [[0.1, 0.2]]}

    routes: dict[str, Route] = {"/api/version": {"version": "0.12.6"}, "/api/embed": vectors}
    routes["/api/ps"] = lambda body: {"models": loaded}
    return ModelServer("Hello there", "0.0.0.0", port, model=EMBEDDING_MODEL, routes=routes)


def sglang(flags: Sequence[str], settings: dict[str, Any]) -> ModelServer:
    """Return a server that flushes its cache and reports its flags as its version does; it counts all requests."""
    options = dict.fromkeys(SWITCHES, False) | dict(_flags(flags))
    model = str(options.get("served_model_name") or options["model_path"])
    version = settings.get("version", "0.5.23")
    details = {**options, "version": version, **settings.get("told", {})}
    details = {key: value for key, value in details.items() if key not in settings.get("untold", ())}
    request_counts: Counter[str] = Counter()

    def flush(body: Body) -> Script:
        busy = body.number < settings.get("busy_flushes", 0)
        status = settings.get("flush_status", 400 if busy else 200)
        return Script(status=status, body="Cache flushed.\nPlease check backend logs for more details.")

    def note(path: str) -> None:
        request_counts[path] += 1
        print("asked", path, flush=True)  # noqa: T201  (read by a test from the container's log)

    def metrics(body: Body) -> str:
        return "\n".join(
            f'sglang:http_requests_total{{endpoint="{path}"}} {n}.0' for path, n in sorted(request_counts.items())
        )

    info = "/get_server_info" if version.startswith("0.5.3") else "/server_info"
    routes: dict[str, Route] = {"/server_info": None, info: details, "/flush_cache": flush, "/metrics": metrics}
    routes |= {"/health": "", "/health_generate": ""}
    routes["/flushes"] = lambda body: {"count": request_counts["/flush_cache"]}
    # Version 0.5.3 omits the details if no token was cached.
    words = Script(settings.get("reply", "Hello there"), cached_tokens=settings.get("cached_tokens") or None)

    def reply(body: Body) -> Script:
        return replace(words, prompt_tokens=words_of(body))

    host = str(options.get("host", "127.0.0.1"))
    server = ModelServer(reply, host, int(str(options["port"])), model=model, dialect="sglang", routes=routes)
    server.on_request = note
    return server


def _flags(flags: Sequence[str]) -> list[tuple[str, object]]:
    """``--name value`` and ``--name=value``; a flag without a value is on."""
    pairs: list[tuple[str, object]] = []
    for flag in flags:
        if flag.startswith("--"):
            name, _, value = flag.removeprefix("--").partition("=")
            pairs.append((name.replace("-", "_"), value or True))
        else:
            pairs[-1] = (pairs[-1][0], flag)
    return [(name, _number(value)) for name, value in pairs]


def _number(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _load(gpu: Path, flags: Sequence[str]) -> None:
    """Occupy the whole GPU until this process ends. Raises SystemExit if another server has it."""
    handle = os.open(gpu, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit("torch.OutOfMemoryError: CUDA out of memory") from None
    with gpu.with_suffix(".loads").open("a") as loads:
        loads.write(f"{dict(_flags(flags))['model_path']}\n")


def install(folder: Path) -> str:
    """Write a package that makes ``python -m sglang.launch_server`` the scripted server; return its PYTHONPATH."""
    package = folder / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "launch_server.py").write_text(
        "import sys\nfrom tests.support.gpu_servers import main\nmain(['sglang', *sys.argv[1:]])\n"
    )
    return os.pathsep.join([str(folder), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])


def main(argv: Sequence[str]) -> None:
    """Serve until the process ends."""
    settings = json.loads(os.environ.get("FAKE_SGLANG", "{}"))
    if settings.get("dies"):
        raise SystemExit(f"RuntimeError: {settings['dies']}")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if argv[0] == "ollama":
        parser = argparse.ArgumentParser()
        parser.add_argument("--port", type=int, default=11434)
        server = ollama(parser.parse_args(argv[1:]).port)
    else:
        if settings.get("refuses") == dict(_flags(argv[1:]))["model_path"]:
            raise SystemExit(f"OSError: no weights of {settings['refuses']}")
        if "gpu" in settings:
            _load(Path(settings["gpu"]), argv[1:])
        server = sglang(argv[1:], settings)
    server.join()


if __name__ == "__main__":
    main(sys.argv[1:])
