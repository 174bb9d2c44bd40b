"""Computes which turns suffice for a question's gold: groups of turns, of which one turn per group is needed.

A data set has them as ``sufficient_turn_ids``, from which a report computes whether a backend's items are *answerable*.
"""

from __future__ import annotations

from collections.abc import Hashable

from memarena_dataset.model import Family

from memarena_masim.plan.state import Role, StatedFact
from memarena_masim.questions.book import Draft

_ABSTAINS = "abstain"


def sufficient_turns(draft: Draft) -> list[list[str]]:
    """Return groups of turn ids in the order of the evidence; empty if nothing has to be retrieved.

    All statements of a fact with one value are one group: any of them suffices. Two versions of a fact are two groups,
    and so are two facts; a reference (D4) also needs the statement that it refers to. A question for the speakers (D2
    ``speaker``) needs one statement of each. A permission question (D6) needs the turn with the wish that counts.
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
    """Return the statements that can be part of a sufficient set."""
    if draft.truth.get("validity") == "current":
        return tuple(stated for stated in draft.evidence if stated.fact.fact_id == draft.fact_id)
    if draft.family is Family.PERMISSION:
        return _with_the_wish(draft)
    return draft.evidence


def _with_the_wish(draft: Draft) -> tuple[StatedFact, ...]:
    """Return the evidence of a permission question (D6) that counts.

    Of its fact, only the subject's last statement if that has a wish in words, else all; and the tie, if any.
    """
    fact_statements = [stated for stated in draft.evidence if stated.fact.fact_id == draft.fact_id]
    by_subject = [stated for stated in fact_statements if stated.speaker == stated.fact.subject]
    if by_subject and by_subject[-1].wish.form:
        fact_statements = [by_subject[-1]]
    return (*fact_statements, *(stated for stated in draft.evidence if stated.fact.fact_id != draft.fact_id))


def _key(draft: Draft, stated: StatedFact) -> Hashable:
    """Return the key of the group to which a statement belongs."""
    if draft.truth.get("attribute") == "speaker":
        return stated.speaker
    return stated.fact.fact_id, stated.value.text, draft.family is Family.ANAPHORA and stated.role is Role.FATE
