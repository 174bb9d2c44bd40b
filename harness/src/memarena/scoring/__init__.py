"""Scoring: pure, from the records of a log to frozen results. Each dimension has one module.

Pure: nothing here reads a file, forks or looks at a clock; :mod:`memarena.evaluation` is the way from a run's log to
its scores.
"""

from typing import TYPE_CHECKING

from memarena.lazy_imports import imported_later

if TYPE_CHECKING:
    from memarena.scoring.errors import ScoringError
    from memarena.scoring.results import QuestionScore, RowScores, RunScores
    from memarena.scoring.run import ScoredRun, score_run
    from memarena.scoring.run_facts import RunFacts, gather

__all__ = [
    "QuestionScore",
    "RowScores",
    "RunFacts",
    "RunScores",
    "ScoredRun",
    "ScoringError",
    "gather",
    "score_run",
]

_PLACES = {
    "QuestionScore": "memarena.scoring.results",
    "RowScores": "memarena.scoring.results",
    "RunFacts": "memarena.scoring.run_facts",
    "RunScores": "memarena.scoring.results",
    "ScoredRun": "memarena.scoring.run",
    "ScoringError": "memarena.scoring.errors",
    "gather": "memarena.scoring.run_facts",
    "score_run": "memarena.scoring.run",
}
"""Modules that are imported when a name is asked for: a run hashes the data files and loads no SciPy."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
