"""Reads the words of questions from a pack: lines by attribute, names and descriptions of things, templates by kind."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import Catalogue, PersonForm, catalogue, did, in_person
from memarena_masim.pack import NAMES_READ, PUBLIC_PACK, Half, PackHalf
from memarena_masim.phrases.grammar import SPLIT_FROM, Bank
from memarena_masim.phrases.library import folder_of
from memarena_masim.toml_text import parsed

Wording = Literal["plain", "other_name", "description"]
"""How a question names the thing it is about; see ``memarena_dataset.model.WORDINGS``."""


@dataclass(frozen=True, slots=True)
class Called:
    """A thing's other names and its description; either may be empty."""

    names: tuple[str, ...]
    description: str

    def by(self, wording: Wording, own: str) -> tuple[str, ...]:
        """Return the names that a question of a wording may use for the thing called ``own``; () if there is none."""
        if wording == "plain":
            return (own,)
        return self.names if wording == "other_name" else (self.description,) if self.description else ()


@dataclass(frozen=True, slots=True)
class DetailWords:
    """Lines for questions about one attribute; ``before`` precedes the thing's name or description."""

    ask: tuple[str, ...]
    clause: tuple[str, ...]
    about: tuple[str, ...]
    plain: tuple[str, ...]
    now: tuple[str, ...]
    earlier: tuple[str, ...]
    before: str


@dataclass(frozen=True, slots=True)
class QuestionBank:
    """Words of one half of the question banks, or of all."""

    kinds: Bank
    details: Mapping[str, DetailWords]
    items: Mapping[tuple[str, str], Called]
    """Names of items, by attribute and item."""
    happenings: Mapping[str, Called]
    """Names of happenings, by happening; in both, verbs are marked."""
    sources: Mapping[str, Called]
    fates: Mapping[str, Called]
    """Names of what became of a find, by its own words; both in the past tense."""
    names_read: frozenset[tuple[str, str, str]]
    """(kind, thing, other name) for the names with more words than their thing that a second reader accepted."""


def filled(line: str, form: PersonForm, subject: str, slots: Mapping[str, str]) -> str:
    """Return a line of the details file in the person ``form``, with its slots filled."""
    line = line.replace("$own", slots.get("own", ""))
    text = in_person(line, form).replace("$subject", subject)
    for name, value in sorted(slots.items(), reverse=True):
        text = text.replace(f"${name}", value)
    return text


@cache
def question_bank(pack: PackHalf = PUBLIC_PACK) -> QuestionBank:
    """Read the words of a pack's questions. MasimError names the file and what is missing in it."""
    folder, kinds = folder_of(pack) / "questions", Bank()
    kinds.read(folder / "kinds.bank")
    kinds.link(pack.half)
    known = catalogue(pack)
    details = {key: _detail(key, row, pack.half) for key, row in _toml(folder, "details").items()}
    items = {(row[0], row[1]): _called(row[2:]) for row in _rows(folder, "items.txt", 4)}
    happenings = {row[0]: _called(row[1:]) for row in _rows(folder, "happenings.txt", 3)}
    finds = _toml(folder, "finds")
    bank = QuestionBank(
        kinds, details, items, happenings, _sources(known, finds), _fates(known, finds), _names_read(folder)
    )
    _complete(bank, known)
    return bank


def _complete(bank: QuestionBank, known: Catalogue) -> None:
    for attribute in known.attributes.values():
        if attribute.key not in bank.details:
            raise MasimError(f"questions/details.toml: no section for {attribute.key!r}")
        asked = bank.details[attribute.key]
        for name, lines in (("now", asked.now), ("earlier", asked.earlier)):
            if attribute.changes and not lines:
                raise MasimError(f"questions/details.toml: {attribute.key}: {name} is missing")
        for item in attribute.items:
            if (attribute.key, item) not in bank.items:
                raise MasimError(f"questions/items.txt: no line for {attribute.key} | {item}")
    for happening in known.happenings:
        if happening not in bank.happenings:
            raise MasimError(f"questions/happenings.txt: no line for {happening!r}")


def _detail(key: str, row: Mapping[str, Any], banks: Half) -> DetailWords:
    for name in ("ask", "clause", "plain"):
        if not row.get(name) or all("$own" in line for line in _half(row[name], banks)):
            raise MasimError(f"questions/details.toml: {key}: {name}: a line without $own is missing")
    lists = {name: _half(row.get(name, []), banks) for name in ("ask", "clause", "about", "plain", "now", "earlier")}
    return DetailWords(**lists, before=row.get("before", ""))


def _half(lines: list[str], banks: Half) -> tuple[str, ...]:
    split = banks != "all" and len(lines) >= SPLIT_FROM
    return tuple(lines[banks == "held-out" :: 2]) if split else tuple(lines)


def _sources(known: Catalogue, finds: Mapping[str, Any]) -> dict[str, Called]:
    """Return the names of the sources of finds: ``the harbour flea market``, ``the flea market at the harbour``."""
    sources: dict[str, Called] = {}
    for place, other_place in finds["places"].items():
        for kind, other_kind in finds["kinds"].items():
            name = f"the {kind} {finds['place_names'][place]}"
            sources[f"the {place} {kind}"] = Called((name,), f"{other_kind} {other_place}")
    missing = next((source for source in known.sources if source not in sources), None)
    if missing:
        raise MasimError(f"questions/finds.toml: no words for {missing!r}")
    return sources


def _fates(known: Catalogue, finds: Mapping[str, Any]) -> dict[str, Called]:
    for fate in known.fates:
        if fate not in finds["fate_names"]:
            raise MasimError(f"questions/finds.toml: no words for the fate {fate!r}")
    return {did(fate): Called((did(finds["fate_names"][fate]),), "") for fate in known.fates}


def _names_read(folder: Path) -> frozenset[tuple[str, str, str]]:
    name = Path(NAMES_READ).name
    rows = list(_rows(folder, name, 4)) if (folder / name).exists() else []
    unexplained = next((row for row in rows if not all(row)), None)
    if unexplained:
        raise MasimError(f"{NAMES_READ}: {' | '.join(unexplained[:3])}: what it was checked against is expected")
    return frozenset((kind, thing, other_name) for kind, thing, other_name, _ in rows)


def _called(cells: tuple[str, ...]) -> Called:
    names, description = cells
    return Called(tuple(name.strip() for name in names.split(";") if name.strip()), description)


def _toml(folder: Path, name: str) -> dict[str, Any]:
    try:
        return parsed((folder / f"{name}.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"questions/{name}.toml: {error}") from error


def _rows(folder: Path, name: str, columns: int) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table; the last two cells, other names and description, may be empty."""
    for number, line in enumerate((folder / name).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            row = tuple(part.strip() for part in line.split("|"))
            if len(row) != columns or not all(row[:-2]):
                raise MasimError(f"questions/{name}:{number}: {columns} texts separated by | are expected")
            yield row
