"""Gives Mem0 an extractor and an embedder that use the models of the current call.

Mem0 swallows most errors of models and goes on. So the first error is kept in the :class:`Work` of the call, where the
caller of Mem0 looks for it, and no model is called after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from memarena_backend import Call, CallError, Endpoint, ModelClient, PromptRefusedError
from memarena_backend.embedders import Embedder

from memarena_backend_mem0.replies import MAX_REPLY_CHARS

# ------------------------------------------------------------------ what a call works with


@dataclass
class Work:
    """The models that one use of Mem0 may call, and the record of their calls."""

    call: Call
    embedder: Embedder
    client: ModelClient | None = None
    extractor: Endpoint | None = None
    extraction_tokens: int = 0
    observed: date | None = None
    """The day of the sessions that are ingested; None in a search."""
    failure: Exception | None = None
    """The first error of a model or of the store. The call fails with it, even if Mem0 swallows it."""
    refusal: str = ""
    """Why the extracting model rejected the prompt; empty if it did not."""
    replies: list[str] = field(default_factory=list)
    calls: int = 0
    cut: int = 0
    """Number of texts of which only the beginning was embedded."""

    def fail(self, error: Exception) -> Exception:
        """Keep the error if it is the first; return the first error, for the caller to raise."""
        self.failure = self.failure or error
        return self.failure


_work: ContextVar[Work] = ContextVar("mem0_work")


def current_work() -> Work:
    """Return the work of this thread. Mem0 calls models in the thread that called it."""
    return _work.get()


@contextmanager
def working_with(work: Work) -> Iterator[Work]:
    """Make Mem0 use the models of ``work`` within this context."""
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


# ------------------------------------------------------------------ what Mem0 sees


class Extractor:
    """Implements Mem0's interface of an LLM."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def generate_response(
        self,
        messages: Sequence[Mapping[str, object]],
        response_format: Mapping[str, object] | None = None,
        **_: object,
    ) -> str:
        """Return the reply; an empty text for one above ``MAX_REPLY_CHARS``, which counts as unusable."""
        work = current_work()
        if work.failure is not None:
            raise work.failure
        assert work.client is not None and work.extractor is not None
        work.calls += 1
        try:
            chat = work.client.chat(
                work.extractor,
                messages,
                work.call,
                max_tokens=work.extraction_tokens,
                response_format=response_format,
            )
        except PromptRefusedError as error:
            work.refusal = error.description
            raise
        except CallError as error:
            raise work.fail(error) from error
        work.replies.append(chat.text)
        return chat.text if len(chat.text) <= MAX_REPLY_CHARS else ""


class LibraryEmbedder:
    """Implements Mem0's interface of an embedding model."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: object, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text; as that of a question if ``memory_action`` is ``search``."""
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[object], memory_action: str | None = "add") -> list[list[float]]:
        """Return a vector of length 1 per text. Raises ValueError for anything but text, which Mem0 then skips."""
        work = current_work()
        if work.failure is not None:
            raise work.failure
        checked = [_checked(text) for text in texts]
        work.cut += sum(len(text) > work.embedder.limit_chars for text in checked)
        try:
            vectors = work.embedder.embed(checked, "query" if memory_action == "search" else "passage", work.call)
        except Exception as error:
            raise work.fail(error) from error
        return [_unit(vector) for vector in vectors]


def _unit(vector: Sequence[float]) -> list[float]:
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector] if norm else list(vector)


def _checked(text: object) -> str:
    """Return a text that can be sent. Raises ValueError for others: replies have numbers, lists, lone surrogates."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected a text, got {type(text).__name__}")
    text.encode()  # raises UnicodeEncodeError, which is a ValueError
    return text
