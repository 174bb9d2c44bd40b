"""What a user asks for: the options of ``memarena run``, from flags or from a YAML file, as one frozen record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from memarena_dataset.model import Family
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from memarena.execution.errors import RunError
from memarena.execution.reasons import reason_of
from memarena.readers.request_settings import DEFAULT_PATIENCE_S

SEED_LABELS: dict[str, tuple[float, int]] = {"s1": (0.0, 1), "s2": (0.3, 2), "s3": (0.3, 3), "s4": (0.3, 4)}
"""Temperature and seed behind each label (design of the paper: s1 greedy, s2 to s4 stochastic)."""

_Seconds = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
"""More than eleven days is no deadline, and gRPC cannot count what is far more."""
_MOST = 2**32 - 1
"""Largest number that the contract's fields hold (uint32)."""
_SeedLabel = Literal["s1", "s2", "s3", "s4"]
_Style = Literal["backend", "text_sessions", "json_context"]
_FIXED_FIELDS = frozenset({"model", "messages", "stream", "prompt"})
_SECRET = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD)(_|$)")
FRAMING_OPTIONS = frozenset({"identity", "policy"})
"""Options that act in a backend's own Answer alone, by the convention of the kit."""


class ReaderConfig(BaseModel):
    """A reader: ``embedded``, ``extractive`` or the base URL of an OpenAI-compatible server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    model: str | None = None
    window_tokens: Annotated[int, Field(ge=256, le=_MOST)] | None = None
    no_system_role: bool = False
    prefill: Literal["cold", "warm"] = "cold"
    """Class of result of ``sglang:MODEL``: every prompt read whole, or prefixes kept within a cell."""
    image: str | None = None
    """Container image of ``sglang:MODEL``, by digest; None: a process."""
    mem_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.85
    """Share of memory of ``sglang:MODEL``; 0.5 where an embedding server shares the GPU."""
    server_flags: tuple[str, ...] = ()
    """Further flags of ``sglang:MODEL``."""
    golden_prompt_tokens: dict[str, int] = Field(default_factory=dict)
    """Prompt tokens that the fixed chats of ``readers/golden`` have to have with this reader's template."""
    params: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields put into every request for text, over what the caller sends."""
    drop: tuple[str, ...] = ()
    """Fields left out of every request for text, such as ``seed`` where the server refuses it."""
    concurrency: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Most requests at once; None: as many as there are."""
    requests_per_minute: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    """None: as many as there are."""
    patience_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = DEFAULT_PATIENCE_S
    """How long a request waits for a server that is busy (429, 503), altogether; part of no time."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] | None = None
    """Its name in reports, for one model in several settings; None: the model's."""

    @model_validator(mode="after")
    def _what_is_sent_is_ours_to_set(self) -> Self:
        fixed = sorted(_FIXED_FIELDS & {*self.params, *self.drop})
        if fixed:
            raise ValueError(f"{fixed[0]}: is what is asked, and cannot be changed")
        return self


class HelperConfig(BaseModel):
    """A model that helps memories: ``embedded`` (embedder only) or the base URL of an OpenAI-compatible server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    model: str | None = None


class DeadlineConfig(BaseModel):
    """Seconds that each kind of call to a backend may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    describe: _Seconds = 10.0
    ingest: _Seconds = 600.0
    search: _Seconds = 30.0
    answer: _Seconds = 600.0
    reset: _Seconds = 60.0
    health: _Seconds = 60.0


