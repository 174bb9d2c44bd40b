"""Defines the typed, frozen records that a memory works with. They are checked once, when parsed from the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum

from memarena_answering import PromptStyle

from memarena_backend.errors import invalid_argument

_DECIMAL = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class Role(str, Enum):
    """What a participant is to the device."""

    OWNER = "owner"
    PERSON = "person"
    ASSISTANT = "assistant"


class AskerKind(str, Enum):
    """How the asker of a question is related to the device."""

    OWNER = "owner"
    KNOWN_PERSON = "known_person"
    ANONYMOUS = "anonymous"


class ModelRole(str, Enum):
    """What a model behind the gateway is to be used for."""

    READER = "reader"
    EXTRACTOR = "extractor"
    EMBEDDER = "embedder"
    RERANKER = "reranker"


class Kind(str, Enum):
    """Whether a backend's results are ranked with others; a diagnostic sees privileged evidence and is not."""

    COMPETITOR = "competitor"
    DIAGNOSTIC = "diagnostic"


class Capability(str, Enum):
    """Abilities beyond the mandatory ones, as SPEC.md defines them.

    ANSWER and FORGET are served by the kit for a memory that declares them; DURABLE is always declared by the kit.
    """

    ANSWER = "answer"
    TIME_TRAVEL = "time_travel"
    STATEFUL_SEARCH = "stateful_search"
    PROVENANCE = "provenance"
    FORGET = "forget"
    CELL_MODEL_ACCESS = "cell_model_access"
    OWN_MODEL = "own_model"


class Retention(str, Enum):
    """Whether items hold the words that were ingested, or only facts extracted from them."""

    VERBATIM = "verbatim"
    EXTRACTED = "extracted"


class TokenCounting(str, Enum):
    """How the tokens of ``max_context_tokens`` are counted."""

    UTF8_BYTES_DIV_4 = "utf8_bytes_div_4"
    OWN_TOKENIZER = "own_tokenizer"


# ------------------------------------------------------------------ a day


@dataclass(frozen=True, slots=True)
class Participant:
    """A person or assistant who takes part in a session."""

    participant_id: str
    display_name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``text`` may be empty; ``said_at`` has a UTC offset."""

    turn_id: str
    speaker: Participant
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation, merged from its frames. ``modality``, ``place`` and ``group`` are empty if unknown or none."""

    session_id: str
    participants: tuple[Participant, ...]
    started_at: datetime
    ended_at: datetime
    modality: str
    place: str  # words: a name of the file format
    group: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the owner's device recorded outside of sessions."""

    event_id: str
    happened_at: datetime
    text: str
    category: str


@dataclass(frozen=True, slots=True)
class Day:
    """One complete, checked day of one namespace. Sessions and events are in the order in which they were sent."""

    index: int
    date: date
    owner: Participant
    sessions: tuple[Session, ...]
    events: tuple[Event, ...]


# ------------------------------------------------------------------ a question


@dataclass(frozen=True, slots=True)
class Model:
    """A model that may be called during one RPC. ``context_window_tokens`` is 0 if unknown."""

    name: str
    role: ModelRole
    context_window_tokens: int
    no_system_role: bool
    counts_tokens: bool


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The gateway, through which all models are called, with a token that is valid for this one call."""

    base_url: str
    token: str = field(repr=False)
    models: tuple[Model, ...]

    def model(self, name: str) -> Model | None:
        """Return the model of that name, or None."""
        return next((model for model in self.models if model.name == name), None)


@dataclass(frozen=True, slots=True)
class Requester:
    """The asker. Id, name and relationship are empty unless ``kind`` is KNOWN_PERSON."""

    kind: AskerKind
    participant_id: str = ""
    display_name: str = ""
    relationship: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Privileged evidence: the sessions that answer the question, and in control runs a line on the asker's access.

    Only a diagnostic backend sees it, such as the oracle, which shows what a perfect search would give.
    """

    session_ids: tuple[str, ...]
    access_marker: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the memory.

    ``max_items`` and ``max_context_tokens`` are None if the caller sets no bound. ``options`` has every key that the
    description declares, with the default of those that the caller did not send.
    """

    query_id: str
    text: str
    asked_at: datetime
    as_of_day: int
    requester: Requester
    max_items: int | None
    max_context_tokens: int | None
    options: Mapping[str, str]
    evidence: Evidence | None = None

    def int_option(self, key: str, minimum: int) -> int:
        """Return the option as an integer. Raises CallError INVALID_ARGUMENT if it is not one, or below ``minimum``."""
        value = self.options[key]
        if not (value.isascii() and value.isdigit() and minimum <= int(value) < 2**31):
            raise invalid_argument("options", f"{key}: expected an integer of at least {minimum}, got {value!r}")
        return int(value)

    def float_option(self, key: str, minimum: float, maximum: float) -> float:
        """Return the option as a number. Raises CallError INVALID_ARGUMENT if it is not a decimal, or out of bounds."""
        value = self.options[key]
        if _DECIMAL.fullmatch(value) is None or not minimum <= float(value) <= maximum:
            raise invalid_argument(
                "options", f"{key}: expected a number from {minimum:g} to {maximum:g}, got {value!r}"
            )
        return float(value)

    def choice_option(self, key: str, choices: Sequence[str]) -> str:
        """Return the option's value. Raises CallError INVALID_ARGUMENT if it is not among ``choices``."""
        value = self.options[key]
        if value not in choices:
            raise invalid_argument("options", f"{key}: expected one of {', '.join(choices)}, got {value!r}")
        return value


# ------------------------------------------------------------------ what a memory returns


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of memory. Higher scores are better; ids and times (RFC 3339, or a date) are empty if not known.

    ``derived``: the text was composed by the memory and is not a quotation.
    """

    text: str
    score: float
    session_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    time: str = ""
    event_ids: tuple[str, ...] = ()
    valid_from: str = ""
    valid_until: str = ""
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A report of a memory on a call that succeeded. ``code``: lower case letters, digits, underscores."""

    code: str
    message: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The items of a search, in the order in which the reader should see them."""

    items: Sequence[Item]
    notices: Sequence[Notice] = ()
    truncated: bool = False
    """Whether items were dropped or cut to fit the query's bounds."""


# ------------------------------------------------------------------ what a memory says of itself


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option that Search and Answer accept."""

    key: str
    description: str
    default: str


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A kind of fact that an extracting memory promises to keep. ``statement`` contains ``{value}`` once (DSC-6)."""

    statement: str
    question: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits tighter than those of the contract. None means the contract's limit applies."""

    max_items: int | None = None
    max_turn_text_bytes: int | None = None
    max_query_text_bytes: int | None = None
    max_concurrent_namespaces: int | None = None
    max_day_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """The answer to Describe. It must not change while the process runs."""

    name: str
    version: str
    kind: Kind = Kind.COMPETITOR
    capabilities: frozenset[Capability] = frozenset()
    options: tuple[OptionSpec, ...] = ()
    prompt_style: PromptStyle = PromptStyle.TEXT_SESSIONS
    limits: Limits = Limits()
    retention: Retention = Retention.VERBATIM
    token_counting: TokenCounting = TokenCounting.UTF8_BYTES_DIV_4
    kept_facts: tuple[KeptFact, ...] = ()
    """At least one if ``retention`` is EXTRACTED."""
