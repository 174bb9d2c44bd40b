"""Settings of a run's models: its readers, and the models that help memories."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from memarena.execution.planning.flag_values import REPEATABLE, map_form, strict_json
from memarena.execution.planning.settings import (
    CHECK,
    LATENCY,
    MOST,
    NO_FLAG,
    STUDY,
    Panel,
    Setting,
)
from memarena.readers.request_settings import DEFAULT_PATIENCE_S

_readers, _models = partial(Setting, Panel.READERS), partial(Setting, Panel.MODELS)
_FIXED_FIELDS = frozenset({"model", "messages", "stream", "prompt"})
"""Fields of a request that ``params`` and ``drop`` must not change, since they are what the reader is asked."""


class ReaderConfig(BaseModel):
    """A reader: ``embedded``, ``extractive`` or the base URL of an OpenAI-compatible server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: Annotated[str, _readers("The reader itself, as --reader names it.", commands=NO_FLAG, flag="reader")]
    model: Annotated[
        str | None, _readers("Model behind the reader's URL, where it serves several.", commands=LATENCY | CHECK)
    ] = None
    window_tokens: Annotated[
        Annotated[int, Field(ge=256, le=MOST)] | None,
        _readers(
            "Context window of the reader in tokens.",
            commands=STUDY | CHECK,
            flag="reader-window",
            unit="tokens",
            unset="what the server says",
        ),
    ] = None
    no_system_role: Annotated[
        bool, _readers("The reader's chat template has no system role.", commands=STUDY | CHECK)
    ] = False
    prefill: Annotated[
        Literal["cold", "warm"],
        _readers(
            "Class of result of sglang:MODEL: every prompt read whole (cold), or prefixes kept within a cell (warm).",
            commands=NO_FLAG,
        ),
    ] = "cold"
    image: Annotated[
        str | None, _readers("Container image of sglang:MODEL, by digest.", commands=NO_FLAG, unset="a process")
    ] = None
    mem_fraction: Annotated[
        float,
        Field(gt=0, lt=1),
        _readers("Share of memory of sglang:MODEL; 0.5 where an embedding server shares the GPU.", commands=NO_FLAG),
    ] = 0.85
    server_flags: Annotated[tuple[str, ...], _readers("Further flags of sglang:MODEL.", commands=NO_FLAG)] = ()
    golden_prompt_tokens: Annotated[
        dict[str, int],
        _readers(
            "Prompt tokens that the fixed chats of readers/golden must have with this reader's template.",
            commands=NO_FLAG,
            unit="tokens",
        ),
    ] = Field(default_factory=dict)
    params: Annotated[
        dict[str, JsonValue],
        _readers(
            "KEY=JSON put into every request to the reader, e.g. 'top_k=1'; repeatable.",
            form=map_form("KEY=JSON, such as top_k=1 or stop='[\"END\"]'", strict_json),
            commands=STUDY | CHECK,
            flag="reader-param",
        ),
    ] = Field(default_factory=dict)
    """Over what the caller sends."""
    drop: Annotated[
        tuple[str, ...],
        _readers(
            "Field left out of every request to the reader, e.g. seed; repeatable.",
            form=REPEATABLE,
            commands=STUDY | CHECK,
            flag="reader-drop",
        ),
    ] = ()
    concurrency: Annotated[
        Annotated[int, Field(ge=1, le=1024)] | None,
        _readers(
            "Most requests to the reader at once; default: {default}.",
            flag="reader-concurrency",
            unit="requests",
            unset="any",
        ),
    ] = None
    requests_per_minute: Annotated[
        Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None,
        _readers(
            "Most requests to the reader in a minute; waiting is part of no time.",
            commands=STUDY | CHECK,
            flag="reader-requests-per-minute",
            unit="requests/min",
            unset="any",
        ),
    ] = None
    patience_s: Annotated[
        float,
        Field(ge=0, le=86_400, allow_inf_nan=False),
        _readers(
            "Seconds that a request waits for a busy server (429, 503, 529); default {default}.",
            commands=STUDY | CHECK,
            flag="reader-patience",
            unit="s",
        ),
    ] = DEFAULT_PATIENCE_S
    """Altogether; part of no time."""
    name: Annotated[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] | None,
        _readers("Its name in reports, for one model in several settings.", commands=NO_FLAG, unset="the model's"),
    ] = None

    @model_validator(mode="after")
    def _what_is_sent_is_ours_to_set(self) -> Self:
        reserved = sorted(_FIXED_FIELDS & {*self.params, *self.drop})
        if reserved:
            raise ValueError(f"{reserved[0]}: is what is asked, and cannot be changed")
        return self


class HelperConfig(BaseModel):
    """A model that helps memories: ``embedded`` (embedder only) or the base URL of an OpenAI-compatible server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: Annotated[str, _models("The {role}, as --{role} names it.", commands=NO_FLAG, flag="{role}")]
    model: Annotated[str | None, _models("Model behind the {role}'s URL.", commands=None, flag="{role}-model")] = None
