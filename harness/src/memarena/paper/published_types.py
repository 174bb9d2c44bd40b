"""The paper's published tables as typed records: what ``report --against published`` puts next to ours.

All scores are percent, as printed. ``Figure.sd`` is the sample standard deviation over seeds s2 to s4.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from memarena.log.records import Record

PublishedReader = Literal["Qwen3-0.6B", "Llama-3.2-3B", "Mistral-7B", "Qwen3-8B", "Qwen3-32B"]
PublishedBackend = Literal["Vanilla", "RAG", "Memobase", "MemSearch", "Oracle"]


class Figure(Record):
    """A printed figure."""

    value: float
    sd: float | None = None
    predicted: bool = False
    """Whether the figure is composed from a latency fit, not measured."""
    low: float | None = None
    """Lower end of what is printed in brackets: an interval, or the least; the table says which."""
    high: float | None = None


class GridCell(Record):
    """One cell of the main grid with its dimensions, percent."""

    backend: PublishedBackend
    reader: PublishedReader
    rec: Figure
    rea: Figure
    trust: Figure
    avg: Figure
    d1: Figure
    d2: Figure
    d3: Figure
    d4: Figure
    d5: Figure
    d6_accuracy: Figure
    """The older plain accuracy over 80 DENY and 120 ALLOW items: not the grid's F1_PU."""
    avg_five: Figure
    """Mean of D1 to D5, as the per-dimension table prints it."""
    ttft_ms: Figure | None
    """p50; None where the paper prints none. Vanilla's is at a budget of 512 tokens, its accuracy at 8,192."""
    search_ms: float
    """The backend's search overhead, p50."""

    @property
    def f1_pu(self) -> float:
        """F1_PU as it follows from the grid: 2 Trust - D5, within 0.15 by rounding."""
        return 2 * self.trust.value - self.d5.value


class TokenF1Row(Record):
    """Mean token-F1 of the open families, percent."""

    backend: PublishedBackend
    reader: PublishedReader
    conflict: Figure
    anaphora: Figure
    qa: Figure
    temporal: Figure
    counterfactual: Figure
    metadata: Figure


class PrivacyRow(Record):
    """D6 by the older metric, percent."""

    backend: PublishedBackend
    reader: PublishedReader
    withhold: Figure
    false_refusal: Figure
    utility: Figure


class BucketRow(Record):
    """What happened on DENY items, percent of them; ``refusal_share`` of those that kept the fact."""

    backend: PublishedBackend
    reader: PublishedReader
    leak: float
    no_access: float
    dont_know: float
    other: float
    refusal_share: float


class SweepRow(Record):
    """One lever of the D6 ablations, percent."""

    lever: str
    variant: str
    cells: int
    allow_disclosed: float
    """Share disclosed correctly on ALLOW items: U."""
    deny_leaked: float
    """Share leaked on DENY items: 1 - P."""
    f1_pu: float


class PairedBootstrap(Record):
    """MemSearch less Oracle, percentage points."""

    reader: PublishedReader
    metric: str
    difference: float
    low: float
    high: float
    p: str
    """The p-value as printed; it is diagnostic only."""


class LatencyFit(Record):
    """Time of a call in ms as ``alpha + beta * prompt_tokens / 1000 + gamma * completion_tokens``."""

    reader: PublishedReader
    alpha_ms: float
    beta_ms: float
    gamma_ms: float
    r2: float
    observations: int
    residual_p95_ms: float


class EfficiencyRow(Record):
    """Efficiency of single queries."""

    reader: PublishedReader
    backend: PublishedBackend
    ttft_ms: float
    decode_tokens_per_s: float
    total_s: float
    tokens: float


class IngestRow(Record):
    """Ingest by Memobase over 8 egos and 15 days."""

    reader: PublishedReader
    wall_s: float
    energy_kj: float
    batches: int | None
    j_per_ego_day: float
    mean_w: float


class TotalsRow(Record):
    """Composed totals per question of a reader by backend, ms; None where the paper has no fit."""

    reader: PublishedReader
    vanilla: Figure | None
    oracle: Figure | None
    in_memory: Figure | None
    memobase: Figure | None
    memsearch: Figure | None


class PrintedRow(Record):
    """A row of a table that is kept as it was printed."""

    labels: tuple[str, ...]
    figures: tuple[Figure | None, ...]


class PrintedTable(Record):
    """A table for reference next to an ablation: its figures are not cells of the grid."""

    name: str
    """Label of the table in the paper."""
    title: str
    configurations: tuple[str, ...] = ()
    """Configurations of ours that compare the same."""
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    note: str = ""
    """The unit of its figures, if they are not plain percent."""
    rows: tuple[PrintedRow, ...]

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        for row in self.rows:
            if (len(row.labels), len(row.figures)) != (len(self.labels), len(self.columns)):
                raise ValueError(f"{self.name}: expected {len(self.labels)} labels and {len(self.columns)} figures")
        return self


class Published(Record):
    """All published tables."""

    version: int
    source: str
    family_counts: dict[str, int]
    """Questions by dimension: the weights that give Rec and Rea."""
    abstain_count: int
    """Questions of D5 that are to be declined."""
    grid: tuple[GridCell, ...]
    token_f1: tuple[TokenF1Row, ...]
    privacy: tuple[PrivacyRow, ...]
    buckets: tuple[BucketRow, ...]
    sweep: tuple[SweepRow, ...]
    bootstrap: tuple[PairedBootstrap, ...]
    latency_fit: tuple[LatencyFit, ...]
    totals: tuple[TotalsRow, ...]
    efficiency: tuple[EfficiencyRow, ...]
    ingest: tuple[IngestRow, ...]
    printed: tuple[PrintedTable, ...]

    def cell(self, backend: str, reader: str) -> GridCell | None:
        """Return the grid's cell, None if the paper has none."""
        return next((c for c in self.grid if (c.backend, c.reader) == (backend, reader)), None)
