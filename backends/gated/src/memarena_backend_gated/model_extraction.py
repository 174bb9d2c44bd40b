"""Reads wishes with a model: one call per stretch of a session, replies by a JSON schema, rules as the fallback.

A reply that does not fit the schema, or that names a turn which does not exist, is retried once with a message that
says what was wrong. If that fails too, the rules read the stretch, and a notice counts it, so no wish is lost silently.
A model that cannot be reached ends the Ingest with an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.resources import files
from typing import Annotated, Literal

from memarena_backend import (
    Call,
    Chat,
    Endpoint,
    ModelClient,
    Notice,
    PromptRefusedError,
    Session,
    Turn,
    extractor_of,
    invalid_argument,
)
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memarena_backend_gated.audience import kind_of
from memarena_backend_gated.records import CERTAIN, DOUBTFUL, Audience, Effect, Group, Whose, Wish
from memarena_backend_gated.text import content_stems, identifying_tokens

STRETCH_TURNS = 24
"""Turns per call; longer sessions are cut into stretches of this length."""
REPLY_TOKENS = 1_024
_PROMPT = files(__package__).joinpath("prompt.v1.txt").read_text(encoding="utf-8")
_Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
_Words = Annotated[list[_Word], Field(max_length=16)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# The docstrings of these two classes, of Effect and of Whose are part of the schema that is sent to the model.
class StatedWish(_Strict):
    """One wish as the model states it; fields that it leaves out are empty."""

    turn: int = Field(ge=1)
    effect: Effect
    everyone: bool = False
    names: _Words = []
    groups: _Words = []
    whose: Whose = Whose.OPEN
    except_names: _Words = []
    except_groups: _Words = []
    only_them: bool = False
    valid_from: date | Literal[""] = ""
    valid_until: date | Literal[""] = ""
    topic: Annotated[str, StringConstraints(max_length=200)] = ""
    sure: bool = True

    def wish(self) -> Wish:
        """Return it as a `Wish`; without addressees the audience is everyone."""
        audience = Audience(
            self.everyone, tuple(self.names), self._groups(self.groups),
            tuple(self.except_names), self._groups(self.except_groups),
        )  # fmt: skip
        if audience.is_empty:
            audience = Audience(True, (), (), audience.except_names, audience.except_groups)
        return Wish(
            self.effect,
            audience,
            others_excluded=self.only_them and self.effect is Effect.SHARE and not audience.everyone,
            valid_from=self.valid_from or None,
            valid_until=self.valid_until or None,
            confidence=CERTAIN if self.sure else DOUBTFUL,
            topic=content_stems(self.topic),
            values=tuple(sorted(identifying_tokens(self.topic))) if self.effect is Effect.DELETE else (),
        )

    def _groups(self, words: Iterable[str]) -> tuple[Group, ...]:
        return tuple(Group(kind_of(word), self.whose) for word in words)


class StatedWishes(_Strict):
    """The reply."""

    wishes: Annotated[list[StatedWish], Field(max_length=64)]


_FORMAT = {"type": "json_schema", "json_schema": {"name": "wishes", "schema": StatedWishes.model_json_schema()}}


@dataclass(slots=True)
class ModelWork:
    """Counts of the model's work on one day."""

    calls: int = 0
    tokens: int = 0
    """Tokens of prompts and replies that the endpoint reports."""
    elapsed_ns: int = 0
    retried: int = 0
    to_rules: int = 0
    """Stretches of sessions that the rules read instead."""
    reasons: list[str] = field(default_factory=list)
    """The reason for each such stretch."""

    def notices(self) -> list[Notice]:
        """Return the counts as notices, without those that are 0."""
        first = self.reasons[0] if self.reasons else ""
        counted = (
            ("gate_model_calls", "", self.calls),
            ("gate_model_tokens", "", self.tokens),
            ("gate_model_ms", "", self.elapsed_ns // 1_000_000),
            ("gate_model_retried", "a reply was not of the schema", self.retried),
            ("gate_model_to_rules", f"read by rules: {first}", self.to_rules),
        )
        return [Notice(code, message, count) for code, message, count in counted if count]


class ModelExtractor:
    """Reads wishes with the extractor that a call offers, else its reader. Safe to share between threads."""

    def __init__(self) -> None:
        self._client = ModelClient()

    def close(self) -> None:
        """Close the connections to gateways."""
        self._client.close()

    def read(self, session: Session, call: Call, work: ModelWork) -> Mapping[str, tuple[Wish, ...]]:
        """Return wishes by turn id, for turns in which the model reads any. Raises CallError if there is no model."""
        endpoint = extractor_of(call.models)
        if endpoint is None:
            raise invalid_argument("header.model_access", "is required, with an extractor or a reader, to read wishes")
        wishes: dict[str, tuple[Wish, ...]] = {}
        spoken = [turn for turn in session.turns if turn.text]
        for start in range(0, len(spoken), STRETCH_TURNS):
            stretch = spoken[start : start + STRETCH_TURNS]
            for stated in self._wishes_of(endpoint, stretch, call, work):
                turn_id = stretch[stated.turn - 1].turn_id
                wishes[turn_id] = (*wishes.get(turn_id, ()), stated.wish())
        return wishes

    def _wishes_of(
        self, endpoint: Endpoint, turns: Sequence[Turn], call: Call, work: ModelWork
    ) -> Sequence[StatedWish]:
        """Return the model's wishes of a stretch of turns; empty, and counted, if two replies are unusable."""
        messages = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": _numbered(turns)}]
        problem = ""
        for attempt in range(2):
            if attempt:
                work.retried += 1
            try:
                chat = self._chat(endpoint, messages, call, work)
            except PromptRefusedError as error:
                problem = str(error)
                break
            try:
                return _checked(chat.text, len(turns))
            except ValueError as error:
                problem = str(error)
            messages += [
                {"role": "assistant", "content": chat.text},
                {"role": "user", "content": f"This is no JSON of the schema ({problem}). Reply with the JSON alone."},
            ]
        work.to_rules += 1
        work.reasons.append(problem[:200])
        return ()

    def _chat(self, endpoint: Endpoint, messages: Sequence[Mapping[str, str]], call: Call, work: ModelWork) -> Chat:
        work.calls += 1
        started_ns = time.perf_counter_ns()
        try:
            chat = self._client.chat(endpoint, messages, call, max_tokens=REPLY_TOKENS, response_format=_FORMAT)
        finally:
            work.elapsed_ns += time.perf_counter_ns() - started_ns
        work.tokens += (chat.prompt_tokens or 0) + (chat.completion_tokens or 0)
        return chat


def _numbered(turns: Sequence[Turn]) -> str:
    day = turns[0].said_at.date().isoformat()
    lines = [f"[{number}] {turn.speaker.display_name}: {turn.text}" for number, turn in enumerate(turns, start=1)]
    return "\n".join([f"The conversation is of {day}.", *lines])


def _checked(reply: str, turns: int) -> Sequence[StatedWish]:
    """Return the wishes of a reply, ignoring any text around its JSON. Raises ValueError with a message of one line."""
    begin, end = reply.find("{"), reply.rfind("}")
    if begin < 0 or end < begin:
        raise ValueError("no JSON object")
    try:
        wishes = StatedWishes.model_validate_json(reply[begin : end + 1]).wishes
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"{where}: {first['msg']}") from error
    beyond = next((wish.turn for wish in wishes if wish.turn > turns), None)
    if beyond is not None:
        raise ValueError(f"turn {beyond}: the last turn is {turns}")
    return wishes
