"""Declares every setting of ``memarena run``, once, in one frozen record.

A field is a setting: type, bounds, default and :class:`Setting` make its flag, its key in files and the manifest, the
keyword of :func:`memarena.run` and the line of docs/settings.md. docs/maintaining.md says how to add one.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self

from memarena_dataset.model import Family
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from memarena.execution.planning.call_limits import BudgetConfig, DeadlineConfig
from memarena.execution.planning.flag_values import (
    ABSOLUTE_PATH,
    DAY_NUMBERS,
    IDS_OF_FILE,
    PROMPT_STYLES,
    REPEATABLE,
    THINKING,
    WORDS,
    map_form,
    map_of_maps_form,
)
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.execution.planning.settings import (
    CHECK,
    GROWTH,
    LATENCY,
    MOST,
    NO_FLAG,
    STUDY,
    Panel,
    Setting,
    settings_of,
)

SEED_LABELS: dict[str, tuple[float, int]] = {"s1": (0.0, 1), "s2": (0.3, 2), "s3": (0.3, 3), "s4": (0.3, 4)}
"""Temperature and seed of each label (design of the paper: s1 greedy, s2 to s4 stochastic)."""

SeedLabel = Literal["s1", "s2", "s3", "s4"]
_Style = Literal["backend", "text_sessions", "json_context"]
_SECRET = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD)(_|$)")
"""Names of variables that probably hold a secret, such as ``OPENAI_API_KEY``; not ``MONKEY`` or ``TOKENIZER``."""
FRAMING_OPTIONS = frozenset({"identity", "policy"})
"""Options that act in a backend's own Answer alone, by the convention of the kit."""

_questions, _backends, _readers, _models, _measured, _logged = (partial(Setting, panel) for panel in Panel)
# Reasons why the file of a latency study may not set a field (Setting.set_by_study).
_FROM_THE_LIST = "they follow from the list of queries"
_OF_GROWTH = "memarena latency growth times Search by days of history"


