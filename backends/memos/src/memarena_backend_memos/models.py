"""Gives MemOS a language model and an embedder that use the gateway of the current call.

The library's own clients keep one key, retry, and log what they send; these belong to a single call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from memarena_backend import (
    Call,
    Chat,
    Endpoint,
    ModelAccess,
    ModelClient,
    ModelRole,
    extractor_of,
    failed_precondition,
    invalid_argument,
    offered,
    prefix_of,
)
from memarena_backend.endpoints import Purpose
from memos.llms.utils import remove_thinking_tags  # type: ignore[import-not-found]

EMBEDDING_LIMIT_CHARS = 8_192
"""Characters of a text that are embedded: the default of the library's own embedders."""


def required_extractor(models: ModelAccess | None, field: str) -> Endpoint:
    """Return the call's extractor, else its reader. Raises CallError INVALID_ARGUMENT if there is neither."""
    endpoint = extractor_of(models)
    if endpoint is None:
        raise invalid_argument(field, "is required with an extractor or a reader: MemOS extracts with a language model")
    return endpoint


def embedder_of(models: ModelAccess | None, field: str) -> Endpoint:
    """Return the call's embedder. Raises CallError INVALID_ARGUMENT if there is none."""
    endpoint = offered(models, ModelRole.EMBEDDER)
    if endpoint is None:
        raise invalid_argument(field, "is required with an embedder: MemOS finds memories by their vectors")
    return endpoint


class CallLLM:
    """Implements the library's ``extractor_llm`` for one call. ``replies`` counts them, ``last`` is the last one."""

    def __init__(self, client: ModelClient, endpoint: Endpoint, call: Call, max_tokens: int) -> None:
        self._client, self._endpoint, self._call, self._max_tokens = client, endpoint, call, max_tokens
        self.calls = 0
        self.replies = 0
        self.last: Chat | None = None

    def generate(self, messages: Sequence[Mapping[str, object]], **_: object) -> str:
        """Return the reply without the model's thinking. Raises CallError, or its subclass PromptRefusedError."""
        self.calls += 1
        self.last = self._client.chat(self._endpoint, messages, self._call, max_tokens=self._max_tokens)
        self.replies += 1
        return str(remove_thinking_tags(self.last.text))


class CallEmbedder:
    """Implements the library's ``embedder`` for one call. Vectors have length 1 and are cached by text."""

    def __init__(self, client: ModelClient, endpoint: Endpoint, call: Call, purpose: Purpose) -> None:
        self.model = endpoint.model
        self._client, self._endpoint, self._call = client, endpoint, call
        self._prefix = prefix_of(endpoint.model, purpose)
        self._known: dict[str, list[float]] = {}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, all of the same dimension. Raises CallError."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            inputs = [self._prefix + text[:EMBEDDING_LIMIT_CHARS] for text in new]
            vectors = self._client.embed(self._endpoint, inputs, self._call)
            self._known.update(zip(new, map(_of_length_1, vectors), strict=True))
        return [self._known[text] for text in texts]

    def expect(self, model: str, dimension: int, vector: Sequence[float]) -> None:
        """Raise CallError FAILED_PRECONDITION unless this embedder and its vector match the memories' model."""
        if (self.model, len(vector)) != (model, dimension):
            actual = f"this call's {self.model} gives {len(vector)}"
            raise failed_precondition(f"the memories have vectors of {model} with {dimension} dimensions; {actual}")


def _of_length_1(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else list(vector)
