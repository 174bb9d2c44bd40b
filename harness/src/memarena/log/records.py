"""Defines the records of a run log: a frozen type per kind of fact, joined in a discriminated union.

A run directory holds one log (``run.sqlite``) with all its cells. Records are appended and never changed. Spans are
nanoseconds; names ending in ``_mono_ns`` are readings of ``time.monotonic_ns`` of the machine that ran the harness and
mean something only as differences within one run segment (between a ``run_started`` or ``run_resumed`` and the next).
Texts of sessions, turns and items carry the data set's ids here, never the opaque ones of the wire.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from memarena_dataset.model import Instance
from pydantic import Field, TypeAdapter

from memarena.log.base import Record
from memarena.log.judging import (
    BehaviourLabel,
    Bucket,
    BucketNamed,
    JudgeRecord,
    JudgeTask,
    JudgeUsage,
    JudgingFailed,
    Verdict,
)
from memarena.log.manifest import (
    Cell,
    DatasetRef,
    Manifest,
    NamedConfiguration,
    Projection,
    ReaderRef,
    Reading,
    ResultClass,
    Versions,
)
from memarena.log.measuring import (
    ChannelMeasured,
    DeletionProbed,
    FootprintTaken,
    MeterChannel,
    MeterFigure,
    MeteringStarted,
    PhaseEnded,
    PhaseMeasured,
    RailMeasured,
    SearchesTimed,
)
from memarena.log.notices import Notice, Notices

__all__ = [
    "RECORD_ADAPTER",
    "SCHEMA_VERSION",
    "AnswerSpan",
    "AnyRecord",
    "BackendDescribed",
    "BehaviourLabel",
    "Bucket",
    "BucketNamed",
    "Cell",
    "ChannelMeasured",
    "DatasetRef",
    "DeletionProbed",
    "EvidenceSession",
    "EvidenceText",
    "EvidenceTurn",
    "FloorMeasured",
    "FootprintTaken",
    "GatewayCall",
    "HeldText",
    "IngestDone",
    "IsolationGrade",
    "JudgeRecord",
    "JudgeTask",
    "JudgeUsage",
    "JudgingFailed",
    "Manifest",
    "MeterChannel",
    "MeterFigure",
    "MeteringStarted",
    "NamedConfiguration",
    "NamespaceOpened",
    "Notice",
    "Outcome",
    "PhaseEnded",
    "PhaseMeasured",
    "Problem",
    "Projection",
    "Question",
    "QuestionAsked",
    "RailMeasured",
    "ReaderProbed",
    "ReaderRef",
    "Reading",
    "Record",
    "ResultClass",
    "RetrievedItem",
    "RunEnded",
    "RunResumed",
    "RunStarted",
    "SearchSpan",
    "SearchesTimed",
    "Verdict",
    "Versions",
]

OWN_MODEL = "own_model"
"""Capability of a backend that calls its own generating models (SPEC.md MOD-9)."""

IsolationGrade = Literal["container", "user", "none", "unknown"]
"""``container``: an image without a way out; ``user``: a process that sees neither other processes nor data set and run
folder; ``none``: a process of the same user; ``unknown``: reached at an address."""

SCHEMA_VERSION = 4
"""Version of the log. A newer one is refused, never half read. 2: texts that repeat are in a separate table.
3: records and texts carry checksums, and an attempt says whether it was lost with the backend. 4: notices
are records."""


class RunStarted(Record):
    """First record of a log."""

    kind: Literal["run_started"] = "run_started"
    run_id: str
    started_at: str
    manifest: Manifest


class RunResumed(Record):
    """A later process resumed the run."""

    kind: Literal["run_resumed"] = "run_resumed"
    resumed_at: str
    versions: Versions


class RunEnded(Record):
    """A process stopped working on the run in an orderly way."""

    kind: Literal["run_ended"] = "run_ended"
    ended_at: str
    reason: Literal["completed", "incomplete", "interrupted", "aborted"]
    message: str = ""


# ------------------------------------------------------------------ questions


class EvidenceTurn(Record):
    """A turn of an evidence session, as it was said."""

    turn_id: str
    speaker: str
    text: str
    said_at: str


class EvidenceSession(Record):
    """A session that holds evidence, verbatim."""

    session_id: str
    started_at: str
    place: str | None = None  # words: a name of the file format
    group: str | None = None
    modality: str | None = None
    turns: tuple[EvidenceTurn, ...]


class EvidenceText(Record):
    """One evidence session's text, once per run; questions name it by id."""

    kind: Literal["evidence"] = "evidence"
    session: EvidenceSession


