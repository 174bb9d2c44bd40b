"""Judges that ask a model: an open answer's truth, a D6 answer's behaviour, the ground on which a fact was kept."""

from memarena.judging.llm.batch import Batch, Judged, Watcher, judge_with_model
from memarena.judging.llm.budget import Budget, Prices
from memarena.judging.llm.identity import ModelJudge
from memarena.judging.llm.judge import Patience
from memarena.judging.llm.unlogged import AskedJudge, JudgeWords, UnloggedAnswer, ask_about

__all__ = [
    "AskedJudge",
    "Batch",
    "Budget",
    "JudgeWords",
    "Judged",
    "ModelJudge",
    "Patience",
    "Prices",
    "UnloggedAnswer",
    "Watcher",
    "ask_about",
    "judge_with_model",
]
