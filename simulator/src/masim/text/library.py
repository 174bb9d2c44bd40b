"""The phrase banks that come with MaSim, read and linked once per process."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from masim.errors import MasimError
from masim.text.grammar import Bank, Variants
from masim.text.inflect import VerbForm

BANKS = Path(__file__).resolve().parent.parent / "banks"
_LISTS = ("name", "thing", "act", "trouble", "joy", "view", "ask", "tip", "dream", "scene", "who")
_FORMS = {"base": "act", "past": "acted", "ing": "acting"}


@dataclass(frozen=True)
class Topic:
    """A topic of conversation: its phrases, and which people bring it up (``hobby:chess``, ``occupation:nurse``)."""

    key: str
    bank: Bank
    heads: tuple[str, ...]


@dataclass(frozen=True)
class Library:
    """Dialogue rules and topics."""

    dialogue: Bank
    topics: dict[str, Topic]


@cache
def library() -> Library:
    """The banks of this installation. MasimError names file and line of the first fault."""
    lines = (BANKS / "variants.txt").read_text(encoding="utf-8").splitlines()
    variants = Variants(lines, "variants.txt")
    dialogue = Bank(variants)
    for path in sorted((BANKS / "dialogue").glob("*.bank")):
        dialogue.read(path)
    dialogue.link()
    topics = {path.stem: _topic(path, variants) for path in sorted((BANKS / "topics").glob("*.topic"))}
    wanted = dialogue.topic_items()
    for topic in topics.values():
        missing = wanted - set(topic.bank.rules)
        if missing:
            raise MasimError(f"topics/{topic.key}.topic: dialogue banks use @{min(missing)}, which topics do not have")
    return Library(dialogue, topics)


def _topic(path: Path, variants: Variants) -> Topic:
    bank, heads, section = Bank(variants), [], ""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line, where = raw.strip(), f"topics/{path.name}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            section = line[2:].strip()
            if section not in (*_LISTS, "heads"):
                raise MasimError(f"{where}: unknown list {section!r}; expected one of {', '.join(_LISTS)}")
        elif section == "heads":
            heads.extend(line.split())
        elif section == "act":
            if "^" not in line:
                raise MasimError(f"{where}: mark the verb with ^")
            for form in get_args(VerbForm):
                bank.add(_FORMS[form], line, where, form)
        else:
            bank.add(section, line, where)
    for name in _LISTS:
        if name not in bank.rules or len(bank.rules[name].alternatives) < 3:
            raise MasimError(f"topics/{path.name}: list {name!r} needs at least three lines")
    bank.link()
    return Topic(path.stem, bank, tuple(heads))


def data_files() -> dict[str, str]:
    """SHA-256 of every bank file, by path inside the banks folder."""
    paths = sorted(path for path in BANKS.rglob("*") if path.is_file() and path.suffix != ".md")
    return {str(path.relative_to(BANKS)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
