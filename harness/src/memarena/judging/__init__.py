"""Judges answers against their golds and appends verdicts to the log, nothing else.

``value`` is the judge without a language model: it compares typed values if the gold has them, else it decides by a
linear model of golds in text. Judges that ask a language model are in the log next to it, under their own names.
"""

from typing import TYPE_CHECKING

from memarena.lazy_imports import imported_later

if TYPE_CHECKING:
    from memarena.judging.errors import JudgeError
    from memarena.judging.judgment import JUDGE_NAME, Judgment
    from memarena.judging.judgments import Judgments, verdicts_to_add
    from memarena.judging.kinds import judge
    from memarena.judging.versions import data_files, value_judge_version

__all__ = [
    "JUDGE_NAME",
    "JudgeError",
    "Judgment",
    "Judgments",
    "data_files",
    "judge",
    "value_judge_version",
    "verdicts_to_add",
]

_PLACES = {
    "JUDGE_NAME": "memarena.judging.judgment",
    "JudgeError": "memarena.judging.errors",
    "Judgment": "memarena.judging.judgment",
    "Judgments": "memarena.judging.judgments",
    "data_files": "memarena.judging.versions",
    "judge": "memarena.judging.kinds",
    "value_judge_version": "memarena.judging.versions",
    "verdicts_to_add": "memarena.judging.judgments",
}
"""Modules that are imported when a name is asked for: a run hashes the data files and loads no judge."""

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _PLACES)
