"""Judges that ask a model: an open answer's truth, a D6 answer's behaviour, the ground on which a fact was kept."""

from memarena.judging.llm.batch import Batch, Judged, Watcher, judge_with_model
from memarena.judging.llm.budget import Budget, Prices
from memarena.judging.llm.endpoint import Endpoint, Patience
from memarena.judging.llm.identity import ModelJudge

__all__ = [
    "Batch",
    "Budget",
    "Endpoint",
    "Judged",
    "ModelJudge",
    "Patience",
    "Prices",
    "Watcher",
    "judge_with_model",
]
