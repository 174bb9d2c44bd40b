"""Parses a model's replies (a session's turns, one turn, a question) and names what is wrong with a bad one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Fault = Literal["not_json", "no_turns", "too_few_turns", "too_many_turns", "wrong_speaker", "endless", "empty"]
_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ufffd]")


@dataclass(frozen=True, slots=True)
class ReadSession:
    """A session's reply: the words of each planned turn, None where there are none that can be used."""

    turns: tuple[str | None, ...]
    faults: tuple[Fault, ...]

    @property
    def usable(self) -> int:
        """Number of turns with words."""
        return sum(text is not None for text in self.turns)


def read_session(text: str, cut: bool, speakers: Sequence[str]) -> ReadSession:
    """The turns of a reply, each under the speaker that the plan names. ``cut``: it ran into its length limit."""
    faults: list[Fault] = ["endless"] if cut else []
    nothing: tuple[str | None, ...] = (None,) * len(speakers)
    reply = json_in(text)
    rows = reply.get("turns") if isinstance(reply, dict) else reply
    if reply is None or not isinstance(rows, list):
        return ReadSession(nothing, (*faults, "not_json" if reply is None else "no_turns"))
    if len(rows) != len(speakers):
        faults.append("too_few_turns" if len(rows) < len(speakers) else "too_many_turns")
    turns: list[str | None] = list(nothing)
    for index, (row, speaker) in enumerate(zip(rows, speakers, strict=False)):
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            faults.append("empty")
        elif not _same_person(row.get("speaker"), speaker):
            faults.append("wrong_speaker")
        else:
            turns[index] = tidy(row["text"], speaker) or None
            if turns[index] is None:
                faults.append("empty")
    return ReadSession(tuple(turns), tuple(dict.fromkeys(faults)))


def read_text(text: str, key: str, speaker: str = "") -> str | None:
    """The one text of a reply, under ``key``; None if it is no such JSON or the text is empty."""
    reply = json_in(text)
    value = reply.get(key) if isinstance(reply, dict) else None
    return (tidy(value, speaker) or None) if isinstance(value, str) else None


def tidy(text: str, speaker: str = "") -> str:
    """A text on one line, without control characters and without its speaker's name in front."""
    text = _SPACE.sub(" ", _CONTROL.sub(" ", text)).strip()
    if speaker:
        text = re.sub(rf"^{re.escape(speaker)}\s*:\s*", "", text, flags=re.IGNORECASE)
    return text.strip()


def _same_person(reported: object, speaker: str) -> bool:
    if not isinstance(reported, str):
        return False
    name, wanted = reported.strip().casefold(), speaker.casefold()
    return wanted in (name, name.split(" ")[0])


def json_in(text: str) -> object | None:
    """The JSON value of a reply, also if it is in a fence or among other words; None if there is none."""
    for candidate in (text, *_embedded(text)):
        try:
            value: object = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    return None


def _embedded(text: str) -> list[str]:
    candidates = []
    for opening, closing in (("{", "}"), ("[", "]")):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            candidates.append(text[start : end + 1])
    return candidates
