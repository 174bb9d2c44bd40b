"""The values that answering works on: context items, who asks, how to read, prompts, what came back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

TokenCounter = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of each text, in the order given. One call is one round trip, so texts are counted together."""


class AnsweringError(Exception):
    """Base of what this package raises; the message is one line."""


class PromptTooLongError(AnsweringError):
    """Scaffold, question and reply alone exceed the reader's window, so that no context could ever help."""


class ReaderCallError(AnsweringError):
    """A call of the reader failed. ``status`` is the HTTP status, None where there was no (whole) answer."""

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
    """Who asks. ``name`` and ``relationship`` (to the owner) belong to known persons."""

    kind: Literal["owner", "known_person", "anonymous"]
    name: str = ""
    relationship: str = ""


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """How the reader is asked. Token counts of 0 mean: no such bound known."""

    model: str
    max_tokens: int
    """Most tokens of the reply, at least 1."""
    temperature: float = 0.0
    seed: int = 0
    style: PromptStyle = PromptStyle.TEXT_SESSIONS
    thinking: Literal["default", "on", "off"] = "default"
    context_window_tokens: int = 0
    """Prompt and reply together."""
    max_context_tokens: int = 0
    """Budget of the context block alone, its layout included."""
    no_system_role: bool = False
    """The chat template has no system role: its text opens the user turn."""
    policy_header: bool = False
    """Open the system text with rules for sharing (a control experiment)."""
    d6_rules: Literal["stated", "inferred"] = "stated"
    """Whether the system text says who may know what, or leaves it to the reader."""
    counts_tokens: bool = False
    """The counter is the reader's own. Otherwise it estimates, and a quarter of the window is kept free for that."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the reader is sent. Tokens are as counted by the counter, without those that the chat template adds."""

    messages: tuple[Message, ...]
    kept_items: int
    """Items that are shown, a cut one included."""
    dropped_items: int
    cut_items: int
    """1 if the only item left was shortened at its end, else 0."""
    context_tokens: int
    """The context block with its layout."""
    prompt_tokens: int
    """All messages."""
    kept: tuple[int, ...] = ()
    """Positions of the items that are shown, among those given, in the order shown."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the reply; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The whole reply. Token counts are None where the reader reports none."""

    text: str
    finish_reason: Literal["stop", "length", "unknown"]
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What a reply says. ``parse`` tells how it was found: strict JSON, repaired JSON, plain text, nothing there."""

    answer: str
    reason: str
    parse: Literal["json", "lenient_json", "text", "empty"]
