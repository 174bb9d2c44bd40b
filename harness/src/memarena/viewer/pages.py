"""Builds the viewer's pages of a run: reads the run's cache, and for a single question its log, and renders a template.

"Side by side" is one question with the answers of several cells next to each other.
"""

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
"""Cells that the page of one question shows at most."""
_FIRST_CHARTS = (ranked_right, recall_bars, error_split)
"""Charts above the grid, the first ones of the HTML report."""
_COSTS = TypeAdapter(tuple[RowCosts, ...])


class Pages:
    """The pages of a run.

    Args:
        head: state and manifest of the run.
        cache: queries on the run's cache; None is enough for :meth:`text`.
        older: whether the log has grown since the cache was made; pages then say so.
        static: whether pages are written to files: no forms, no reviews, no updates from a server.
    """

    def __init__(self, head: RunHead, cache: Cache | None, older: bool, *, static: bool = False) -> None:
        self._head = head
        self._cache = cache
        self._older = older
        self._static = static

    @cached_property
    def reviews(self) -> Reviews | None:
        """Reviews that people wrote of the run's answers; None for static pages. Raises LogError."""
        return None if self._static else Reviews(self._head.run.folder, self._head.run_id)

    def grid(
        self,
        columns: Sequence[str],
        sort: str,
        other_runs: Sequence[tuple[RunHead, Cache]] = (),
        comparable: Sequence[RunHead] = (),
    ) -> str:
        """Return the page with a row for each memory and reader.

        Args:
            columns: column keys; empty means the default columns.
            sort: a column key; prefix ``-`` sorts descending.
            other_runs: further runs whose rows are in the same table.
            comparable: every run that the page offers to add to the table.
        """
        runs = [(self._head, self._require_cache()), *other_runs]
        reports = [_report_input(cache) for _, cache in runs]
        shown = [key for key in columns if key in {c.key for c in COLUMNS}] or list(SHOWN_FIRST)
        rows = [row for _, group in brief_groups(reports) for row in group]
        summaries = [summary_section(n, report.scores, several=len(runs) > 1) for n, report in enumerate(reports, 1)]
        grid = grid_of(reports, shown, sort)
        baselines = baseline_table([reports[0].scores])
        # The grid has rows of baselines if one of its columns has a figure for them; else they get a separate table.
        separate_baselines = baselines.table if baselines is not None and not grid.baselines else None
        query_params = [("column", key) for key in shown] if shown != list(SHOWN_FIRST) else []
        query_params += [("with", head.run.key) for head, _ in other_runs]
        sort_queries = {c.key: urlencode([*query_params, ("sort", _next_sort(sort, c.key, c.share))]) for c in COLUMNS}
        in_table = {head.run.key for head, _ in other_runs}
        run_choices = [(head.run, head.run.key in in_table) for head in comparable]
        column_choices = [(c, c.key in shown) for c in COLUMNS]
        named_summaries = [(head.run.name, summary) for (head, _), summary in zip(runs, summaries, strict=True)]
        warnings = [
            f"{name}: {note}" if len(runs) > 1 else note for name, summary in named_summaries for note in summary.notes
        ]
        warnings += comparison_warnings([report.scores for report in reports])
        return self._render(
            "grid",
            page="grid",
            swaps=True,
            customised=bool(query_params),
            runs=[head.run for head, _ in runs],
            comparable=run_choices,
            grid=grid,
            baselines=None if separate_baselines is None else table_view(separate_baselines),
            sort=sort,
            sorts=sort_queries,
            choices=column_choices,
            figures=[figure for draw in _FIRST_CHARTS if (figure := draw(rows)) is not None],
            lost=lost_by_stage(rows),
            loss_stages=LOSS_STAGES,
            findings=texts(findings(rows)),
            unproven=texts(unproven(rows)),
            warnings=warnings,
            marks=_marks(reports),
            facts=[(name, summary.named_lines) for name, summary in named_summaries],
        )

    def questions(self, selection: Selection) -> str:
        """Return the page of the answers selected: one answer in each line, or one question with several cells."""
        cache = self._require_cache()
        cache.add_reviews(self.reviews.all() if self.reviews else ())
        cells = cache.named(selection.cells)
        existing = {cell.cell_id for cell in cache.cells()} | {cell.row for cell in cache.cells()}
        problems = list(selection.unknown)
        problems += [f"cell={name}: this run has no such cell" for name in selection.cells if name not in existing]
        answers = cache.listed(selection)
        if answers.total and not answers.rows:
            last = ceil(answers.total / PAGE_ROWS)
            problems.append(f"page={selection.page}: there are {last:,}; this is the last one")
            selection = replace(selection, page=last)
            answers = cache.listed(selection)
        side_by_side = selection.side and len(cells) > 1
        side_cells = [cell.cell_id for cell in cells[:MOST_SIDE_BY_SIDE]] if side_by_side else []
        return self._render(
            "questions",
            page="questions",
            swaps=True,
            selection=selection,
            listed=answers,
            summary=sentence_of(answers, side_cells),
            side_cells=side_cells,
            hidden_cells=len(cells) - MOST_SIDE_BY_SIDE if side_by_side else 0,
            filters=filters_of(cache, selection),
            set_filters=set_filters(selection),
            reviews=self.reviews,
            review_counts=cache.review_counts(),
            cells=cells_by_row(cache, selection),
            agreements=AGREEMENTS,
            sorts=sort_links(selection),
            problems=problems,
            pages=page_links(selection, answers),
            first=(selection.page - 1) * PAGE_ROWS + 1,
            toggle_gold_query=selection.query(gold=None if selection.gold else "1", page=selection.page),
        )

    def question(self, instance_id: str, names: Sequence[str], *, gold: bool, author: str = "") -> str | None:
        """Return the page of one question; None if the run has no such question.

        Args:
            instance_id: of the question.
            names: ids of the cells to show, at most :data:`MOST_CELLS`; by default the first cell that asked it.
            gold: whether the page shows the right answer.
            author: name of the reviewer in this browser; empty if there is none yet.
        """
        cache = self._require_cache()
        if not cache.has_question(instance_id):
            return None
        source = read_source(self._head.run.folder, instance_id)
        if source is None:
            return None
        outcomes = cache.outcomes_of(instance_id)
        requested = [cell.cell_id for cell in cache.named(names) if cell.cell_id in outcomes]
        cells = (requested or list(outcomes)[:1])[:MOST_CELLS]
        scores = {cell: self._score(instance_id, cell) for cell in cells}
        view = read_view(self._head.run.folder, source, self._cells(), scores, self._judge())
        before, after = cache.neighbours(instance_id)
        cell_params = [("cell", cell) for cell in cells]
        with_gold, without_gold = urlencode([*cell_params, ("gold", "1")]), urlencode(cell_params)
        forms = (
            {cell: review_form(self.reviews, score, author) for cell, score in scores.items()} if self.reviews else {}
        )
        return self._render(
            "question",
            page="question",
            view=view,
            passages=passages_of(view),
            author=author,
            longest_note=LONGEST_NOTE,
            label_words=LABEL_WORDS,
            forms=forms,
            gold=gold,
            toggle_gold_query=without_gold if gold else with_gold,
            current_query=with_gold if gold else without_gold,
            before=before,
            after=after,
            matrix=_matrix(cache, outcomes, cells, gold=gold),
            right=sum(outcome == "correct" for outcome in outcomes.values()),
            asked=len(outcomes),
        )

    def review(self, instance_id: str, form: Mapping[str, str]) -> Review:
        """Write the review that was sent with a form and return it.

        Raises ViewerError for a field with an unexpected value, LogError if the review cannot be written.
        """
        cell = form.get("cell", "")
        stored = self._require_cache().score_of(cell, instance_id)
        if stored is None or self.reviews is None:
            raise ViewerError(f"cell: {cell[:80]!r}: expected a cell that asked this question")
        score = QuestionScore.model_validate_json(stored)
        review = review_sent(form, score, self._head.run_id, self._judge())
        self.reviews.write(review)
        return review

    def text(self, instance_id: str, cell: str, part: str) -> str | None:
        """Return the full text of something that a page truncates; None if there is no such text.

        ``part`` is the text's name on the page: a key of ``AttemptView.texts``.
        """
        source = read_source(self._head.run.folder, instance_id)
        manifest_cell = self._cells().get(cell)
        if source is None or manifest_cell is None:
            return None
        return whole_text(self._head.run.folder, source, manifest_cell, part)

    def charts(self) -> str:
        """Return the page of all charts, each with the table of its data."""
        charts = CHARTS.validate_json(self._require_cache().meta("charts"))
        chapters = [
            (title, [chart.figure for chart in charts if chart.chapter == key]) for key, title in CHAPTERS.items()
        ]
        return self._render(
            "charts",
            page="charts",
            chapters=[(title, figures) for title, figures in chapters if figures],
            data={chart.figure.key: table_view(chart.data) for chart in charts},
        )

    def _render(self, name: str, **context: Any) -> str:
        return render(name, static=self._static, head=self._head, older=self._older, **context)

    def _require_cache(self) -> Cache:
        assert self._cache is not None, "only texts can be read without a cache"
        return self._cache

    def _cells(self) -> dict[str, Cell]:
        manifest = self._head.manifest
        return {} if manifest is None else {cell.cell_id: cell for cell in manifest.cells}

    def _judge(self) -> str:
        _cache_version, judge, *_ = json.loads(self._require_cache().meta("key"))  # as CacheKey.as_json writes it
        return str(judge)

    def _score(self, instance_id: str, cell: str) -> QuestionScore:
        stored = self._require_cache().score_of(cell, instance_id)
        assert stored is not None, "only cells that asked the question are shown"
        return QuestionScore.model_validate_json(stored)


