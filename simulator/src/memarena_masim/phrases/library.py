"""The phrase banks that come with MaSim, read once per process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from memarena_masim.config import Half
from memarena_masim.errors import MasimError
from memarena_masim.phrases.grammar import Bank, Variants
from memarena_masim.phrases.matters import Matter, read_matters
from memarena_masim.phrases.scenes import Scene, read_scenes

BANKS = Path(__file__).resolve().parent.parent / "banks"
_LISTS = ("name", "act", "trouble", "joy", "view", "ask", "tip", "dream", "scene", "who")
_HALVES = ("tuning", "held-out")
VOCABULARY = "small.bank"


@dataclass(frozen=True)
class Topic:
    """A topic of conversation: its matters and phrases, and which people bring it up (``occupation:nurse``)."""

    key: str
    bank: Bank
    heads: tuple[str, ...]
    half: str
    matters: tuple[Matter, ...]
    scenes: tuple[Scene, ...] = ()


@dataclass(frozen=True)
class Library:
    """Dialogue rules and topics of one half of the banks, or of all."""

    banks: Half
    dialogue: Bank
    topics: dict[str, Topic]

    @cached_property
    def scenes(self) -> dict[str, Scene]:
        """All scenes of the topics, by key (``topic.scene``)."""
        return {scene.key: scene for topic in self.topics.values() for scene in topic.scenes}


@cache
def library(banks: Half = "all") -> Library:
    """The banks of this installation. MasimError names file and line of the first fault.

    Of a rule with four lines or more, the first, third, … belong to the tuning half and the others to the held-out
    half; shorter rules belong to both, and so does the vocabulary that sentences share (``small.bank``). A topic says
    itself to which half it belongs.
    """
    lines = (BANKS / "variants.txt").read_text(encoding="utf-8").splitlines()
    variants = Variants(lines, "variants.txt")
    dialogue = Bank(variants)
    dialogue.read(BANKS / "dialogue" / VOCABULARY)
    vocabulary = frozenset(dialogue.rules)
    for path in sorted((BANKS / "dialogue").glob("*.bank")):
        if path.name != VOCABULARY:
            dialogue.read(path)
    dialogue.link(banks, vocabulary)
    found = [_topic(path, variants, dialogue) for path in sorted((BANKS / "topics").glob("*.topic"))]
    topics = {topic.key: topic for topic in found if banks in ("all", topic.half)}
    wanted = dialogue.topic_items()
    for topic in topics.values():
        missing = wanted - set(topic.bank.rules)
        if missing:
            raise MasimError(f"topics/{topic.key}.topic: dialogue banks use @{min(missing)}, which topics do not have")
    return Library(banks, dialogue, topics)


def _topic(path: Path, variants: Variants, dialogue: Bank) -> Topic:
    """One topic. Lists of its own (any other name than the known ones) may be used in its lines as ``<name>``."""
    lines = [
        (f"topics/{path.name}:{number}", raw.strip())
        for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if raw.strip() and not raw.startswith("#")
    ]
    own = {line[2:].strip() for _, line in lines if line.startswith("==")}
    bank = Bank(variants, {name: rule for name, rule in dialogue.rules.items() if name not in own})
    heads: list[str] = []
    half = section = ""
    for where, line in lines:
        if line.startswith("=="):
            section = line[2:].strip()
        elif section == "heads":
            heads.extend(line.split())
        elif section == "half":
            half = line
        elif section == "act":
            if "^" not in line:
                raise MasimError(f"{where}: mark the verb with ^")
            bank.add_verbs(("act", "acted", "acting"), line, where)
        else:
            bank.add(section, line, where)
    for name in _LISTS:
        if name not in bank.rules or len(bank.rules[name].alternatives) < 2:
            raise MasimError(f"topics/{path.name}: list {name!r} needs at least two lines")
    if half not in _HALVES:
        raise MasimError(f"topics/{path.name}: '== half' must say tuning or held-out, not {half!r}")
    unused = {name for name in own if name not in ("heads", "half", *_LISTS)} - bank.wanted
    if unused:
        raise MasimError(f"topics/{path.name}: list {min(unused)!r} is used nowhere")
    matters = read_matters(path.parent.parent / "matters" / f"{path.stem}.toml", bank)
    bank.link()
    scenes = read_scenes(path.parent.parent / "scenes" / f"{path.stem}.toml", Bank())
    return Topic(path.stem, bank, tuple(heads), half, matters, scenes)


def data_files() -> dict[str, str]:
    """SHA-256 of every bank file, by path inside the banks folder."""
    paths = sorted(path for path in BANKS.rglob("*") if path.is_file() and path.suffix != ".md")
    return {str(path.relative_to(BANKS)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@cache
def _bank_text() -> str:
    paths = [*sorted((BANKS / "dialogue").glob("*.bank")), *sorted((BANKS / "topics").glob("*.topic"))]
    paths += [*sorted((BANKS / "matters").glob("*.toml")), *sorted((BANKS / "scenes").glob("*.toml"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths).lower().replace("^", "").replace("*", "")


@cache
def may_arise(phrase: str) -> bool:
    """Whether two parts of the banks can meet so that they read as ``phrase``: ``on the ridge. Walk …``."""
    words = phrase.lower().split()
    for cut in range(1, len(words)):
        before, after = " ".join(words[:cut]), " ".join(words[cut:])
        if before != "the" and _ends_a_part(before) and _starts_a_part(after):
            return True
    return False


def _ends_a_part(words: str) -> bool:
    """Whether ``words`` stand in the banks before something that is no word."""
    text = _bank_text()
    return any(not _is_letter(text, at - 1) and _NO_WORD.match(text, at + len(words)) for at in _places(text, words))


def _starts_a_part(words: str) -> bool:
    """Whether ``words`` stand in the banks behind something that is no word."""
    text = _bank_text()
    for at in _places(text, words):
        before = text[max(0, at - _LONGEST_GAP) : at].rstrip()
        if before and not _PART_OF_WORD.match(before[-1]) and not _is_letter(text, at + len(words)):
            return True
    return False


def _places(text: str, words: str) -> Iterator[int]:
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _is_letter(text: str, at: int) -> bool:
    return 0 <= at < len(text) and "a" <= text[at] <= "z"


_NO_WORD = re.compile(r"\s*[^a-z'\s]")
_PART_OF_WORD = re.compile(r"[a-z']")
_LONGEST_GAP = 40
"""Characters before a line of the banks: more than any indentation."""
