"""Reads facts of an ollama embedding server and of the model server over HTTP, as any client could.

SGLang (``--enable-metrics``): GET /metrics, in the text format of Prometheus.
ollama: GET /api/version, GET /api/ps (``size`` and ``size_vram`` of each loaded model), POST /api/embed.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import psutil
from memarena.readers.remote import api_url, ask, choose_model, identify
from memarena.readers.types import ReaderError
from pydantic import JsonValue

from memarena_spark.facts import DeclaredOrder, Embedder, ReaderServer, Unknown
from memarena_spark.machine.images import container_started_at
from memarena_spark.plans import EmbedderSpec, ReaderServerSpec

_TIMEOUT_S = 60.0
_COUNTERS = (
    "sglang:http_requests_total", "sglang:num_requests_total", "sglang:realtime_tokens_total",
    "sglang:prompt_tokens_total", "sglang:generation_tokens_total",
)  # fmt: skip
"""Requests by endpoint, completed requests, tokens of the engine. Only the first and the third include SGLang's own
health check."""
_COUNTED = re.compile(r"^([a-z_:]+)(\{.*\})?\s+(\S+)$", re.MULTILINE)
_OWN_ENDPOINT = 'endpoint="/metrics'
_PROBE_TOKENS = 16
_SELDOM_BOUND = "127.0.0.2"
"""A loopback address at which only a server that listens on all addresses answers, as a rule."""
# Without proxies: the servers are on this machine or in its containers.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class _NoAnswerError(Exception):
    """A server did not answer as expected; the message is a line."""


def ask_embedder(spec: EmbedderSpec) -> Embedder | Unknown:
    """Return the server's version, the model's bytes on the GPU, and the seconds of an embedding by the warm model."""
    root = spec.url.rstrip("/")
    try:
        version = _object(f"{root}/api/version").get("version")
        _embed(root, spec.model)
        began = time.monotonic()
        _embed(root, spec.model)
        warm_s = time.monotonic() - began
        model_bytes = _loaded(root, spec.model)
    except _NoAnswerError as error:
        return Unknown(unknown=str(error))
    return Embedder(
        version=str(version),
        model=spec.model,
        size_bytes=model_bytes["size"],
        vram_bytes=model_bytes["size_vram"],
        warm_s=warm_s,
        started_at_unix=_started_at(spec.container, spec.url),
    )


def _embed(root: str, model: str) -> None:
    url = f"{root}/api/embed"
    reply = _object(url, {"model": model, "input": "A short sentence that is the same each time."})
    vectors = reply.get("embeddings")
    first = vectors[0] if isinstance(vectors, list) and vectors else None
    if not isinstance(first, list) or not first:
        raise _NoAnswerError(f"POST {url}: no embedding in the reply")


def _loaded(root: str, model: str) -> dict[str, int]:
    url = f"{root}/api/ps"
    models = _object(url).get("models")
    for entry in models if isinstance(models, list) else ():
        if isinstance(entry, dict) and str(entry.get("name", "")) in (model, f"{model}:latest"):
            size, vram = entry.get("size"), entry.get("size_vram", 0)
            if isinstance(size, int) and isinstance(vram, int):
                return {"size": size, "size_vram": vram}
    raise _NoAnswerError(f"GET {url}: {model} is not among the loaded models")


def ask_reader(spec: ReaderServerSpec, api_key: str | None = None) -> ReaderServer | Unknown:
    """Return kind, flags and version as the server reports them, and whether a short chat completion works.

    ``api_key`` is the one that the run will ask with.
    """
    try:
        base_url = api_url(spec.url)
        choose_model(base_url, api_key, spec.model)
    except ReaderError as error:
        return Unknown(unknown=str(error))
    server = identify(base_url, api_key)
    return ReaderServer(
        kind=server.kind,
        models=(spec.model,),
        details=dict(server.details),
        started_at_unix=_started_at(spec.container, spec.url),
        probe_failure=_probe(base_url, spec.model, api_key),
    )


def count_requests(spec: ReaderServerSpec, api_key: str | None = None) -> dict[str, float] | Unknown:
    """Return SGLang's counters of requests and tokens, by name and labels, without requests of the metrics page."""
    url = urllib.parse.urljoin(spec.url, "/metrics")
    try:
        page = _text(urllib.request.Request(url, headers=_key(api_key)), url)  # noqa: S310 (as in _object)
    except _NoAnswerError as error:
        return Unknown(unknown=str(error))
    counts = {
        name + labels: float(value)
        for name, labels, value in _COUNTED.findall(page)
        if name in _COUNTERS and _OWN_ENDPOINT not in labels
    }
    return counts or Unknown(unknown=f"GET {url}: no counter of requests")


