"""Parses a model's replies (a session's turns, one turn, a question) and names the faults of a bad one."""

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
    """A session's reply: the text of each planned turn, None if the reply has no usable one; and its faults."""

    turns: tuple[str | None, ...]
    faults: tuple[Fault, ...]

    @property
    def usable(self) -> int:
        """Return the number of turns with a usable text."""
        return sum(text is not None for text in self.turns)


def read_session(text: str, cut: bool, speakers: Sequence[str]) -> ReadSession:
    """Parse a session's reply. ``cut``: it was cut off at its length limit; ``speakers``: of each planned turn."""
    faults: list[Fault] = ["endless"] if cut else []
    no_texts: tuple[str | None, ...] = (None,) * len(speakers)
    reply = json_in(text)
    rows = reply.get("turns") if isinstance(reply, dict) else reply
    if reply is None or not isinstance(rows, list):
        return ReadSession(no_texts, (*faults, "not_json" if reply is None else "no_turns"))
    if len(rows) != len(speakers):
        faults.append("too_few_turns" if len(rows) < len(speakers) else "too_many_turns")
    turns: list[str | None] = list(no_texts)
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
    """Return the text under ``key`` of a reply; None if the reply is not such JSON or the text is empty."""
    reply = json_in(text)
    value = reply.get(key) if isinstance(reply, dict) else None
    return (tidy(value, speaker) or None) if isinstance(value, str) else None


def tidy(text: str, speaker: str = "") -> str:
    """Return a text on one line, without control characters and without its speaker's name in front."""
    text = _SPACE.sub(" ", _CONTROL.sub(" ", text)).strip()
    if speaker:
        text = re.sub(rf"^{re.escape(speaker)}\s*:\s*", "", text, flags=re.IGNORECASE)
    return text.strip()


def _same_person(reported: object, speaker: str) -> bool:
    """Whether the reported name is the speaker's, alone or as the first word of a full name."""
    if not isinstance(reported, str):
        return False
    name = reported.strip().casefold()
    return speaker.casefold() in (name, name.split(" ")[0])


def json_in(text: str) -> object | None:
    """Return the JSON object or list of a reply, even in a fence or within other text; None if there is none."""
    for candidate in (text, *_embedded(text)):
        try:
            value: object = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    return None


def _embedded(text: str) -> list[str]:
    """Return the stretches of a text that may be JSON: from the first opening to the last closing bracket of a kind."""
    candidates = []
    for opening, closing in (("{", "}"), ("[", "]")):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            candidates.append(text[start : end + 1])
    return candidates
