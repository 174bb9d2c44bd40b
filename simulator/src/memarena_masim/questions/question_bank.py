"""The phrases that questions are reworded with: clauses by attribute, paraphrases of items, templates by kind."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memarena_masim.config import Half
from memarena_masim.errors import MasimError
from memarena_masim.facts.catalogue import PersonForm, catalogue, in_person
from memarena_masim.phrases.grammar import SPLIT_FROM, Bank
from memarena_masim.phrases.library import BANKS

FOLDER = BANKS / "questions"


@dataclass(frozen=True, slots=True)
class DetailWords:
    """How questions after one attribute are put; ``before`` stands in front of an item's own words."""

    clauses: tuple[str, ...]
    plain: tuple[str, ...]
    before: str


@dataclass(frozen=True, slots=True)
class QuestionBank:
    """Words of one half of the question banks, or of all."""

    kinds: Bank
    details: Mapping[str, DetailWords]
    items: Mapping[tuple[str, str], str]
    """Paraphrase by attribute and item."""
    happenings: Mapping[str, str]
    places: Mapping[str, str]
    sources: Mapping[str, str]
    fates: Mapping[str, str]

    def source(self, source: str, kind_named: bool = False) -> str:
        """Other words for where a find came from (``the harbour flea market``); its kind may keep its own words."""
        for name, other_name in self.places.items():
            for kind, other_kind in self.sources.items():
                if source == f"the {name} {kind}":
                    return f"the {kind} {other_name}" if kind_named else f"{other_kind} {other_name}"
        raise MasimError(f"questions/finds.toml: no words for {source!r}")


def filled(line: str, form: PersonForm, subject: str, slots: Mapping[str, str]) -> str:
    """A line of the details file in the given person, with its slots put in."""
    text = in_person(line, form).replace("$subject", subject)
    for name, value in sorted(slots.items(), reverse=True):
        text = text.replace(f"${name}", value)
    return text


@cache
def question_bank(banks: Half = "all") -> QuestionBank:
    """The question banks of this installation. MasimError names the file and what is missing in it."""
    kinds = Bank()
    kinds.read(FOLDER / "kinds.bank")
    kinds.link(banks)
    details = {key: _detail(key, row, banks) for key, row in _toml("details").items()}
    items = {(attribute, item): other for attribute, item, other in _rows("items.txt", 3)}
    happenings = {row[0]: row[1] for row in _rows("happenings.txt", 2)}
    finds = _toml("finds")
    known = catalogue(banks)
    for attribute in known.attributes.values():
        if attribute.key not in details:
            raise MasimError(f"questions/details.toml: no section for {attribute.key!r}")
        for item in attribute.items:
            if (attribute.key, item) not in items:
                raise MasimError(f"questions/items.txt: no words for {attribute.key} | {item}")
    for happening in known.happenings:
        if happening not in happenings:
            raise MasimError(f"questions/happenings.txt: no words for {happening!r}")
    for fate in known.fates:
        if fate not in finds["fates"]:
            raise MasimError(f"questions/finds.toml: no words for the fate {fate!r}")
    return QuestionBank(kinds, details, items, happenings, finds["places"], finds["kinds"], finds["fates"])


def _detail(key: str, row: Mapping[str, Any], banks: Half) -> DetailWords:
    for name in ("clause", "plain"):
        if not row.get(name):
            raise MasimError(f"questions/details.toml: {key}: {name} is missing")
    return DetailWords(_half(row["clause"], banks), _half(row["plain"], banks), row.get("before", ""))


def _half(lines: list[str], banks: Half) -> tuple[str, ...]:
    split = banks != "all" and len(lines) >= SPLIT_FROM
    return tuple(lines[banks == "held-out" :: 2]) if split else tuple(lines)


def _toml(name: str) -> dict[str, Any]:
    try:
        return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"questions/{name}.toml: {error}") from error


def _rows(name: str, columns: int) -> Iterator[tuple[str, ...]]:
    path: Path = FOLDER / name
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            row = tuple(part.strip() for part in line.split("|"))
            if len(row) != columns or not all(row):
                raise MasimError(f"questions/{name}:{number}: {columns} texts separated by | are expected")
            yield row
