"""What an answer takes for granted: words that the teller may have said or left out, by choice or for shortness."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from memarena_masim.phrases.grammar import CHOICE, SLOT, Sequence_
from memarena_masim.phrases.scenes import Scene, Sentence

Needs = Mapping[tuple[str, int, str], tuple[frozenset[str], ...]]
"""By scene, number of the beat and kind of answer: for each of its sentences the words that must have been said."""

_WORD = re.compile(r"[a-z]{4,}")
_STEM_LETTERS = 5
_COMMON_FROM = 0.2
"""Words that stand in this share of the scenes refer to nothing in particular."""
_EVERYWHERE = frozenset(("$kin", "$you"))


def stems(text: str) -> set[str]:
    """The words of a text without their endings."""
    return {word[:_STEM_LETTERS] for word in _WORD.findall(text.lower())}


def needs_of(scenes: Iterable[Scene]) -> Needs:
    """What the answers of all scenes take for granted."""
    scenes = tuple(scenes)
    spread = Counter(word for scene in scenes for word in set(_all_words(scene)))
    common = {word for word, count in spread.items() if count > _COMMON_FROM * len(scenes)} | _EVERYWHERE
    found: dict[tuple[str, int, str], tuple[frozenset[str], ...]] = {}
    for scene in scenes:
        certain, open_ = stems(scene.thing), set[str]()
        for number, beat in enumerate(scene.beats):
            for sentence in beat.tell:
                sure, unsure = _parts(sentence)
                if sentence.optional:
                    open_ |= sure | unsure
                else:
                    certain |= sure
                    open_ |= unsure
            doubtful = open_ - certain - common
            for kind, answer in (("friend", beat.friend), ("assistant", beat.assistant)):
                found[scene.key, number, kind] = tuple(frozenset(_parts(one)[0] & doubtful) for one in answer)
    return found


def _all_words(scene: Scene) -> Iterator[str]:
    for beat in scene.beats:
        for sentence in (*beat.tell, *beat.friend, *beat.assistant):
            for part in _parts(sentence):
                yield from part


def _parts(sentence: Sentence) -> tuple[set[str], set[str]]:
    """Words and slots that the sentence always has, and those of its choices."""
    return _within(sentence.words, chosen=False), _within(sentence.words, chosen=True)


def _within(words: Sequence_, chosen: bool) -> set[str]:
    found: set[str] = set()
    for node in words:
        if node.kind == CHOICE:
            for branch in node.branches if chosen else ():
                found |= _within(branch, chosen=False) | _within(branch, chosen=True)
        elif not chosen:
            found |= {f"${node.text}"} if node.kind == SLOT else stems(node.text)
    return found
