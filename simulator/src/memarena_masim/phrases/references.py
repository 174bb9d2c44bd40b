"""Checks that an answer in a scene refers only to what its teller said in this talk.

The teller may have left words out: by another choice of phrase, in a shorter turn, or because they belong to a beat of
another day.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from memarena_masim.phrases.grammar import CHOICE, SLOT, Sequence_
from memarena_masim.phrases.scenes import Scene, Sentence

_WORD = re.compile(r"[a-z]{3,}")
_POINTED_AT = re.compile(r"\b(?:the|that|this|those|these|his|her|their) ([a-z]{3,})")
_STEM_LETTERS = 5
_COMMON_FROM = 0.3
"""Words in more than this share of the scenes refer to something only after a pointing word ("that letter")."""
_NEVER_FROM = 0.5
"""Words in more than this share of the scenes refer to nothing in particular."""


def stems(text: str) -> set[str]:
    """Return the words of a text, cut to their first _STEM_LETTERS letters."""
    return {word[:_STEM_LETTERS] for word in _WORD.findall(text.lower())}


class References:
    """By scene, the words that an answer may use only if they occurred in the talk."""

    def __init__(self, scenes: Iterable[Scene]) -> None:
        scenes = tuple(scenes)
        stems_by_beat = {scene.key: [_stems_in(beat.tell) for beat in scene.beats] for scene in scenes}
        answer_stems = {
            scene.key: [_stems_in((*beat.friend, *beat.assistant)) for beat in scene.beats] for scene in scenes
        }
        self.teller_stems = {key: set[str]().union(*beats) for key, beats in stems_by_beat.items()}
        """By scene, the stems of all words that its teller may say."""
        spread = Counter(word for key, words in self.teller_stems.items() for word in words.union(*answer_stems[key]))
        self._common = {word for word, count in spread.items() if count > _COMMON_FROM * len(scenes)}
        self._never = {word for word, count in spread.items() if count > _NEVER_FROM * len(scenes)}
        self._told: dict[tuple[str, int], set[str]] = {}
        for scene in scenes:
            words_so_far: set[str] = set()
            for number, beat_stems in enumerate(stems_by_beat[scene.key]):
                words_so_far = self._told[scene.key, number] = (words_so_far | beat_stems) - self._never

    def unsaid(self, text: str, scene: str, beat: int, heard: Heard) -> set[str]:
        """Return the stems and values in ``text`` from the scene up to ``beat`` that were not said in the talk."""
        taken_up = (stems(text) - self._common) | {word[:_STEM_LETTERS] for word in _POINTED_AT.findall(text.lower())}
        missing = {value for value in heard.missing if _holds(text, value)}
        return (taken_up & self._told[scene, beat]) - heard.said | missing


class Heard:
    """The stems of a talk so far, and in ``missing`` those of the scene's ``values`` that have not occurred."""

    def __init__(self, text: str, values: Iterable[str]) -> None:
        self.said = stems(text)
        self.missing = tuple(value for value in values if not _holds(text, value))


def _holds(text: str, value: str) -> bool:
    """Whether ``text`` contains ``value`` as whole words."""
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            return True
        start = text.find(value, end)
    return False


def _stems_in(sentences: Iterable[Sentence]) -> set[str]:
    return {word for sentence in sentences for word in _within(sentence.words)}


def _within(words: Sequence_) -> set[str]:
    result: set[str] = set()
    for node in words:
        if node.kind == CHOICE:
            result = result.union(*(_within(branch) for branch in node.branches))
        elif node.kind != SLOT:
            result |= stems(node.text)
    return result
