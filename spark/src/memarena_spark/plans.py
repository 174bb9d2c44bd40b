"""Reads certification plans (YAML) and checks them: the run's settings, its servers, and pinned versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import yaml
from memarena.execution.planning.config import RunConfig
from memarena.execution.reasons import reason_of
from memarena.log.base import Record
from memarena.readers.errors import ReaderError
from memarena.readers.remote import api_url
from pydantic import Field, ValidationError

from memarena_spark.errors import FileError, SparkError
from memarena_spark.profiles import NodeProfile, is_ours, parse_profile, profile_text

FLOOR_SAMPLES = 11
"""Least number of round trips of the null backend and reader for a median."""

_Url = Annotated[str, Field(pattern=r"^https?://[^\s/]+(/[^\s]*)?$")]


class EmbedderSpec(Record):
    """An ollama server with the embedding model; it must have been started before the model server."""

    url: _Url
    """Root of the server, such as http://127.0.0.1:11434."""
    model: str
    warm_within_s: Annotated[float, Field(gt=0)] = 1.0
    container: str | None = None
    """Name of the container in which the server runs; None: it runs in none."""


class ReaderServerSpec(Record):
    """The model server, and what it must report of itself."""

    url: _Url
    model: str
    kind: Literal["sglang", "llama.cpp", "other"] = "sglang"
    flags: dict[str, str] = Field(default_factory=dict)
    """Expected flags, by the names under which the server reports them, such as ``disable_radix_cache: "True"``."""
    container: str | None = None


class Pins(Record):
    """Versions that the node must have. None and absent: not pinned, but recorded."""

    driver: str | None = None
    kernel: str | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    images: dict[str, Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]] = Field(default_factory=dict)
    """Digests of images, by the names of their containers."""


class Golden(Record):
    """Result of the compute canary on this very node when it was known to be well (``memarena-spark canary``)."""

    tflops: Annotated[float, Field(gt=0)]
    clock_mhz: Annotated[float, Field(gt=0)] | None = None


class Plan(Record):
    """All settings of a certification run, as the plan's file states them."""

    schema_version: Literal[1] = Field(alias="schema")
    profile: str
    """Name of a node profile, or the path of one."""
    run: RunConfig
    result_class: Literal["cold", "warm"] = "cold"
    """``cold``: no prefix of a prompt comes from a cache, and every call is checked for it. ``warm``: it may.

    A run has a single class, since cold and warm times must not be mixed."""
    embedder: EmbedderSpec | None = None
    reader_server: ReaderServerSpec | None = None
    pins: Pins = Pins()
    gpu_processes: tuple[str, ...] = ("sglang", "ollama")
    """Words, one of which must be in the name of every process on the GPU."""
    golden: Golden | None = None
    advertise: str | None = None
    """Host by which backends in containers reach this process during the conformance suite."""


class LoadedPlan(Record):
    """A plan with its profile, and the text of both files as they were."""

    plan: Plan
    plan_text: str
    profile: NodeProfile
    profile_text: str


def load_plan(path: Path) -> LoadedPlan:
    """Read a plan and its profile. Paths in it count from its folder.

    Raises :class:`~memarena_spark.errors.SparkError` naming file and field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SparkError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    plan = parse_plan(text, str(path))
    run = plan.run
    if not run.dataset.is_absolute():
        run = run.model_copy(update={"dataset": path.parent / run.dataset})
    plan = plan.model_copy(update={"run": run})
    profile_content = profile_text(plan.profile, path.parent)
    profile = parse_profile(profile_content, f"profile {plan.profile}")
    for fault in plan_faults(plan, profile):
        raise SparkError(f"{path}: {fault}")
    if profile.purpose != "test" and not is_ours(profile_content):
        raise SparkError(f'profile {plan.profile}: purpose: a profile that is none of ours can only be "test"')
    return LoadedPlan(plan=plan, plan_text=text, profile=profile, profile_text=profile_content)


def effective_run(plan: Plan, profile: NodeProfile) -> RunConfig:
    """Return the run's settings, with at least the profile's idle time before and after the run."""
    return plan.run.model_copy(update={"idle_s": max(plan.run.idle_s, profile.idle_s)})


def parse_plan(text: str, source: str) -> Plan:
    """Parse a plan; its paths stay as they are in the text. Raises FileError naming ``source`` and the field."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FileError(source, f"not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise FileError(source, "expected a mapping with schema, profile and run")
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        actual = "" if first["type"] == "missing" else f", got {str(first['input'])[:80]!r}"
        raise FileError(source, f"{field}: {reason_of(first)}{actual}") from error


