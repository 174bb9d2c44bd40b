"""Reads the scenes of a pack and the lines around them (``frame.bank``), once per process.

A *scene* is a story of everyday life in a pack; the frame bank has what goes round it, such as greetings and links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from memarena_masim.errors import MasimError
from memarena_masim.pack import PUBLIC_PACK, PackHalf, root
from memarena_masim.phrases.grammar import Bank, Sequence_, wordings
from memarena_masim.phrases.references import References, stems
from memarena_masim.phrases.scenes import Scene, Topic, read_topic


@dataclass(frozen=True)
class Library:
    """Topics with their scenes, and the lines around scenes, of one half of a pack or of both."""

    pack: PackHalf
    frame: Bank
    topics: dict[str, Topic]

    @cached_property
    def scenes(self) -> dict[str, Scene]:
        """Return all scenes of the topics, by key (``topic.scene``)."""
        return {scene.key: scene for topic in self.topics.values() for scene in topic.scenes}

    @cached_property
    def kin(self) -> dict[str, list[Sequence_]]:
        """Return the relatives and friends who may come up in each scene, by its key: none that its teller mentions."""
        anybody = self.frame.rules["kin"].alternatives
        names = [(rule, stems(wordings(rule)[0].split()[-1])) for rule in anybody]
        teller_stems = self.references.teller_stems
        return {
            key: [rule for rule, name in names if name.isdisjoint(words)] or anybody
            for key, words in teller_stems.items()
        }

    @cached_property
    def references(self) -> References:
        """Return the words that answers may use only if they were said in the talk."""
        return References(self.scenes.values())


@cache
def library(pack: PackHalf = PUBLIC_PACK) -> Library:
    """Read the scenes of a pack. MasimError names file and line of the first fault.

    Of a rule with four lines or more, the first, third, … belong to the tuning half and the others to the held-out
    half; shorter rules belong to both. A topic says itself to which half it belongs.
    """
    scenes, frame = folder_of(pack) / "scenes", Bank()
    frame.read(scenes / "frame.bank")
    frame.link(pack.half)
    topics = [read_topic(path) for path in sorted(scenes.glob("*.toml"))]
    used = {topic.key: topic for topic in topics if pack.half in ("all", topic.half)}
    if not used:
        raise MasimError(f"scenes: at least one topic of the half {pack.half!r} is expected")
    return Library(pack, frame, used)


def folder_of(pack: PackHalf) -> Path:
    """Return the folder of a pack, after its files were checked."""
    return root(pack.folder, pack.sha256)


def scene_files(pack: PackHalf = PUBLIC_PACK) -> list[Path]:
    """Return all files from which talk is made: the frame bank and the scenes."""
    scenes = folder_of(pack) / "scenes"
    return [scenes / "frame.bank", *sorted(scenes.glob("*.toml"))]


@cache
def _scene_text(pack: PackHalf) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in scene_files(pack)).lower()


@cache
def may_arise(phrase: str, pack: PackHalf) -> bool:
    """Whether two adjacent parts of the banks can read as ``phrase`` together: ``on the ridge. Walk …``."""
    words, text = phrase.lower().split(), _scene_text(pack)
    for cut in range(1, len(words)):
        before, after = " ".join(words[:cut]), " ".join(words[cut:])
        if before != "the" and _ends_a_part(before, text) and _starts_a_part(after, text):
            return True
    return False


def _ends_a_part(words: str, text: str) -> bool:
    """Whether ``words`` occur in the banks before a character that belongs to no word."""
    return any(
        not _is_letter(text, index - 1) and _NO_WORD.match(text, index + len(words)) for index in _places(text, words)
    )


def _starts_a_part(words: str, text: str) -> bool:
    """Whether ``words`` occur in the banks after a character that belongs to no word."""
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
"""Characters searched before an occurrence: more than any indentation of the banks."""
