"""Warnings: a question that repeats the words of its evidence can be answered by matching words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World
from memarena_dataset.model import Family, Instance
from memarena_dataset.values.phrases import tokens_of

MAX_CONTAINMENT = 0.5
MAX_JACCARD = 0.3
"""The paper's bound. It hardly ever binds, since evidence is much longer than a question."""

HARDENED = (
    Family.METADATA,
    Family.QA,
    Family.TEMPORAL,
    Family.CONFLICT,
    Family.ANAPHORA,
    Family.CONFABULATION,
    Family.PERMISSION,
    Family.WITNESS,
)
"""Families whose questions are reworded. Cloze and counterfactual take words of their evidence by design."""

FUNCTION_WORDS_FILE = "function_words.v1.txt"


@cache
def function_words() -> frozenset[str]:
    """Words that do not count as content, from the versioned file next to this module."""
    text = files(__package__).joinpath(FUNCTION_WORDS_FILE).read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def repeats_evidence(world: World) -> Iterator[Finding]:
    """Containment above 0.5, a shared trigram of content words, or Jaccard above 0.3."""
    names = _names(world)
    for instance in world.of(*HARDENED):
        if _is_ordering(instance) or not instance.evidence_session_ids:
            continue
        asked = _content(instance.query, names)
        evidence = [_content(turn.text, names) for turn in world.evidence_turns(instance)]
        for reason in _overlaps(asked, evidence):
            yield world.at(instance, "query-repeats-evidence", "query", reason, "warning")


def _overlaps(asked: list[str], turns: list[list[str]]) -> Iterator[str]:
    question, evidence = set(asked), {word for turn in turns for word in turn}
    common = question & evidence
    if question and len(common) / len(question) > MAX_CONTAINMENT:
        yield f"{len(common)} of {len(question)} content words are in the evidence ({', '.join(sorted(common))})"
    if question and len(common) / len(question | evidence) > MAX_JACCARD:
        yield f"Jaccard overlap with the evidence is {len(common) / len(question | evidence):.2f}"
    shared = _trigrams(asked) & {trigram for turn in turns for trigram in _trigrams(turn)}
    for trigram in sorted(shared):
        yield f"shares the words {' '.join(trigram)!r} with the evidence"


def _is_ordering(instance: Instance) -> bool:
    return instance.family is Family.TEMPORAL and getattr(instance.gold, "attribute", None) == "ordering"


def _content(text: str, names: frozenset[str]) -> list[str]:
    return [word for word in tokens_of(text) if word not in function_words() and word not in names]


def _trigrams(words: list[str]) -> set[tuple[str, str, str]]:
    return set(zip(words, words[1:], words[2:], strict=False))


def _names(world: World) -> frozenset[str]:
    dataset = world.dataset
    shown = [agent.name for agent in dataset.agents.values() if not agent.is_assistant]
    shown += [location.name for location in dataset.locations.values()]
    shown += [group.name for group in dataset.groups.values()]
    return frozenset(word for name in shown for word in tokens_of(name))
