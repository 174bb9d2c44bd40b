"""Judges: they read an answer beside its gold and append verdicts to the log, nothing else.

``value`` is the judge without a model: typed values where the gold has them, token-F1 thresholds where it has text
only. Judges that ask a model stand beside it under their own names.
"""

from typing import TYPE_CHECKING

from memarena.later import imported_later

if TYPE_CHECKING:
    from memarena.judge.errors import JudgeError
    from memarena.judge.ruling import Ruling
    from memarena.judge.running import judge_run, missing_verdicts, verdicts_to_add
    from memarena.judge.value import JUDGE_NAME, judge_answer
    from memarena.judge.versions import data_files, value_judge_version

__all__ = [
    "JUDGE_NAME",
    "JudgeError",
    "Ruling",
    "data_files",
    "judge_answer",
    "judge_run",
    "missing_verdicts",
    "value_judge_version",
    "verdicts_to_add",
]

_PLACES = {
    "JUDGE_NAME": "memarena.judge.value",
    "JudgeError": "memarena.judge.errors",
    "Ruling": "memarena.judge.ruling",
    "data_files": "memarena.judge.versions",
    "judge_answer": "memarena.judge.value",
    "judge_run": "memarena.judge.running",
    "missing_verdicts": "memarena.judge.running",
    "value_judge_version": "memarena.judge.versions",
    "verdicts_to_add": "memarena.judge.running",
}
"""Modules that are imported when a name is asked for: a run hashes the data files and loads no judge."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
