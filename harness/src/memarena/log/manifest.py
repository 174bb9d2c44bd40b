"""Defines the manifest of a run: data set, readers, backends, settings, and the cells that follow from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memarena.log.base import Record


class DatasetRef(Record):
    """Which data set a run used. ``sha256`` is over the uncompressed files, names and order fixed."""

    name: str
    path: str
    sha256: str
    calendar_epoch: str
    day_count: int
    ego_count: int
    instance_count: int


Projection = Literal["ego", "whole_corpus", "evidence_sessions"]
"""What a backend ingests: what its owner could know; for a diagnostic also the sessions of all persons, or of these
only the sessions with evidence."""
ResultClass = Literal["cold_prefill", "warm_prefix", "unknown"]
"""``cold_prefill``: every prompt is read whole, no prefix from a cache; ``warm_prefix``: prefixes may come from one,
which is emptied before each cell; ``unknown``: the server does not say."""


class ReaderRef(Record):
    """A reader as configured and as it described itself."""

    name: str
    """``embedded``, ``extractive`` or the model's name behind a URL."""
    kind: Literal["embedded", "url", "extractive", "sglang", "llamacpp"]
    model: str
    base_url: str | None = None
    context_window_tokens: int
    no_system_role: bool = False
    counts_tokens: bool = False
    result_class: ResultClass = "unknown"
    is_real_reader: bool = True
    """False for ``extractive``: reports mark such cells as without a language model."""
    details: dict[str, str] = Field(default_factory=dict)
    """What the server reports about itself, such as version, SHA-256 of the weights, threads, flags."""


class Reading(Record):
    """How questions of a cell are read."""

    max_answer_tokens: int
    max_context_tokens: int
    max_items: int | None = None
    temperature: float = 0.0
    seed: int = 0
    thinking: Literal["default", "on", "off"] = "default"
    reasoning_tokens: int = 0
    """Tokens that the reader may spend on reasoning, on top of ``max_answer_tokens``."""
    prompt_style: Literal["backend", "text_sessions", "json_context"] = "backend"
    d6_rules: Literal["stated", "inferred"] = "stated"
    """Whether the reader's prompt says who may know what. Rows that differ in it are never in one table."""

    @property
    def max_reply_tokens(self) -> int:
        """The limit of reasoning and answer together, as the request to the reader has it."""
        return self.max_answer_tokens + self.reasoning_tokens


class Cell(Record):
    """One backend × reader × seed. ``cell_id`` is unique within a run, e.g. ``bm25@embedded/s1``."""

    cell_id: str
    backend: str
    backend_options: dict[str, str] = Field(default_factory=dict)
    backend_address: str | None = None
    """HOST:PORT if the harness connected to a running backend; else None."""
    reader: str
    seed_label: str
    reading: Reading
    diagnostic: bool
    send_evidence: bool = False
    access_markers: bool = False
    """Whether evidence of permission questions comes with a marker that says whether the asker may know it."""
    projection: Projection = "ego"
    backend_image: str | None = None
    """The image as the user named it, if the harness started a container; else None."""
    backend_image_id: str | None = None
    """The image's id when the run began."""
    backend_settings: dict[str, str] = Field(default_factory=dict)
    """Environment variables that the backend was started with, in addition to those of its manifest."""
    timing: bool = True
    """False if times mean nothing: a cache answers model calls, or other work shares the machine (``timed``)."""


class Versions(Record):
    """Versions of the software and machine of the run."""

    memarena: str
    python: str
    platform: str
    cpu: str = ""
    """Number and name of the processors; empty if the system does not report them, or in older logs."""
    packages: dict[str, str] = Field(default_factory=dict)


class NamedConfiguration(Record):
    """The configuration file that a run began with. Flags may have overridden it: ``config_json`` has the result."""

    name: str
    sha256: str


class Manifest(Record):
    """All that determines a run. Written once, in ``run_started``."""

    dataset: DatasetRef
    protocol: Literal["interleaved", "end_of_horizon"]
    readers: tuple[ReaderRef, ...]
    cells: tuple[Cell, ...]
    versions: Versions
    data_files_sha256: dict[str, str]
    """SHA-256 (hex) by path of all versioned files that can affect a score: prompts, lexicons, tables."""
    id_key_hex: str
    """Key from which opaque ids are made, so that a resumed run makes the same ids."""
    order_seed: int
    deadlines_s: dict[str, float]
    question_filter: str | None = None
    helpers: dict[str, ReaderRef] = Field(default_factory=dict)
    """Configured models that memories may call, by role: ``embedder``, ``extractor``, ``reranker``."""
    configuration: NamedConfiguration | None = None
    config_json: str = "{}"
    """The run's configuration as JSON, from which ``--resume`` continues without any flag."""