def plan_faults(plan: Plan, profile: NodeProfile) -> Iterator[str]:
    """Yield a line, beginning with the field, for each demand of the profile that the plan lacks or contradicts."""
    demands = profile.demands
    by = f"the profile {profile.name} demands"
    if demands.pinned_versions:
        yield from (f"pins.{name}: {by} it" for name in ("driver", "kernel") if getattr(plan.pins, name) is None)
    if demands.reader_server and plan.reader_server is None:
        yield f"reader_server: {by} it"
    if demands.embedder and plan.embedder is None:
        yield f"embedder: {by} it"
    if plan.run.warm_up < demands.warm_up:
        yield f"run.warm_up: {by} {demands.warm_up} or more, got {plan.run.warm_up}"
    if demands.protocol is not None and plan.run.protocol != demands.protocol:
        yield f"run.protocol: {by} {demands.protocol}, got {plan.run.protocol}"
    if plan.run.floor_samples < FLOOR_SAMPLES:
        yield f"run.floor_samples: expected {FLOOR_SAMPLES} or more, got {plan.run.floor_samples}"
    yield from _golden_faults(plan.golden, profile)
    yield from _reader_faults(plan, profile)
    if plan.embedder is not None and plan.run.embedder is not None and _is_url(plan.run.embedder.spec):
        helper = plan.run.embedder
        yield from _other_server("run.embedder", helper.spec, helper.model, "embedder", plan.embedder)


def _golden_faults(golden: Golden | None, profile: NodeProfile) -> Iterator[str]:
    """Yield golden values below the profile's floors. Missing values are reported by preflight, which measures them."""
    floors = profile.canary
    if golden is None:
        return
    if golden.tflops < floors.tflops_at_least:
        yield f"golden.tflops: {profile.name} gives {floors.tflops_at_least:g} or more, got {golden.tflops:g}"
    if floors.clock_mhz_at_least is not None:
        if golden.clock_mhz is None:
            yield f"golden.clock_mhz: the profile {profile.name} demands it"
        elif golden.clock_mhz < floors.clock_mhz_at_least:
            least = floors.clock_mhz_at_least
            yield f"golden.clock_mhz: {profile.name} gives {least:g} or more, got {golden.clock_mhz:g}"


def _reader_faults(plan: Plan, profile: NodeProfile) -> Iterator[str]:
    """Yield readers that are not the plan's ``reader_server``, and readers without golden token counts."""
    for number, reader in enumerate(plan.run.readers):
        field = f"run.readers.{number}"
        if profile.demands.golden_prompt_tokens and not reader.golden_prompt_tokens:
            yield f"{field}.golden_prompt_tokens: the profile {profile.name} demands it"
        if plan.reader_server is None:
            continue
        if _is_url(reader.spec):
            yield from _other_server(field, reader.spec, reader.model, "reader_server", plan.reader_server)
        elif profile.demands.reader_server:
            yield f"{field}.spec: expected the reader_server's, {plan.reader_server.url}, got {reader.spec}"


def _is_url(spec: str) -> bool:
    return spec.startswith(("http://", "https://"))


def _other_server(
    field: str, spec: str, model: str | None, name: str, server: EmbedderSpec | ReaderServerSpec
) -> Iterator[str]:
    """Yield a fault if a run would use another server or model than the one that preflight checks."""
    try:
        own_url = api_url(spec) == api_url(server.url)
    except ReaderError as error:
        yield f"{field}.spec: {error}"
        return
    if not own_url:
        yield f"{field}.spec: expected the {name}'s, {server.url}, got {spec}"
    elif model != server.model:
        yield f"{field}.model: expected the {name}'s, {server.model}, got {model or 'none'}"
