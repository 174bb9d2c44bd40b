"""Defines keys and types of a pack's TOML files. A fault names file, line, key and the expected value.

``pack.py`` calls it before any file of a pack is used. What a key means is explained at the top of each file of the
public pack (``banks/``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, TypeAdapter
from pydantic import ValidationError as InvalidError

from memarena_masim.errors import MasimError
from memarena_masim.toml_text import parsed

Text = Annotated[StrictStr, Field(min_length=1, max_length=2000)]
Texts = Annotated[list[Text], Field(min_length=1)]
Number = StrictInt | StrictFloat
_Two, _Ten = Field(min_length=2), Field(min_length=10)


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Detail(_Row):
    category: Text
    confidential: StrictBool = False
    sensitive: StrictStr = ""
    type: Text
    unit: StrictStr = ""
    values: Text | Texts
    items: Annotated[Texts, _Two]
    plain: Text
    about: Text
    ask: Text
    say: Texts
    react: Texts


class _Community(_Row):
    ask: Texts
    say: Texts
    react: Texts


class _Lines(_Row):
    lines: Texts


class _Mood(_Row):
    items: Annotated[Texts, _Two]
    react: Texts


class _Happenings(_Row):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Mood] = Field(init=False)
    say: _Lines


class _Finds(_Row):
    things: Annotated[Texts, _Ten]
    source_kinds: Annotated[Texts, _Two]
    source_places: Annotated[Texts, _Two]
    fates: Annotated[Texts, _Two]
    say: Texts
    fate: Texts
    plain: Text
    ask: Texts


class _Say(_Row):
    say: Texts


class _Ties(_Row):
    friends: _Say
    not_friends: _Say


class _Changes(_Row):
    attributes: Texts
    lead: Texts


class _Invite(_Row):
    invite: Texts


class _Reaction(_Row):
    topic: Text
    heard: Texts
    noted: Texts


class _Event(_Row):
    weight: Annotated[Number, Field(gt=0)]
    lines: Texts
    groups: list[Text] = []


class _Asked(_Row):
    ask: Texts
    clause: Texts
    about: list[Text] = []
    plain: Texts
    now: list[Text] = []
    earlier: list[Text] = []
    before: StrictStr = ""


class _FindWords(_Row):
    place_names: dict[str, Text]
    places: dict[str, Text]
    kinds: dict[str, Text]
    fate_names: dict[str, Text]


class _Places(_Row):
    districts: Annotated[Texts, _Two]
    third: Annotated[list[tuple[Text, Text, StrictInt, StrictInt]], Field(min_length=1)]
    groups: Annotated[Texts, Field(min_length=14)]
    posts: Annotated[Texts, Field(min_length=5)]
    weather: Texts


_Manner = tuple[Number, Number, Number]


class _People(_Row):
    first_names: Annotated[Texts, _Ten]
    last_names: Annotated[Texts, _Ten]
    other_men: Annotated[Texts, _Ten]
    other_women: Annotated[Texts, _Ten]
    values: Annotated[Texts, _Two]
    concerns: Annotated[Texts, _Two]
    hobbies: Annotated[Texts, Field(min_length=3)]
    styles: Annotated[dict[str, _Manner], Field(min_length=1)]
    traits: Annotated[dict[str, _Manner], _Two]
    occupations: Annotated[dict[str, Text], _Two]
    places: _Places
    events: dict[str, Texts] = {}


class _Topic(_Row):
    half: Text
    heads: list[Text] = []
    episodes: StrictBool = False


class _Beat(_Row):
    tell: Texts
    friend: Texts
    assistant: list[Text] = []


class _Scene(_Row):
    """How many lines of which sort a scene needs is checked where it is read: ``phrases/scenes.py``."""

    tone: Text
    thing: Text
    ask: list[Text] = []
    again: list[Text] = []
    resume: list[Text] = []
    also: list[Text] = []
    values: dict[str, Text | Texts] = {}
    beats: list[_Beat]


class _Scenes(_Row):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Scene] = Field(init=False)
    topic: _Topic


_SCENES: Final[TypeAdapter[Any]] = TypeAdapter(_Scenes)
_FILES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "facts/changes.toml": TypeAdapter(_Changes),
    "facts/community.toml": TypeAdapter(dict[str, _Community]),
    "facts/details.toml": TypeAdapter(Annotated[dict[str, _Detail], _Two]),
    "facts/events.toml": TypeAdapter(dict[str, dict[str, _Event]]),
    "facts/finds.toml": TypeAdapter(_Finds),
    "facts/happenings.toml": TypeAdapter(_Happenings),
    "facts/invites.toml": TypeAdapter(dict[str, _Invite]),
    "facts/reactions.toml": TypeAdapter(dict[str, _Reaction]),
    "facts/sensitive.toml": TypeAdapter(Annotated[dict[str, _Detail], _Two]),
    "facts/themes.toml": TypeAdapter(dict[str, Texts | dict[str, Texts]]),
    "facts/ties.toml": TypeAdapter(_Ties),
    "questions/details.toml": TypeAdapter(dict[str, _Asked]),
    "questions/finds.toml": TypeAdapter(_FindWords),
    "world/people.toml": TypeAdapter(_People),
}
_PROBLEMS: Final = {"missing": "is missing", "extra_forbidden": "unknown key"}


def check_tables(folder: Path, names: Sequence[str]) -> None:
    """Check the keys and types of a pack's TOML files. MasimError names the first fault."""
    for name in names:
        shape = _SCENES if name.startswith("scenes/") else _FILES.get(name)
        if shape is None or not name.endswith(".toml"):
            continue
        text = (folder / name).read_text(encoding="utf-8")
        try:
            rows = parsed(text)
            shape.validate_python(rows)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise MasimError(f"{folder / name}: no TOML: {error}") from error
        except InvalidError as error:
            first = error.errors(include_url=False)[0]
            loc = _within(rows, first["loc"])
            problem = _PROBLEMS.get(first["type"], first["msg"][0].lower() + first["msg"][1:])
            where = ".".join(map(str, loc)) or "the file"
            raise MasimError(f"{at_line(folder / name, line_of(text, loc))}: {where}: {problem}") from error


