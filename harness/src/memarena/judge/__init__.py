"""Judges: they read an answer beside its gold and append verdicts to the log, nothing else.

``value`` is the judge without a model: typed values where the gold has them, token-F1 thresholds where it has text
only. Judges that ask a model stand beside it under their own names.
"""

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
