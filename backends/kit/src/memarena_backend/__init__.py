"""Implements the contract for memories in Python: implement :class:`Memory`, call :func:`run_backend`.

The kit serves the contract: it checks every request, keeps committed days durable and atomic, makes replays harmless,
and asks the reader through the harness's gateway. A memory only ingests days and returns items.
"""

from memarena_answering import PromptStyle

from memarena_backend.calls import Call
from memarena_backend.cli import run_backend
from memarena_backend.day_folders import DayFolders
from memarena_backend.endpoints import Chat, Endpoint, ModelClient, ToolCall, extractor_of, offered, prefix_of
from memarena_backend.errors import CallError, PromptRefusedError, failed_precondition, invalid_argument, unavailable
from memarena_backend.fitting import cut_text, fit_ranked, tokens_by_bytes
from memarena_backend.formatting import date_in_words, line_of, moment_in_words, setting_in_words
from memarena_backend.memory import Memory
from memarena_backend.reader_prompt import IDENTITY_OPTION, POLICY_OPTION
from memarena_backend.records import (
    AskerKind,
    Capability,
    Day,
    Description,
    Event,
    Evidence,
    Item,
    KeptFact,
    Kind,
    Limits,
    Model,
    ModelAccess,
    ModelRole,
    Notice,
    OptionSpec,
    Participant,
    Query,
    Requester,
    Retention,
    Role,
    SearchResult,
    Session,
    TokenCounting,
    Turn,
)
from memarena_backend.server import BackendServer, MemoryFactory, Security, ServeError
from memarena_backend.store import StoreError

__all__ = [
    "IDENTITY_OPTION",
    "POLICY_OPTION",
    "AskerKind",
    "BackendServer",
    "Call",
    "CallError",
    "Capability",
    "Chat",
    "Day",
    "DayFolders",
    "Description",
    "Endpoint",
    "Event",
    "Evidence",
    "Item",
    "KeptFact",
    "Kind",
    "Limits",
    "Memory",
    "MemoryFactory",
    "Model",
    "ModelAccess",
    "ModelClient",
    "ModelRole",
    "Notice",
    "OptionSpec",
    "Participant",
    "PromptRefusedError",
    "PromptStyle",
    "Query",
    "Requester",
    "Retention",
    "Role",
    "SearchResult",
    "Security",
    "ServeError",
    "Session",
    "StoreError",
    "TokenCounting",
    "ToolCall",
    "Turn",
    "cut_text",
    "date_in_words",
    "extractor_of",
    "failed_precondition",
    "fit_ranked",
    "invalid_argument",
    "line_of",
    "moment_in_words",
    "offered",
    "prefix_of",
    "run_backend",
    "setting_in_words",
    "tokens_by_bytes",
    "unavailable",
]