class Question(Record):
    """A question of the run with its gold, once per run. ``day`` is the day after which it is asked."""

    kind: Literal["question"] = "question"
    instance: Instance
    question_text: str
    """The text that is sent."""
    day: int
    asked_at: str
    requester_kind: Literal["owner", "known_person", "anonymous"]
    relationship: str = ""
    lag_days: int | None = None
    """Whole days between the latest evidence and the question; None without evidence."""
    ego_name: str
    asker_name: str = ""


# ------------------------------------------------------------------ what a cell does


class BackendDescribed(Record):
    """The Describe of a backend when a cell began or was resumed."""

    kind: Literal["backend_described"] = "backend_described"
    cell_id: str
    name: str
    version: str
    contract_version: str
    backend_kind: Literal["competitor", "diagnostic"]
    capabilities: tuple[str, ...]
    token_counting: str
    preferred_prompt_style: str
    retention: str
    isolation: IsolationGrade | None = None
    """How far the backend is kept from the data set; None in older logs."""


class FloorMeasured(Record):
    """The floor: times of a null backend and a null reader on this machine, which do nothing. Nanoseconds, sorted."""

    kind: Literal["floor"] = "floor"
    search_ns: tuple[int, ...]
    gateway_hop_ns: tuple[int, ...]
    """TTFT at the gateway for a reader that answers at once."""
    gateway_added_ns: tuple[int, ...] = ()
    """Delay of the first token by the gateway: a call through it less a direct call right after."""


class ReaderProbed(Record):
    """A check of a reader before anything is timed; or a check after a failure, which is logged if it fails too."""

    kind: Literal["reader_probed"] = "reader_probed"
    reader: str
    ok: bool
    message: str = ""
    prompt_tokens: dict[str, int] = Field(default_factory=dict)
    """Prompt tokens of fixed chats, where its chat template was checked by them."""
    found: dict[str, str] = Field(default_factory=dict)  # words: a name of the file format
    """Results of the check before a run, as ``memarena reader check`` prints them."""
    started: ReaderRef | None = None
    """What the server reports about itself, if it started after the manifest was written."""


class IngestDone(Record):
    """One Ingest call, successful or not."""

    kind: Literal["ingest"] = "ingest"
    cell_id: str
    ego: str
    namespace: str
    day: int
    sessions: int
    turns: int
    events: int
    payload_bytes: int
    """Serialised bytes of all frames."""
    duration_ns: int
    """Time until the response, or until the call failed, without waits for a busy model server."""
    code: str
    """gRPC status name, ``OK`` included."""
    message: str = ""
    replayed: bool = False
    """Whether the backend states that it has this day already, so that it ingested nothing."""
    visible_through_day: int | None = None
    """Last committed day as the backend states it; None if the call failed."""
    notices: Notices = ()
    retries: int = 0
    """Number of earlier attempts at the same call."""


class NamespaceOpened(Record):
    """A fresh namespace for an ego (attempt 0 first; later attempts after a repair)."""

    kind: Literal["namespace"] = "namespace"
    cell_id: str
    ego: str
    namespace: str
    attempt: int


class HeldText(Record):
    """Which turns and sessions of the ingested life the text of an item contains, as measured by the harness."""

    session_ids: tuple[str, ...] = ()
    """Sessions that its words support: the only session with these words, or of several the one that the item names."""
    turn_ids: tuple[str, ...] = ()
    verbatim_share: float
    """Share of its words that come from turns and events."""


class RetrievedItem(Record):
    """An item as a backend returned it, ids translated back to those of the data set."""

    text: str
    score: float
    session_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    unknown_ids: int = 0
    """Number of source ids that are unknown to the harness."""
    time: str = ""
    held: HeldText | None = None
    """None: not audited, as in older logs, or for a life that is too large to index."""


