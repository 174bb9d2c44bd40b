"""Attacks questions by a shortcut: finds answers by the form of question and sentence, with content words masked.

It learns from the questions of some worlds which context answers have (the common words next to them, their shape,
their position), given how the question begins, and is tested on the gold evidence of other worlds. If form alone leads
to the answers, answering needs no understanding. It is compared with the extractive reader on the same evidence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memarena_dataset.model import Family, Instance

from memarena_dataset_quality.answers import gold_values, is_right, states_all
from memarena_dataset_quality.extractive_reader import ask
from memarena_dataset_quality.server_process import ServerProcess
from memarena_dataset_quality.tokenization import sentences
from memarena_dataset_quality.world import World

FAMILIES = (
    Family.QA,
    Family.COUNTERFACTUAL,
    Family.CONFLICT,
    Family.ANAPHORA,
    Family.CONFABULATION,
    Family.WITNESS,
)
"""Families whose answers are stretches of the evidence."""
SPAN_WORDS = 4
"""Maximum words of a stretch that can be an answer."""
COMMONEST = 150
"""Number of the most frequent words of the training worlds, which are not masked."""
LEAST_SEEN = 3
"""Features seen less often do not count in a score."""
_TOKEN = re.compile(r"\d+(?:[:.,]\d+)*|[^\W\d_][\w'’-]*|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a sentence, and its features without content words."""

    text: str
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttackResult:
    """Shares that attack and extractive reader answer rightly; by family: (attack's right, reader's right, asked)."""

    questions: int
    attack: float
    extractive: float
    by_family: dict[str, tuple[int, int, int]]


def questions_of(world: World) -> list[Instance]:
    """Return the questions whose answer is a stretch of cited turns."""
    return [
        instance
        for instance in world.instances
        if instance.family in FAMILIES and instance.evidence_turn_ids and gold_values(instance)
    ]


class ShortcutAttack:
    """A model of the log odds that a stretch is the answer, learned from worlds other than those tested."""

    def __init__(self, worlds: Iterable[World]) -> None:
        worlds = list(worlds)
        counts = Counter(
            token.lower()
            for world in worlds
            for session in world.sessions
            for turn in session.turns
            for token in _TOKEN.findall(turn.text)
            if token[0].isalpha()
        )
        self._common = frozenset(word for word, _ in counts.most_common(COMMONEST))
        self._counts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self._totals: Counter[bool] = Counter()
        for world in worlds:
            for instance in questions_of(world):
                self._learn(world, instance)

    def _learn(self, world: World, instance: Instance) -> None:
        today = world.day_of(instance.query_timestamp or 0.0)
        values = gold_values(instance)
        opening = self._opening(instance.query)
        for turn, _ in world.evidence(instance):
            spans = list(self._spans(turn.text))
            right = [any(states_all((value,), span.text, today) for value in values) for span in spans]
            shortest = min((span.text.count(" ") for span, good in zip(spans, right, strict=True) if good), default=0)
            for span, good in zip(spans, right, strict=True):
                if good and span.text.count(" ") > shortest:
                    continue  # the answer with words around it is neither a positive nor a negative example
                self._totals[good] += 1
                self._counts[good].update(_under(opening, span.features))

    def answer(self, world: World, instance: Instance) -> str:
        """Return the likeliest stretch of the evidence; for a conflict, those of the two best turns."""
        opening = self._opening(instance.query)
        best: list[tuple[float, str]] = []
        for turn, _ in world.evidence(instance):
            scored = [(self._score(opening, span), span.text) for span in self._spans(turn.text)]
            if scored:
                best.append(max(scored))
        versions = 2 if instance.family is Family.CONFLICT else 1
        return " or ".join(list(dict.fromkeys(text for _, text in sorted(best, reverse=True)))[:versions])

    def _score(self, opening: str, span: Span) -> float:
        total = 0.0
        for name in _under(opening, span.features):
            good, bad = self._counts[True][name], self._counts[False][name]
            if good + bad >= LEAST_SEEN:
                total += math.log((good + 0.5) / (self._totals[True] + 1))
                total -= math.log((bad + 0.5) / (self._totals[False] + 1))
        return total

    def _opening(self, query: str) -> str:
        return " ".join(self._mask(token) for token in _TOKEN.findall(query)[:4])

    def _mask(self, token: str) -> str:
        """Return a common word or a mark as it is; else ``#:`` for times, ``#`` for numbers, ``C`` or ``_`` for words.

        ``C`` has a capital, ``_`` has none.
        """
        if token.lower() in self._common or not token[0].isalnum():
            return token.lower()
        if token[0].isdigit():
            return "#:" if ":" in token else "#"
        return "C" if token[0].isupper() else "_"

    def _spans(self, text: str) -> Iterator[Span]:
        """Yield every stretch of at most SPAN_WORDS words, with the masked words in and around it as features."""
        parts = sentences(text)
        for index, sentence in enumerate(parts):
            matches = list(_TOKEN.finditer(sentence))
            # two marks at either end: word n of the sentence is masked[n + 2], and every word has two neighbours
            masked = ["^", "^", *(self._mask(match.group()) for match in matches), "$", "$"]
            where = f"from end {min(3, len(parts) - 1 - index)}"
            for first in range(len(matches)):
                for last in range(first, min(len(matches), first + SPAN_WORDS)):
                    yield Span(
                        sentence[matches[first].start() : matches[last].end()],
                        (
                            f"left {masked[first + 1]}",
                            f"left two {masked[first]} {masked[first + 1]}",
                            f"right {masked[last + 3]}",
                            f"right two {masked[last + 3]} {masked[last + 4]}",
                            f"shape {' '.join(masked[first + 2 : last + 3])}",
                            where,
                        ),
                    )


def _under(opening: str, features: Sequence[str]) -> list[str]:
    return [*features, *(f"{opening} | {name}" for name in features)]


def compare(attack: ShortcutAttack, worlds: Iterable[World], reader: ServerProcess) -> AttackResult | None:
    """Compare attack and extractive reader on the same questions and evidence. None if there is no question."""
    counts: dict[str, list[int]] = {}
    for world in worlds:
        for instance in questions_of(world):
            today = world.day_of(instance.query_timestamp or 0.0)
            lines = [f"{world.name(turn.speaker_id)}: {turn.text}" for turn, _ in world.evidence(instance)]
            count = counts.setdefault(instance.family.value, [0, 0, 0])
            count[0] += is_right(instance, attack.answer(world, instance), today)
            count[1] += is_right(instance, ask(reader, lines, instance.query), today)
            count[2] += 1
    questions = sum(count[2] for count in counts.values())
    if not questions:
        return None
    return AttackResult(
        questions,
        sum(count[0] for count in counts.values()) / questions,
        sum(count[1] for count in counts.values()) / questions,
        {family: (count[0], count[1], count[2]) for family, count in sorted(counts.items())},
    )
