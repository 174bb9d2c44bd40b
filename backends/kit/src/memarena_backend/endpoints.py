"""Calls models for a memory, from Ingest and Search: chat, embeddings and reranking at OpenAI-compatible endpoints.

A memory uses the gateway of its call, or its own endpoint. No request is retried and no result replaced: a model that
fails, or sends a malformed reply, ends the call with an error.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import grpc
from memarena_answering.servers.chat import read_chat
from memarena_answering.servers.replies import MAX_REPLY_BYTES, MAX_VECTORS_BYTES, Reply, UpstreamError

from memarena_backend.calls import Call
from memarena_backend.errors import PromptRefusedError, unavailable
from memarena_backend.records import ModelAccess, ModelRole

if TYPE_CHECKING:
    from memarena_answering.servers.door import Door

BATCH_TEXTS = 16
"""Texts per embedding request; between two requests a call ends if its client no longer waits."""
TIMEOUT_S = 120.0
"""Timeout of a model call if the RPC itself has no deadline."""
_UNFIT = frozenset({400, 413, 422})
"""HTTP statuses by which a model's server rejects the content of a request, such as a prompt that is too long."""

Purpose = Literal["passage", "query"]

PREFIXES: Mapping[str, Mapping[Purpose, str]] = {
    "e5": {"query": "query: ", "passage": "passage: "},
    "nomic-embed": {"query": "search_query: ", "passage": "search_document: "},
}
"""Prefixes that families of models expect before a text, by their model cards. Key: part of a model's name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind an API: base URL (usually ending in ``/v1``), the model's name there, API key or token."""

    url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Chat:
    """The reply of a chat model. Token counts are None if the endpoint reports none."""

    text: str
    """May be empty, which is not an error: small models often send an empty reply."""
    finish_reason: str
    """``stop``, ``length`` for a reply that was cut off, ``tool_calls``, or another reason of the endpoint."""
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call that the model asks for; ``arguments`` is its text, which should be a JSON object."""

    name: str
    arguments: str
    call_id: str = ""


def offered(models: ModelAccess | None, role: ModelRole) -> Endpoint | None:
    """Return the first model that a call's gateway offers for a role; None without such a model or a gateway."""
    for model in models.models if models is not None else ():
        if model.role is role:
            assert models is not None
            return Endpoint(models.base_url, model.name, models.token)
    return None


def extractor_of(models: ModelAccess | None) -> Endpoint | None:
    """Return the model for extracting facts: the offered extractor, else the reader; None if there is neither."""
    return offered(models, ModelRole.EXTRACTOR) or offered(models, ModelRole.READER)


def prefix_of(model: str, purpose: Purpose) -> str:
    """Return the prefix that the model expects before a text (see `PREFIXES`); empty for an unknown model."""
    name = model.lower()
    return next((prefixes[purpose] for key, prefixes in PREFIXES.items() if key in name), "")


