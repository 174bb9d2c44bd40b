"""Defines the results of a latency study, as frozen records for its data files. Times are in ms, energy in joules."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memarena.log.base import Record
from memarena.log.measuring import FootprintTaken, MeterFigure
from memarena.log.records import DatasetRef, ReaderRef, Versions
from memarena.scoring.figures import Floor, Percentiles

STUDY_VERSION = 1


class Sample(Record):
    """The times of one answered question, in milliseconds."""

    run: str
    cell_id: str
    reader: str
    backend: str
    instance_id: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    ttft_ms: float | None
    """At the gateway: from forwarding the request to the first content."""
    llm_ms: float | None
    """At the gateway: from forwarding the request to the end of the reply."""
    search_ms: float | None
    rest_ms: float | None
    """Time of Answer until its first text, less the TTFT (time to the first token) of its model call."""
    server_prompt_ms: float | None
    """The model server's own time for the prompt; None if it reports none."""


class Coefficients(Record):
    """T = alpha + beta·N_p + gamma·N_c + delta·N_p², in ms and ms per token; None: the model has no such term."""

    alpha_ms: float
    beta_ms: float
    gamma_ms: float | None = None
    delta_ms: float | None = None


class HeldOutRange(Record):
    """Relative errors for held-out questions whose prompts have ``low`` to ``high`` tokens, both included."""

    low: int
    high: int
    n: int
    error_p50: float | None
    error_p95: float | None
    """None: fewer samples than the percentile needs (11, 130)."""


class Model(Record):
    """A fitted model and its errors."""

    coefficients: Coefficients
    r_squared: float | None
    residual_p50_ms: float
    residual_p95_ms: float
    """Percentiles of the absolute residuals of the samples that were fitted."""
    held_out_error_p50: float | None
    held_out_error_p95: float | None
    """Percentiles of relative errors for held-out questions, in five folds; None: too few."""
    held_out_by_length: tuple[HeldOutRange, ...] = ()
    """The same for each third of the range of prompt lengths, shortest first."""


class Fit(Record):
    """A reader's fits from phase 1."""

    reader: str
    n: int
    cells: tuple[str, ...]
    prompt_tokens: tuple[int, int]
    """Shortest and longest prompt: the range in which the fit is valid."""
    completion_tokens: tuple[int, int]
    llm: Model
    llm_quadratic: Model
    ttft: Model
    ttft_quadratic: Model

    def best(self, what: Literal["llm", "ttft"]) -> Model:
        """Return the model with the smaller error for held-out questions; the linear one if that is not known."""
        linear, square = (self.llm, self.llm_quadratic) if what == "llm" else (self.ttft, self.ttft_quadratic)
        if linear.held_out_error_p50 is None or square.held_out_error_p50 is None:
            return linear
        return square if square.held_out_error_p50 < linear.held_out_error_p50 else linear


class ServerCheck(Record):
    """A reader's TTFT at the gateway compared to its server's own prompt time."""

    reader: str
    n: int
    """Timed questions."""
    told: int
    """Number of questions for which the server reports its prompt time."""
    within: int
    """Number of these whose TTFT is within 5% + 3 ms of the server's time."""
    difference_p50_ms: float | None
    difference_p50: float | None
    """Median of TTFT less the server's time, in ms and as a share of the server's time; None: fewer than 11."""


class TotalCell(Record):
    """One reader × backend of the composed table. Medians in ms; None: not known."""

    reader: str
    backend: str
    kind: Literal["measured", "predicted", "none"]
    """``predicted``: composed of the reader's fit, prompt lengths measured with another reader, and Search."""
    n: int = 0
    total_ms: float | None = None
    """The model's whole call and Search."""
    ttft_ms: float | None = None
    """First token and Search."""
    search_ms: float | None = None
    predicted_total_ms: float | None = None
    """Prediction of the fit for a measured cell, to compare it with the measurement."""
    predicted_ttft_ms: float | None = None
    prompts_from: str = ""
    """The reader whose prompt lengths a prediction uses."""
    outside_range: float = 0.0
    """Share of those prompts that are shorter or longer than all prompts of the fit."""
    why: str = ""
    """Why there is no figure."""


