"""How a question is put to the reader: options that any memory with an Answer may declare, for control experiments.

They change the prompt and nothing that is found, and so act in Answer alone; the harness refuses them where it reads
over the items of Search itself.
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
    """Who asks, as far as the reader is to be told; None: not a word. Raises CallError for a value of no meaning."""
    known = IDENTITY_OPTION.key in query.options
    identity = query.choice_option(IDENTITY_OPTION.key, IDENTITIES) if known else "relation"
    if identity == "none":
        return None
    requester = query.requester
    relationship = requester.relationship if identity == "relation" else ""
    return Asker(requester.kind.value, requester.display_name, relationship)


def framed(query: Query, plan: ReadingPlan) -> ReadingPlan:
    """The plan with the policy header where the query asks for it. Raises CallError for a value of no meaning."""
    asks = POLICY_OPTION.key in query.options and query.choice_option(POLICY_OPTION.key, ("off", "on")) == "on"
    return replace(plan, policy_header=True) if asks else plan