class SearchSpan(Record):
    """The timed Search of a question."""

    t_search_ns: int | None
    """Time of the call without waits for a busy model server; None if it failed."""
    code: str
    message: str = ""
    items: tuple[RetrievedItem, ...] = ()
    visible_through_day: int | None = None
    backend_reported_us: int | None = None
    notices: Notices = ()


NonAnswer = Literal["", "empty", "cut", "filtered", "reasoning"]
"""Why an answer says nothing, or not all: no text, cut off by the limit of tokens, held back by the server's filter,
all tokens spent on reasoning. Empty: it says something."""


NON_ANSWERS: dict[NonAnswer, str] = {
    "empty": "empty",
    "cut": "cut off by the limit of tokens",
    "filtered": "held back by the server's filter",
    "reasoning": "spent on reasoning",
}
"""The reasons in words."""


class AnswerSpan(Record):
    """The Answer of a question. Offsets are nanoseconds since the request was sent; None: did not happen."""

    route: Literal["backend", "central"]
    code: str
    message: str = ""
    retrieved_ns: int | None = None
    first_delta_ns: int | None = None
    completed_ns: int | None = None
    ttft_ns: int | None = None
    """Time to first token: at the gateway, for the model call behind the first TextDelta, to the first token of the
    answer, after any reasoning."""
    reasoning_ttft_ns: int | None = None
    """Time of the same call to its first token of reasoning; None if there was none."""
    waited_ns: int = 0
    """Waiting time of model calls for a busy server or a limit of the reader; not part of any other span."""
    model_calls: int = 0
    raw: str = ""
    """The reader's whole output."""
    answer: str = ""
    """The parsed answer."""
    reason: str = ""
    parse: Literal["json", "lenient_json", "text", "empty"] = "empty"
    finish_reason: Literal["stop", "length", "unknown"] = "unknown"
    non_answer: NonAnswer = ""
    visible_through_day: int | None = None
    """Last committed day as the backend states it in ``Retrieved``; None if there was no ``Retrieved``."""
    searched_items: bool = False
    """Whether it was read from exactly the items that Search returned, which are not repeated in ``items``."""
    items: tuple[RetrievedItem, ...] = ()
    """Items that the answer was read from, if they differ from those of Search."""
    shown_items: tuple[int, ...] | None = None
    """Positions, from 0, of those items that the prompt held, among ``items`` or, with ``searched_items``, among those
    of Search: the others did not fit. None where it is not known."""
    prompt_style: Literal["text_sessions", "json_context"] | None = None

    @property
    def rest_ns(self) -> int | None:
        """Time of Answer up to its first text, even of thinking, less the TTFT of its model call."""
        if self.first_delta_ns is None or self.ttft_ns is None:
            return None
        starts = (self.ttft_ns, self.reasoning_ttft_ns)
        # In older logs an answer's text may come before the reader's, and has no remainder then.
        return next((self.first_delta_ns - ns for ns in starts if ns is not None and ns <= self.first_delta_ns), None)


class QuestionAsked(Record):
    """One attempt at a question, whole. ``status`` is decided here; right or wrong is decided by scoring."""

    kind: Literal["asked"] = "asked"
    cell_id: str
    instance_id: str
    ego: str
    namespace: str
    day: int
    attempt: int
    status: Literal["answered", "backend_failed", "infra_failed", "reader_not_applicable"]
    cause: str = ""
    """Empty for ``answered``; else one line that names what failed."""
    asked_mono_ns: int
    search: SearchSpan | None = None
    answer: AnswerSpan | None = None
    gateway_call_ids: tuple[str, ...] = ()
    lost: bool = False
    """Whether the backend ended meanwhile, so that the question is asked again and this attempt has no outcome."""


LEAST_TOKENS_PER_WORD = 0.9
"""Least plausible ratio of tokens to words: tokenizers make about one token per word or more."""
FEWEST_WORDS = 64
"""Prompts with fewer words are not checked, since the tokens of the chat template weigh too much."""