class EfficiencyRow(Record):
    """What a question costs in a measured cell."""

    cell_id: str
    reader: str
    backend: str
    prompt_tokens_p50: float | None
    completion_tokens_p50: float | None
    search: Percentiles
    ttft: Percentiles
    rest: Percentiles
    llm: Percentiles
    end_to_end: Percentiles
    """Search and the first token."""
    cached_tokens: int | None
    """Prompt tokens from the server's cache, summed over all questions; None if the server does not report them."""
    gpu_j_per_query: MeterFigure
    gpu_net_j_per_query: MeterFigure
    system_j_per_query: MeterFigure


class IngestRow(Record):
    """What keeping a memory costs in a measured cell."""

    cell_id: str
    reader: str
    backend: str
    egos: int
    ego_days: int
    seconds: float | None
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float | None
    unsized_calls: int = 0
    """Model calls whose tokens are not all known: the sums of tokens are lower bounds then."""
    untimed_calls: int = 0
    """Model calls whose end was not observed: ``model_seconds`` is a lower bound then."""
    gpu_j: MeterFigure
    """Gross energy of the GPU."""
    gpu_idle_j: MeterFigure
    """Energy of the GPU at rest in the same time: gross less net."""
    gpu_net_j: MeterFigure
    gpu_w: MeterFigure
    system_j: MeterFigure
    gpu_j_per_ego_day: MeterFigure
    gpu_net_j_per_ego_day: MeterFigure
    break_even_queries_j: float | None
    """Queries after which ingest breaks even with Oracle, in gross joules of the GPU; None: see
    ``why_no_break_even``."""
    break_even_queries_net_j: float | None
    """The same in net joules, as the paper counts."""
    break_even_queries_s: float | None
    """The same in seconds of waiting."""
    why_no_break_even: str = ""


class StudiedRun(Record):
    """A run of a study."""

    path: str
    run_id: str
    started_at: str
    dataset: DatasetRef
    readers: tuple[ReaderRef, ...]
    versions: Versions
    floor: Floor | None
    meters_unavailable: dict[str, str] = Field(default_factory=dict)
    """Channels that the machine does not have, and why."""


class Study(Record):
    """A whole study, computed from the logs of its runs."""

    study_version: int = STUDY_VERSION
    runs: tuple[StudiedRun, ...]
    fits: tuple[Fit, ...]
    unfitted: dict[str, str]
    """Readers without a fit, and why."""
    search_ms: dict[str, float | None]
    """Median Search of each backend over all its samples; None: too few."""
    server_checks: tuple[ServerCheck, ...] = ()
    """One per reader."""
    totals: tuple[TotalCell, ...]
    efficiency: tuple[EfficiencyRow, ...]
    ingest: tuple[IngestRow, ...]
    left_out: dict[str, int]
    """Number of samples by cell that are not used, since they were timed in another segment of a resumed run."""
    failed: dict[str, int]
    """Number of failed questions by cell; they have no time."""


class SidecarFootprint(Record):
    """Memory and disk of a backend's sidecar server after this many days of history, once Search was timed."""

    cell_id: str
    days: int
    name: str
    memory: MeterFigure
    memory_peak: MeterFigure
    disk: MeterFigure
    """All in bytes; the peak is since the server started."""


class GrowthPoint(Record):
    """A backend after this many days of history."""

    backend: str
    days: int
    turns: int
    search: Percentiles
    search_min_ms: float
    search_max_ms: float
    ingest_s: float
    """Time of Ingest over all days so far."""
    footprint: FootprintTaken
    beside: tuple[SidecarFootprint, ...] = ()
    """Sidecar servers of the backend, which its own memory and disk do not include."""


class Growth(Record):
    """Search, memory and disk of backends against length of history."""

    study_version: int = STUDY_VERSION
    dataset: DatasetRef
    egos: tuple[str, ...]
    queries: int
    versions: Versions
    floor: Floor | None
    points: tuple[GrowthPoint, ...]
    failed: dict[str, str] = Field(default_factory=dict)
    """Backends that could not be measured, or not after all days, and why."""
    state: str = ""
    """How the run ended: ``completed``, or why some points may be missing."""
