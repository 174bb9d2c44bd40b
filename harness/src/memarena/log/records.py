"""Everything that a run log can hold: one frozen record type per kind of fact, joined in a discriminated union.

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
"""Among the capabilities of a backend that calls generating models of its own (SPEC.md MOD-9)."""

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
    """How far it was kept from the data set; None in logs from before that was noted."""


class FloorMeasured(Record):
    """Round trips of the null backend and the null reader on this machine, in this segment. Nanoseconds, sorted."""

    kind: Literal["floor"] = "floor"
    search_ns: tuple[int, ...]
    gateway_hop_ns: tuple[int, ...]
    """TTFT at the gateway for a reader that answers at once."""
    gateway_added_ns: tuple[int, ...] = ()
    """What the gateway adds to a first token as a caller sees it: a call through it less a direct one right after."""


class ReaderProbed(Record):
    """The sanity probe of a reader: one short completion before anything is timed."""

    kind: Literal["reader_probed"] = "reader_probed"
    reader: str
    ok: bool
    message: str = ""
    prompt_tokens: dict[str, int] = Field(default_factory=dict)
    """Prompt tokens of fixed chats, where its chat template was checked by them."""
    found: dict[str, str] = Field(default_factory=dict)  # words: a name of the file format
    """What the check before a run saw of the server, as ``memarena reader check`` prints it."""
    started: ReaderRef | None = None
    """What the server reports of itself, where it started after the manifest was written."""


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
    """Until the response, or until the call failed."""
    code: str
    """gRPC status name, ``OK`` included."""
    message: str = ""
    replayed: bool = False
    visible_through_day: int | None = None
    """Last committed day as the backend states it; None when the call failed."""
    notices: Notices = ()
    retries: int = 0


class NamespaceOpened(Record):
    """A fresh namespace for an ego (attempt 0 first; later attempts after a repair)."""

    kind: Literal["namespace"] = "namespace"
    cell_id: str
    ego: str
    namespace: str
    attempt: int


class HeldText(Record):
    """What the text of an item holds of the life that was ingested, as the harness measured it."""

    session_ids: tuple[str, ...] = ()
    """Sessions that its words bear out: of one session alone, or, where several have them, of one that it names."""
    turn_ids: tuple[str, ...] = ()
    verbatim_share: float
    """Share of its words that are those of turns and events."""


class RetrievedItem(Record):
    """An item as a backend returned it, ids translated back to those of the data set."""

    text: str
    score: float
    session_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()
    unknown_ids: int = 0
    """How many source ids were unknown to the harness."""
    time: str = ""
    held: HeldText | None = None
    """None: not audited, in logs from before items were, and for a life that is too large to index."""


class SearchSpan(Record):
    """The timed Search of a question."""

    t_search_ns: int | None
    """None when the call failed."""
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
    """T_ttft of design 5: at the gateway, for the model call behind the first TextDelta, to the first token of the
    answer, after any reasoning."""
    reasoning_ttft_ns: int | None = None
    """Of the same call, to the first token of reasoning; None where none came."""
    waited_ns: int = 0
    """What model calls waited for a busy server or a limit of the reader; part of no other span."""
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
    """Of ``Retrieved``: last committed day as the backend states it; None where nothing of it came."""
    searched_items: bool = False
    """True: it was read from exactly the items that Search returned, which are not repeated in ``items``."""
    items: tuple[RetrievedItem, ...] = ()
    """What the answer was read from where that differs from what Search returned."""
    shown_items: tuple[int, ...] | None = None
    """Positions, from 0, of those items that the prompt held, among ``items`` or, with ``searched_items``, among those
    of Search: the others did not fit. None where it is not known."""
    prompt_style: Literal["text_sessions", "json_context"] | None = None

    @property
    def rest_ns(self) -> int | None:
        """What Answer took up to its first text, without the model call behind it. That text may be of its thinking."""
        if self.first_delta_ns is None or self.ttft_ns is None:
            return None
        starts = (self.ttft_ns, self.reasoning_ttft_ns)
        # A text that came before the reader's has no remainder: logs from before such an answer was refused.
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
    """The backend ended or went away meanwhile, and the question is to be asked again: this attempt has no outcome."""


LEAST_TOKENS_PER_WORD = 0.9
"""No tokenizer makes fewer tokens of a text than words, give or take."""
FEWEST_WORDS = 64
"""Below, a template's own ways weigh too much to tell."""


