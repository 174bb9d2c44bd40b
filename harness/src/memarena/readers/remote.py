"""Readers behind a URL: is the server there, which model, what window, which tokenizer endpoint."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from memarena.gateway import Upstream
from memarena.gateway.calls import UpstreamError
from memarena.gateway.counting import read_counts, tokenize_request
from memarena.readers.errors import ReaderError

DEFAULT_WINDOW_TOKENS = 16_384
"""Used where the server does not say its own; the paper's readers run with it."""

_TIMEOUT_S = 10.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TOLD_OF_SERVER = (
    "version", "build_info", "model_path", "model_ftype", "tp_size", "dtype", "quantization", "attention_backend",
    "context_length", "mem_fraction_static", "max_running_requests", "disable_radix_cache", "enable_cache_report",
    "stream_interval", "random_seed", "kv_cache_dtype", "total_slots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself. ``window_tokens`` and ``no_system_role`` are None where it says nothing."""

    kind: Literal["llama.cpp", "sglang", "other"]
    window_tokens: int | None = None
    no_system_role: bool | None = None
    details: Mapping[str, str] = field(default_factory=dict)


class _HttpError(Exception):
    """A request failed. ``status`` is None where nothing answered."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message)
        self.status = status


def _call(url: str, api_key: str | None, body: JsonValue = None) -> JsonValue:
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310  (the scheme is checked before)
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as reply:
            parsed: JsonValue = json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            raise _HttpError(error.code, f"answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _HttpError(None, f"cannot be reached: {error.reason}") from error
    except ValueError as error:
        raise _HttpError(None, "answered with something that is no JSON") from error
    except OSError as error:
        raise _HttpError(None, f"failed: {error}") from error
    return parsed


def answers(url: str) -> bool:
    """Whether a server answers a GET with JSON by now."""
    try:
        _call(url, None)
    except _HttpError:
        return False
    return True


def api_url(spec: str) -> str:
    """The API's base URL; a URL without a path gets ``/v1``. Raises :class:`ReaderError` if it is none."""
    parts = urllib.parse.urlsplit(spec)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ReaderError(f"reader {spec}: expected a URL such as http://127.0.0.1:30000/v1")
    path = parts.path.rstrip("/")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", ""))


def choose_model(base_url: str, api_key: str | None, model: str | None) -> str:
    """The model asked for, or the only one offered. Raises :class:`ReaderError` if there is no such choice."""
    try:
        listed = _call(f"{base_url}/models", api_key)
    except _HttpError as error:
        hint = " (is the API key right?)" if error.status in {401, 403} else ""
        raise ReaderError(f"reader {base_url}: GET {base_url}/models {error}{hint}") from error
    data = listed.get("data") if isinstance(listed, dict) else None
    entries = [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
    offered = [name for each in entries if isinstance(name := each.get("id"), str)]
    if model is not None:
        if offered and model not in offered:
            raise ReaderError(f"reader {base_url}: no model {model!r}; offered: {', '.join(offered[:8])}")
        return model
    if len(offered) != 1:
        what = f"{len(offered)} models ({', '.join(offered[:8])})" if offered else "no model"
        raise ReaderError(f"reader {base_url}: the server offers {what}; say which with --model")
    return offered[0]


def ask(url: str, api_key: str | None, body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The reply to one request. Raises :class:`ReaderError` if there is none, or no JSON object."""
    try:
        reply = _call(url, api_key, dict(body))
    except _HttpError as error:
        raise ReaderError(f"POST {url} {error}") from error
    if not isinstance(reply, dict):
        raise ReaderError(f"POST {url} answered with no JSON object")
    return reply


def identify(base_url: str, api_key: str | None) -> Server:
    """Ask the side doors of llama.cpp and SGLang. A server without them is an ordinary one."""
    root = base_url.removesuffix("/v1")
    props = _optional(f"{root}/props", api_key)
    settings = props.get("default_generation_settings")
    if isinstance(settings, dict):
        caps = props.get("chat_template_caps")
        system = caps.get("supports_system_role") if isinstance(caps, dict) else None
        no_system = not system if isinstance(system, bool) else None
        return Server("llama.cpp", _positive(settings.get("n_ctx")), no_system, _details(props))
    for route in ("server_info", "get_server_info"):
        info = _optional(f"{root}/{route}", api_key)
        if "model_path" in info:
            window = _positive(info.get("context_length")) or _positive(info.get("max_req_input_len"))
            return Server("sglang", window, None, _details(info))
    info = _optional(f"{root}/get_model_info", api_key)
    if "model_path" in info:
        return Server("sglang", None, None, _details(info))
    return Server("other")


def _optional(url: str, api_key: str | None) -> dict[str, JsonValue]:
    """A JSON object that a server may or may not offer; empty where it does not."""
    try:
        found = _call(url, api_key)
    except _HttpError:
        return {}
    return found if isinstance(found, dict) else {}


def _positive(value: JsonValue) -> int | None:
    """A number of tokens that backends can be told (uint32)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 32 else None


def _details(told: Mapping[str, JsonValue]) -> dict[str, str]:
    return {key: str(told[key]) for key in _TOLD_OF_SERVER if told.get(key) is not None}


def usable_tokenizer(upstream: Upstream) -> Literal["llama.cpp", "sglang", "none"]:
    """The tokenizer that ``upstream`` names, if two texts counted with it give two plausible counts; else ``none``."""
    if upstream.tokenizer not in {"llama.cpp", "sglang"}:
        return "none"
    texts = ["one two three", "one"]
    url, body = tokenize_request(upstream, texts)
    try:
        counts = read_counts(upstream, _call(url, upstream.api_key, body), len(texts))
    except (_HttpError, UpstreamError):
        return "none"
    if not counts[0] > counts[1] > 0:
        return "none"
    return "llama.cpp" if upstream.tokenizer == "llama.cpp" else "sglang"
