"""Checks that a question does not repeat too many words of its evidence sessions.

Otherwise a search for the question's words is enough to retrieve its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World, stem_of
from memarena_dataset.values.phrases import tokens_of

MAX_JACCARD = 0.3
"""The paper's bound on the Jaccard overlap of a question and its evidence sessions."""

FUNCTION_WORDS_FILE = "function_words.v1.txt"


@cache
def function_words() -> frozenset[str]:
    """Return the words that do not count as content, from the versioned file next to this module."""
    text = files(__package__).joinpath(FUNCTION_WORDS_FILE).read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def jaccard(question: str, evidence: Iterable[str]) -> float:
    """Return the Jaccard overlap (0 to 1) of the content words of a question and of the texts of its evidence."""
    question_words, evidence_words = content_words(question), frozenset[str]().union(*map(content_words, evidence))
    either = question_words | evidence_words
    return len(question_words & evidence_words) / len(either) if either else 0.0


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that are not in this module's list of function words.

    ``values.words.content_words`` is another measure: stems, by another list.
    """
    return frozenset(tokens_of(text)) - function_words()


def repeats_evidence(world: World) -> Iterator[Finding]:
    """Yield a warning if a question, without options, and its evidence sessions overlap by MAX_JACCARD or more."""
    for instance in world.by_ego:
        turns = [turn.text for session in world.evidence(instance) for turn in session.turns]
        shared = jaccard(stem_of(instance), turns) if turns else 0.0
        if shared >= MAX_JACCARD:
            reason = f"Jaccard overlap with the evidence sessions is {shared:.2f}; below {MAX_JACCARD:g} is expected"
            yield world.at(instance, "query-repeats-evidence", "query", reason, "warning")
