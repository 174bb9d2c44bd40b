"""Calling models from Ingest and Search: chat, vectors, scores of documents, by any OpenAI-compatible endpoint.

A memory asks the gateway of its call, or an endpoint of its own. Nothing is retried and nothing is made up: a model
that fails, or that answers with something else than was asked for, ends the call with an error.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

import grpc

from memarena_backend.calls import Call
from memarena_backend.errors import PromptRefusedError, unavailable
from memarena_backend.records import ModelAccess, ModelRole

if TYPE_CHECKING:
    from openai import OpenAI

BATCH_TEXTS = 16
"""Texts per embedding call; between two of them a call that nobody waits for any more ends."""
TIMEOUT_S = 120.0
"""Bound of a model call when the RPC itself has no deadline."""
_UNFIT = frozenset({400, 413, 422})
"""HTTP statuses of a model's server that does not take a request for what is in it."""
MAX_ENDPOINTS = 8
"""Endpoints whose connections are kept; the next run of a harness brings another gateway."""

Purpose = Literal["passage", "query"]
T = TypeVar("T")

PREFIXES: Mapping[str, Mapping[Purpose, str]] = {
    "e5": {"query": "query: ", "passage": "passage: "},
    "nomic-embed": {"query": "search_query: ", "passage": "search_document: "},
}
"""What a family of embedding models wants in front of a text, by its model card; the key is a part of the name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind an API: base URL (ending in ``/v1`` as a rule), the model's name there, key or token."""

    url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Chat:
    """What a chat model said. Tokens are None where the endpoint does not count them."""

    text: str
    """Empty where it said nothing, which is not a fault: a small model often does."""
    finish_reason: str
    """``stop``, ``length`` for a reply that was cut off, ``tool_calls``, or what else the endpoint names."""
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants called; ``arguments`` as it wrote them, meant to be a JSON object."""

    name: str
    arguments: str
    call_id: str = ""


def offered(models: ModelAccess | None, role: ModelRole) -> Endpoint | None:
    """The model that the harness offers in a role for one call, None if there is none."""
    for model in models.models if models is not None else ():
        if model.role is role:
            assert models is not None
            return Endpoint(models.base_url, model.name, models.token)
    return None


def extractor_of(models: ModelAccess | None) -> Endpoint | None:
    """The model that extracts facts: the one that is offered for it, else the reader; None if there is neither."""
    return offered(models, ModelRole.EXTRACTOR) or offered(models, ModelRole.READER)


def prefix_of(model: str, purpose: Purpose) -> str:
    """What the model wants in front of a text; nothing for one that is not known."""
    name = model.lower()
    return next((prefixes[purpose] for key, prefixes in PREFIXES.items() if key in name), "")


class ModelClient:
    """Asks endpoints; keeps its connections. Safe to share between threads. All methods raise CallError."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._clients: dict[str, OpenAI] = {}

    def embed(self, endpoint: Endpoint, texts: Sequence[str], call: Call) -> list[list[float]]:
        """One vector per text, in order, as the model gives them.

        Raises CallError UNAVAILABLE where the model fails or gives other than finite vectors of one length.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH_TEXTS):
            call.check()
            vectors += self._embed_batch(endpoint, texts[start : start + BATCH_TEXTS], call)
        if len({len(vector) for vector in vectors}) > 1 or not all(map(_is_vector, vectors)):
            raise unavailable(f"the embedding model {endpoint.model} gave vectors that cannot be compared")
        return vectors

    def _embed_batch(self, endpoint: Endpoint, texts: Sequence[str], call: Call) -> list[list[float]]:
        client = self._client(endpoint.url)
        reply = _asked(
            "embedding",
            endpoint,
            call,
            lambda timeout_s: client.embeddings.create(
                model=endpoint.model,
                input=list(texts),
                encoding_format="float",
                extra_headers=_authorization(endpoint),
                timeout=timeout_s,
            ),
        )
        rows = sorted(reply.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise unavailable(f"the embedding model {endpoint.model} gave {len(rows)} vectors for {len(texts)} texts")
        return [row.embedding for row in rows]

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
        """The reply to a chat, whole. ``messages``, ``response_format`` and ``tools`` are of the OpenAI API's form.

        Raises PromptRefusedError for a prompt that the model does not take, CallError UNAVAILABLE where the model fails
        or sends no choice, DEADLINE_EXCEEDED or CANCELLED where nobody waits for the call any more. What the model says
        is not judged here.
        """
        call.check()
        body: dict[str, object] = {
            "model": endpoint.model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        given = {"response_format": response_format, "tools": list(tools) or None, "tool_choice": tool_choice}
        body |= {key: value for key, value in given.items() if value is not None}
        chat = _chat(self._post("chat", "/chat/completions", endpoint, body, call))
        if chat is None:
            raise unavailable(f"the chat model {endpoint.model} sent a reply without a choice")
        return chat

    def rank(self, endpoint: Endpoint, query: str, documents: Sequence[str], call: Call) -> list[float]:
        """Relevance of every document for the query, in the order of the documents; higher is better.

        The endpoint is one of ``POST /rerank`` as Jina, Cohere, vLLM, llama.cpp and Infinity serve it. Raises CallError
        UNAVAILABLE where the model fails or leaves a document without a score.
        """
        if not documents:
            return []
        call.check()
        body = {"model": endpoint.model, "query": query, "documents": list(documents), "top_n": len(documents)}
        scores = _scores(self._post("rerank", "/rerank", endpoint, body, call))
        if sorted(scores) != list(range(len(documents))):
            raise unavailable(
                f"the rerank model {endpoint.model} gave {len(scores)} usable scores for {len(documents)} documents"
            )
        return [scores[number] for number in range(len(documents))]

    def _post(self, kind: str, path: str, endpoint: Endpoint, body: Mapping[str, object], call: Call) -> object:
        client = self._client(endpoint.url)
        return _asked(
            kind,
            endpoint,
            call,
            lambda timeout_s: client.post(
                path,
                cast_to=object,
                body=body,
                options={"headers": _authorization(endpoint), "timeout": timeout_s},
            ),
        )

    def close(self) -> None:
        """Close the connections to all endpoints."""
        with self._mutex:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _client(self, url: str) -> OpenAI:
        import openai  # noqa: PLC0415  (half a second that only memories with models pay)

        with self._mutex:
            client = self._clients.pop(url, None) or openai.OpenAI(
                base_url=url,
                api_key="set-per-call",
                max_retries=0,  # a hidden retry would be inside the timed search, and counted twice
                http_client=openai.DefaultHttpxClient(trust_env=False, follow_redirects=False),
            )
            self._clients[url] = client  # last used, last in the order
            if len(self._clients) > MAX_ENDPOINTS:
                self._clients.pop(next(iter(self._clients))).close()
            return client


def _asked(kind: str, endpoint: Endpoint, call: Call, ask: Callable[[float], T]) -> T:
    import openai  # noqa: PLC0415

    remaining_s = call.remaining_s()
    try:
        return ask(TIMEOUT_S if remaining_s is None else max(0.001, remaining_s))
    except (openai.OpenAIError, ValueError) as error:
        call.check()
        reason = " ".join(str(error).split())[:300]
        line = f"the {kind} model {endpoint.model} failed: {reason}"
        if isinstance(error, openai.APIStatusError) and error.status_code in _UNFIT:
            raise PromptRefusedError(grpc.StatusCode.UNAVAILABLE, line) from error
        raise unavailable(line) from error


def _authorization(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key or 'none'}"}


def _is_vector(vector: Sequence[float]) -> bool:
    return len(vector) > 0 and all(map(math.isfinite, vector))


def _chat(reply: object) -> Chat | None:
    """The first choice of a reply; None if it has none."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None
    usage = reply.get("usage") if isinstance(reply, dict) else None
    counted = usage if isinstance(usage, dict) else {}
    text = message.get("content")
    calls = message.get("tool_calls")
    return Chat(
        text=text if isinstance(text, str) else "",
        finish_reason=str(choice.get("finish_reason") or ""),
        tool_calls=tuple(filter(None, map(_tool_call, calls if isinstance(calls, list) else []))),
        prompt_tokens=_count(counted.get("prompt_tokens")),
        completion_tokens=_count(counted.get("completion_tokens")),
    )


def _tool_call(call: object) -> ToolCall | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return None
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(function.get("name") or ""), text, str(call.get("id") or ""))


def _count(tokens: object) -> int | None:
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < 1 << 32 else None


def _scores(reply: object) -> dict[int, float]:
    """Score by position of the document; what is malformed is left out, so that the count tells."""
    results = reply.get("results") if isinstance(reply, dict) else None
    found: dict[int, float] = {}
    for row in results if isinstance(results, list) else []:
        position, score = (row.get("index"), row.get("relevance_score")) if isinstance(row, dict) else (None, None)
        if isinstance(position, int) and isinstance(score, int | float) and math.isfinite(score):
            found[position] = float(score)
    return found
