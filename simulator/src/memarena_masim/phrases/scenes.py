"""Reads the scenes of a topic from ``banks/scenes/<topic>.toml`` (format: ``banks/scenes/README.md``).

A scene is one matter that a person tells about, in two halves: the first on one day, the second on a later one. Its
beats are the teller's turns with the answers to them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memarena_masim.errors import MasimError
from memarena_masim.phrases.grammar import Bank, Sequence_
from memarena_masim.rng import Stream
from memarena_masim.toml_text import parsed

HALVES: Final = ("tuning", "held-out")
TONES: Final = ("trouble", "joy", "plain")
LINES: Final = {"ask": 3, "again": 2, "resume": 2, "also": 2}
"""Minimum number of lines in each list of single lines of a scene."""
TURNS: Final = ("tell", "friend", "assistant")
TALK_BEATS: Final = 3
"""Beats that one talk tells at most: half a scene, all from one moment."""
BEATS: Final = 2 * TALK_BEATS
"""Beats of a scene: its first half and, for a later day, its second."""
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_RANGE = re.compile(r"(euros|count) (\d+)\.\.(\d+)(?: step (\d+))?")
_TIMES = re.compile(r"time (\d+):(\d\d)\.\.(\d+):(\d\d)(?: step (\d+))?")
_PREDEFINED = frozenset(("kin", "you"))
"""Values of every scene: ``kin`` is a relative or friend of the teller, ``you`` the person spoken to."""

Draw = Callable[[Stream], str]
"""Draws a value of a scene, as text."""

SEXES: Final = ("man", "woman")
"""Types of values that are the first name of an invented person."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a turn. Shorter turns omit ``optional`` ones; ``question`` marks a last one that asks something."""

    words: Sequence_
    optional: bool
    question: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """A turn of the teller, and the answers to it of a friend and of the teller's assistant."""

    tell: tuple[Sentence, ...]
    friend: tuple[Sentence, ...]
    assistant: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """One matter that a person tells about, in BEATS beats.

    ``key`` is ``topic.scene``; ``thing`` is the teller's noun phrase for it (``my …``, ``our …``, ``the …``);
    ``people`` has the sex of each value that is an invented person's name.
    """

    key: str
    tone: str
    thing: str
    lines: Mapping[str, tuple[Sequence_, ...]]
    values: Mapping[str, Draw]
    people: Mapping[str, str]
    beats: tuple[Beat, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of conversation: its scenes, and in ``heads`` the people who bring it up (``occupation:nurse``)."""

    key: str
    heads: tuple[str, ...]
    half: str
    scenes: tuple[Scene, ...]


def read_topic(path: Path) -> Topic:
    """Read a topic with its scenes. MasimError names file and key of the first fault."""
    try:
        rows = parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MasimError(f"scenes/{path.name}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MasimError(f"scenes/{path.name}: {error}") from error
    about, bank = rows.pop("topic", {}), Bank()
    if about.get("half") not in HALVES:
        raise MasimError(f"scenes/{path.name}: topic.half: one of {', '.join(HALVES)} is expected")
    if not about.get("heads"):
        raise MasimError(f"scenes/{path.name}: topic.heads: at least one hobby, concern or occupation is expected")
    if not rows:
        raise MasimError(f"scenes/{path.name}: at least one scene is expected")
    scenes = tuple(_scene(path.stem, key, row, bank, f"scenes/{path.name}: {key}") for key, row in rows.items())
    return Topic(path.stem, tuple(about["heads"]), about["half"], scenes)


def _scene(topic: str, key: str, row: Mapping[str, Any], bank: Bank, where: str) -> Scene:
    unknown = set(row) - {"tone", "thing", "values", "beats", *LINES}
    if unknown:
        raise MasimError(f"{where}: {min(unknown)!r} is no part of a scene")
    if row.get("tone") not in TONES:
        raise MasimError(f"{where}.tone: one of {', '.join(TONES)} is expected")
    if not str(row.get("thing", "")).startswith(("my ", "our ", "the ")):
        raise MasimError(f"{where}.thing: a noun phrase with my, our or the is expected")
    specifics = row.get("values", {})
    people = {name: sex for name, sex in specifics.items() if sex in SEXES}
    values = {
        name: _draw(choices, f"{where}.values.{name}") for name, choices in specifics.items() if name not in people
    }
    known = _PREDEFINED | set(specifics)

    def compiled(line: str, position: str) -> Sequence_:
        words = bank.compile(line, f"{position}: {line!r}")
        missing = bank.slots_of(words) - known
        if missing:
            raise MasimError(f"{position}: ${min(missing)} is no value of this scene: {line!r}")
        return words

    def sentences(lines: Any, position: str) -> tuple[Sentence, ...]:
        if not isinstance(lines, list) or not lines or lines[0].startswith("+"):
            raise MasimError(f"{position}: sentences are expected, of which the first is not optional")
        compiled_sentences = []
        for line in lines:
            text = line.removeprefix("+")
            if text.rstrip("}")[-1] not in ".?!":
                raise MasimError(f"{position}: a sentence ends with a full stop or a question mark: {line!r}")
            last = line is lines[-1]
            compiled_sentences.append(
                Sentence(compiled(text, position), line.startswith("+"), last and text.rstrip("}")[-1] == "?")
            )
        return tuple(compiled_sentences)

    lines = {}
    for name, least in LINES.items():
        if len(row.get(name, ())) < least:
            raise MasimError(f"{where}.{name}: at least {least} lines are expected")
        lines[name] = tuple(compiled(line, f"{where}.{name}") for line in row[name])
    beats = row.get("beats", [])
    if len(beats) != BEATS:
        raise MasimError(f"{where}.beats: {BEATS} beats are expected")
    read = []
    for number, beat in enumerate(beats, 1):
        position = f"{where}.beats, number {number}"
        if set(beat) != set(TURNS):
            raise MasimError(f"{position}: exactly {', '.join(TURNS)} are expected")
        tell, friend, assistant = (sentences(beat[name], f"{position}, {name}") for name in TURNS)
        read.append(Beat(tell, friend, assistant))
    return Scene(f"{topic}.{key}", row["tone"], row["thing"], lines, values, people, tuple(read))


def _draw(choices: Any, where: str) -> Draw:
    """Return the function that draws a value. MasimError names the expected form."""
    if isinstance(choices, list) and choices and all(isinstance(choice, str) for choice in choices):
        return lambda stream: stream.pick(choices)
    if choices in ("weekday", "workday"):
        return lambda stream: stream.pick(WEEKDAYS[: 7 if choices == "weekday" else 5])
    match = _RANGE.fullmatch(str(choices))
    if match is not None:
        unit, low, high, step = match.group(1), int(match.group(2)), int(match.group(3)), int(match.group(4) or 1)
        ending = " euros" if unit == "euros" else ""
        _growing(low, high, step, where)
        return lambda stream: f"{low + step * stream.below((high - low) // step + 1)}{ending}"
    match = _TIMES.fullmatch(str(choices))
    if match is not None:
        first, last = (int(match.group(n)) * 60 + int(match.group(n + 1)) for n in (1, 3))
        step_minutes = int(match.group(5) or 15)
        _growing(first, last, step_minutes, where)
        return lambda stream: clock(first + step_minutes * stream.below((last - first) // step_minutes + 1))
    raise MasimError(
        f"{where}: a list, weekday, workday, man, woman, 'euros a..b', 'count a..b' or 'time h:mm..h:mm' is expected"
    )


def _growing(low: int, high: int, step: int, where: str) -> None:
    """Raise MasimError unless ``low`` to ``high`` is a range and ``step`` is positive."""
    if low > high or step < 1:
        raise MasimError(f"{where}: a range from low to high with a step above 0 is expected")


def clock(minutes: int) -> str:
    """Return minutes since midnight as a time of day in the spelling of facts: ``9:15 am``."""
    hour, minute = divmod(minutes, 60)
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'am' if hour < 12 else 'pm'}"
