"""Queries a run's cache for the viewer's pages: cells, filter values, and the answers of a selection.

"Side by side" means one row for each question, with the answers of several cells.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memarena.log.reviews import Review
from memarena.viewer.selection import ANSWER_CHOICES, QUESTION_CHOICES, REVIEW_WORDS, SOME_OF, SORTS, Selection

PAGE_ROWS = 50
"""Rows on a page of the list."""
MOST_SIDE_BY_SIDE = 6
"""Cells that are shown side by side at most."""
MOST_ROWS = 500


@dataclass(frozen=True)
class CellName:
    """A cell of the run: number in the cache, row, and whether its seed counts in the row's headline figures."""

    number: int
    cell_id: str
    row: str
    seed: str
    headline: bool


@dataclass(frozen=True)
class AnswerRow:
    """An answer in a list; a column that does not apply or was not measured is None."""

    cell_id: str
    outcome: str
    stage: str | None
    label: str | None
    route: str | None
    found: float | None  # words: a name of the file format
    """Share of the evidence sessions that Search returned, 0 to 1."""
    search_ms: float | None
    ttft_ms: float | None
    tokens: int | None
    answer: str
    why: str


@dataclass(frozen=True)
class QuestionRow:
    """A question with one answer, or side by side one for each cell (None: not asked in this cell)."""

    instance_id: str
    family: str
    dimension: str
    ego: str
    day: int
    lag_days: int | None
    text: str
    asker: str
    """D6: name of the asker and relation to the ego; empty for other questions."""
    answers: tuple[AnswerRow | None, ...]


@dataclass(frozen=True)
class Listed:
    """One page of the selected rows, with the counts of the whole selection."""

    rows: tuple[QuestionRow, ...]
    total: int
    outcomes: dict[str, int]
    """Number of answers by outcome; side by side those of the first cell."""
    apart: int = 0
    """Number of answers that count in no share: D6 items asked by the owner, controls, extensions."""
    right_apart: int = 0
    """Right answers among those in ``apart``."""


