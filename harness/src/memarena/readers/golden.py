"""Checks a reader's chat template: prompts of fixed chats must have the token counts of a reference check.

A template may change with a server's version, or put today's date into each prompt. The counts then differ, and so
would answers and times. Counts of known models are in ``golden/prompt_tokens.v1.json``; a run's configuration
may have those of others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from memarena_answering import Completion, Message, Prompt, ReaderCallError, ReaderClient, ReadingPlan
from pydantic import BaseModel, ConfigDict

from memarena.gateway import CallContext, Gateway
from memarena.readers.types import RunningReader

GOLDEN_FILE = "golden/prompt_tokens.v1.json"
TIMEOUT_S = 120.0


class _Turn(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["system", "user"]
    content: str


class GoldenTable(BaseModel):
    """Fixed chats by name, and the prompt tokens of each by model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chats: dict[str, tuple[_Turn, ...]]
    models: dict[str, dict[str, int]]


@cache
def golden_table() -> GoldenTable:
    """Return the table of this package."""
    return GoldenTable.model_validate_json(files(__package__).joinpath(GOLDEN_FILE).read_bytes())


def golden_counts(reader: RunningReader, configured: Mapping[str, int] | None) -> Mapping[str, int] | None:
    """Return the counts that a reader must have, by chat: those of the configuration, else of its model, else None."""
    return configured or golden_table().models.get(reader.ref.model)


def count_template(reader: RunningReader, gateway: Gateway) -> dict[str, int] | str:
    """Return the prompt tokens of each fixed chat as the server counts them, or in one line why it cannot."""
    client = ReaderClient(gateway.base_url)
    counts: dict[str, int] = {}
    try:
        for name, turns in golden_table().chats.items():
            if reader.ref.no_system_role and any(turn.role == "system" for turn in turns):
                continue
            prompt = Prompt(tuple(Message(turn.role, turn.content) for turn in turns), 0, 0, 0, 0, 0)
            token = gateway.grant(CallContext("probe"))
            try:
                events = list(client.stream(prompt, ReadingPlan(reader.upstream.model, 1), token, TIMEOUT_S))
            finally:
                gateway.revoke(token)
            completion = next((event for event in events if isinstance(event, Completion)), None)
            if completion is None or completion.prompt_tokens is None:
                return f"chat {name}: the server tells no prompt tokens"
            counts[name] = completion.prompt_tokens
    except ReaderCallError as error:
        return f"chat template: {error}"
    finally:
        client.close()
    return counts


def template_fault(counts: Mapping[str, int], golden: Mapping[str, int]) -> str | None:
    """Return in one line how counts differ from the golden ones; None if those of all counted chats are equal."""
    for name, expected in golden.items():
        if name in counts and counts[name] != expected:
            result = f"chat {name} has {counts[name]} prompt tokens, golden is {expected}"
            return f"chat template: {result} (counted: {json.dumps(dict(counts))})"
    if not counts.keys() & golden.keys():
        return f"chat template: none of the golden chats ({', '.join(golden)}) was counted"
    return None
