# mypy: allow-subclassing-any
# The library's classes are of unknown type where types are checked, since it is not installed there.
"""Gives Graphiti the models of one call: every request goes through the call's gateway and is counted.

Graphiti swallows some errors of its models (it omits a date that it fails to extract). So the first error of a model is
also kept here, for the caller of Graphiti to raise, and no request is sent after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memarena_backend import Call, CallError, Endpoint, ModelClient, PromptRefusedError, prefix_of
from memarena_backend.endpoints import Purpose
from pydantic import BaseModel, JsonValue

from memarena_backend_graphiti.library import CrossEncoderClient, EmbedderClient, LLMClient
from memarena_backend_graphiti.replies import UnusableReplyError, parse_reply
from memarena_backend_graphiti.settings import ResponseFormat

EMBEDDED_CHARS = 8_192
"""Characters of a text that are embedded. Facts, names and questions are shorter."""


@dataclass
class Record:
    """Counts of the model requests of one call, and the first error."""

    chats: int = 0
    unusable: int = 0
    fault: CallError | None = None
    """The first error that must end the call."""

    def check(self) -> None:
        """Raise the first error again if there was one."""
        if self.fault is not None:
            raise self.fault


@dataclass(frozen=True)
class CallModels:
    """The models that one call may use, and the record of their requests."""

    client: ModelClient
    call: Call
    embedder: Endpoint
    extractor: Endpoint | None = None
    """None in a call that extracts nothing, such as a search."""
    record: Record = field(default_factory=Record)

    def embed(self, texts: list[str], purpose: Purpose) -> list[list[float]]:
        """Return a vector per text. Raises CallError."""
        self.record.check()
        prefix = prefix_of(self.embedder.model, purpose)
        try:
            return self.client.embed(self.embedder, [prefix + text[:EMBEDDED_CHARS] for text in texts], self.call)
        except CallError as error:
            self.record.fault = error
            raise


class Extractor(LLMClient):
    """Implements Graphiti's protocol for chat models. It blocks: requests are sequential, in the order of episodes."""

    def __init__(self, models: CallModels, response_format: ResponseFormat, reply_tokens: int) -> None:
        super().__init__(None)
        self._models = models
        self._format = response_format
        self.max_tokens = reply_tokens

    async def _generate_response(
        self,
        messages: Iterable[BaseModel],
        response_model: type[BaseModel] | None = None,
        max_tokens: int = 0,
        model_size: object = None,
        *,
        model: str | None = None,
    ) -> dict[str, JsonValue]:
        """Return the reply of the model, parsed; called by the library, which adds the form of the reply to the prompt.

        Raises CallError if the model fails, UnusableReplyError for a reply that cannot be used. The library retries
        only after its own kinds of errors, so there is no retry here.
        """
        record, extractor = self._models.record, self._models.extractor
        assert extractor is not None, "only a call with an extractor adds episodes"
        record.check()
        record.chats += 1
        try:
            chat = self._models.client.chat(
                extractor,
                [message.model_dump(include={"role", "content"}) for message in messages],
                self._models.call,
                # Some steps of the library ask for more than a small model's whole window.
                max_tokens=min(max_tokens or self.max_tokens, self.max_tokens),
                response_format=response_format_of(self._format, response_model),
            )
            return parse_reply(chat.text, chat.finish_reason, response_model)
        except UnusableReplyError:
            record.unusable += 1
            raise
        except PromptRefusedError as error:
            record.unusable += 1
            raise UnusableReplyError(error.description) from error
        except CallError as error:
            record.fault = error
            raise


def response_format_of(choice: ResponseFormat, form: type[BaseModel] | None) -> dict[str, object] | None:
    """Return the field ``response_format`` of a request; None to omit it."""
    if choice == "none":
        return None
    if choice == "json_object" or form is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": form.model_json_schema()}}


class CallEmbedder(EmbedderClient):
    """Implements Graphiti's protocol for embedders. Texts are embedded as passages, to be compared to each other."""

    def __init__(self, models: CallModels) -> None:
        self._models = models

    async def create(self, input_data: str | list[str]) -> list[float]:
        """Return the vector of one text, which the library often wraps in a list."""
        text = input_data if isinstance(input_data, str) else input_data[0]
        return self._models.embed([text], "passage")[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """Return a vector per text."""
        return self._models.embed(input_data_list, "passage")


class NoChat(LLMClient):
    """A placeholder: a search requires a chat client but never calls it."""

    async def _generate_response(self, *_: object, **__: object) -> dict[str, JsonValue]:
        raise AssertionError("a search asks no chat model")


class NoEmbedder(EmbedderClient):
    """A placeholder: a search requires an embedder but already has its vector."""

    async def create(self, input_data: object) -> list[float]:
        """Raise AssertionError, since it is never called."""
        raise AssertionError("a search is given its vector")


class NoReranker(CrossEncoderClient):
    """A placeholder: the library requires a cross-encoder, but reciprocal rank fusion does not use it."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Raise AssertionError, since it is never called."""
        raise AssertionError("no search recipe here uses a cross-encoder")
