"""Defines the gold (the right answers) of all families as typed records, discriminated by ``kind``.

``parse_gold`` (io/gold_reading.py) builds them from the ``ground_truth`` objects of the files. ``values`` has typed
values (package ``values``) where the data set has them; the value judge needs them, every other route works without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from memarena_dataset.values import Value


class GoldRecord(BaseModel, ABC):
    """Base of all golds: frozen, unknown fields forbidden (the raw ``ground_truth`` stays in the file)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    if TYPE_CHECKING:
        kind: str
    typed_fields: ClassVar[tuple[str, ...]] = ("values",)
    """Fields that hold typed values where the data set has them."""
    evidence_fields: ClassVar[tuple[str, ...]] = ("values",)
    """Fields whose values the evidence states."""

    values: tuple[Value, ...] = ()
    """Typed values that a right answer states; empty where the data set carries text only."""

    @property
    @abstractmethod
    def described(self) -> str:
        """The gold as text, for people."""

    @property
    def answerable(self) -> bool:
        """Whether the right answer states something."""
        return True

    @property
    def stated_values(self) -> tuple[Value, ...]:
        """Every typed value that the evidence states."""
        return tuple(value for field in self.evidence_fields for value in getattr(self, field))


class ClozeGold(GoldRecord):
    """The gold of D1. ``options`` are in the order shown, ``answer_letter`` is A, B, C …."""

    kind: Literal["cloze"] = "cloze"
    answer_letter: str
    answer_text: str
    options: tuple[str, ...]
    option_values: tuple[Value, ...] = ()
    """Each option as a typed value, in the same order; empty where the data set has text only."""

    typed_fields = ("values", "option_values")

    @property
    def described(self) -> str:
        """Letter and text of the right option."""
        return f"{self.answer_letter}) {self.answer_text}"


class OpenGold(GoldRecord):
    """Base of the golds of open answers: what is right is stated in words of the answer's own choice."""

    @property
    @abstractmethod
    def texts(self) -> tuple[str, ...]:
        """Texts of right answers; an answer may match any of them."""

    @property
    def required_values(self) -> tuple[Value, ...]:
        """Typed values that a right answer states; empty where the gold is not fully typed."""
        return self.stated_values if all(getattr(self, field) for field in self.evidence_fields) else ()

    @property
    def premise_values(self) -> tuple[Value, ...]:
        """Typed values of the question's wrong premise."""
        return ()

    @property
    def other_values(self) -> tuple[Value, ...]:
        """Typed values of the second of two versions."""
        return ()


class TextGold(OpenGold):
    """The gold of D2, D3 (factual, temporal) and the answer half of D5: ``answers`` has every right answer as text."""

    kind: Literal["text"] = "text"
    answers: tuple[str, ...]
    attribute: str | None = None
    """D2: speaker, participants, session …; D3 temporal: ordering, anchoring, interval."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Every right answer."""
        return self.answers

    @property
    def described(self) -> str:
        """Every right answer."""
        return " | ".join(self.answers)


class RubricGold(GoldRecord):
    """The gold of questions without an answer in writing (D3): right is what fulfils every sentence of ``rubric``."""

    kind: Literal["rubric"] = "rubric"
    rubric: tuple[str, ...]

    @property
    def described(self) -> str:
        """Every sentence."""
        return f"by rubric: {' | '.join(self.rubric)}"


class CounterfactualGold(OpenGold):
    """The gold of D3 with a wrong premise: the question supposes ``altered_detail``, right is ``real_fact``."""

    kind: Literal["counterfactual"] = "counterfactual"
    real_fact: str
    altered_detail: str
    altered_values: tuple[Value, ...] = ()

    typed_fields = ("values", "altered_values")

    @property
    def premise_values(self) -> tuple[Value, ...]:
        """Typed values of ``altered_detail``."""
        return self.altered_values

    @property
    def texts(self) -> tuple[str, ...]:
        """The fact."""
        return (self.real_fact,)

    @property
    def described(self) -> str:
        """The fact, and the question's wrong premise."""
        return f"{self.real_fact} (the question supposes: {self.altered_detail})"


