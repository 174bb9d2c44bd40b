"""Asks a reader over retrieved context: fits the prompt to its window, calls it, and parses the answer from the reply.

It imports no other package of the repository. The harness uses it for central reading (it asks the reader itself, over
the items that a backend's Search returned), and backends for their own Answer, so that both ask the same way.
Nothing in a prompt depends on gold, task family or dimension.
"""

from memarena_answering.assets import control_text, data_files
from memarena_answering.client import ReaderClient, preload
from memarena_answering.fitting import build_prompt, count_by_bytes
from memarena_answering.layout import PromptParts, split_prompt
from memarena_answering.model import (
    AnsweringError,
    Asker,
    Completion,
    ContextItem,
    Message,
    ParsedAnswer,
    Prompt,
    PromptStyle,
    PromptTooLongError,
    ReaderCallError,
    ReadingPlan,
    TextDelta,
    TokenCounter,
)
from memarena_answering.parsing import parse_answer, strip_thinking

__all__ = [
    "AnsweringError",
    "Asker",
    "Completion",
    "ContextItem",
    "Message",
    "ParsedAnswer",
    "Prompt",
    "PromptParts",
    "PromptStyle",
    "PromptTooLongError",
    "ReaderCallError",
    "ReaderClient",
    "ReadingPlan",
    "TextDelta",
    "TokenCounter",
    "build_prompt",
    "control_text",
    "count_by_bytes",
    "data_files",
    "parse_answer",
    "preload",
    "split_prompt",
    "strip_thinking",
]