def open_to_containers(url: str, in_container: bool | None = None) -> bool:
    """Whether a container on an internal network of this machine can reach a server, at the host's address.

    On the host: the server listens on all addresses, so that a loopback address which is rarely bound answers too.
    In a container: the URL's name is the host's, the first address of a network that this container is on.
    """
    parts = urllib.parse.urlsplit(url)
    interfaces = [
        interface
        for addresses in psutil.net_if_addrs().values()
        for interface in addresses
        if interface.family == socket.AF_INET
    ]
    try:
        resolved = socket.getaddrinfo(parts.hostname, parts.port or 80, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return False  # another check reports that it cannot be reached
    servers = {ipaddress.IPv4Address(address[0]) for *_, address in resolved}
    if Path("/.dockerenv").exists() if in_container is None else in_container:
        networks = (
            ipaddress.IPv4Interface(f"{interface.address}/{interface.netmask}").network for interface in interfaces
        )
        return any(network.network_address + 1 in servers for network in networks if not network.is_loopback)
    own_addresses = {interface.address for interface in interfaces}
    if not any(server.is_loopback or str(server) in own_addresses for server in servers):
        return False
    try:
        socket.create_connection((_SELDOM_BOUND, parts.port or 80), timeout=2).close()
    except OSError:
        return False
    return True


def _key(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _probe(base_url: str, model: str, api_key: str | None) -> str:
    """Ask for a short chat completion; return why that failed, empty if it worked."""
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": [{"role": "user", "content": "Reply with one short word of greeting."}],
        "max_tokens": _PROBE_TOKENS,
        "temperature": 0,
    }
    try:
        reply = ask(f"{base_url}/chat/completions", api_key, body)
    except ReaderError as error:
        return str(error)
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    texts = [message.get(key) for key in ("content", "reasoning_content")] if isinstance(message, dict) else []
    return "" if any(isinstance(text, str) and text.strip() for text in texts) else "the reply is empty"


def _started_at(container: str | None, url: str) -> float | DeclaredOrder | Unknown:
    """Return when the server was started: its container, else the process that listens on its port here."""
    if container is not None:
        return container_started_at(container)
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr
                and connection.laddr[1] == port
                and connection.pid
            ):
                return float(psutil.Process(connection.pid).create_time())
    except psutil.Error as error:
        return Unknown(unknown=f"who listens on port {port}: {error}")
    return Unknown(unknown=f"no process that may be looked at listens on port {port}; name its container in the plan")


def _object(url: str, body: Mapping[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """Return the JSON object that a server answers: to a GET, or to a POST of ``body``."""
    request = urllib.request.Request(  # noqa: S310 (the plan's schema lets http and https through only)
        url,
        data=None if body is None else json.dumps(dict(body)).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        content = json.loads(_text(request, url))
    except ValueError as error:
        raise _NoAnswerError(f"{url} answered with something that is no JSON") from error
    if not isinstance(content, dict):
        raise _NoAnswerError(f"{url} answered with no JSON object")
    return content


def _text(request: urllib.request.Request, url: str) -> str:
    """Return the body of a reply, decoded as UTF-8."""
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as reply:
            return str(reply.read(), "utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            raise _NoAnswerError(f"{url} answered {error.code} {error.reason}") from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise _NoAnswerError(f"{url} cannot be reached: {reason}") from error