class RunConfig(BaseModel):
    """Everything that decides what a run does, apart from where its log goes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: Annotated[
        Path,
        _questions(
            "Data set folder, as masim generate or memarena dataset import writes it.",
            commands=LATENCY,
            fixed=False,
            in_sweep=False,
        ),
    ]
    """Files give it relative to their folder. A resumed run checks by its hash that it is the same one."""
    backends: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        _backends(
            "Backends (the memories that are compared), separated by commas: a name, HOST:PORT, 'image:REFERENCE "
            "[ARGUMENT…]' or a backend.toml; NAME= before one sets its name in the run.",
            form=WORDS,
            commands=LATENCY,
            flag="backend",
            in_sweep=False,
            set_by_study="--backend and --phase2 name them",
        ),
    ]
    readers: Annotated[
        tuple[ReaderConfig, ...],
        Field(min_length=1),
        _readers(
            "Readers (the models that answer), separated by commas: extractive (no language model), embedded (a "
            "small one on this machine's CPU), or the URL of an OpenAI-compatible API.",
            form=WORDS,
            commands=LATENCY,
            flag="reader",
            in_sweep=False,
            models=ReaderConfig,
        ),
    ]
    embedder: Annotated[
        HelperConfig | None,
        _models(
            "Embedding model for memories: embedded, or the URL of an OpenAI-compatible API.",
            commands=LATENCY,
            models=HelperConfig,
        ),
    ] = None
    extractor: Annotated[
        HelperConfig | None,
        _models(
            "URL of the model that extracts facts while ingesting; default: {default}.",
            commands=LATENCY,
            models=HelperConfig,
            unset="the reader",
        ),
    ] = None
    reranker: Annotated[HelperConfig | None, _models("URL of a rerank API for memories.", models=HelperConfig)] = None
    protocol: Annotated[
        Literal["interleaved", "end_of_horizon"],
        _questions(
            "When questions are asked: interleaved with the days (default), or end_of_horizon.",
            set_by_study="all days come first, then the questions",
        ),
    ] = "interleaved"
    seeds: Annotated[
        tuple[SeedLabel, ...],
        Field(min_length=1),
        _questions(
            "Sampling seeds, separated by commas; each asks every question once more: s1 (greedy, default), s2, "
            "s3, s4 (temperature 0.3).",
            form=WORDS,
            in_sweep=False,
        ),
    ] = ("s1",)
    max_context_tokens: Annotated[
        int,
        Field(ge=16, le=MOST),
        _readers("Tokens of context that a reader may see; default {default}.", commands=STUDY | CHECK, unit="tokens"),
    ] = 8192
    max_answer_tokens: Annotated[
        int,
        Field(ge=1, le=MOST),
        _readers("Tokens of an answer; default {default}.", commands=STUDY, unit="tokens"),
    ] = 400
    max_items: Annotated[
        Annotated[int, Field(ge=1, le=MOST)] | None,
        _backends("Items that Search may return; default: {default}.", unit="items", unset="the backend's choice"),
    ] = None
    prompt_style: Annotated[
        _Style,
        _readers(
            "Form of the items in the prompt: as the backend prefers (backend, default), text_sessions or "
            "json_context; BACKEND=STYLE for one backend; repeatable.",
            form=PROMPT_STYLES,
        ),
    ] = "backend"
    prompt_styles: Annotated[
        dict[str, _Style],
        _readers(
            "Styles of single backends, where they differ from prompt_style.", commands=NO_FLAG, flag="prompt-style"
        ),
    ] = Field(default_factory=dict)
    thinking: Annotated[
        Literal["default", "on", "off"],
        _readers(
            "For readers that can think before they answer: default, on, off, or the tokens that they may spend "
            "on it, not counted with the answer's.",
            form=THINKING,
            commands=STUDY,
            long_flag="reader-thinking",
        ),
    ] = "default"
    reasoning_tokens: Annotated[
        int,
        Field(ge=0, le=MOST),
        _readers(
            "Tokens that a reader may spend on reasoning, on top of max_answer_tokens.",
            commands=NO_FLAG,
            flag="thinking",
            unit="tokens",
        ),
    ] = 0
    central_reading: Annotated[
        bool,
        _readers("Let the harness ask the reader over Search's items, even where a backend has its own Answer."),
    ] = False
    d6_rules: Annotated[
        Literal["stated", "inferred"],
        _readers(
            "Rules for sharing in the reader's prompt: stated (default), or inferred (left out), which goes with "
            "central_reading."
        ),
    ] = "stated"
    options: Annotated[
        dict[str, dict[str, str]],
        _backends(
            "BACKEND.KEY=VALUE, an option of each search; repeatable.",
            form=map_of_maps_form("BACKEND.KEY=VALUE"),
            commands=STUDY,
            flag="option",
            in_sweep=False,
        ),
    ] = Field(default_factory=dict)
    """Options that the backend's Describe declares, by backend and key."""
    settings: Annotated[
        dict[str, dict[str, str]],
        _backends(
            "BACKEND.VARIABLE=VALUE, environment variable of a backend that the run starts; repeatable.",
            form=map_of_maps_form("BACKEND.VARIABLE=VALUE"),
            flag="setting",
            in_sweep=False,
        ),
    ] = Field(default_factory=dict)
    """Variables that decide how days are ingested, by backend and name; no secrets, since the log has them."""
    egos: Annotated[
        tuple[str, ...],
        _questions(
            "Only questions to the assistant of this person (ego), by id; repeatable.",
            form=REPEATABLE,
            flag="ego",
            unset="all",
            set_by_study=_FROM_THE_LIST,
        ),
    ] = ()
    question_ids: Annotated[
        tuple[str, ...],
        _questions(
            "File with one instance id per line: only these.",
            form=IDS_OF_FILE,
            unset="all",
            set_by_study="--queries gives the list",
        ),
    ] = ()
    leave_out: Annotated[
        tuple[str, ...],
        _questions("Id of a question that is not read, such as one that stops the run; repeatable.", form=REPEATABLE),
    ] = ()
    """Its row may be of any form. The manifest's filter names it."""
    families: Annotated[
        tuple[Family, ...],
        _questions(
            "Only questions of this family, such as d7_qa; repeatable.",
            form=REPEATABLE,
            flag="family",
            unset="all",
            set_by_study=_FROM_THE_LIST,
        ),
    ] = ()
    limit: Annotated[
        Annotated[int, Field(ge=1)] | None,
        _questions(
            "At most this many questions, a random sample; default: {default}.",
            unit="questions",
            unset="all",
            set_by_study="the list of queries is asked whole",
        ),
    ] = None
    order_seed: Annotated[
        int | None,
        _questions(
            "Seed of the sample of --limit and of the order of questions; default: {default}.",
            commands=STUDY,
            unset="drawn for each run",
        ),
    ] = None
    """None: the order is drawn for each run (or follows from ``id_key``), so that no backend can learn it; the sample
    is that of seed 0.
    """
    diagnostic: Annotated[
        tuple[str, ...],
        _backends(
            "Name of a backend given by address or image that is a diagnostic: no competitor, may see the right "
            "evidence; repeatable.",
            form=REPEATABLE,
        ),
    ] = ()
    evidence: Annotated[
        bool,
        _backends("Send diagnostics the evidence of each question (default); no other backend ever gets it."),
    ] = True
    access_markers: Annotated[
        tuple[str, ...],
        _backends("Diagnostic whose evidence also says whether the asker may know it; repeatable.", form=REPEATABLE),
    ] = ()
    whole_corpus: Annotated[
        tuple[str, ...],
        _backends("Diagnostic that takes in everybody's sessions, not one person's; repeatable.", form=REPEATABLE),
    ] = ()
    """Further to those whose manifest says so."""
    after_crash: Annotated[
        Literal["verify", "fresh"],
        _backends(
            "After a backend crashed: go on where it proves that it still holds its days (verify, default), or "
            "give it all days again (fresh).",
            fixed=False,
        ),
    ] = "verify"
    backend_restarts: Annotated[
        int,
        Field(ge=0),
        _backends("How often a backend that ended is started again; default {default}.", fixed=False),
    ] = 10
    """For each cell."""
    isolation: Annotated[
        Literal["auto", "container", "user", "none"],
        _backends(
            "How far backends are kept from the data set: user (a process that sees neither it nor other "
            "processes), none, container (images alone); auto (default): user where this machine offers it.",
        ),
    ] = "auto"
    backend_memory: Annotated[
        Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmg]$")] | None,
        _backends("Memory limit of a backend's container, e.g. 2g; default {default}.", unit="bytes"),
    ] = "4g"
    """Swap included; None: no limit."""
    backend_cpus: Annotated[
        Annotated[float, Field(ge=0.1)] | None,
        _backends("CPU limit of a backend's container, e.g. 1.5; default: {default}.", unit="CPUs", unset="all CPUs"),
    ] = None
    backend_pids: Annotated[
        int,
        Field(ge=16),
        _backends("Limit of processes and threads of a backend's container; default {default}.", unit="processes"),
    ] = 1024
    lost_retries: Annotated[
        int,
        Field(ge=0),
        _backends("How often a question that was lost with the backend is asked again.", commands=NO_FLAG, fixed=False),
    ] = 1
    deadlines_s: Annotated[
        DeadlineConfig,
        _backends(
            "CALL=SECONDS that a call to a backend may take; repeatable. Defaults: {default}.",
            form=map_form("CALL=SECONDS"),
            flag="deadline",
            unit="s",
            fixed=False,
        ),
    ] = DeadlineConfig()
    budgets: Annotated[
        dict[Literal["ingest", "search", "answer"], BudgetConfig],
        _backends(
            "CALL.calls=N or CALL.tokens=N: what one ingest, search or answer may spend on models; repeatable. "
            "Default: no limit.",
            form=map_of_maps_form("CALL.calls=N or CALL.tokens=N", ("calls", "tokens")),
            flag="budget",
        ),
    ] = Field(default_factory=dict)
    """The gateway answers 429 when a budget is used up."""
    timed: Annotated[
        bool,
        _measured(
            "False: other work shares the machine, so that times mean nothing; answers and tokens count.",
            commands=NO_FLAG,
            in_sweep=False,
        ),
    ] = True
    cache: Annotated[
        Path | None,
        _logged(
            "Folder of model replies to reuse; the run then times and meters nothing.",
            form=ABSOLUTE_PATH,
            set_by_study="a study times model calls",
        ),
    ] = None
    keep_texts: Annotated[
        bool, _logged("Keep prompts and outputs in the log (default), or only their hashes.", fixed=False)
    ] = True
    infra_retries: Annotated[
        int,
        Field(ge=0),
        _backends(
            "How often a question that failed for our own reasons is asked again before the next day.",
            commands=NO_FLAG,
            fixed=False,
        ),
    ] = 2
    id_key: Annotated[
        Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None,
        _logged(
            "64 hex digits: fixed opaque ids and tokens, for byte-identical requests.", unset="random", fixed=False
        ),
    ] = None
    gateway_host: Annotated[
        str,
        Field(min_length=1),
        _models(
            "Address on which the gateway, through which backends reach models, listens; default {default}, which "
            "backends on other machines cannot reach.",
            fixed=False,
        ),
    ] = "127.0.0.1"
    gateway_url: Annotated[
        Annotated[str, Field(pattern=r"^https?://[^\s/]+(/[^\s]*)?$")] | None,
        _models(
            "How backends reach the gateway, e.g. http://harness:8100/v1.", unset="http://HOST:PORT/v1", fixed=False
        ),
    ] = None
    gateway_port: Annotated[
        int,
        Field(ge=0, le=65535),
        _models("Port of the gateway; 0 (default): the system chooses.", commands=LATENCY, fixed=False),
    ] = 0
    warm_up: Annotated[
        int,
        Field(ge=0, le=100),
        _measured(
            "Requests to each reader before anything is timed, of every prompt length; default {default}.",
            commands=STUDY,
            unit="requests",
            fixed=False,
        ),
    ] = 0
    """Up to ``max_context_tokens``."""
    meters: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        _measured(
            "Meters of power and memory, separated by commas: auto (default: nvml, hwmon and procfs where they "
            "are), none, nvml[:GPU], hwmon, procfs, replay:FILE.",
            form=WORDS,
            commands=LATENCY,
            flag="meter",
            fixed=False,
        ),
    ] = ("auto",)
    system_rail: Annotated[
        str | None,
        _measured(
            "Power channel of the whole machine, as hwmon names it.", commands=STUDY, unset="sys_power", fixed=False
        ),
    ] = None
    idle_s: Annotated[
        float,
        Field(ge=0, le=3600, allow_inf_nan=False),
        _measured(
            "Seconds of rest before the first question and after the last; default {default}. Energy above idle "
            "needs 120.",
            commands=STUDY,
            unit="s",
            fixed=False,
        ),
    ] = 0.0
    search_days: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        _measured(
            "Days of history after which Search is timed.",
            form=DAY_NUMBERS,
            commands=GROWTH,
            flag="days",
            unit="days",
            set_by_study=_OF_GROWTH,
        ),
    ] = ()
    searches: Annotated[
        int,
        Field(ge=1, le=10_000),
        _measured("Searches after each of those days.", commands=GROWTH, unit="searches", set_by_study=_OF_GROWTH),
    ] = 64
    """Over the ego's questions in turn."""
    deletions: Annotated[
        int,
        Field(ge=0, le=1000),
        _measured(
            "Sessions, people and facts of each ego that a backend with FORGET is asked to forget after the last "
            "question, and that are looked for again; default {default}.",
            unit="of each kind",
        ),
    ] = 0
    floor_samples: Annotated[
        int,
        Field(ge=0),
        _measured(
            "Calls to a backend and a reader that do nothing, which show what the harness itself takes (the "
            "floor); default {default}, 0: none.",
            commands=STUDY,
            unit="calls",
            fixed=False,
        ),
    ] = 200

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
                    raise ValueError(f"{backend}.{name}: settings are in the log; export a secret in the environment")
        return value

    @model_validator(mode="after")
    def _rules_can_be_left_out(self) -> Self:
        if self.d6_rules == "inferred" and not self.central_reading:
            raise ValueError("d6_rules: inferred goes with central_reading: a backend's own Answer states the rules")
        return self

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


SETTINGS = tuple(settings_of(RunConfig))
"""All settings of a run, and those of its models."""
