"""Builds tables of the run's figures next to the paper's: token-F1, behaviour on DENY items, time, ingest.

In names and tables, "ours" are the rows of the reported runs and "theirs" those that the paper published. Readers
of both are matched by the names of their models, as far as the spellings allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from memarena.log.records import Bucket
from memarena.paper.published_types import EfficiencyRow, Figure, Published
from memarena.report.figures import NA, milliseconds, number, percent, signed, whole
from memarena.report.layout import Cell, Column, Section, section
from memarena.report.rows import ReportRow, backend_name, reader_name
from memarena.scoring.results import RunScores

TITLE = "Next to the published figures"
_TOKEN_F1 = {
    "conflict": "d1_conflict",
    "anaphora": "d2_anaphora",
    "qa": "d7_qa",
    "temporal": "d8_temporal",
    "counterfactual": "d10_counterfactual",
    "metadata": "d6_metadata",
}
"""Column of the paper: family of the data set."""
_EGO_DAYS = 8 * 15
"""Days ingested in the paper's measurement: 8 egos, 15 days each."""
_COMPARED = ("Rec", "Rea", "D4", "D6", "Trust")
"""Figures for which the paper has the difference between MemSearch and Oracle."""
Theirs = tuple[str, str, list[Cell]]
"""A published row: (backend, reader, cells)."""


@dataclass(frozen=True)
class PaperRows:
    """Rows of the runs whose backend is in the paper; ``pairs``: (row, the paper's name of its backend)."""

    rows: Sequence[ReportRow]
    runs: Sequence[RunScores]
    pairs: Sequence[tuple[ReportRow, str]]

    def section(
        self,
        title: str,
        columns: Sequence[Column],
        ours: Callable[[ReportRow], list[Cell]],
        theirs: Iterable[Theirs],
        notes: Sequence[str] = (),
    ) -> Section:
        """Return a table that lists for each backend the rows of the runs, then those of the paper.

        From the paper, the rows of a backend are those with a reader of the runs, or all if it has no such reader.

        Args:
            title: of the section.
            columns: those of the figures.
            ours: returns the cells of a row of the runs.
            theirs: rows of the paper.
            notes: below the table.
        """
        paper_lines = list(theirs)
        body: list[list[Cell]] = []
        rules: list[int] = []
        for backend in dict.fromkeys(name for _, name in self.pairs):
            paper_rows = self._of_same_reader(backend, [row for row in paper_lines if row[0] == backend])
            run_rows = [row for row, name in self.pairs if name == backend]
            if body:
                rules.append(len(body))
            body += [
                [Cell("ours"), Cell(backend_name(self.rows, row)), Cell(reader_name(row)), *ours(row)]
                for row in run_rows
            ]
            body += [[Cell("paper"), Cell(name), Cell(reader), *figures] for name, reader, figures in paper_rows]
        lead = [Column("whose", align="left"), Column("backend", align="left"), Column("reader", align="left")]
        return section(title, [*lead, *columns], body, notes, breaks=rules)

    def _of_same_reader(self, backend: str, theirs: Sequence[Theirs]) -> Sequence[Theirs]:
        # The paper's name of a model is a part of a run's, such as ``Qwen3-8B`` of ``Qwen/Qwen3-8B``.
        models = {reader.name: reader.model for run in self.runs for reader in run.readers}
        readers = {
            plain(models.get(row.scores.reader, row.scores.reader)) for row, name in self.pairs if name == backend
        }
        return [row for row in theirs if any(plain(row[1]) in reader for reader in readers)] or theirs


def comparison_sections(paper_rows: PaperRows, published: Published) -> list[Section]:
    """Return the tables of figures beyond the main grid that both the runs and the paper have."""
    sections = [
        _token_f1(paper_rows, published),
        _behaviour(paper_rows, published),
        _answer_times(paper_rows, published),
    ]
    return [
        part for part in (*sections, _ingest(paper_rows, published), _memory_and_oracle(paper_rows, published)) if part
    ]


