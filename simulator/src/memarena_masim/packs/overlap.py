"""Measures how much of a pack is in another one: frames of statements, names of things and people, scenes.

A pack is only as new to vendors as it differs from packs that they know. ``masim pack check --against`` prints the
shares, and a draft refuses proposals that its source has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from memarena_masim.facts.catalogue import base
from memarena_masim.packs.check import Words
from memarena_masim.phrases.grammar import Sequence_, wordings
from memarena_masim.phrases.scenes import Scene
from memarena_masim.world.build import pools

SHARED_SCENE = 0.5
"""A scene counts as shared if this share of its teller's sentences is in the other pack."""


def overlap(words: Words, other: Words) -> Mapping[str, tuple[int, int]]:
    """Return for each part how many entries a pack has, and how many of them are in the other pack."""
    counts = {}
    for part, ones_of in _PARTS.items():
        mine, theirs = ones_of(words), ones_of(other)
        counts[part] = (len(mine), len(mine & theirs))
    told, scenes = sentences_told(other), words.scenes.scenes.values()
    counts["scenes"] = (len(scenes), sum(is_shared(scene, told) for scene in scenes))
    return counts


def frames(words: Words) -> frozenset[str]:
    """Return every wording of a sentence that states a fact or a wish, with slots as ``$name``."""
    rules = words.facts.bank.rules.items()
    stating = [rule for name, rule in rules if name.startswith(("say.", "level."))]
    return _normal(text for rule in stating for line in rule.alternatives for text in wordings(line))


def things(words: Words) -> frozenset[str]:
    """Return all names and descriptions of things, happenings, finds and their sources."""
    named = [(item, one) for (_, item), one in words.questions.items.items()]
    named += [*words.questions.happenings.items(), *words.questions.sources.items(), *words.questions.fates.items()]
    texts = [*words.facts.finds, *(text for own, one in named for text in (own, *one.names, one.description))]
    return _normal(base(text) for text in texts if text)


def people(words: Words) -> frozenset[str]:
    """Return first and last names, of people of the world and of invented ones."""
    pool = pools(words.facts.pack)
    keys = ("first_names", "last_names", "other_men", "other_women")
    return _normal(name for key in keys for name in pool[key])


_PARTS: Mapping[str, Callable[[Words], frozenset[str]]] = {
    "frames": frames,
    "things": things,
    "people's names": people,
}


def _normal(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(text.casefold().split()) for text in texts)


def _told(scene: Scene) -> list[frozenset[str]]:
    """Return the wordings of each sentence of the teller."""
    return [_wordings(sentence.words) for beat in scene.beats for sentence in beat.tell]


def _wordings(sentence: Sequence_) -> frozenset[str]:
    return _normal(wordings(sentence))


def sentences_told(words: Words) -> frozenset[str]:
    """Return every wording of the tellers' sentences of all scenes."""
    return frozenset(text for scene in words.scenes.scenes.values() for texts in _told(scene) for text in texts)


def is_shared(scene: Scene, told: frozenset[str]) -> bool:
    """Whether at least SHARED_SCENE of the teller's sentences of a scene have a wording in ``told``."""
    sentences = _told(scene)
    return sum(not texts.isdisjoint(told) for texts in sentences) >= SHARED_SCENE * len(sentences)
