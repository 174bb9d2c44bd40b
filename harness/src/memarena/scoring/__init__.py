"""Scoring: pure, from the records of a log to frozen results. Each dimension has one module.

D1 ``choice``; D2, D3, D4, the answer half of D5 and extensions ``judged``; the abstain half of D5 ``abstention``; D6
``disclosure`` (single answers) and ``privacy`` (the figures). ``questions`` settles, ``metrics`` and ``formulas``
aggregate, ``run`` puts it all together.
"""

from typing import TYPE_CHECKING

from memarena.later import imported_later

if TYPE_CHECKING:
    from memarena.scoring.errors import ScoringError
    from memarena.scoring.facts import RunFacts, gather, load_facts
    from memarena.scoring.results import QuestionScore, RowScores, RunScores
    from memarena.scoring.run import ScoredRun, score_run
    from memarena.text import data_files

__all__ = [
    "QuestionScore",
    "RowScores",
    "RunFacts",
    "RunScores",
    "ScoredRun",
    "ScoringError",
    "data_files",
    "gather",
    "load_facts",
    "score_run",
]

_PLACES = {
    "QuestionScore": "memarena.scoring.results",
    "RowScores": "memarena.scoring.results",
    "RunFacts": "memarena.scoring.facts",
    "RunScores": "memarena.scoring.results",
    "ScoredRun": "memarena.scoring.run",
    "ScoringError": "memarena.scoring.errors",
    "data_files": "memarena.text",
    "gather": "memarena.scoring.facts",
    "load_facts": "memarena.scoring.facts",
    "score_run": "memarena.scoring.run",
}
"""Modules that are imported when a name is asked for: a run hashes the data files and loads no SciPy."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
