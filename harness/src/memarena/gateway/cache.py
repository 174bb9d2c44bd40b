"""Caches replies to model calls by the content of the request, for runs that time nothing.

A reply is one file, named by the SHA-256 of all that determines it: route, model and what is known of its weights,
and the request as sent upstream (messages, parameters, seed). Files are written atomically and never changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from memarena_dataset.safe_files import write_whole
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from memarena.gateway.calls import OpenCall
from memarena.gateway.forwarding import Outgoing
from memarena.gateway.types import GatewayError, Upstream


class CachedReply(BaseModel):
    """A complete reply as the caller got it, with the fields of its call's record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content_type: str
    body: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    output: str
    output_sha256: str
    reasoning: str
    finish_reason: str = ""

    def fill(self, call: OpenCall) -> None:
        """Copy the fields of the first call into the record of this one; its times stay unknown."""
        call.from_cache = True
        call.prompt_tokens, call.cached_tokens = self.prompt_tokens, self.cached_tokens
        call.completion_tokens, call.finish_reason = self.completion_tokens, self.finish_reason
        call.output, call.output_sha256, call.reasoning = self.output, self.output_sha256, self.reasoning


def cache_key(route: str, upstream: Upstream, outgoing: Outgoing) -> str:
    """Return the SHA-256 (hex) of all that determines a reply; the order of the request's fields does not matter."""
    body: JsonValue = json.loads(outgoing.body)
    parts: list[JsonValue] = [route, upstream.upstream_model, upstream.identity, body, outgoing.hide_usage]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class ReplyCache:
    """Replies in a folder. Raises :class:`GatewayError` if it cannot be created or written to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GatewayError(f"cache {folder}: {error.strerror}") from error

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def find(self, key: str) -> CachedReply | None:
        """Return the reply to a request, None if there is none yet, or its file is damaged."""
        try:
            return CachedReply.model_validate_json(self._path(key).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def keep(self, key: str, content_type: str, body: bytes, call: OpenCall) -> None:
        """Store a complete reply. Raises :class:`GatewayError` if it cannot be written."""
        reply = CachedReply(
            content_type=content_type,
            body=body.decode("utf-8", "replace"),
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            completion_tokens=call.completion_tokens,
            output=call.output.encode("utf-8", "replace").decode(),
            output_sha256=call.output_sha256,
            reasoning=call.reasoning.encode("utf-8", "replace").decode(),
            finish_reason=call.finish_reason,
        )
        path = self._path(key)
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, reply.model_dump_json())
        except OSError as error:
            raise GatewayError(f"cache {path}: {error.strerror}") from error
