"""Connects to readers behind a URL: waits for the server, chooses the model, finds its window and tokenizer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from memarena_answering.servers.door import ask as ask_server
from memarena_answering.servers.replies import Reply, UpstreamError
from memarena_answering.servers.replies import api_url as base_url_of
from pydantic import JsonValue

from memarena.gateway import Upstream
from memarena.gateway.counting import read_counts, tokenize_request
from memarena.readers.errors import ReaderError

DEFAULT_WINDOW_TOKENS = 16_384
"""Used if the server does not state its window; that of the paper's readers."""
LOADING_TIMEOUT_S = 600.0
"""How long a server may take to load its model."""
UNSTATED_TIMEOUT_S = 60.0
"""How long to wait for a health check that answers 503 without saying that a model is loading."""

Note = Callable[[str], None]
"""Takes a line for the user."""

_TIMEOUT_S = 10.0
_LOADING = 503  # HTTP status of a server that loads its model
_LOADS = re.compile(r"\bload|\bstarting|\bwarm", re.IGNORECASE)
_POLL_S = 2.0
_NOTE_EVERY_S = 10.0
_WINDOW_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_context_window")
"""How servers name the window in their list of models: vLLM, then OpenRouter, Groq, Mistral and others."""
_SERVER_DETAILS = (
    "version", "build_info", "model_path", "model_ftype", "tp_size", "dtype", "quantization", "attention_backend",
    "context_length", "mem_fraction_static", "max_running_requests", "disable_radix_cache", "enable_cache_report",
    "stream_interval", "random_seed", "kv_cache_dtype", "total_slots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Server:
    """What a server reports about itself. ``window_tokens`` and ``no_system_role`` are None if it does not."""

    kind: Literal["llama.cpp", "sglang", "ollama", "other"]
    window_tokens: int | None = None
    no_system_role: bool | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen model, with what the server's list states about it."""

    name: str
    window_tokens: int | None = None
    warnings: tuple[str, ...] = ()


def _call(url: str, api_key: str | None, body: JsonValue = None) -> JsonValue:
    """Return the JSON of a reply of status 200, None for any other reply."""
    try:
        reply = ask_server(url, api_key, body, timeout_s=_TIMEOUT_S)
    except UpstreamError:
        return None
    return reply.parsed() if reply.status == 200 else None


def answers(url: str) -> bool:
    """Whether a server answers a GET with JSON."""
    return _call(url, None) is not None


def api_url(spec: str) -> str:
    """Return the API's base URL; a URL without a path gets ``/v1``. Raises :class:`ReaderError` if it is no URL."""
    url = base_url_of(spec)
    if url is None:
        raise ReaderError(f"reader {spec}: expected a URL such as http://127.0.0.1:30000/v1")
    return url


def choose_model(base_url: str, api_key: str | None, model: str | None, note: Note = lambda _: None) -> Chosen:
    """Wait until the server has loaded its model; return the requested model, or the only one that is offered.

    Raises :class:`ReaderError` if there is no such model, or the server cannot be reached. A model that the list lacks,
    and a server without a list, are only warnings if ``model`` names the model.
    """
    reply = _once_loaded(f"{base_url}/models", api_key, note)
    request = f"reader {base_url}: GET {base_url}/models answered {reply.status}"
    if reply.status in {401, 403}:
        raise ReaderError(f"{request}: {_words(reply)} (is the API key right?)")
    if 300 <= reply.status < 400:
        raise ReaderError(f"{request}: {reply.error_line()}; state that address if it is right")
    entries = _listed(reply.parsed()) if reply.status == 200 else {}
    names = list(entries)
    if model is None and len(names) != 1:
        offer = f"{len(names)} models ({', '.join(names[:8])})" if names else f"no list of models ({reply.status})"
        raise ReaderError(f"reader {base_url}: the server offers {offer}; say which with --model")
    chosen = model or names[0]
    alike = [name for name in (chosen, f"models/{chosen}", f"{chosen}:latest") if name in entries]
    stated = [_positive(entries[name].get(key)) for name in alike for key in _WINDOW_KEYS]
    window = next(filter(None, stated), None)
    warnings = []
    if not entries:
        warnings.append(
            f"reader {base_url}: the server has no list of models ({reply.status}): {chosen} is taken as named"
        )
    elif not alike:
        listed = ", ".join(names[:8])
        warnings.append(f"reader {base_url}: the server's list does not name {chosen}; it names {listed}")
    return Chosen(chosen, window, tuple(warnings))


def _listed(body: JsonValue) -> dict[str, dict[str, JsonValue]]:
    data = body.get("data") if isinstance(body, dict) else body
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    return {name: entry for entry in entries if isinstance(name := entry.get("id"), str)}


def _once_loaded(url: str, api_key: str | None, note: Note, bound_s: float = LOADING_TIMEOUT_S) -> Reply:
    """Return the first reply that does not say that the model is loading. Raises ReaderError if there is none."""
    began = time.monotonic()
    noted = -_NOTE_EVERY_S
    while True:
        try:
            reply = ask_server(url, api_key, timeout_s=_TIMEOUT_S)
        except UpstreamError as error:
            raise ReaderError(f"reader {url.removesuffix('/models')}: GET {url}: {error}") from error
        waited_s = time.monotonic() - began
        if reply.status != _LOADING:
            return reply
        if waited_s > bound_s:
            raise ReaderError(f"reader {url}: still answers 503 after {bound_s:g} s: {_words(reply)}")
        if waited_s - noted >= _NOTE_EVERY_S:
            note(f"reader {url}: {_words(reply)}; waiting, {waited_s:.0f} of at most {bound_s:g} s")
            noted = waited_s
        time.sleep(_POLL_S)


def _words(reply: Reply) -> str:
    """Return the message of an error reply on one line."""
    return reply.error_line() or "no words"


def ask(url: str, api_key: str | None, body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Send one request and return its reply. Raises :class:`ReaderError` if there is none, or it is no JSON object."""
    try:
        reply = ask_server(url, api_key, dict(body), timeout_s=_TIMEOUT_S)
    except UpstreamError as error:
        raise ReaderError(f"POST {url}: {error}") from error
    if reply.status != 200:
        raise ReaderError(f"POST {url} answered {reply.status}: {_words(reply)}")
    parsed = reply.parsed()
    if not isinstance(parsed, dict):
        raise ReaderError(f"POST {url} answered with no JSON object")
    return parsed


def wait_until_loaded(base_url: str, api_key: str | None, note: Note) -> None:
    """Wait while a server's health check says that it loads its model; some list their models before that.

    A 503 without such a message may come from a proxy: it is ignored after :data:`UNSTATED_TIMEOUT_S`.
    """
    url = f"{base_url.removesuffix('/v1')}/health"
    try:
        reply = ask_server(url, api_key, timeout_s=_TIMEOUT_S)
    except UpstreamError:
        return
    stated = _LOADS.search(_words(reply)) is not None
    if reply.status == _LOADING:
        try:
            _once_loaded(url, api_key, note, LOADING_TIMEOUT_S if stated else UNSTATED_TIMEOUT_S)
        except ReaderError as error:
            if stated:
                raise
            note(f"{error}; the reader is asked all the same")


def identify(base_url: str, api_key: str | None, model: str = "") -> Server:
    """Identify a server by the special endpoints of llama.cpp, SGLang and Ollama; any other server is ``other``."""
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
    if "version" in (info := _optional(f"{root}/api/version", api_key)):
        return Server("ollama", _ollama_window(root, api_key, model), None, _details(info))
    return Server("other")


def _ollama_window(root: str, api_key: str | None, model: str) -> int | None:
    """Return the window with which Ollama serves a model, above which it cuts: as loaded, else its ``num_ctx``."""
    running = _optional(f"{root}/api/ps", api_key).get("models")
    for model_entry in running if isinstance(running, list) else []:
        if isinstance(model_entry, dict) and model_entry.get("name") in {model, f"{model}:latest"}:
            return _positive(model_entry.get("context_length"))
    reply = _call(f"{root}/api/show", api_key, {"model": model})
    parameters = reply.get("parameters") if isinstance(reply, dict) else None
    for line in str(parameters or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdecimal():
            return _positive(int(value))
    return None


def _optional(url: str, api_key: str | None) -> dict[str, JsonValue]:
    """Return the JSON object of an endpoint that a server may not have; empty if it does not."""
    reply = _call(url, api_key)
    return reply if isinstance(reply, dict) else {}


def _positive(value: JsonValue) -> int | None:
    """Return a positive number of tokens within uint32, as sent to backends; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 32 else None


def _details(properties: Mapping[str, JsonValue]) -> dict[str, str]:
    return {key: str(properties[key]) for key in _SERVER_DETAILS if properties.get(key) is not None}


def usable_tokenizer(upstream: Upstream) -> Literal["llama.cpp", "sglang", "none"]:
    """Return the tokenizer that ``upstream`` names if it counts two texts plausibly; else ``none``."""
    if upstream.tokenizer not in {"llama.cpp", "sglang"}:
        return "none"
    texts = ["one two three", "one"]
    url, body = tokenize_request(upstream, texts)
    try:
        counts = read_counts(upstream, _call(url, upstream.api_key, body), len(texts))
    except UpstreamError:
        return "none"
    if not counts[0] > counts[1] > 0:
        return "none"
    return "llama.cpp" if upstream.tokenizer == "llama.cpp" else "sglang"