class Cache:
    """Queries on an opened cache."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add_reviews(self, reviews: Iterable[Review]) -> None:
        """Make reviews available to the filter on reviews, in a temporary table of this connection."""
        self._db.execute("PRAGMA temp_store = MEMORY")
        self._db.execute("DROP TABLE IF EXISTS temp.reviews")
        self._db.execute("CREATE TEMP TABLE reviews (cell INTEGER, q INTEGER, starred, noted, labelled, disputed)")
        self._db.executemany(
            "INSERT INTO temp.reviews SELECT c.cell, q.q, ?, ?, ?, ? FROM cells c, questions q "
            "WHERE c.cell_id = ? AND q.instance_id = ?",
            [
                (
                    review.starred,
                    bool(review.note),
                    review.label is not None,
                    review.disputes,
                    review.cell_id,
                    review.instance_id,
                )
                for review in reviews
            ],
        )

    def review_counts(self) -> dict[str, int]:
        """Return the number of answers for each value of the filter on reviews."""
        sums = ", ".join(
            f"count(DISTINCT iif({_REVIEW_CLAUSES[name]}, cell || ' ' || q, NULL))" for name in REVIEW_WORDS
        )
        row = self._db.execute(f"SELECT {sums} FROM temp.reviews").fetchone()  # noqa: S608 (our own names)
        return dict(zip(REVIEW_WORDS, map(int, row), strict=True))

    def meta(self, key: str) -> str:
        """Return a value of the cache's ``meta`` table."""
        (value,) = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(value)

    def cells(self) -> list[CellName]:
        """Return all cells in the order of the manifest."""
        rows = self._db.execute("SELECT * FROM cells ORDER BY cell")
        return [CellName(r["cell"], r["cell_id"], r["row"], r["seed"], bool(r["headline"])) for r in rows]

    def values(self) -> dict[str, list[tuple[str, int]]]:
        """Return by filter its values, each with the number of questions or answers that have it."""
        counts: dict[str, list[tuple[str, int]]] = {}
        for choices, table in ((QUESTION_CHOICES, "questions"), (ANSWER_CHOICES, "answers")):
            for choice in choices:
                query = (
                    f"SELECT {choice.column}, count(*) FROM {table} WHERE {choice.column} IS NOT NULL "  # noqa: S608 (our own names)
                    f"GROUP BY 1 ORDER BY {_ORDER.get(choice.key, '1')}"
                )
                counts[choice.key] = [(str(value), int(count)) for value, count in self._db.execute(query)]
        return counts

    def listed(self, chosen: Selection, rows: int = PAGE_ROWS) -> Listed:
        """Return one page of the selected answers. Unknown cells are ignored; only unknown ones give an empty page."""
        cells = self.named(chosen.cells)
        if chosen.side and len(cells) > 1:
            return self._side_by_side(chosen, cells[:MOST_SIDE_BY_SIDE], rows)
        numbers = [cell.number for cell in cells] if chosen.cells else None
        where, arguments = _where(chosen, numbers)
        base = f"FROM answers a JOIN questions q ON q.q = a.q{_join_texts(chosen)} WHERE {where}"
        counts = self._db.execute(
            f"SELECT a.outcome, count(*), sum(q.apart OR q.dimension = 'X1') {base} GROUP BY 1",
            arguments,
        ).fetchall()
        ids = self._db.execute(
            f"SELECT a.id {base} ORDER BY {_order_by(chosen, 'a.cell, q.instance_id')} LIMIT ? OFFSET ?",
            (*arguments, rows, (chosen.page - 1) * rows),
        ).fetchall()
        questions = [self._with_answer(row["id"]) for row in ids]
        outcomes = {str(outcome): int(count) for outcome, count, _ in counts}
        apart = {str(outcome): int(count or 0) for outcome, _, count in counts}
        return Listed(tuple(questions), sum(outcomes.values()), outcomes, sum(apart.values()), apart.get("correct", 0))

    def named(self, names: Sequence[str]) -> list[CellName]:
        """Return the cells with these names, in the order of the names; a row's name means its headline seeds."""
        cells = self.cells()
        by_number: dict[int, CellName] = {}
        for name in names:
            matches = [c for c in cells if c.cell_id == name] or [c for c in cells if c.row == name and c.headline]
            by_number |= {cell.number: cell for cell in matches}
        return list(by_number.values())

    def outcomes_of(self, instance_id: str) -> dict[str, str]:
        """Return the outcome of a question by id of each cell that asked it."""
        query = (
            "SELECT c.cell_id, a.outcome FROM questions q JOIN answers a ON a.q = q.q JOIN cells c ON c.cell = a.cell "
            "WHERE q.instance_id = ? ORDER BY a.cell"
        )
        return {str(cell): str(outcome) for cell, outcome in self._db.execute(query, (instance_id,))}

    def score_of(self, cell_id: str, instance_id: str) -> str | None:
        """Return the score of an answer as JSON; None if the cell did not ask the question."""
        row = self._db.execute(
            "SELECT t.score FROM cells c JOIN answers a ON a.cell = c.cell JOIN questions q ON q.q = a.q "
            "JOIN answer_texts t ON t.id = a.id WHERE c.cell_id = ? AND q.instance_id = ?",
            (cell_id, instance_id),
        ).fetchone()
        return None if row is None else str(row["score"])

    def has_question(self, instance_id: str) -> bool:
        """Whether the run has this question."""
        return bool(self._db.execute("SELECT 1 FROM questions WHERE instance_id = ?", (instance_id,)).fetchone())

    def neighbours(self, instance_id: str) -> tuple[str | None, str | None]:
        """Return the ids of the previous and the next question in the order of ids; None at an end."""
        before = self._db.execute("SELECT max(instance_id) FROM questions WHERE instance_id < ?", (instance_id,))
        after = self._db.execute("SELECT min(instance_id) FROM questions WHERE instance_id > ?", (instance_id,))
        return before.fetchone()[0], after.fetchone()[0]

    def _side_by_side(self, chosen: Selection, cells: Sequence[CellName], rows: int) -> Listed:
        """Return one page of questions with the answers of several cells; filters apply to the first cell's answers."""
        first = cells[0].number
        where, arguments = _where(chosen, [first])
        others = [f"a{n}" for n in range(1, len(cells))]
        joins = "".join(
            f" LEFT JOIN answers {name} ON {name}.cell = {cell.number} AND {name}.q = a.q"
            for name, cell in zip(others, cells[1:], strict=True)
        )
        agreement = _agreement(chosen.agreement, others)
        base = f"FROM answers a JOIN questions q ON q.q = a.q{joins}{_join_texts(chosen)} WHERE {where}{agreement}"
        counts = self._db.execute(f"SELECT a.outcome, count(*) {base} GROUP BY 1", arguments).fetchall()
        ids = self._db.execute(
            f"SELECT a.q {base} ORDER BY {_order_by(chosen, 'q.instance_id')} LIMIT ? OFFSET ?",
            (*arguments, rows, (chosen.page - 1) * rows),
        ).fetchall()
        questions = [self._with_answers_of(row["q"], [cell.number for cell in cells]) for row in ids]
        outcomes = {str(outcome): int(count) for outcome, count in counts}
        return Listed(tuple(questions), sum(outcomes.values()), outcomes)

    def _with_answer(self, answer: int) -> QuestionRow:
        row = self._db.execute(f"{_SELECT_ANSWERS} WHERE a.id = ?", (answer,)).fetchone()
        return _question(row, (_answer(row),))

    def _with_answers_of(self, question: int, cells: Sequence[int]) -> QuestionRow:
        answers_by_cell = {
            row["cell"]: row
            for row in self._db.execute(
                f"{_SELECT_ANSWERS} WHERE a.q = ? AND a.cell IN ({', '.join('?' * len(cells))})", (question, *cells)
            )
        }
        first_row = next(iter(answers_by_cell.values()))
        return _question(
            first_row, tuple(_answer(answers_by_cell[cell]) if cell in answers_by_cell else None for cell in cells)
        )


