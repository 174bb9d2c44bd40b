"""What each page of a run shows: from queries on its cache, and for single questions from its log, to a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import TypeAdapter

from memarena.log.records import Cell
from memarena.log.reviews import LONGEST_NOTE, Review, Reviews
from memarena.report.brief import brief_groups
from memarena.report.charts.bars import error_split, ranked_right, recall_bars
from memarena.report.charts.catalogue import CHAPTERS
from memarena.report.findings import findings, texts, unproven
from memarena.report.provenance import Provenance
from memarena.report.render.html.cells import table_view
from memarena.report.report_input import ReportInput
from memarena.report.rows import marks, rows_of
from memarena.report.summary import comparison_warnings, summary_section
from memarena.report.tables.grid import baseline_table
from memarena.scoring.costs import RowCosts
from memarena.scoring.results import QuestionScore, RunScores
from memarena.viewer.cache_file import CHARTS
from memarena.viewer.errors import ViewerError
from memarena.viewer.found_runs import RunHead
from memarena.viewer.grid import COLUMNS, LOSS_STAGES, SHOWN_FIRST, grid_of, lost_by_stage
from memarena.viewer.queries import MOST_SIDE_BY_SIDE, PAGE_ROWS, Cache
from memarena.viewer.question_list import cells_by_row, filters_of, page_links, sentence_of, set_filters, sort_links
from memarena.viewer.question_page import passages_of, read_source, read_view, whole_text
from memarena.viewer.reviewing import LABEL_WORDS, review_form, review_sent
from memarena.viewer.selection import AGREEMENTS, Selection
from memarena.viewer.templating import render

MOST_CELLS = 4
"""Cells that one question is shown in at the same time."""
_FIRST_CHARTS = (ranked_right, recall_bars, error_split)
"""As the HTML report begins."""
_COSTS = TypeAdapter(tuple[RowCosts, ...])


class Pages:
    """The pages of a run. ``cache`` may be left out where only texts are asked for."""

    def __init__(self, head: RunHead, cache: Cache | None, older: bool, *, static: bool = False) -> None:
        self._head = head
        self._cache = cache
        self._older = older
        self._static = static

    @cached_property
    def reviews(self) -> Reviews | None:
        """What people remarked on answers; None in files. Raises LogError."""
        return None if self._static else Reviews(self._head.run.folder, self._head.run_id)

    def grid(
        self,
        columns: Sequence[str],
        sort: str,
        beside: Sequence[tuple[RunHead, Cache]] = (),
        comparable: Sequence[RunHead] = (),
    ) -> str:
        """Memory by reader.

        Args:
            columns: keys of columns; none: those shown first.
            sort: key of a column, ``-`` before it: the largest first.
            beside: other runs that share the table.
            comparable: all other runs that could.
        """
        runs = [(self._head, self._asked()), *beside]
        given = [_given(cache) for _, cache in runs]
        shown = [key for key in columns if key in {c.key for c in COLUMNS}] or list(SHOWN_FIRST)
        rows = [row for _, group in brief_groups(given) for row in group]
        summaries = [summary_section(n, run.scores, several=len(runs) > 1) for n, run in enumerate(given, 1)]
        grid = grid_of(given, shown, sort)
        without = baseline_table([given[0].scores])
        chosen = [("column", key) for key in shown] if shown != list(SHOWN_FIRST) else []
        chosen += [("with", head.run.key) for head, _ in beside]
        return self._render(
            "grid",
            page="grid",
            swaps=True,
            chosen=bool(chosen),
            runs=[head.run for head, _ in runs],
            comparable=[(head.run, head.run.key in {other.run.key for other, _ in beside}) for head in comparable],
            grid=grid,
            # What can be had without memory has a table of its own where no column that is shown has figures of it.
            baselines=None if grid.baselines or without is None or without.table is None else table_view(without.table),
            sort=sort,
            sorts={c.key: urlencode([*chosen, ("sort", _turned(sort, c.key, c.share))]) for c in COLUMNS},
            choices=[(c, c.key in shown) for c in COLUMNS],
            figures=[figure for draw in _FIRST_CHARTS if (figure := draw(rows)) is not None],
            lost=lost_by_stage(rows),
            loss_stages=LOSS_STAGES,
            findings=texts(findings(rows)),
            unproven=texts(unproven(rows)),
            warnings=[
                *(
                    f"{head.run.name}: {note}" if len(runs) > 1 else note
                    for (head, _), summary in zip(runs, summaries, strict=True)
                    for note in summary.notes
                ),
                *comparison_warnings([run.scores for run in given]),
            ],
            marks=_marks(given),
            facts=[(head.run.name, summary.named_lines) for (head, _), summary in zip(runs, summaries, strict=True)],
        )

    def questions(self, chosen: Selection) -> str:
        """Answers by filter, in a list or side by side."""
        cache = self._asked()
        cache.add_reviews(self.reviews.all() if self.reviews else ())
        named = cache.named(chosen.cells)
        known = {cell.cell_id for cell in cache.cells()} | {cell.row for cell in cache.cells()}
        unknown = [f"cell={name}: this run has no such cell" for name in chosen.cells if name not in known]
        listed, told = cache.listed(chosen), []
        if listed.total and not listed.rows:
            last = ceil(listed.total / PAGE_ROWS)
            told = [f"page={chosen.page}: there are {last:,}; this is the last one"]
            chosen = replace(chosen, page=last)
            listed = cache.listed(chosen)
        side = chosen.side and len(named) > 1
        several = [cell.cell_id for cell in named[:MOST_SIDE_BY_SIDE]] if side else []
        return self._render(
            "questions",
            page="questions",
            swaps=True,
            chosen=chosen,
            listed=listed,
            said=sentence_of(listed, several),
            side=several,
            cut_cells=len(named) - MOST_SIDE_BY_SIDE if side else 0,
            filters=filters_of(cache, chosen),
            set_filters=set_filters(chosen),
            reviews=self.reviews,
            review_counts=cache.review_counts(),
            cells=cells_by_row(cache, chosen),
            agreements=AGREEMENTS,
            sorts=sort_links(chosen),
            unknown=[*chosen.unknown, *unknown, *told],
            pages=page_links(chosen, listed),
            first=(chosen.page - 1) * PAGE_ROWS + 1,
            gold_query=chosen.query(gold=None if chosen.gold else "1", page=chosen.page),
        )

    def question(self, instance_id: str, names: Sequence[str], *, gold: bool, author: str = "") -> str | None:
        """One question in one cell or several; None where the run has no such question."""
        cache = self._asked()
        if not cache.has_question(instance_id):
            return None
        source = read_source(self._head.run.folder, instance_id)
        if source is None:
            return None
        outcomes = cache.outcomes_of(instance_id)
        named = [cell.cell_id for cell in cache.named(names) if cell.cell_id in outcomes]
        cells = (named or list(outcomes)[:1])[:MOST_CELLS]
        scores = {cell: self._score(instance_id, cell) for cell in cells}
        view = read_view(self._head.run.folder, source, self._cells(), scores, self._judge())
        before, after = cache.neighbours(instance_id)
        keep = [*(("cell", cell) for cell in cells), *([("gold", "1")] if gold else [])]
        return self._render(
            "question",
            page="question",
            view=view,
            passages=passages_of(view),
            author=author,
            longest_note=LONGEST_NOTE,
            label_words=LABEL_WORDS,
            forms={cell: review_form(self.reviews, score, author) for cell, score in scores.items()}
            if self.reviews
            else {},
            gold=gold,
            gold_query=urlencode([*(("cell", cell) for cell in cells), *([] if gold else [("gold", "1")])]),
            keep=urlencode(keep),
            before=before,
            after=after,
            matrix=_matrix(cache, outcomes, cells, gold=gold),
            right=sum(outcome == "correct" for outcome in outcomes.values()),
            asked=len(outcomes),
        )

    def review(self, instance_id: str, sent: Mapping[str, str]) -> Review:
        """Write the review that a form sends. Raises ViewerError or LogError where that cannot be done."""
        cell = sent.get("cell", "")
        stored = self._asked().score_of(cell, instance_id)
        if stored is None or self.reviews is None:
            raise ViewerError(f"cell: {cell[:80]!r}: expected a cell that asked this question")
        score = QuestionScore.model_validate_json(stored)
        review = review_sent(sent, score, self._head.run_id, self._judge())
        self.reviews.write(review)
        return review

    def text(self, instance_id: str, cell: str, part: str) -> str | None:
        """A text that a page shows the start of."""
        source = read_source(self._head.run.folder, instance_id)
        own = self._cells().get(cell)
        return None if source is None or own is None else whole_text(self._head.run.folder, source, own, part)

    def charts(self) -> str:
        """The charts with their data."""
        found = CHARTS.validate_json(self._asked().meta("charts"))
        chapters = [
            (title, [chart for chart in found if chart.chapter == chapter]) for chapter, title in CHAPTERS.items()
        ]
        return self._render(
            "charts",
            page="charts",
            chapters=[(title, [chart.figure for chart in own]) for title, own in chapters if own],
            data={chart.figure.key: table_view(chart.data) for chart in found},
        )

    def _render(self, name: str, **context: Any) -> str:
        return render(name, static=self._static, head=self._head, older=self._older, **context)

    def _asked(self) -> Cache:
        assert self._cache is not None, "only texts can be read without a cache"
        return self._cache

    def _cells(self) -> dict[str, Cell]:
        manifest = self._head.manifest
        return {} if manifest is None else {cell.cell_id: cell for cell in manifest.cells}

    def _judge(self) -> str:
        return str(json.loads(self._asked().meta("key"))[1])

    def _score(self, instance_id: str, cell: str) -> QuestionScore:
        stored = self._asked().score_of(cell, instance_id)
        assert stored is not None, "only cells that asked the question are shown"
        return QuestionScore.model_validate_json(stored)


def _given(cache: Cache) -> ReportInput:
    provenance = cache.meta("provenance")
    return ReportInput(
        RunScores.model_validate_json(cache.meta("scores")),
        Provenance.model_validate_json(provenance) if provenance else None,
        _COSTS.validate_json(cache.meta("costs")),
    )


def _turned(sort: str, key: str, more_is_better: bool) -> str:
    """The order that a click on a column gives: the better first, then turned."""
    first, second = (f"-{key}", key) if more_is_better else (key, f"-{key}")
    return second if sort == first else first


def _marks(given: Sequence[ReportInput]) -> list[str]:
    """What the signs at names and figures mean, as far as they are used."""
    rows = [row.scores for row in rows_of(given)]
    found = marks(rows_of(given))
    if any(row.counts.missing for row in rows):
        found.append("~ over the questions asked so far: the row is not finished")
    if any(row.counts.unmeasured for row in rows):
        found.append("33.3–50.0 failures on our side leave a range, from all of them wrong to all right")
    return found


MatrixCell = tuple[str, str, str, Literal["", "shown"]]


def _matrix(
    cache: Cache, outcomes: dict[str, str], shown: Iterable[str], *, gold: bool
) -> list[tuple[str, list[MatrixCell]]]:
    """Rows with the outcome in each of their seeds: seed, outcome, query of the page, whether it is shown."""
    now = list(shown)
    rows: dict[str, list[MatrixCell]] = {}
    for cell in cache.cells():
        outcome = outcomes.get(cell.cell_id)
        if outcome is not None:
            query = urlencode({"cell": cell.cell_id, **({"gold": "1"} if gold else {})})
            mark: Literal["", "shown"] = "shown" if cell.cell_id in now else ""
            rows.setdefault(cell.row, []).append((cell.seed, outcome, query, mark))
    return list(rows.items())
