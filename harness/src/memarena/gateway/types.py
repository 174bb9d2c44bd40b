"""Defines the gateway's configuration: the models behind it, and the context of a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from memarena_dataset.errors import MemArenaError
from pydantic import JsonValue

Role = Literal["reader", "extractor", "embedder", "reranker"]
"""What a model is for: it answers questions, extracts facts for a memory, embeds texts, or ranks them."""
Phase = Literal["ingest", "search", "answer", "central", "probe", "floor"]
"""What a token is used for: an RPC of a backend; ``central``: the harness itself reads the items of Search; ``probe``:
tests and warm-ups, which are no part of a measurement; ``floor``: null backend and null reader, for the times that the
harness itself takes."""


class GatewayError(MemArenaError):
    """The gateway cannot be started or used; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model that the gateway offers, and its server."""

    model: str
    """Name that callers use."""
    base_url: str
    """The server's OpenAI-compatible API, ``http://HOST:PORT/v1``."""
    upstream_model: str
    """Name that the server uses."""
    role: Role = "reader"
    api_key: str | None = field(default=None, repr=False)
    context_window_tokens: int = 0
    """Tokens of prompt and reply together; 0 if unknown."""
    no_system_role: bool = False
    """Whether the model accepts no system message: instructions then go into the user's message."""
    tokenizer: Literal["llama.cpp", "sglang", "none", "bytes"] = "none"
    """How the server counts tokens. ``bytes``: UTF-8 bytes / 4, counted by the gateway."""
    extra_body: Mapping[str, JsonValue] = field(default_factory=dict)
    """Fields that override the caller's in every generation request, e.g. ``{"cache_prompt": False}`` for cold TTFT."""

    drop: tuple[str, ...] = ()
    """Fields that are omitted from every generation request."""
    concurrency: int = 0
    """Most requests at once; 0: no limit."""
    requests_per_minute: float = 0.0
    """0: no limit."""
    patience_s: float = 0.0
    """How long a request waits in total for a busy server (429, 503, 529)."""

    identity: str = ""
    """What distinguishes the model from others of its name, for a cache: hash of weights, details of the server."""

    @property
    def counts_tokens(self) -> bool:
        """Whether ``/v1/tokenize`` works for this model."""
        return self.tokenizer != "none"

    @property
    def server_url(self) -> str:
        """The server's root, without the API's ``/v1``."""
        return self.base_url.rstrip("/").removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class Budget:
    """What one RPC may spend on models: calls, and tokens read and written. None: as much as it likes."""

    calls: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """On whose behalf a token is used: it goes into every record of its calls. None: does not apply."""

    phase: Phase
    cell_id: str | None = None
    """The cell: one backend with one reader and one seed."""
    instance_id: str | None = None
    """The question that is asked."""
    ego: str | None = None
    """The person whose history the namespace has."""
    day: int | None = None
    max_prompt_bytes: int | None = None
    """Most bytes of text that the messages of one call may have; a longer prompt is refused. None: no bound."""
    inferred: bool = False
    """Whether the RPC was inferred: the backend used its cell's token, and only this RPC was pending (MOD-8)."""
