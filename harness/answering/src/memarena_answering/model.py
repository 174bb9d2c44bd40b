"""Defines the records of answering: context items, asker, reading plan, prompt, reply, parsed answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

TokenCounter = Callable[[Sequence[str]], Sequence[int]]
"""Returns the tokens of each text, in the same order. A call is a round trip, so texts are counted together."""


class AnsweringError(Exception):
    """Base of the package's errors; the message is one line."""


class PromptTooLongError(AnsweringError):
    """Scaffold, question and reply alone exceed the reader's window, so that no context could ever help."""


class ReaderCallError(AnsweringError):
    """A call of the reader failed. ``status`` is the HTTP status, None if there was no complete reply."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message if status is None else f"HTTP {status}: {message}")
        self.status = status
        self.message = message


class PromptStyle(str, Enum):
    """How items are laid out for the reader."""

    TEXT_SESSIONS = "text_sessions"
    JSON_CONTEXT = "json_context"


@dataclass(frozen=True, slots=True)
class ContextItem:
    """A piece of memory to be shown. ``time`` is RFC 3339 or any short text, empty if unknown; a higher ``score``
    survives longer when the context has to shrink.
    """

    text: str
    time: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Asker:
    """The person who asks. ``name`` and ``relationship`` (to the owner) are those of known persons."""

    kind: Literal["owner", "known_person", "anonymous"]
    name: str = ""
    relationship: str = ""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The reader's parameters. Token counts of 0: the limit is unknown or not set."""

    model: str
    max_tokens: int
    """Maximum of tokens of the reply, at least 1."""
    temperature: float = 0.0
    seed: int = 0
    style: PromptStyle = PromptStyle.TEXT_SESSIONS
    thinking: Literal["default", "on", "off"] = "default"
    context_window_tokens: int = 0
    """Tokens of prompt and reply together."""
    max_context_tokens: int = 0
    """Tokens of the context block alone, including its layout."""
    no_system_role: bool = False
    """Whether the chat template has no system role, so that the system text begins the user turn."""
    policy_header: bool = False
    """Whether the system text begins with rules for sharing (a control experiment)."""
    d6_rules: Literal["stated", "inferred"] = "stated"
    """Whether the system text says who may know what, or leaves it to the reader."""
    counts_tokens: bool = False
    """Whether the counter is the reader's own; otherwise it estimates, and a quarter of the window is reserved."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages to the reader. Tokens are those of the counter, without those that the chat template adds."""

    messages: tuple[Message, ...]
    kept_items: int
    """Number of items that are shown, including a cut one."""
    dropped_items: int
    cut_items: int
    """1 if the only shown item was cut at its end, else 0."""
    context_tokens: int
    """Tokens of the context block with its layout."""
    prompt_tokens: int
    """Tokens of all messages."""
    kept: tuple[int, ...] = ()
    """Indices of the shown items in the input, in the order of the prompt."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next part of the reply; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The whole reply. Token counts are None if the reader reports none."""

    text: str
    finish_reason: Literal["stop", "length", "unknown"]
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The answer in a reply. ``parse``: whether it was strict JSON, repaired JSON, plain text, or empty."""

    answer: str
    reason: str
    parse: Literal["json", "lenient_json", "text", "empty"]