def _report_input(cache: Cache) -> ReportInput:
    provenance = cache.meta("provenance")
    return ReportInput(
        RunScores.model_validate_json(cache.meta("scores")),
        Provenance.model_validate_json(provenance) if provenance else None,
        _COSTS.validate_json(cache.meta("costs")),
    )


def _next_sort(sort: str, key: str, more_is_better: bool) -> str:
    """Return the sort key for a click on a column's header: better values first, reversed by the second click."""
    first, second = (f"-{key}", key) if more_is_better else (key, f"-{key}")
    return second if sort == first else first


def _marks(reports: Sequence[ReportInput]) -> list[str]:
    """Return the legend: a line for each sign at names and figures that these reports use."""
    rows = [row.scores for row in rows_of(reports)]
    legend = marks(rows_of(reports))
    if any(row.counts.missing for row in rows):
        legend.append("~ over the questions asked so far: the row is not finished")
    if any(row.counts.unmeasured for row in rows):
        # "33.3–50.0" is an example of how such a figure looks.
        legend.append("33.3–50.0 failures on our side leave a range, from all of them wrong to all right")
    return legend


MatrixCell = tuple[str, str, str, Literal["", "shown"]]


def _matrix(
    cache: Cache, outcomes: dict[str, str], shown: Iterable[str], *, gold: bool
) -> list[tuple[str, list[MatrixCell]]]:
    """Return for each row its label and its cells that asked the question.

    A cell is (seed, outcome, query of the page that shows it, "shown" if this page does).
    """
    shown_cells = set(shown)
    rows: dict[str, list[MatrixCell]] = {}
    for cell in cache.cells():
        outcome = outcomes.get(cell.cell_id)
        if outcome is not None:
            query = urlencode({"cell": cell.cell_id, **({"gold": "1"} if gold else {})})
            mark: Literal["", "shown"] = "shown" if cell.cell_id in shown_cells else ""
            rows.setdefault(cell.row, []).append((cell.seed, outcome, query, mark))
    return list(rows.items())
