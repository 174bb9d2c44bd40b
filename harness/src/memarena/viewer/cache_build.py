"""Fills the cache of a run; run as its own process: ``python -m memarena.viewer.cache_build FOLDER JUDGE CACHE``.

A separate process gives back the memory that a large log needs, and the server answers requests meanwhile. Prints a
line for each step; the cache file is written atomically.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from memarena_dataset.safe_files import replacing

from memarena.evaluation import evaluate, load_facts
from memarena.log.store import LogError
from memarena.report.answer_list import values_of
from memarena.report.brief import brief_groups
from memarena.report.charts.catalogue import charts_of
from memarena.report.question_view.making import asker_of
from memarena.report.report_input import ReportInput, report_input
from memarena.report.rows import rows_of
from memarena.scoring.errors import ScoringError
from memarena.scoring.results import ANSWERABLE, QuestionScore, RunScores
from memarena.scoring.run_facts import RunFacts
from memarena.viewer.cache_file import BEST, CHARTS, INDEXES, SCHEMA, BestRow, CacheKey, key_of
from memarena.viewer.grid import COLUMNS, grid_cell

READING, SCORING, WRITING = "reading the log", "judging and scoring", "writing the cache"
STEPS = (READING, SCORING, WRITING)
EXIT_UNREADABLE = 2
"""Exit code for a log that cannot be read or scored."""
ANSWER_CHARACTERS = 20_000
"""Characters of an answer that the cache holds for search; the whole answer is in the log."""


def build(folder: Path, judge: str, path: Path, report_progress: Callable[[str], None]) -> None:
    """Read and score the log in ``folder`` and write its cache to ``path``; call ``report_progress`` with each step.

    Raises LogError or ScoringError if the log cannot be read or scored.
    """
    key = key_of(folder, judge)
    report_progress(READING)
    facts = load_facts(folder)
    report_progress(SCORING)
    scored = evaluate(facts, judge)
    report = report_input(facts, scored)
    report_progress(WRITING)
    with replacing(path) as temporary:
        db = sqlite3.connect(temporary, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=OFF")
            db.execute("PRAGMA synchronous=OFF")
            db.executescript(f"BEGIN;{SCHEMA}")
            _write(db, facts, report, key)
            db.execute("COMMIT")
            db.executescript(INDEXES)
        finally:
            db.close()
        temporary.chmod(0o600)


def _write(db: sqlite3.Connection, facts: RunFacts, report: ReportInput, key: CacheKey) -> None:
    """Fill the tables of a new cache."""
    numbers = {instance_id: index for index, instance_id in enumerate(sorted(facts.questions))}
    bases = {q.instance_id: q for q in report.questions[: len(numbers)]}
    db.executemany("INSERT INTO questions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", _questions(facts, numbers, bases))
    cells = {cell.cell_id: index for index, cell in enumerate(facts.manifest.cells)}
    db.executemany("INSERT INTO cells VALUES (?,?,?,?,?)", _cells(report.scores, cells))
    answered = [q for q in report.questions if q.outcome is not None]
    marks = ",".join("?" * 15)
    db.executemany(f"INSERT INTO answers VALUES ({marks})", _answers(answered, cells, numbers))  # noqa: S608 (question marks)
    db.executemany("INSERT INTO answer_texts VALUES (?,?,?,?)", _texts(answered, facts))
    meta = {
        "key": key.as_json(),
        "scores": report.scores.model_dump_json(),
        "costs": json.dumps([cost.model_dump(mode="json") for cost in report.costs]),
        "provenance": report.provenance.model_dump_json() if report.provenance else "",
        "best": BEST.dump_json(best_of(report)).decode(),
        "charts": CHARTS.dump_json(charts_of(rows_of([report]), [report])).decode(),
    }
    db.executemany("INSERT INTO meta VALUES (?,?)", meta.items())


def best_of(report: ReportInput) -> BestRow | None:
    """Return the best row by *answerable*, then by right answers; a diagnostic row only if there is no other.

    None if no row has asked a question.
    """
    measured = [row for _, group in brief_groups([report]) for row in group if row.scores.counts.asked]
    rows = [row for row in measured if not row.scores.diagnostic] or measured
    if not rows:
        return None
    best = max(rows, key=lambda row: (row.answerable.value or 0.0 if row.answerable else 0.0, row.right.value or 0.0))
    figures = {column.key: grid_cell(best, column).text for column in COLUMNS if column.key in (ANSWERABLE, "all")}
    return BestRow(best.name, best.reader, figures[ANSWERABLE], figures["all"])


def _questions(
    facts: RunFacts, numbers: Mapping[str, int], bases: Mapping[str, QuestionScore]
) -> Iterator[tuple[object, ...]]:
    for instance_id, number in numbers.items():
        question, score = facts.questions[instance_id], bases[instance_id]
        yield (
            number,
            instance_id,
            score.family,
            score.dimension,
            score.ego,
            question.day,
            score.lag_days,
            _first_value(score, "lag"),
            score.difficulty,
            score.context_tier,
            _first_value(score, "interference"),
            _first_value(score, "action"),
            int(score.outside_f1),
            _storable(question.question_text),
            _storable(asker_of(question)) if score.dimension == "D6" else "",
        )


def _cells(scores: RunScores, cells: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    for row in scores.rows:
        for cell in row.cells:
            headline = int(cell.seed_label in row.headline_seeds)
            yield cells[cell.cell_id], cell.cell_id, row.label, cell.seed_label, headline


def _answers(
    answered: Sequence[QuestionScore], cells: Mapping[str, int], numbers: Mapping[str, int]
) -> Iterator[tuple[object, ...]]:
    for answer_id, score in enumerate(answered):
        retrieval, spans = score.retrieved, score.spans
        share = (
            retrieval.found / retrieval.evidence_sessions
            if retrieval is not None and retrieval.evidence_sessions
            else None
        )
        yield (
            answer_id,
            cells[score.cell_id],
            numbers[score.instance_id],
            score.outcome.value if score.outcome else "",
            score.stage,
            _first_value(score, "label"),
            _first_value(score, "ground"),
            score.route,
            score.attempts,
            share,
            retrieval.first_rank if retrieval is not None else None,
            spans.search_ms if spans is not None else None,
            spans.ttft_ms if spans is not None else None,
            score.reader_tokens,
            score.reader_calls,
        )


def _texts(answered: Sequence[QuestionScore], facts: RunFacts) -> Iterator[tuple[object, ...]]:
    for answer_id, score in enumerate(answered):
        answer = facts.attempts[score.cell_id, score.instance_id][-1].record.answer
        text = "" if answer is None else answer.answer[:ANSWER_CHARACTERS]
        yield answer_id, _storable(text), _storable(score.why), score.model_dump_json(exclude_defaults=True)


def _first_value(score: QuestionScore, name: str) -> str | None:
    """Return the first value that an answer has for a filter of ``memarena show``; None if it has none."""
    values = values_of(score, name)
    return values[0] if values else None


def _storable(text: str) -> str:
    """Return the text with lone surrogates escaped, which SQLite does not accept."""
    return text.encode("utf-8", "backslashreplace").decode()


def _print_step(step: str) -> None:
    sys.stdout.write(f"{step}\n")
    sys.stdout.flush()


def main() -> None:
    """Build from the command line; print one line on standard error if the log cannot be read or scored."""
    folder, judge, path = sys.argv[1:]
    try:
        build(Path(folder), judge, Path(path), _print_step)
    except (LogError, ScoringError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_UNREADABLE)


if __name__ == "__main__":
    main()
