"""Gold of the nine families as typed records, discriminated by ``kind``.

``parse_gold`` (gold_reading.py) builds them from the ``ground_truth`` objects of the files. ``values`` carries typed
values (values.py) where the data set has them; the value judge needs them, every other route works without.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from memarena_dataset.values import Value


class GoldRecord(BaseModel):
    """Base of all golds: frozen, nothing unlisted (the raw ``ground_truth`` stays in the file)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: tuple[Value, ...] = ()
    """Typed values that a right answer states; empty where the data set carries text only."""


class ClozeGold(GoldRecord):
    """D1. ``options`` in the order shown, ``answer_letter`` one of A, B, C …."""

    kind: Literal["cloze"] = "cloze"
    answer_letter: str
    answer_text: str
    options: tuple[str, ...]
    option_values: tuple[Value, ...] = ()
    """Each option as a typed value, in the same order; empty where the data set has text only."""


class TextGold(GoldRecord):
    """D2, D3 (factual, temporal) and the answer half of D5: ``answers`` lists every right answer as text."""

    kind: Literal["text"] = "text"
    answers: tuple[str, ...]
    attribute: str | None = None
    """D2: speaker, participants, session …; D3 temporal: ordering, anchoring, interval."""


class RubricGold(GoldRecord):
    """D3, questions with no answer that could be written down: right is what fulfils every sentence of ``rubric``."""

    kind: Literal["rubric"] = "rubric"
    rubric: tuple[str, ...]


class CounterfactualGold(GoldRecord):
    """D3. The premise holds ``altered_detail``; right is ``real_fact``."""

    kind: Literal["counterfactual"] = "counterfactual"
    real_fact: str
    altered_detail: str
    altered_values: tuple[Value, ...] = ()


class ConflictGold(GoldRecord):
    """D4. Both versions must be named. ``values`` is the original, ``changed_values`` the other version."""

    kind: Literal["conflict"] = "conflict"
    original_detail: str
    changed_detail: str
    source_agent: str | None = None
    conflicting_agent: str | None = None
    changed_values: tuple[Value, ...] = ()


class AnaphoraGold(GoldRecord):
    """D4. ``referent`` is what the reference points to; ``antecedent_text`` is what was said of it."""

    kind: Literal["anaphora"] = "anaphora"
    referent: str
    antecedent_text: str


class AbstainGold(GoldRecord):
    """D5, abstain half: nothing was ever said of it."""

    kind: Literal["abstain"] = "abstain"
    adversarial_answer: str | None = None
    """The answer that somebody would give who falls for the premise, where the data set names it."""
    claim: tuple[Value, ...] = ()
    """What the question takes for granted, as values that would stand together if it had ever been said."""


class FriendshipShown(BaseModel):
    """Where the ego's own sessions show whether the asker and the subject of a fact are friends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    friends: bool
    session_id: str
    turn_id: str


class Sharing(BaseModel):
    """What a wish for discretion says beside its level: who is named, and from when others may know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    may_know: tuple[str, ...] = ()
    """Agent ids, or relations to the ego (``permission_rules.CIRCLES``)."""
    may_not_know: tuple[str, ...] = ()
    not_before: date | None = None
    """The first day on which the level holds; before it, nobody may know but ``may_know``."""


class PermissionGold(GoldRecord):
    """D6. ``fact`` is the protected value as text; ``expected_action`` is disclose (ALLOW) or withhold (DENY)."""

    kind: Literal["permission"] = "permission"
    fact: str
    expected_action: Literal["disclose", "withhold"]
    query_agent: str | None = None
    target_agent: str | None = None
    permission_level: str | None = None
    sharing: Sharing | None = None
    """What the wish that counts says beside its level; None if it names nobody and no day."""
    sensitive_category: str | None = None
    """What kind of sensitive fact it is (permission_rules.py lists them); None if it is not sensitive."""
    friendship: FriendshipShown | None = None
    """For level ``friends_only``: the turn that decides; None if the sessions say nothing about it."""
    autonomous_privacy: bool = False
    anonymous_querier: bool = False
    known_requester: bool = False
    self_item: bool = False
    """The owner asks, or the subject of the fact: reported apart, outside F1_PU (design 3, rule 1)."""
    control: bool = False
    """Everybody who is asked for gets the same answer, such as with a public fact: reported apart, outside F1_PU."""


Gold = Annotated[
    ClozeGold | TextGold | RubricGold | CounterfactualGold | ConflictGold | AnaphoraGold | AbstainGold | PermissionGold,
    Field(discriminator="kind"),
]