class GatewayCall(Record):
    """One call of a model through the gateway. Offsets are nanoseconds since the request was forwarded."""

    kind: Literal["gateway_call"] = "gateway_call"
    call_id: str
    cell_id: str | None
    phase: Literal["ingest", "search", "answer", "central", "probe", "floor", "after_return", "refused"]
    inferred: bool = False
    instance_id: str | None = None
    ego: str | None = None
    day: int | None = None
    route: str
    """Path, for example ``/v1/chat/completions``."""
    model: str = ""
    stream: bool = False
    status: int
    """HTTP status given to the caller; 499 where the caller went away first."""
    error: str = ""
    refusal: str = ""
    """Why the gateway itself refused the call, in one word: ``budget_spent``, ``token_revoked``, …"""
    upstream_code: str = ""
    """The error code of a model server that turned the request down (4xx), where it gave one."""
    from_cache: bool = False
    """The reply came from the cache of an untimed run: it cost nothing, and its times are unknown."""
    upstream_failed: bool = False
    """The model server failed (no connection, 5xx, broken stream), or turned down what every reader has to take
    (SPEC.md MOD-10): an infrastructure failure, never the backend's."""
    started_mono_ns: int
    received_to_forwarded_ns: int | None = None
    """Without ``waited_ns``."""
    waited_ns: int = 0
    """Before the request that was answered was sent: for the reader's limits, or for a server that was busy."""
    first_byte_ns: int | None = None
    first_content_ns: int | None = None
    """First text of the answer: after thinking, also where that is in the text between marks."""
    last_content_ns: int | None = None
    first_reasoning_ns: int | None = None
    """First text that is marked as thinking. It never counts as content."""
    done_ns: int | None = None
    prompt_tokens: int | None = None
    prompt_words: int | None = None
    """Words of a chat's messages: a server that reports far fewer tokens has cut the prompt."""
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str = ""
    """As the server states it; ``refusal`` where a refusal came in place of a text."""
    server_prompt_ms: float | None = None
    """The server's own prompt time, where it reports one (llama.cpp ``timings``)."""
    server_predicted_ms: float | None = None
    prompt_sha256: str = ""
    output_sha256: str = ""
    prompt: str = ""
    """The request's messages as JSON, unless the run says not to keep texts."""
    output: str = ""
    reasoning: str = ""
    """Text that the server marked as thinking."""

    @property
    def turned_down(self) -> bool:
        """Whether the server turned down a request that it has to take."""
        return self.upstream_failed and 400 <= self.status < 499

    @property
    def cut_prompt(self) -> bool:
        """Whether the server read less than it was sent: fewer tokens than :data:`LEAST_TOKENS_PER_WORD` allows."""
        words, tokens = self.prompt_words, self.prompt_tokens
        if words is None or tokens is None or words < FEWEST_WORDS:
            return False
        return max(tokens, self.cached_tokens or 0) < LEAST_TOKENS_PER_WORD * words


class Problem(Record):
    """Something that went wrong outside a question, for the record and the report."""

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
    """How a question ends (design 4)."""

    CORRECT = "correct"
    WRONG = "wrong"
    BACKEND_FAILED = "backend_failed"
    INFRA_FAILED = "infra_failed"
    READER_NOT_APPLICABLE = "reader_not_applicable"
    """The reader finds no context or no question in the prompt that the backend made: neither is at fault."""


UNMEASURED = frozenset({Outcome.INFRA_FAILED, Outcome.READER_NOT_APPLICABLE})
"""What says nothing about the memory: figures over such questions are a range, all of them wrong to all right."""
