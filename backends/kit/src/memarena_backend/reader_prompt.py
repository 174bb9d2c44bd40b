"""Implements options of the reader's prompt that any memory with an Answer may declare, for control experiments.

They change the prompt and not the retrieved items, and so act only in Answer; the harness refuses them if it answers
from the items of Search itself.
"""

from __future__ import annotations

from dataclasses import replace

from memarena_answering import Asker, ReadingPlan

from memarena_backend.records import OptionSpec, Query

IDENTITIES = ("relation", "name", "none")

IDENTITY_OPTION = OptionSpec(
    "identity", "What Answer tells the reader of who asks: relation (name and relation), name, or none.", "relation"
)
POLICY_OPTION = OptionSpec("policy", "on: Answer opens the system text with rules for sharing.", "off")


def asker_of(query: Query) -> Asker | None:
    """Return the asker as the reader's prompt describes them, None for no description.

    Raises CallError if the option has another value than IDENTITIES.
    """
    known = IDENTITY_OPTION.key in query.options
    identity = query.choice_option(IDENTITY_OPTION.key, IDENTITIES) if known else "relation"
    if identity == "none":
        return None
    requester = query.requester
    relationship = requester.relationship if identity == "relation" else ""
    return Asker(requester.kind.value, requester.display_name, relationship)


def framed(query: Query, plan: ReadingPlan) -> ReadingPlan:
    """Return the plan, with the policy header if the query asks for it.

    Raises CallError if the option is neither ``on`` nor ``off``.
    """
    asks = POLICY_OPTION.key in query.options and query.choice_option(POLICY_OPTION.key, ("off", "on")) == "on"
    return replace(plan, policy_header=True) if asks else plan
