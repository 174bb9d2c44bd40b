"""Chooses what an assistant asks its owner about in a memory probe, and draws which kind of probe it is.

For the ``Planner``: the owner's answer is a statement of the session (``Role.RECALL``).
"""

from __future__ import annotations

from memarena_masim.plan.history import History
from memarena_masim.plan.state import Choice, Role
from memarena_masim.rng import Stream

PROBES = (("fact_recall", 0.5), ("conflict_probe", 0.2), ("temporal_probe", 0.3))
"""Kinds of memory probes, with their shares."""


def draw_probe(stream: Stream) -> str:
    """Draw the kind of a memory probe."""
    return stream.weighted([name for name, _ in PROBES], [share for _, share in PROBES])


def probed(kind: str, stream: Stream, owner: str, history: History) -> Choice | None:
    """Choose what the owner states in a probe of ``kind``; None if nothing fits."""
    choose = {"conflict_probe": _conflict, "temporal_probe": _happening}.get(kind, _detail)
    return choose(stream, owner, history)


def _detail(stream: Stream, owner: str, history: History) -> Choice | None:
    """Choose a detail that the owner heard on an earlier day and that is not contradicted."""
    heard = history.knowledge.facts_heard(owner)
    for _ in range(6 if heard else 0):
        fact = heard[stream.pick(list(heard))][0].fact
        if history.is_plain(fact):
            history.add("passed_on", fact.fact_id)
            history.add("stated", fact.fact_id, owner)
            return Choice(fact, owner, Role.RECALL, fact.value)
    return None


def _conflict(stream: Stream, owner: str, history: History) -> Choice | None:
    """Choose a detail of which the owner heard two versions, the other one later; the owner states the first."""
    firsts = [
        statements[0]
        for key, statements in history.knowledge.facts_heard(owner).items()
        if history.has("versioned", key)
        and not history.is_over(statements[0].fact)
        and statements[0].role is not Role.VERSION
        and any(stated.role is Role.VERSION for stated in statements)
    ]
    if not firsts:
        return None
    first = stream.pick(firsts)
    return Choice(first.fact, owner, Role.RECALL, first.value)


def _happening(stream: Stream, owner: str, history: History) -> Choice | None:
    """Choose a happening that the owner heard or told on an earlier day; the owner states its date."""
    told_facts = history.knowledge.told.get(owner, {}).values()
    heard = [statements[0].fact for statements in history.knowledge.facts_heard(owner).values()]
    happened = [fact for fact in (*told_facts, *heard) if history.is_recent(fact)]
    if not happened:
        return None
    fact = stream.pick(happened)
    return Choice(fact, owner, Role.RECALL, fact.value)
