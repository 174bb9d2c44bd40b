# mypy: allow-subclassing-any
# The library's classes are of unknown type where types are checked, since it is not installed there.
"""The models of one call, as Graphiti wants them: every request goes through the call's gateway and is on the record.

Graphiti swallows some errors of its models (a date that cannot be had is left out). So a fault of a model is also kept
here, for whoever asked Graphiti to raise; and after one, nothing more is asked for.
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
"""How much of a text is embedded. Facts, names and questions are shorter."""


@dataclass
class Record:
    """What the models did for one call."""

    chats: int = 0
    unusable: int = 0
    fault: CallError | None = None
    """The first fault that ends the call."""

    def check(self) -> None:
        """Raise the fault again if there was one."""
        if self.fault is not None:
            raise self.fault


@dataclass(frozen=True)
class CallModels:
    """What one call may ask, and the record of it."""

    client: ModelClient
    call: Call
    embedder: Endpoint
    extractor: Endpoint | None = None
    """None in a call that extracts nothing."""
    record: Record = field(default_factory=Record)

    def embed(self, texts: list[str], purpose: Purpose) -> list[list[float]]:
        """A vector per text. Raises CallError."""
        self.record.check()
        prefix = prefix_of(self.embedder.model, purpose)
        try:
            return self.client.embed(self.embedder, [prefix + text[:EMBEDDED_CHARS] for text in texts], self.call)
        except CallError as error:
            self.record.fault = error
            raise


class Extractor(LLMClient):
    """The protocol of Graphiti for chat models. Blocks: one request after the other, in the order of the episodes."""

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
        """Called by the library's ``generate_response``, which writes the form of the reply into the prompt.

        Raises CallError where the model fails, UnusableReplyError for a reply that nothing can be taken from. The
        library repeats a request only after errors of its own kinds, so nothing is repeated here.
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
    """The field ``response_format`` of a request."""
    if choice == "none":
        return None
    if choice == "json_object" or form is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": form.model_json_schema()}}


class CallEmbedder(EmbedderClient):
    """The protocol of Graphiti for embedders. What it embeds while episodes are added is compared among itself."""

    def __init__(self, models: CallModels) -> None:
        self._models = models

    async def create(self, input_data: str | list[str]) -> list[float]:
        """The vector of one text, which the library often wraps in a list."""
        text = input_data if isinstance(input_data, str) else input_data[0]
        return self._models.embed([text], "passage")[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """A vector per text."""
        return self._models.embed(input_data_list, "passage")


class NoChat(LLMClient):
    """Where a search needs a chat client by its form alone."""

    async def _generate_response(self, *_: object, **__: object) -> dict[str, JsonValue]:
        raise AssertionError("a search asks no chat model")


class NoEmbedder(EmbedderClient):
    """Where a search has its vector already."""

    async def create(self, input_data: object) -> list[float]:
        """Never called."""
        raise AssertionError("a search is given its vector")


class NoReranker(CrossEncoderClient):
    """Ranks are fused by reciprocal rank; the library wants a cross-encoder by its form alone."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Never called."""
        raise AssertionError("no search recipe here uses a cross-encoder")
