"""Writes prompts for a session, for one turn and for a question, from versioned files."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from memarena_masim.engines.model import Setting
from memarena_masim.engines.points import Ask, Point
from memarena_masim.plan.model import SessionPlan
from memarena_masim.world.build import relation

PROMPTS = Path(__file__).resolve().parent / "prompts"
Message = Mapping[str, str]
NOTHING = "nothing in particular"
"""The words of a prompt for an empty list."""


@dataclass(frozen=True)
class Brief:
    """A session as prompts describe it to a model.

    ``points`` are the statements that its turns make, ``asks`` the questions that must precede some of them.
    """

    plan: SessionPlan
    points: tuple[Point, ...]
    asks: tuple[Ask, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the speaker's first name, by turn."""
        return tuple(
            self.plan.speakers[self.plan.speaker_index(turn)].first_name for turn in range(self.plan.turn_count)
        )

    def points_in(self, turn: int) -> tuple[Point, ...]:
        """Return the points that a turn must state."""
        return tuple(point for point in self.points if point.turn == turn)

    def asks_in(self, turn: int) -> tuple[Ask, ...]:
        """Return the questions that a turn must ask."""
        return tuple(ask for ask in self.asks if ask.turn == turn)

    def words_of(self, turn: int) -> int:
        """Return the number of words aimed at in a turn."""
        assistant = self.plan.speakers[self.plan.speaker_index(turn)].assistant
        return round(self.plan.words_per_turn * (0.75 if assistant else 1.0))

    def topic_of(self, turn: int) -> str:
        """Return the topic of a turn."""
        for thread in self.plan.threads:
            if turn < thread.turns:
                return thread.topic
            turn -= thread.turns
        return self.plan.threads[-1].topic


def session_prompt(brief: Brief, setting: Setting) -> list[Message]:
    """Return the messages that request a whole session."""
    plan, kinds = brief.plan, _kinds()
    about = Template(kinds["kinds"][plan.kind.value]).substitute(
        other=plan.looks_back[0] or "somebody",
        lastday=plan.looks_back[1] or "some days ago",
        event=plan.event.told if plan.event else "something",
    )
    turns = [f"{number}. {name}{_instructions(brief, number - 1)}" for number, name in enumerate(brief.names, 1)]
    topics, first = [], 1
    for thread in plan.threads:
        topics.append(f"- turns {first} to {first + thread.turns - 1}: {thread.topic}")
        first += thread.turns
    return _fill(
        "session.v1.txt",
        modality=kinds["modalities"][plan.modality],
        weather=plan.weather,
        weekday=plan.weekday,
        daypart=plan.daypart,
        where=f", at {plan.place_name}" if plan.names_place and plan.place_name else "",
        about=about,
        people=_people(brief, setting),
        topics="\n".join(topics),
        turns="\n".join(turns),
        count=plan.turn_count,
        words=round(plan.words_per_turn),
        first=brief.names[0],
    )


def turn_prompt(brief: Brief, setting: Setting, turn: int, before: Sequence[str], problem: str) -> list[Message]:
    """Return the messages that request one turn again. ``before``: texts of earlier turns; ``problem``: its fault."""
    names = brief.names
    must = _instructions(brief, turn).removeprefix(" ")
    return _fill(
        "turn.v1.txt",
        people=_people(brief, setting),
        before="\n".join(before[-3:]) or "(nothing yet)",
        speaker=names[turn],
        listener=names[turn - 1] if turn else names[1],
        words=brief.words_of(turn),
        topic=brief.topic_of(turn),
        problem=problem,
        must=f"The turn {must.removeprefix('— ')}" if must else "",
    )


def question_prompt(question: str, names: Sequence[str], anchors: Sequence[str]) -> list[Message]:
    """Return the messages that request a question in other words."""
    return _fill(
        "question.v2.txt",
        question=question,
        names=", ".join(names) or NOTHING,
        anchors=", ".join(anchors) or NOTHING,
    )


def session_schema(brief: Brief) -> dict[str, object]:
    """Return the JSON schema of a session's reply."""
    turn = _object(speaker={"type": "string", "enum": list(dict.fromkeys(brief.names))}, text={"type": "string"})
    count = brief.plan.turn_count
    return _object(turns={"type": "array", "items": turn, "minItems": count, "maxItems": count})


TURN_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
QUESTION_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}


def data_files() -> dict[str, str]:
    """Return the SHA-256 of every prompt file, by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(PROMPTS.glob("*.v*"))}


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _instructions(brief: Brief, turn: int) -> str:
    """Return what a turn must state and ask, in one line; "" if it is free."""
    parts = []
    for point in brief.points_in(turn):
        parts.append(f"has to say: «{point.sentence}»" if point.exact else f"has to say: {point.sentence}")
        if point.verbatim:
            parts.append(f"and then: «{point.verbatim}»")
    parts += [f"has to ask: {ask.sentence}" for ask in brief.asks_in(turn)]
    return f" — {' '.join(parts)}" if parts else ""


def _people(brief: Brief, setting: Setting) -> str:
    """Return a line on each speaker: occupation, traits, ties to the others, and style of speech."""
    people = {person.agent_id: person for person in setting.world.people}
    lines = []
    for speaker in brief.plan.speakers:
        if speaker.assistant:
            lines.append(
                f"- Assistant: {brief.plan.speakers[0].first_name}'s assistant on the phone, helpful and brief"
            )
            continue
        person = people[speaker.agent_id]
        ties = [
            f"{relation(setting.world, other.agent_id, speaker.agent_id)} of {other.first_name}"
            for other in brief.plan.speakers
            if not other.assistant and other.agent_id != speaker.agent_id
        ]
        traits = ", ".join((person.occupation.replace("_", " "), *person.traits, *ties))
        lines.append(f"- {speaker.first_name}: {traits}; speaks {person.style}")
    return "\n".join(lines)


@cache
def _kinds() -> dict[str, dict[str, str]]:
    return tomllib.loads((PROMPTS / "kinds.v2.toml").read_text(encoding="utf-8"))


@cache
def _parts(name: str) -> tuple[Template, Template]:
    """Return the system part and the user part of a prompt file."""
    _, system, user = (PROMPTS / name).read_text(encoding="utf-8").split("== ")
    return Template(system.removeprefix("system\n").strip()), Template(user.removeprefix("user\n").strip())


def _fill(name: str, **slots: object) -> list[Message]:
    system, user = _parts(name)
    return [
        {"role": "system", "content": system.substitute()},
        {"role": "user", "content": user.substitute({key: str(value) for key, value in slots.items()})},
    ]
