"""Computes the rows of a report's summary: right answers, recall, privacy and costs of each memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memarena_dataset.model import Family

from memarena.report.rows import ReportRow, backend_name, busy_sign, reader_name
from memarena.scoring.figures import Score
from memarena.scoring.results import ANSWERABLE, RowScores
from memarena.scoring.uncertainty_records import Interval

FEWEST_QUESTIONS = 5
"""Shares over fewer questions are not shown in a report unless requested."""
_BYTES_PER_MB = 1e6


@dataclass(frozen=True)
class BriefRow:
    """A memory in the summary. Times in milliseconds unless named; None: n/a. Shares are 0 to 1."""

    name: str
    reader: str
    run: int
    scores: RowScores
    evidence_questions: int
    """Questions behind ``recall``."""
    recall: float | None
    """Mean share of a question's evidence sessions among the first ten items."""
    deny: int
    """DENY items of D6: the asker may not know the fact."""
    allow: int
    """ALLOW items of D6."""
    search_ms: float | None
    """Search at p50 less the overhead baseline's, not below 0."""
    ttft_ms: float | None
    tokens_per_s: float | None
    ingest_s_per_day: float | None
    """Seconds for one day of one ego."""
    memory_mb: float | None
    """Highest resident memory of the backend, MB (10^6 bytes)."""

    @property
    def name_by_times(self) -> str:
        """Name with the sign of a busy machine, for tables that show times."""
        return self.name + busy_sign(self.scores)

    @property
    def right(self) -> Score:
        """Share right over the questions that score."""
        return self.scores.metrics["all"]

    @property
    def answerable(self) -> Score | None:
        """Share of the questions whose prompt holds turns that suffice."""
        return self.scores.metrics.get(ANSWERABLE)

    @property
    def answerable_interval(self) -> Interval | None:
        """95% interval of ``answerable``."""
        return self.scores.intervals.get(ANSWERABLE)

    @property
    def answerable_questions(self) -> int:
        """Number of questions behind ``answerable``, without those of the X1 extension, which count in no figure."""
        return sum(part.questions for part in self.scores.answerable if part.family != Family.WITNESS)

    @property
    def nothing_measured(self) -> bool:
        """Whether the backend failed every question that was asked."""
        counts = self.scores.counts
        return bool(counts.asked) and counts.backend_failed == counts.asked

    @property
    def interval(self) -> Interval | None:
        """95% interval of ``right``."""
        return self.scores.intervals.get("all")


def brief_rows(rows: Sequence[ReportRow]) -> list[BriefRow]:
    """Return the rows of comparable runs, ranked by *answerable*, then by right answers, within each run and reader."""
    briefs = [_brief_row(rows, row) for row in rows]
    groups = list(dict.fromkeys(_ranking_key(row) for row in briefs))
    return sorted(briefs, key=lambda row: (groups.index(_ranking_key(row)), *rank(row)))


def rank(row: BriefRow) -> tuple[float, float]:
    """Return the sort key of a row: *answerable*, highest first and None last, then right answers, highest first."""
    answerable = row.answerable.value if row.answerable else None
    return 1.0 if answerable is None else -answerable, -(row.right.value or 0.0)


def _ranking_key(row: BriefRow) -> tuple[int, str, bool]:
    """Return the key of rows that are ranked together: run, reader, whether answers were made without the reader.

    Memories are comparable only with the same questions and the same reader.
    """
    return row.run, row.reader, row.scores.without_reader


def are_separated(upper: BriefRow, lower: BriefRow) -> bool:
    """Whether the intervals support that ``upper`` has more right answers than ``lower``: no overlap, enough egos."""
    above, below = upper.interval, lower.interval
    if above is None or below is None or above.few_clusters or below.few_clusters:
        return False
    return above.low > below.high


def ranked_groups(rows: Sequence[BriefRow]) -> list[list[BriefRow]]:
    """Return groups of rows with the same questions and reader, each sorted by right answers, highest first.

    Rows without a figure are left out.
    """
    groups: dict[tuple[int, str, bool], list[BriefRow]] = {}
    for row in rows:
        if row.right.value is not None and row.scores.counts.asked and not row.nothing_measured:
            groups.setdefault(_ranking_key(row), []).append(row)
    return [sorted(group, key=lambda row: -(row.right.value or 0.0)) for group in groups.values()]


def _brief_row(rows: Sequence[ReportRow], row: ReportRow) -> BriefRow:
    """Collect the figures of a row; ``rows``: all rows, to name it distinctly."""
    scores = row.scores
    efficiency = row.costs.efficiency if row.costs else None
    ingest, permission, retrieval = scores.ingest, scores.permission, scores.retrieval
    peaks = [footprint.memory_peak.value for footprint in row.costs.footprints] if row.costs else []
    real = scores.real_reader
    return BriefRow(
        name=backend_name(rows, row),
        reader=reader_name(row),
        run=row.run,
        scores=scores,
        evidence_questions=retrieval.questions if retrieval else 0,
        recall=retrieval.recall_at_k if retrieval else None,
        deny=permission.deny if permission else 0,
        allow=permission.allow if permission else 0,
        search_ms=scores.latency.search_less_floor_p50 if scores.latency else None,
        ttft_ms=scores.latency.ttft.p50 if scores.latency and real else None,
        tokens_per_s=efficiency.decode_tokens_per_s_p50 if efficiency and real else None,
        ingest_s_per_day=ingest.seconds / ingest.days
        if ingest and ingest.seconds is not None and ingest.days
        else None,
        memory_mb=max((peak / _BYTES_PER_MB for peak in peaks if peak is not None), default=None),
    )
