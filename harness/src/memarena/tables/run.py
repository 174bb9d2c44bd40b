"""Opens a run in Python and returns its tables as rows, Arrow tables or data frames."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memarena import judging
from memarena.evaluation import evaluate, load_facts, missing_verdicts
from memarena.log.records import Verdict
from memarena.log.reviews import Review, reviews_of
from memarena.log.store import LOG_NAME, LogError
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.tables.columns import TABLES, Column, Row, columns_of
from memarena.tables.errors import TableError
from memarena.tables.rows import rows_of

if TYPE_CHECKING:
    import pandas
    import pyarrow

_ARROW = {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool_"}


class Run:
    """A run, read once from its log; create it with :func:`open_run`."""

    def __init__(self, path: Path, facts: RunFacts, judge: str) -> None:
        self.path = path
        self.judge = judge
        self.facts = facts
        """Records of the log, without the texts of prompts and items."""

    @cached_property
    def scored(self) -> ScoredRun:
        """Outcome of every question, and every figure with its interval; computed at the first access."""
        return evaluate(self.facts, self.judge)

    def rows(self, table: str, *, gold: bool = False) -> Iterator[Row]:
        """Yield the rows of a table as dictionaries.

        Args:
            table: cells, scores, questions, answers, timings, verdicts or reviews; columns: :meth:`columns`.
            gold: whether to include columns that reveal right answers.

        Raises:
            TableError: there is no such table.
        """
        self.columns(table)
        return rows_of(table, self.facts, self.scored, self._verdicts, self._reviews, gold=gold)

    def columns(self, table: str, *, gold: bool = False) -> tuple[Column, ...]:
        """Return name, type and meaning of each column. Raises TableError if there is no such table."""
        if table not in TABLES:
            raise TableError(f"table {table}: unknown; one of {', '.join(TABLES)} is expected")
        return columns_of(table, gold=gold)

    def cells(self) -> Iterator[Row]:
        """Yield a row for each backend, reader and seed, with counts of outcomes."""
        return self.rows("cells")

    def scores(self) -> Iterator[Row]:
        """Yield a row for each figure of each cell, with its interval."""
        return self.rows("scores")

    def questions(self, *, gold: bool = False) -> Iterator[Row]:
        """Yield a row for each question: text, asker, ego, day."""
        return self.rows("questions", gold=gold)

    def answers(self, *, gold: bool = False) -> Iterator[Row]:
        """Yield a row for each cell and question: answer, outcome, and what Search returned."""
        return self.rows("answers", gold=gold)

    def timings(self) -> Iterator[Row]:
        """Yield the times of each answered question, in milliseconds."""
        return self.rows("timings")

    def verdicts(self, *, gold: bool = False) -> Iterator[Row]:
        """Yield the verdicts of all judges, and those of the rules that are missing in the log."""
        return self.rows("verdicts", gold=gold)

    def table(self, table: str, *, gold: bool = False) -> pyarrow.Table:
        """Return a table as Arrow; empty columns are typed too. Raises TableError without pyarrow."""
        arrow = _library("pyarrow")
        fields = [
            arrow.field(column.name, getattr(arrow, _ARROW[column.type])(), metadata={"meaning": column.meaning})
            for column in self.columns(table, gold=gold)
        ]
        return arrow.Table.from_pylist(list(self.rows(table, gold=gold)), schema=arrow.schema(fields))

    def frame(self, table: str, *, gold: bool = False) -> pandas.DataFrame:
        """Return a table as a pandas data frame of nullable types. Raises TableError without pandas."""
        library = _library("pandas")
        types = {"text": "string", "integer": "Int64", "number": "Float64", "boolean": "boolean"}
        columns = self.columns(table, gold=gold)
        rows = list(self.rows(table, gold=gold))
        series = {
            column.name: library.array([row[column.name] for row in rows], dtype=types[column.type])
            for column in columns
        }
        result: pandas.DataFrame = library.DataFrame(series)
        return result

    def _reviews(self) -> list[Review]:
        reviews = reviews_of(self.path)
        return [] if reviews is None else reviews.all()

    @cached_property
    def _verdicts(self) -> tuple[Verdict, ...]:
        computed = missing_verdicts(self.facts) if self.judge == judging.JUDGE_NAME else ()
        return (*self.facts.verdicts, *computed)


def open_run(path: str | Path, judge: str = judging.JUDGE_NAME) -> Run:
    """Read a run.

    Args:
        path: the run's folder, or the ``run.sqlite`` in it.
        judge: name of the judge whose verdicts decide outcomes; by default the rules, whose missing verdicts are
            computed and not written.

    Raises:
        LogError: the log cannot be read.
        ScoringError: the log has no run.
    """
    folder = Path(path)
    if folder.is_file():
        if folder.name != LOG_NAME:
            raise LogError(f"{path}: no run log: expected the folder of a run, or the {LOG_NAME} in it")
        folder = folder.parent
    return Run(folder, load_facts(folder), judge)


def _library(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise TableError(f"{name} is not installed", remedy="pip install 'memarena[export]'") from error
