"""Writes the reading sheet: sessions of two sources, shuffled, with other names and in the same typography.

The key, which names the sources, is a separate file: a reader must not have it.
"""

from __future__ import annotations

import csv
import json
import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.world import World

OURS, LOCOMO = "world", "locomo"
"""What the sources are called in the key."""
SHEET, MARKS = "sheet.md", "marks.csv"
LEAST_TURNS = 4
MOST_PICTURES = 2
"""LoCoMo shares pictures, whose captions would tell the source; they are left out, in sessions that have few."""
_SHORTEST_NICKNAME = 3
_PICTURE = re.compile(r"\s*\[shares a photo: [^\]]*\]")
_TYPOGRAPHY = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})


@dataclass(frozen=True, slots=True)
class Reading:
    """A session to read: its source, and its turns as (speaker, text)."""

    source: str
    session_id: str
    turns: tuple[tuple[str, str], ...]


def write_sheet(world: World, locomo: World, out: Path, key: Path, *, sessions: int, seed: int) -> None:
    """Write sheet and empty marks to the new folder ``out``, and the key to the file ``key`` outside of it.

    Raises:
        QualityError: a source has too few sessions between two or more people, or ``out`` or ``key`` cannot be used.
        OSError: a file cannot be written.
    """
    if out.exists():
        raise QualityError(f"--out {out}: there already; a new folder is expected")
    if key.exists():
        raise QualityError(f"--key {key}: there already; a new file is expected")
    if out.resolve() in key.resolve().parents:
        raise QualityError(f"--key {key}: inside --out; readers get that folder and must not have the key")
    if not key.parent.is_dir():
        raise QualityError(f"--key {key}: its folder does not exist")
    rng = random.Random(seed)  # noqa: S311 (a sample for a measure)
    readings = [*_sample(world, OURS, sessions, rng), *_sample(locomo, LOCOMO, sessions, rng)]
    rng.shuffle(readings)
    names_by_source = {OURS: _names(world), LOCOMO: _names(locomo)}
    items = [_rename(reading, names_by_source[reading.source], rng) for reading in readings]
    out.mkdir(parents=True)
    text = _data("instructions.v1.md") + "".join(_as_text(number, item) for number, item in enumerate(items, 1))
    (out / SHEET).write_text(text, encoding="utf-8")
    with (out / MARKS).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("item", "mark"), *((n, "") for n in range(1, len(items) + 1))]
        )
    rows = [
        {"item": n, "source": reading.source, "session_id": reading.session_id} for n, reading in enumerate(readings, 1)
    ]
    key.write_text(json.dumps({"seed": seed, "world": str(world.path), "items": rows}, indent=1) + "\n", "utf-8")


def _sample(world: World, source: str, count: int, rng: random.Random) -> list[Reading]:
    """Draw sessions with few pictures between people; a session with an assistant would give its source away."""
    fit = [
        session
        for session in world.sessions
        if len(session.turns) >= LEAST_TURNS
        and not any(turn.speaker_id.startswith("assistant_") for turn in session.turns)
        and sum(len(_PICTURE.findall(turn.text)) for turn in session.turns) <= MOST_PICTURES
    ]
    if len(fit) < count:
        raise QualityError(f"{world.path}: {len(fit)} sessions between people; {count} are expected (--sessions)")
    return [
        Reading(source, session.session_id, tuple((world.name(turn.speaker_id), turn.text) for turn in session.turns))
        for session in rng.sample(fit, count)
    ]


def _names(world: World) -> tuple[str, ...]:
    return tuple(name for agent_id, name in world.names.items() if not agent_id.startswith("assistant_"))


def _rename(reading: Reading, known: Sequence[str], rng: random.Random) -> Reading:
    """Return a session in which every person of the data set has a new name, which the session did not contain."""
    words = set(re.findall(r"\w+", " ".join(text for _, text in reading.turns)))
    speakers = tuple(dict.fromkeys(name for name, _ in reading.turns))
    firsts = {name.split()[0] for name in known}
    talked_of = [name for name in known if name not in speakers and name.split()[0] in words]
    free = [name for name in _data("names.v1.txt").split() if name not in words and name not in firsts]
    new = dict(zip((*speakers, *talked_of), rng.sample(free, len(speakers) + len(talked_of)), strict=True))
    spelled: dict[str, str] = {}
    for name, other in new.items():
        spelled |= {name: other, name.split()[0]: other}
    for name in speakers:  # Mel for Melanie
        short = [word for word in words if len(word) >= _SHORTEST_NICKNAME and name.startswith(word)]
        short = [nickname for nickname in short if nickname.lower() not in words]  # "The" is no Thea
        spelled |= {word: new[name] for word in short if word not in spelled}
    pattern = re.compile(rf"\b(?:{'|'.join(re.escape(form) for form in sorted(spelled, key=len, reverse=True))})\b")
    turns = tuple(
        (new[name], pattern.sub(lambda match: spelled[match.group()], _plain(text))) for name, text in reading.turns
    )
    return Reading(reading.source, reading.session_id, turns)


def _plain(text: str) -> str:
    """Return a text in uniform typography: straight quotes, hyphens, no pictures, single spaces."""
    straight = _PICTURE.sub("", text).translate(_TYPOGRAPHY)
    letters = "".join(char for char in straight if unicodedata.category(char) not in ("So", "Sk", "Cf", "Mn", "Co"))
    return " ".join(letters.split())


def _as_text(number: int, reading: Reading) -> str:
    lines = "\n\n".join(f"**{name}:** {text}" for name, text in reading.turns)
    return f"\n## {number}\n\n{lines}\n"


def _data(name: str) -> str:
    return files("memarena_dataset_quality.blind_reading").joinpath(name).read_text(encoding="utf-8")