class GatewayCall(Record):
    """One call of a model through the gateway. Offsets are nanoseconds since the request was forwarded."""

    kind: Literal["gateway_call"] = "gateway_call"
    call_id: str
    cell_id: str | None
    phase: Literal["ingest", "search", "answer", "central", "probe", "floor", "after_return", "refused"]
    inferred: bool = False
    """Whether the call was attributed by time, since a token for the whole cell names no question."""
    instance_id: str | None = None
    ego: str | None = None
    day: int | None = None
    route: str
    """Path, for example ``/v1/chat/completions``."""
    model: str = ""
    stream: bool = False
    status: int
    """HTTP status sent to the caller; 499 if the caller hung up before."""
    error: str = ""
    refusal: str = ""
    """Why the gateway itself refused the call, in one word: ``budget_spent``, ``token_revoked``, …"""
    upstream_code: str = ""
    """The error code of a model server that refused the request (4xx), if it sent one."""
    from_cache: bool = False
    """Whether the reply is from the cache of an untimed run: it cost nothing, and its times are unknown."""
    upstream_failed: bool = False
    """The model server failed (no connection, 5xx, broken stream), or turned down what every reader has to take
    (SPEC.md MOD-10): an infrastructure failure, never the backend's."""
    started_mono_ns: int
    received_to_forwarded_ns: int | None = None
    """Time in the gateway before forwarding, without ``waited_ns``."""
    waited_ns: int = 0
    """Waiting time before the answered request was sent, for the reader's limits or a busy server."""
    first_byte_ns: int | None = None
    first_content_ns: int | None = None
    """First text of the answer, after thinking, even if thinking is in the text between marks."""
    last_content_ns: int | None = None
    first_reasoning_ns: int | None = None
    """First text that is marked as thinking. It never counts as content."""
    done_ns: int | None = None
    prompt_tokens: int | None = None
    prompt_words: int | None = None
    """Number of words in a chat's messages: a server that reports far fewer tokens has cut the prompt."""
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str = ""
    """As the server states it; ``refusal`` if the server sent a refusal instead of text."""
    server_prompt_ms: float | None = None
    """The server's own time for the prompt, if it reports one (llama.cpp ``timings``)."""
    server_predicted_ms: float | None = None
    prompt_sha256: str = ""
    output_sha256: str = ""
    prompt: str = ""
    """The request's messages as JSON; empty if the run does not keep texts."""
    output: str = ""
    reasoning: str = ""
    """Text that the server marked as thinking."""

    @property
    def turned_down(self) -> bool:
        """Whether the server refused a request that it must accept."""
        return self.upstream_failed and 400 <= self.status < 499

    @property
    def cut_prompt(self) -> bool:
        """Whether the server cut the prompt: it reports fewer tokens than :data:`LEAST_TOKENS_PER_WORD` allows."""
        words, tokens = self.prompt_words, self.prompt_tokens
        if words is None or tokens is None or words < FEWEST_WORDS:
            return False
        return max(tokens, self.cached_tokens or 0) < LEAST_TOKENS_PER_WORD * words


class Problem(Record):
    """A failure outside of a question, for the report."""

    kind: Literal["problem"] = "problem"
    at: str
    where: str
    cause: Literal["backend", "infra"]
    message: str
    cell_id: str | None = None


AnyRecord = Annotated[
    RunStarted
    | RunResumed
    | RunEnded
    | EvidenceText
    | Question
    | BackendDescribed
    | FloorMeasured
    | ReaderProbed
    | NamespaceOpened
    | IngestDone
    | QuestionAsked
    | GatewayCall
    | Verdict
    | BucketNamed
    | JudgingFailed
    | MeteringStarted
    | PhaseEnded
    | PhaseMeasured
    | FootprintTaken
    | SearchesTimed
    | DeletionProbed
    | Problem,
    Field(discriminator="kind"),
]

RECORD_ADAPTER: TypeAdapter[AnyRecord] = TypeAdapter(AnyRecord)
"""Parses and dumps any record."""


class Outcome(str, Enum):
    """How a question ends."""

    CORRECT = "correct"
    WRONG = "wrong"
    BACKEND_FAILED = "backend_failed"
    INFRA_FAILED = "infra_failed"
    READER_NOT_APPLICABLE = "reader_not_applicable"
    """The extractive reader recognises no context or question in the backend's prompt; neither is at fault."""


UNMEASURED = frozenset({Outcome.INFRA_FAILED, Outcome.READER_NOT_APPLICABLE})
"""Outcomes that say nothing about the memory: figures over such questions are ranges, from all wrong to all right."""