class ModelClient:
    """Asks endpoints; keeps its connections. Safe to share between threads. All methods raise CallError."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._door: Door | None = None

    def embed(self, endpoint: Endpoint, texts: Sequence[str], call: Call) -> list[list[float]]:
        """Return one vector per text, in order, not normalised.

        Raises CallError UNAVAILABLE if the model fails, or if its vectors are not finite or differ in length.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH_TEXTS):
            call.check()
            vectors += self._embed_batch(endpoint, texts[start : start + BATCH_TEXTS], call)
        if len({len(vector) for vector in vectors}) > 1 or not all(map(_is_vector, vectors)):
            raise unavailable(f"the embedding model {endpoint.model} gave vectors that cannot be compared")
        return vectors

    def _embed_batch(self, endpoint: Endpoint, texts: Sequence[str], call: Call) -> list[list[float]]:
        body = {"model": endpoint.model, "input": list(texts), "encoding_format": "float"}
        reply = self._post("embedding", "/embeddings", endpoint, body, call, MAX_VECTORS_BYTES).parsed()
        vectors = _vectors(reply)
        if sorted(vectors) != list(range(len(texts))):
            raise unavailable(
                f"the embedding model {endpoint.model} gave {len(vectors)} vectors for {len(texts)} texts"
            )
        return [vectors[index] for index in range(len(texts))]

    def chat(
        self,
        endpoint: Endpoint,
        messages: Sequence[Mapping[str, object]],
        call: Call,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        response_format: Mapping[str, object] | None = None,
        tools: Sequence[Mapping[str, object]] = (),
        tool_choice: str | Mapping[str, object] | None = None,
    ) -> Chat:
        """Return the complete reply to a chat; its content is not checked.

        ``messages``, ``response_format``, ``tools`` and ``tool_choice`` have the form of the OpenAI API.

        Raises PromptRefusedError if the server rejects the prompt, CallError UNAVAILABLE if the model fails or sends no
        choice, DEADLINE_EXCEEDED or CANCELLED if the client of the call no longer waits.
        """
        call.check()
        body: dict[str, object] = {
            "model": endpoint.model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        options = {"response_format": response_format, "tools": list(tools) or None, "tool_choice": tool_choice}
        body |= {key: value for key, value in options.items() if value is not None}
        reply = self._post("chat", "/chat/completions", endpoint, body, call)
        try:
            chat = read_chat(reply.body)
        except UpstreamError as error:
            raise unavailable(f"the chat model {endpoint.model} failed: {error}") from error
        return Chat(
            chat.text,
            chat.finish_reason,
            tuple(filter(None, map(_tool_call, chat.tool_calls))),
            chat.prompt_tokens,
            chat.completion_tokens,
        )

    def rank(self, endpoint: Endpoint, query: str, documents: Sequence[str], call: Call) -> list[float]:
        """Return the relevance of each document to the query, in the order of the documents; higher is better.

        The endpoint serves ``POST /rerank`` as Jina, Cohere, vLLM, llama.cpp and Infinity do. Raises CallError
        UNAVAILABLE if the model fails or sends no score for a document.
        """
        if not documents:
            return []
        call.check()
        body = {"model": endpoint.model, "query": query, "documents": list(documents), "top_n": len(documents)}
        scores = _scores(self._post("rerank", "/rerank", endpoint, body, call, MAX_VECTORS_BYTES).parsed())
        if sorted(scores) != list(range(len(documents))):
            raise unavailable(
                f"the rerank model {endpoint.model} gave {len(scores)} usable scores for {len(documents)} documents"
            )
        return [scores[index] for index in range(len(documents))]

    def _post(
        self,
        kind: str,
        path: str,
        endpoint: Endpoint,
        body: Mapping[str, object],
        call: Call,
        most_bytes: int = MAX_REPLY_BYTES,
    ) -> Reply:
        """Send a request once and return its reply if the status is below 300.

        It is not retried: a retry would fall into the timed search, and be counted twice.
        """
        remaining_s = call.remaining_s()
        timeout_s = TIMEOUT_S if remaining_s is None else max(0.001, remaining_s)
        line = f"the {kind} model {endpoint.model} failed: "
        try:
            url, key = endpoint.url.rstrip("/") + path, endpoint.key or "none"
            reply = self._opened().ask(url, key, body, timeout_s=timeout_s, most_bytes=most_bytes)
        except UpstreamError as error:
            call.check()
            raise unavailable(line + str(error)) from error
        if reply.status < 300:
            return reply
        call.check()
        line += f"HTTP {reply.status}: {reply.error_line()[:300]}"
        if reply.status in _UNFIT:
            raise PromptRefusedError(grpc.StatusCode.UNAVAILABLE, line)
        raise unavailable(line)

    def close(self) -> None:
        """Close the connections to all endpoints."""
        with self._mutex:
            if self._door is not None:
                self._door.close()
                self._door = None

    def _opened(self) -> Door:
        with self._mutex:
            if self._door is None:
                from memarena_answering.servers.door import Door  # noqa: PLC0415  (only memories with models pay)

                self._door = Door()
            return self._door


def _is_vector(vector: Sequence[float]) -> bool:
    return len(vector) > 0 and all(map(math.isfinite, vector))


def _tool_call(call: Mapping[str, object]) -> ToolCall | None:
    function = call.get("function")
    if not isinstance(function, dict):
        return None
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(function.get("name") or ""), text, str(call.get("id") or ""))


def _vectors(reply: object) -> dict[int, list[float]]:
    """Return the vectors of a reply by index of their text. Malformed ones are dropped; the caller checks the count."""
    vectors: dict[int, list[float]] = {}
    for row in _rows(reply, "data"):
        index, vector = row.get("index"), row.get("embedding")
        if isinstance(index, int) and isinstance(vector, list) and all(isinstance(x, int | float) for x in vector):
            vectors[index] = vector
    return vectors


def _scores(reply: object) -> dict[int, float]:
    """Return the scores of a reply by index of document. Malformed ones are dropped; the caller checks the count."""
    scores: dict[int, float] = {}
    for row in _rows(reply, "results"):
        index, score = row.get("index"), row.get("relevance_score")
        if isinstance(index, int) and isinstance(score, int | float) and math.isfinite(score):
            scores[index] = float(score)
    return scores


def _rows(reply: object, key: str) -> list[dict[str, object]]:
    rows = reply.get(key) if isinstance(reply, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