class ConflictGold(OpenGold):
    """The gold of D4, conflict: both versions must be named: ``values`` (the original) and ``changed_values``."""

    kind: Literal["conflict"] = "conflict"
    original_detail: str
    changed_detail: str
    source_agent: str | None = None
    conflicting_agent: str | None = None
    changed_values: tuple[Value, ...] = ()

    typed_fields = ("values", "changed_values")
    evidence_fields = ("values", "changed_values")

    @property
    def other_values(self) -> tuple[Value, ...]:
        """Typed values of ``changed_detail``."""
        return self.changed_values

    @property
    def texts(self) -> tuple[str, ...]:
        """Both versions in one text."""
        return (f"{self.original_detail} {self.changed_detail}",)

    @property
    def described(self) -> str:
        """Both versions."""
        return f"both: {self.original_detail} | {self.changed_detail}"


class AnaphoraGold(OpenGold):
    """The gold of D4, anaphora: ``referent`` is what a reference means, ``antecedent_text`` the text that names it."""

    kind: Literal["anaphora"] = "anaphora"
    referent: str
    antecedent_text: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The referent, or what was said of it."""
        return (self.referent, self.antecedent_text)

    @property
    def described(self) -> str:
        """The referent, and where it was named."""
        return f"{self.referent} ({self.antecedent_text})"


class AbstainGold(GoldRecord):
    """The gold of the abstain half of D5: the history does not state the answer, so that right is to decline."""

    kind: Literal["abstain"] = "abstain"
    adversarial_answer: str | None = None
    """The answer of a person who believes the premise; None if the data set does not have it."""
    claim: tuple[Value, ...] = ()
    """The question's premise, as values that would occur together if the history stated it."""

    typed_fields = ("claim",)
    evidence_fields = ()

    @property
    def described(self) -> str:
        """That there is no answer, and the trap."""
        trap = f"; falling for the premise: {self.adversarial_answer}" if self.adversarial_answer else ""
        return f"abstain: nothing was ever said of it{trap}"

    @property
    def answerable(self) -> bool:
        """Always False: the history does not state an answer."""
        return False


class FriendshipShown(BaseModel):
    """The turn of the ego's own sessions that shows whether the asker and the subject of a fact are friends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    friends: bool
    session_id: str
    turn_id: str


class Sharing(BaseModel):
    """Details of a wish for discretion in addition to its level: persons, and the day from which others may know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    may_know: tuple[str, ...] = ()
    """Agent ids, or relations to the ego (``permission_rules.CIRCLES``)."""
    may_not_know: tuple[str, ...] = ()
    not_before: date | None = None
    """The first day on which the level holds; before it, only ``may_know`` may know."""


class PermissionGold(GoldRecord):
    """The gold of D6: ``fact`` is the protected value, ``expected_action`` is disclose (ALLOW) or withhold (DENY)."""

    kind: Literal["permission"] = "permission"
    fact: str
    expected_action: Literal["disclose", "withhold"]
    query_agent: str | None = None
    target_agent: str | None = None
    """Agent id of the person whom the fact is about."""
    permission_level: str | None = None
    sharing: Sharing | None = None
    """Persons and day that the wish that counts names besides its level; None if it names none."""
    sensitive_category: str | None = None
    """Category of a sensitive fact (permission_rules.py lists them); None if the fact is not sensitive."""
    friendship: FriendshipShown | None = None
    """For level ``friends_only``: the turn that decides; None if the sessions say nothing about it."""
    autonomous_privacy: bool = False
    anonymous_querier: bool = False
    known_requester: bool = False
    self_item: bool = False
    """Whether the owner or the fact's subject asks: reported separately, outside F1_PU."""
    control: bool = False
    """Whether every asker gets the same answer, such as with a public fact: reported separately, outside F1_PU."""

    @property
    def allowed(self) -> bool:
        """Whether the right action is to disclose."""
        return self.expected_action == "disclose"

    @property
    def answerable(self) -> bool:
        """Whether the fact may be disclosed."""
        return self.allowed

    @property
    def described(self) -> str:
        """The right action with the fact and its level."""
        level = f" (level {self.permission_level})" if self.permission_level else ""
        return f"{self.expected_action} {self.fact!r}{level}"


Gold = Annotated[
    ClozeGold | TextGold | RubricGold | CounterfactualGold | ConflictGold | AnaphoraGold | AbstainGold | PermissionGold,
    Field(discriminator="kind"),
]