def plain(name: str) -> str:
    """Return a model's name in lower case, with only letters, digits and dots, to compare spellings."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def figure_cell(figure: Figure | None, digits: int = 1) -> Cell:
    """Format a published figure with its standard deviation; ≈ and slanted if the paper derived it from a fit."""
    if figure is None:
        return NA
    spread = f" ±{figure.sd:.{digits}f}" if figure.sd is not None else ""
    mark = "≈" if figure.predicted else ""
    return Cell(f"{mark}{figure.value:,.{digits}f}{spread}", slanted=figure.predicted, spread=spread)


def _token_f1(paper_rows: PaperRows, published: Published) -> Section:
    """Return the table of mean token-F1 by family."""

    def ours(row: ReportRow) -> list[Cell]:
        f1_by_family = {s.key: s.token_f1 for s in row.scores.slices if s.by == "family"}
        return [percent(f1_by_family.get(family)) for family in _TOKEN_F1.values()]

    theirs = [(r.backend, r.reader, [figure_cell(getattr(r, name)) for name in _TOKEN_F1]) for r in published.token_f1]
    return paper_rows.section(
        f"{TITLE}: token-F1", [Column(name) for name in _TOKEN_F1], ours, theirs, ["mean, percent"]
    )


def _behaviour(paper_rows: PaperRows, published: Published) -> Section:
    """Return the table of disclosures and reasons for withholding on DENY items."""

    def ours(row: ReportRow) -> list[Cell]:
        permission = row.scores.permission
        if permission is None or not permission.deny:
            return [NA] * 5
        shares = [permission.deny_labels.get("disclosed", 0), *(permission.buckets.get(k, 0) for k in _CAUSES)]
        return [*(percent(share / permission.deny) for share in shares), percent(permission.real_refusals)]

    theirs = [
        (r.backend, r.reader, [number(v) for v in (r.leak, r.no_access, r.dont_know, r.other, r.refusal_share)])
        for r in published.buckets
    ]
    columns = [
        Column("disclosed", "share of the DENY items whose fact was disclosed, percent"),
        Column("no access", "withheld because the asker may not know"),
        Column("dont know", "withheld because it was not known"),
        Column("other", "withheld otherwise"),
        Column("refusals", "share of *no access* among those that were withheld"),
    ]
    return paper_rows.section(f"{TITLE}: DENY items", columns, ours, theirs)


_CAUSES: tuple[Bucket, ...] = ("no_access", "dont_know", "other")


def _answer_times(paper_rows: PaperRows, published: Published) -> Section:
    """Return the table of TTFT, decoding speed, total time and tokens of an answer."""
    single: dict[tuple[str, str], EfficiencyRow] = {
        (e.backend, e.reader.partition(" ")[0]): e for e in published.efficiency
    }
    totals: dict[tuple[str, str], Figure] = {
        (backend, row.reader): figure
        for row in published.totals
        for backend, figure in (
            ("Vanilla", row.vanilla), ("Oracle", row.oracle), ("RAG", row.in_memory), ("Memobase", row.memobase),
            ("MemSearch", row.memsearch),
        )
        if figure is not None
    }  # fmt: skip

    def ours(row: ReportRow) -> list[Cell]:
        cost = row.costs.efficiency if row.costs else None
        if cost is None or not row.scores.real_reader:
            return [NA] * 5
        times = row.scores.latency
        ttft, total = times.end_to_end.p50 if times else None, cost.answer_ms.p50
        tokens = number(cost.completion_tokens_p50, 0)
        return [milliseconds(ttft), number(cost.decode_tokens_per_s_p50), milliseconds(total), tokens, NA]

    theirs: list[Theirs] = []
    for backend, reader in dict.fromkeys((*single, *totals)):
        row = single.get((backend, reader))
        cells = (
            [milliseconds(row.ttft_ms), number(row.decode_tokens_per_s), milliseconds(1000 * row.total_s),
             number(row.tokens, 0)] if row else [NA] * 4
        )  # fmt: skip
        theirs.append((backend, reader, [*cells, figure_cell(totals.get((backend, reader)), 0)]))
    columns = [
        Column("S+TTFT", "Search and prefill, ms; ours p50, the paper's of single queries"),
        Column("tokens/s", "decoding"),
        Column("total", "to the end of the answer, ms"),
        Column("tokens", "of the answer"),
        Column(
            "composed", "the paper's total composed from its fit, ms; ≈: predicted for a backend that was not fitted"
        ),
    ]
    return paper_rows.section(f"{TITLE}: time of an answer", columns, ours, theirs)


def _ingest(paper_rows: PaperRows, published: Published) -> Section | None:
    """Return the table of time and energy of ingest with Memobase; None if no row uses it."""
    memobase_pairs = [pair for pair in paper_rows.pairs if pair[1] == "Memobase"]
    if not memobase_pairs:
        return None

    def ours(row: ReportRow) -> list[Cell]:
        cost = row.scores.ingest
        if cost is None or not cost.days or cost.seconds is None:
            return [NA] * 5
        # The first rail of a phase is always the GPU's, measured or not.
        rails = [p.rails[0].gross_j.value for p in (row.costs.phases if row.costs else ()) if p.phase == "ingest"]
        joules = fsum(j for j in rails if j is not None) if rails and None not in rails else None
        per_day, watts = (None, None) if joules is None else (joules / cost.days, joules / cost.seconds)
        return [
            whole(cost.days), number(cost.seconds), number(cost.seconds / cost.days), number(per_day), number(watts)
        ]  # fmt: skip

    theirs = [
        ("Memobase", r.reader, [whole(_EGO_DAYS), number(r.wall_s), number(r.wall_s / _EGO_DAYS),
                                number(r.j_per_ego_day), number(r.mean_w)])
        for r in published.ingest
    ]  # fmt: skip
    columns = [
        Column("days", "of all egos"),
        Column("s", "of ingest"),
        Column("s/day", "per ego and day"),
        Column("J/day", "per ego and day; ours: the GPU's rail, gross"),
        Column("W", "mean power over ingest"),
    ]
    return PaperRows(paper_rows.rows, paper_rows.runs, memobase_pairs).section(
        f"{TITLE}: ingest", columns, ours, theirs
    )


def _memory_and_oracle(paper_rows: PaperRows, published: Published) -> Section | None:
    """Return the table of MemSearch minus Oracle; None if no run has both with the same reader."""
    by_run_and_memory = {(row.run, row.scores.reader, name): row for row, name in paper_rows.pairs}
    body: list[list[Cell]] = []
    for (run, reader, name), row in by_run_and_memory.items():
        oracle = by_run_and_memory.get((run, reader, "Oracle"))
        if name != "MemSearch" or oracle is None:
            continue
        for metric in _COMPARED:
            memory_value, oracle_value = row.scores.metrics[metric].value, oracle.scores.metrics[metric].value
            gap = None if memory_value is None or oracle_value is None else memory_value - oracle_value
            body.append([Cell("ours"), Cell(reader_name(row)), Cell(metric), signed(gap), NA, NA])
    if not body:
        return None
    rules = [len(body)]
    body += [
        [Cell("paper"), Cell(r.reader), Cell("D6" if r.metric == "D6-F1PU" else r.metric), Cell(f"{r.difference:+.1f}"),
         Cell(f"[{r.low:+.1f}, {r.high:+.1f}]"), Cell(r.p)]
        for r in published.bootstrap
    ]  # fmt: skip
    columns = [
        Column("whose", align="left"),
        Column("reader", align="left"),
        Column("figure", align="left"),
        Column("difference", "MemSearch less Oracle, points"),
        Column("95%", "ours: memarena compare RUN --cell memsearch@READER --cell oracle@READER"),
        Column("p", "diagnostic"),
    ]
    return section(f"{TITLE}: MemSearch less Oracle", columns, body, breaks=rules)