def at_line(path: Path, line: int | None) -> str:
    """Return ``FILE:LINE`` for messages; the file alone if the line is not known."""
    return str(path) if line is None else f"{path}:{line}"


def line_of(text: str, loc: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of the table or key of a TOML text to which ``loc`` leads, or of the nearest above it.

    None if the text has none of them, such as for a key that is missing at the top.
    """
    best, line = 0, None
    for number, path in _paths(text):
        shared = next((i for i, (a, b) in enumerate(zip(path, loc, strict=False)) if a != b), min(len(path), len(loc)))
        if shared == len(path) > best:
            best, line = shared, number
    return line


def _paths(text: str) -> Iterator[tuple[int, tuple[str | int, ...]]]:
    """Yield line and path of each table header and each key."""
    table: tuple[str | int, ...] = ()
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            name = header.group(2)
            table = tuple(part.strip().strip('"') for part in name.split("."))
            if header.group(1) == "[[":
                counts[name] = counts.get(name, -1) + 1
                table = (*table, counts[name])
            yield number, table
        elif key := _KEY.match(line):
            yield number, (*table, key.group(1).strip('"'))


_HEADER = re.compile(r"(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"([A-Za-z0-9_-]+|\"[^\"]*\")\s*=")


def _within(rows: object, loc: Sequence[str | int]) -> list[str | int]:
    """Return the part of ``loc`` that is in the file, with the first missing key; without pydantic's own parts."""
    path: list[str | int] = []
    for part in loc:
        if isinstance(rows, dict) and isinstance(part, str):
            path.append(part)
            rows = rows.get(part)
        elif isinstance(rows, list) and isinstance(part, int) and part < len(rows):
            path.append(part)
            rows = rows[part]
        else:
            break
    return path
