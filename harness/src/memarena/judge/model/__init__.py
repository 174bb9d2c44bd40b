"""Judges that ask a model: an open answer's truth, a D6 answer's behaviour, the ground on which a fact was kept."""

from memarena.judge.model.budget import Budget, Prices
from memarena.judge.model.campaign import Campaign, Judged, Watcher, judge_with_model
from memarena.judge.model.endpoint import Endpoint, Patience
from memarena.judge.model.identity import ModelJudge
from memarena.judge.model.jobs import BehaviourRules

__all__ = [
    "BehaviourRules",
    "Budget",
    "Campaign",
    "Endpoint",
    "Judged",
    "ModelJudge",
    "Patience",
    "Prices",
    "Watcher",
    "judge_with_model",
]