class BudgetConfig(BaseModel):
    """What one call to a backend may spend on models: calls, and tokens read and written. None: as much as it likes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class RunConfig(BaseModel):
    """Everything that decides what a run does, apart from where its log goes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: Path
    backends: Annotated[tuple[str, ...], Field(min_length=1)]
    readers: Annotated[tuple[ReaderConfig, ...], Field(min_length=1)]
    embedder: HelperConfig | None = None
    """Makes embeddings for memories that ask the gateway for them."""
    extractor: HelperConfig | None = None
    """Extracts facts while a day is ingested; None: the cell's reader does."""
    reranker: HelperConfig | None = None
    """Scores texts against a question for memories that ask the gateway for it."""
    protocol: Literal["interleaved", "end_of_horizon"] = "interleaved"
    seeds: Annotated[tuple[_SeedLabel, ...], Field(min_length=1)] = ("s1",)
    max_context_tokens: Annotated[int, Field(ge=16, le=_MOST)] = 8192
    max_answer_tokens: Annotated[int, Field(ge=1, le=_MOST)] = 400
    max_items: Annotated[int, Field(ge=1, le=_MOST)] | None = None
    prompt_style: _Style = "backend"
    prompt_styles: dict[str, _Style] = Field(default_factory=dict)
    """Styles of single backends, where they differ from ``prompt_style``."""
    thinking: Literal["default", "on", "off"] = "default"
    reasoning_tokens: Annotated[int, Field(ge=0, le=_MOST)] = 0
    """Tokens that a reader may spend on reasoning, on top of ``max_answer_tokens``."""
    central_reading: bool = False
    """Read over Search's items with the harness's engine even where a backend has an Answer of its own."""
    options: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Options per backend, as Describe declares them."""
    settings: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Environment variables per backend that the run starts: what decides how days are taken in."""
    egos: tuple[str, ...] = ()
    """Only these egos; empty: all."""
    question_ids: tuple[str, ...] = ()
    """Only these instances; empty: all."""
    leave_out: tuple[str, ...] = ()
    """Instances whose rows are passed over unread, such as one that cannot be used."""
    families: tuple[Family, ...] = ()
    """Only questions of these families; empty: all."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most this many questions, a seeded sample."""
    order_seed: int | None = None
    """Seed of the order of questions within a day, and of the sample of ``limit``. None: the order is drawn anew for
    each run (or follows from ``id_key``), so that no backend can learn it; the sample is that of seed 0.
    """
    diagnostic: tuple[str, ...] = ()
    """Backends given by address that are run as diagnostics (those with a manifest say so there)."""
    evidence: bool = True
    """Send privileged evidence to diagnostic backends (never to others)."""
    access_markers: tuple[str, ...] = ()
    """Diagnostics whose evidence of permission questions says whether the asker may hear it."""
    whole_corpus: tuple[str, ...] = ()
    """Diagnostics that take in everybody's sessions (beside those whose manifest says so)."""
    after_crash: Literal["verify", "fresh"] = "verify"
    """After a backend was started again: go on in a namespace that it proves to hold, or always in a fresh one."""
    backend_restarts: Annotated[int, Field(ge=0)] = 10
    """How often a cell's backend is started again after it ended."""
    isolation: Literal["auto", "container", "user", "none"] = "auto"
    """How far backends are kept from the data set: ``auto`` is the best that the machine offers to those by name."""
    backend_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmg]$")] | None = "4g"
    """Most memory of a backend's container, swap included; None: no limit."""
    backend_cpus: Annotated[float, Field(ge=0.1)] | None = None
    """Most CPUs of a backend's container; None: as many as the machine has."""
    backend_pids: Annotated[int, Field(ge=16)] = 1024
    """Most processes and threads of a backend's container."""
    lost_retries: Annotated[int, Field(ge=0)] = 1
    """How often a question that was lost with the backend is asked again."""
    deadlines_s: DeadlineConfig = DeadlineConfig()
    budgets: dict[Literal["ingest", "search", "answer"], BudgetConfig] = Field(default_factory=dict)
    """What each Ingest, Search or Answer may spend on models; the gateway answers 429 when it is spent."""
    timed: bool = True
    """False: other work shares the machine, so that times mean nothing; answers and tokens count."""
    cache: Path | None = None
    """Folder of model replies to use again: makes accuracy runs cheap, and such a run times and meters nothing."""
    keep_texts: bool = True
    """Keep prompts and outputs of model calls in the log, not just their hashes."""
    infra_retries: Annotated[int, Field(ge=0)] = 2
    """How often a question that failed for our own reasons is asked again before the next day."""
    id_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Fixed key for opaque ids and gateway tokens (64 hex digits), for byte-identical requests; default: random."""
    gateway_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address that the gateway listens on; another than loopback for backends that run elsewhere."""
    gateway_url: Annotated[str, Field(pattern=r"^https?://[^\s/]+(/[^\s]*)?$")] | None = None
    """How backends reach the gateway, where that is not ``http://HOST:PORT/v1``."""
    gateway_port: Annotated[int, Field(ge=0, le=65535)] = 0
    warm_up: Annotated[int, Field(ge=0, le=100)] = 0
    """Requests to each reader before anything is timed, of every prompt length up to ``max_context_tokens``."""
    meters: Annotated[tuple[str, ...], Field(min_length=1)] = ("auto",)
    """What is metered while the run goes on: ``auto``, ``none``, or what ``memarena.meters.sources`` names."""
    system_rail: str | None = None
    """Channel of the rail that feeds the whole machine, where a meter gives one under another name than sys_power."""
    idle_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    """Seconds that the machine rests before the first cell and after the last, for net energy (which needs 120)."""
    search_days: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Numbers of days of history after which Search is timed apart from any question."""
    searches: Annotated[int, Field(ge=1, le=10_000)] = 64
    """How many searches then, over the ego's questions in turn."""
    deletions: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many sessions, people and facts of each ego are forgotten after its last question and looked for again."""
    floor_samples: Annotated[int, Field(ge=0)] = 200
    """Round trips of the null backend and the null reader to measure; 0 leaves the floor out."""

    @model_validator(mode="after")
    def _gateway_can_be_named(self) -> Self:
        if self.gateway_host in {"0.0.0.0", "::"} and self.gateway_url is None:  # noqa: S104
            raise ValueError("gateway_host: on all addresses, backends cannot guess one: give gateway_url too")
        return self

    @field_validator("settings")
    @classmethod
    def _no_secret_is_logged(cls, value: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for backend, variables in value.items():
            for name in variables:
                if _SECRET.search(name.upper()):
                    raise ValueError(f"{backend}.{name}: settings stand in the log; export a secret in the environment")
        return value

    @model_validator(mode="after")
    def _framing_can_act(self) -> Self:
        for backend, options in self.options.items():
            for name in sorted(FRAMING_OPTIONS & options.keys()):
                if self.central_reading:
                    raise ValueError(
                        f"options.{backend}.{name}: acts in a backend's own Answer, not in central_reading"
                    )
        return self

    @field_validator("backends")
    @classmethod
    def _no_backend_twice(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("a backend is named twice")
        return value


_FLAGS = {
    "backends": "backend",
    "readers": "reader",
    "families": "family",
    "egos": "ego",
    "meters": "meter",
    "options": "option",
    "settings": "setting",
    "deadlines_s": "deadline",
    "budgets": "budget",
    "prompt_styles": "prompt-style",
}
"""Flags that are not named like their field."""


def parse_config(content: object, where: str | None) -> RunConfig:
    """A configuration from plain values, out of a file (``where``) or from flags alone (None).

    Raises:
        RunError: the first field at fault, by ``where`` and its name or by its flag.
    """
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        reason = reason_of(first)
        if not first["loc"]:  # of several fields together: the reason names them, and what was given is all of them
            raise RunError(f"{where}: {reason}" if where else reason) from error
        field, *inside = first["loc"]
        if where is None:
            flag = _FLAGS.get(str(field), str(field).replace("_", "-"))
            name = " ".join((f"--{flag}", *(part for part in inside if isinstance(part, str))))
            name = name.replace("--reader window_tokens", "--reader-window")
        else:
            name = f"{where}: {'.'.join(map(str, first['loc']))}"
        # Settings may hold a secret: what was given is not repeated.
        hidden = first["type"] in {"missing", "too_short"} or first["loc"][:1] == ("settings",)
        given = "" if hidden else f", got {str(first['input'])[:80]!r}"
        raise RunError(f"{name}: {reason}{given}") from error
