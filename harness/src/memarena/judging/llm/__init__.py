"""Judges with a language model: whether an open answer is right, how a D6 answer behaves, why a fact was withheld."""

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
