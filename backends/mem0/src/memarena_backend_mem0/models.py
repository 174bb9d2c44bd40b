"""The extractor and the embedder that Mem0 is given: they work with the models of the call that it works for.

Mem0 swallows most failures of models and goes on. So whatever failed is kept in the :class:`Work` of the call, no model
is asked again after a failure, and whoever called Mem0 looks there.
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
    """One use of Mem0: what it may ask, and what came of it."""

    call: Call
    embedder: Embedder
    client: ModelClient | None = None
    extractor: Endpoint | None = None
    extraction_tokens: int = 0
    observed: date | None = None
    """The day on which what is given was said."""
    failure: Exception | None = None
    """The first failure of a model or of the store. Whatever Mem0 makes of it, the call fails with it."""
    refusal: str = ""
    """Why the extracting model would not take the prompt."""
    replies: list[str] = field(default_factory=list)
    calls: int = 0
    cut: int = 0
    """Texts of which only the beginning was embedded."""

    def fail(self, error: Exception) -> Exception:
        """Keep the first failure; what is to be raised now."""
        self.failure = self.failure or error
        return self.failure


_work: ContextVar[Work] = ContextVar("mem0_work")


def current_work() -> Work:
    """The work of the thread. Mem0 calls models in the thread that called it."""
    return _work.get()


@contextmanager
def working_with(work: Work) -> Iterator[Work]:
    """Within it Mem0 asks the models of ``work``."""
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


# ------------------------------------------------------------------ what Mem0 sees


class Extractor:
    """Mem0's interface of an LLM."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def generate_response(
        self,
        messages: Sequence[Mapping[str, object]],
        response_format: Mapping[str, object] | None = None,
        **_: object,
    ) -> str:
        """The reply, whole. One that is longer than any honest one is kept from Mem0 and counts as unusable."""
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
    """Mem0's interface of an embedding model."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: object, memory_action: str | None = None) -> list[float]:
        """The vector of a text; ``search`` asks for that of a question."""
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[object], memory_action: str | None = "add") -> list[list[float]]:
        """A vector of length 1 per text. Raises ValueError for what is no text, which Mem0 then leaves out."""
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
    """The text, if it can be sent; replies also hold numbers, lists and lone surrogates. Raises ValueError."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected a text, got {type(text).__name__}")
    text.encode()  # raises UnicodeEncodeError, which is a ValueError
    return text
