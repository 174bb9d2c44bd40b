"""Typed, frozen records that a memory works with; parsed from the wire once, at the edge, and trusted inside."""

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
    """How an asker stands to the device."""

    OWNER = "owner"
    KNOWN_PERSON = "known_person"
    ANONYMOUS = "anonymous"


class ModelRole(str, Enum):
    """What a model behind the gateway is meant for."""

    READER = "reader"
    EXTRACTOR = "extractor"
    EMBEDDER = "embedder"
    RERANKER = "reranker"


class Kind(str, Enum):
    """Whether the results of a backend compete."""

    COMPETITOR = "competitor"
    DIAGNOSTIC = "diagnostic"


class Capability(str, Enum):
    """Abilities beyond the mandatory ones. ANSWER and FORGET are served by the kit, DURABLE is declared by it."""

    ANSWER = "answer"
    TIME_TRAVEL = "time_travel"
    STATEFUL_SEARCH = "stateful_search"
    PROVENANCE = "provenance"
    FORGET = "forget"
    CELL_MODEL_ACCESS = "cell_model_access"
    OWN_MODEL = "own_model"


class Retention(str, Enum):
    """Whether the words that were ingested can be found again."""

    VERBATIM = "verbatim"
    EXTRACTED = "extracted"


class TokenCounting(str, Enum):
    """How the tokens of ``max_context_tokens`` are counted."""

    UTF8_BYTES_DIV_4 = "utf8_bytes_div_4"
    OWN_TOKENIZER = "own_tokenizer"


# ------------------------------------------------------------------ a day


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody who speaks."""

    participant_id: str
    display_name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``text`` may be empty; ``said_at`` carries its offset."""

    turn_id: str
    speaker: Participant
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation, its frames merged. Empty ``modality``, ``place`` and ``group`` mean unknown or none."""

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
    """Something that happened where the owner could see it."""

    event_id: str
    happened_at: datetime
    text: str
    category: str


@dataclass(frozen=True, slots=True)
class Day:
    """One day of one namespace, whole and checked. Sessions and events stand in the order they were sent."""

    index: int
    date: date
    owner: Participant
    sessions: tuple[Session, ...]
    events: tuple[Event, ...]


# ------------------------------------------------------------------ a question


@dataclass(frozen=True, slots=True)
class Model:
    """A model that may be called during one RPC. ``context_window_tokens`` is 0 where unknown."""

    name: str
    role: ModelRole
    context_window_tokens: int
    no_system_role: bool
    counts_tokens: bool


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The gateway: the only way to any model, with a token that is good for this one call."""

    base_url: str
    token: str = field(repr=False)
    models: tuple[Model, ...]

    def model(self, name: str) -> Model | None:
        """The model of that name, or None."""
        return next((model for model in self.models if model.name == name), None)


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks. Id, name and relationship are empty unless it is a known person."""

    kind: AskerKind
    participant_id: str = ""
    display_name: str = ""
    relationship: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Privileged evidence: only a diagnostic backend ever sees it."""

    session_ids: tuple[str, ...]
    access_marker: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the memory.

    ``max_items`` and ``max_context_tokens`` are None where the caller sets no bound. ``options`` holds every key that
    the description declares, with its default where the caller did not send it.
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
        """Option ``key`` as an integer. Raises CallError INVALID_ARGUMENT if it is none, or below ``minimum``."""
        value = self.options[key]
        if not (value.isascii() and value.isdigit() and minimum <= int(value) < 2**31):
            raise invalid_argument("options", f"{key}: expected an integer of at least {minimum}, got {value!r}")
        return int(value)

    def float_option(self, key: str, minimum: float, maximum: float) -> float:
        """Option ``key`` as a decimal number. Raises CallError INVALID_ARGUMENT if it is none, or out of bounds."""
        value = self.options[key]
        if _DECIMAL.fullmatch(value) is None or not minimum <= float(value) <= maximum:
            raise invalid_argument(
                "options", f"{key}: expected a number from {minimum:g} to {maximum:g}, got {value!r}"
            )
        return float(value)

    def choice_option(self, key: str, choices: Sequence[str]) -> str:
        """Option ``key`` as one of ``choices``. Raises CallError INVALID_ARGUMENT if it is none of them."""
        value = self.options[key]
        if value not in choices:
            raise invalid_argument("options", f"{key}: expected one of {', '.join(choices)}, got {value!r}")
        return value


# ------------------------------------------------------------------ what a memory returns


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of memory. Higher scores are better; ids and times (RFC 3339, or a date) may be empty if not known.

    ``derived``: the text was made by the memory and not said in these words.
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
    """Something that a memory wants to be on the record. ``code``: lower case letters, digits, underscores."""

    code: str
    message: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Items in the order in which a reader should see them."""

    items: Sequence[Item]
    notices: Sequence[Notice] = ()
    truncated: bool = False
    """Whether more was found than the bounds let through."""


# ------------------------------------------------------------------ what a memory says of itself


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option that Search and Answer accept."""

    key: str
    description: str
    default: str


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A kind of fact that a memory keeps although it may lose words: ``statement`` holds ``{value}`` once (DSC-6)."""

    statement: str
    question: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits tighter than those of the contract. None means the contract's own."""

    max_items: int | None = None
    max_turn_text_bytes: int | None = None
    max_query_text_bytes: int | None = None
    max_concurrent_namespaces: int | None = None
    max_day_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What a backend says of itself. It must not change while the process lives."""

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
    """At least one where ``retention`` is EXTRACTED."""
