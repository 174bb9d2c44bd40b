"""Who may know what: the six rules that give a permission question its right action (D6).

Ego E owns the assistant, S is the person whom the fact is about, A asks. The first rule that matches decides; what no
rule decides must not be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["disclose", "withhold"]

LEVELS = ("public", "friends_only", "private")
"""What a speaker can say about sharing; None where nothing was said."""

SENSITIVE_CATEGORIES = ("credentials", "identity_number", "payment_number", "medical", "home_address")
"""Kinds of facts that are withheld even if nobody said so."""


@dataclass(frozen=True, slots=True)
class AccessCase:
    """What the ego's projection shows by the time of asking."""

    asker: str | None
    """None: a stranger who does not say who they are."""
    ego: str
    subject: str | None
    heard_from_subject: bool
    """Rule 2: A was there when S said it."""
    level: str | None
    """The latest level that was stated."""
    friends: bool | None
    """Whether A and S are friends; None if nothing shows it."""
    sensitive: bool
    known_to_ego: bool
    """False: A is a stranger to E."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The rule that matched and the right action; ``action`` is None where the question must not be asked."""

    rule: int
    action: Action | None


def decide(case: AccessCase) -> Decision:
    """Right action for a case.

    Raises:
        ValueError: the level is not one of LEVELS.
    """
    if case.level is not None and case.level not in LEVELS:
        raise ValueError(f"{case.level!r} is not a level; one of {', '.join(LEVELS)} or null is expected")
    stranger = case.asker is None or not case.known_to_ego
    if case.asker is not None and case.asker in (case.ego, case.subject):
        return Decision(1, "disclose")
    if case.heard_from_subject:
        return Decision(2, None)
    if case.level == "public":
        return Decision(3, "disclose")
    if case.level == "friends_only":
        return Decision(4, _among_friends(case.friends, stranger))
    if case.level == "private" or case.sensitive:
        return Decision(5, "withhold")
    return Decision(6, "withhold" if stranger else "disclose")


def _among_friends(friends: bool | None, stranger: bool) -> Action | None:
    if friends:
        return "disclose"
    return "withhold" if stranger or friends is False else None