_REVIEW_CLAUSES = {name: "1" if name == "any" else name for name in REVIEW_WORDS}
_ORDER = {"lag": "min(lag_days)", "interference": "min(length(interference)), 1", "outcome": "count(*) DESC"}
_SELECT_ANSWERS = (
    "SELECT q.instance_id, q.family, q.dimension, q.ego, q.day, q.lag_days, q.text, q.asker, c.cell_id, a.*, "
    "t.answer, t.why FROM answers a JOIN questions q ON q.q = a.q JOIN cells c ON c.cell = a.cell "
    "JOIN answer_texts t ON t.id = a.id"
)


def _question(row: sqlite3.Row, answers: tuple[AnswerRow | None, ...]) -> QuestionRow:
    names = ("instance_id", "family", "dimension", "ego", "day", "lag_days", "text", "asker")
    return QuestionRow(**{name: row[name] for name in names}, answers=answers)


def _answer(row: sqlite3.Row) -> AnswerRow:
    names = (
        "cell_id", "outcome", "stage", "label", "route", "found", "search_ms", "ttft_ms", "tokens", "answer", "why",
    )  # fmt: skip
    return AnswerRow(*(row[name] for name in names))


def _join_texts(chosen: Selection) -> str:
    return " JOIN answer_texts t ON t.id = a.id" if chosen.text else ""


def _where(chosen: Selection, cells: Sequence[int] | None) -> tuple[str, list[Any]]:
    """Return the SQL condition of a selection with placeholders, and their values."""
    clauses: list[str] = []
    arguments: list[Any] = []
    if cells is not None:
        clauses.append(f"a.cell IN ({', '.join('?' * len(cells))})")
        arguments += cells
    filters: Mapping[str, str] = dict(chosen.filters)
    for choices, table in ((QUESTION_CHOICES, "q"), (ANSWER_CHOICES, "a")):
        for choice in choices:
            value = filters.get(choice.key)
            if value is None:
                continue
            several_values = SOME_OF.get((choice.key, value))
            if several_values is not None:
                clauses.append(several_values)
            else:
                clauses.append(f"{table}.{choice.column} = ?")
                # SQLite compares a text of digits with a column of numbers as a number.
                arguments.append(value)
    if review := filters.get("review"):
        condition = _REVIEW_CLAUSES[review]
        reviews_of_answer = "SELECT 1 FROM temp.reviews r WHERE r.cell = a.cell AND r.q = a.q"
        clauses.append(f"EXISTS ({reviews_of_answer} AND {condition})")
    if chosen.text:
        clauses.append("(q.text LIKE ? ESCAPE '\\' OR t.answer LIKE ? ESCAPE '\\' OR q.instance_id = ?)")
        part = "%" + chosen.text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        arguments += [part, part, chosen.text]
    return " AND ".join(clauses) or "1", arguments


def _agreement(agreement: str, others: Sequence[str]) -> str:
    differs = " OR ".join(f"{name}.outcome IS NOT a.outcome" for name in others)
    return {
        "same": f" AND NOT ({differs})",
        "differ": f" AND ({differs})",
        "first": f" AND a.outcome = 'correct' AND NOT ({' OR '.join(f'{n}.outcome IS a.outcome' for n in others)})",
    }.get(agreement, "")


def _order_by(chosen: Selection, else_by: str) -> str:
    name = chosen.sort.removeprefix("-")
    if not name:
        return else_by
    column = SORTS[name][1]
    direction = "DESC" if chosen.sort.startswith("-") else "ASC"
    # NULLs come last in either direction.
    return f"{column} IS NULL, {column} {direction}, {else_by}"
