"""Which turns suffice for a question's gold: groups of turns, of which any turn of each group is enough."""

from __future__ import annotations

from collections.abc import Hashable

from memarena_dataset.model import Family

from memarena_masim.plan.state import Role, StatedFact
from memarena_masim.questions.book import Draft

_ABSTAINS = "abstain"


def sufficient_turns(draft: Draft) -> list[list[str]]:
    """Groups of turn ids in the order of the evidence; empty where nothing has to be retrieved.

    A fact that is stated again is one group: any of its statements does. Two versions of a fact are two groups, and so
    are two facts; a reference (D4) needs what it refers to as well. Who is asked for (D2 ``speaker``) is known from a
    statement of each person. A wish about a fact (D6) is needed next to the fact, in the turn that counts.
    """
    truth = draft.truth
    if truth.get("expected_response") == _ABSTAINS or truth.get("expected_action") == "withhold":
        return []
    groups: dict[Hashable, list[str]] = {}
    for stated in _counting(draft):
        turns = groups.setdefault(_key(draft, stated), [])
        if stated.turn_id not in turns:
            turns.append(stated.turn_id)
    return list(groups.values())


def _counting(draft: Draft) -> tuple[StatedFact, ...]:
    """The statements that can be part of a sufficient set."""
    if draft.truth.get("validity") == "current":
        return tuple(stated for stated in draft.evidence if stated.fact.fact_id == draft.fact_id)
    if draft.family is Family.PERMISSION:
        return _with_the_wish(draft)
    return draft.evidence


def _with_the_wish(draft: Draft) -> tuple[StatedFact, ...]:
    """D6: the subject's last statement where it holds the wish that counts, else every one; and the tie, if any."""
    own = [stated for stated in draft.evidence if stated.fact.fact_id == draft.fact_id]
    by_subject = [stated for stated in own if stated.speaker == stated.fact.subject]
    if by_subject and by_subject[-1].wish.form:
        own = [by_subject[-1]]
    return (*own, *(stated for stated in draft.evidence if stated.fact.fact_id != draft.fact_id))


def _key(draft: Draft, stated: StatedFact) -> Hashable:
    if draft.truth.get("attribute") == "speaker":
        return stated.speaker
    return stated.fact.fact_id, stated.value.text, draft.family is Family.ANAPHORA and stated.role is Role.FATE
