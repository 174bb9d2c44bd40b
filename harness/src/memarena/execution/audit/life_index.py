"""Indexes one life, to find which of its turns and events a text contains, exactly or nearly.

A life is all that one ego's memory ingests. Backends rephrase, cut and join turns, so that a plain search for a turn's
text would miss most of them.

Texts are compared by runs of three words, without case, punctuation and layout. The weight of a run is one divided by
the number of different texts of the life that have it, so that common phrases count little. A text contains a turn if
it has runs with most of the turn's weight, or a passage of it that no other turn has.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_WORD = re.compile(r"\w+")
_RUN = 3
"""Number of words in a run."""
_BITS = 21
"""Bits of a word's number within the code of a run: more than ``life_audit.MOST_WORDS`` different words need."""
LEAST_SHARE = 0.7
"""Share of a turn's weight from which a text contains the turn: a common sentence with another value has less."""
PASSAGE_RUNS = 8
"""Number of runs of a turn that no other text of the life has, from which a text contains it: ten words in a row."""
_LEAST_TELLING_WORDS = 4
_LEAST_TELLING_WEIGHT = 1.0
"""Words and weight from which an entry is telling: shorter or commoner texts, such as “I see.”, prove no source."""
LEAST_RARE_WORDS = 6
LEAST_RARE_SHARE = 0.5
"""Words in any order contain a turn if they have this many of its rare words, with this share of their weight."""
_RARE = 20
"""Maximum number of the life's texts that have a rare word."""
_COMMON = 200
"""A run in more texts than this is ignored, which bounds the cost of a look-up."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, case-folded and in NFKC form."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


@dataclass(frozen=True, slots=True)
class LifeText:
    """A turn, or an event (without a session), on the day on which it is ingested."""

    turn_id: str
    session_id: str
    day: int
    text: str


@dataclass(slots=True)
class Entry:
    """A text of the life, with all turns and events (``sources``) that have exactly these words."""

    words: tuple[int, ...]
    runs: frozenset[int]
    sources: list[LifeText]
    weight: float = 0.0
    """Sum over its runs of 1 / (number of entries with the run)."""
    telling: bool = False
    """Whether it is long and rare enough to be recognised although no item claims it as a source."""


class LifeIndex:
    """The index of a whole life; ``day`` of a look-up is the last day that counts."""

    def __init__(self, texts: Iterable[LifeText]) -> None:
        self._numbers: dict[str, int] = {}
        self.entries: list[Entry] = []
        by_words: dict[tuple[int, ...], Entry] = {}
        postings: defaultdict[int, list[int]] = defaultdict(list)
        for text in texts:
            words = tuple(self._numbers.setdefault(w, len(self._numbers) + 1) for w in words_of(text.text))
            if not words:
                continue
            if (entry_of_words := by_words.get(words)) is not None:
                entry_of_words.sources.append(text)
                continue
            entry = by_words[words] = Entry(words, frozenset(_runs(words)), [text])
            for run in entry.runs:
                postings[run].append(len(self.entries))
            self.entries.append(entry)
        self._postings: dict[int, list[int]] = dict(postings)
        self._having_word: dict[int, list[int]] = _by_rare_word(self.entries)
        self.size = sum(len(entry.words) for entry in self.entries)
        """Words of all entries."""
        for entry in self.entries:
            entry.weight = self.weight(entry.runs)
            entry.telling = len(entry.words) >= _LEAST_TELLING_WORDS and entry.weight >= _LEAST_TELLING_WEIGHT

    def weight(self, runs: Iterable[int]) -> float:
        """Return the sum of the weights of runs of this life."""
        return sum(1 / len(self._postings[run]) for run in runs)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """Return the number of each word; 0 for a word that the life does not have."""
        return [self._numbers.get(word, 0) for word in words]

    def runs(self, words: Sequence[int]) -> set[int]:
        """Return the codes of the text's runs of one, two and three words that occur in the life."""
        # One and two words too, as a text shorter than _RUN is indexed as a whole.
        result = set(_runs(words))
        result.update(words)
        result.update(a | b << _BITS for a, b in pairwise(words))
        return result & self._postings.keys()

    def entries_in(self, runs: set[int]) -> list[int]:
        """Return the positions of the entries that a text with these runs holds."""
        weights: defaultdict[int, float] = defaultdict(float)
        unique_runs: defaultdict[int, int] = defaultdict(int)
        for run in runs:
            having = self._postings[run]
            if len(having) == 1:
                unique_runs[having[0]] += 1
            if len(having) <= _COMMON:
                for position in having:
                    weights[position] += 1 / len(having)
        return sorted(
            position
            for position, weight in weights.items()
            if unique_runs[position] >= PASSAGE_RUNS or weight >= LEAST_SHARE * self.entries[position].weight
        )

    def has_passage(self, words: Sequence[int], day: int) -> bool:
        """Whether a text of the life through ``day`` has these words, three or more, in a row."""
        if not all(words):
            return False
        passage, count = tuple(words), len(words)
        having = min((self._postings.get(run, []) for run in _runs(passage)), key=len)
        entries = (
            entry
            for entry in map(self.entries.__getitem__, having)
            if any(source.day <= day for source in entry.sources)
        )
        return any(
            entry.words[start : start + count] == passage
            for entry in entries
            for start in range(len(entry.words) - count + 1)
        )

    def scattered(self, words: set[int]) -> list[int]:
        """Return the positions of the entries most of whose rare words are in ``words``, in any order."""
        hits: defaultdict[int, list[int]] = defaultdict(list)
        for word in words:
            for position in self._having_word.get(word, ()):
                hits[position].append(word)
        return sorted(
            position
            for position, having in hits.items()
            if len(having) >= LEAST_RARE_WORDS
            and self._rarity(having) >= LEAST_RARE_SHARE * self._rarity(set(self.entries[position].words))
        )

    def _rarity(self, words: Iterable[int]) -> float:
        return sum(1 / len(having) for word in words if (having := self._having_word.get(word)))

    def covered(self, words: Sequence[int], positions: Iterable[int]) -> int:
        """Return how many of a text's words are part of a run of the entries at ``positions``."""
        entries = [self.entries[position] for position in positions]
        runs = frozenset[int]().union(*(entry.runs for entry in entries))
        inside = bytearray(len(words))
        for length in {min(_RUN, len(entry.words)) for entry in entries}:
            for start in range(len(words) - length + 1):
                if _code(words[start : start + length]) in runs:
                    inside[start : start + length] = b"\1" * length
        return sum(inside)


def _by_rare_word(entries: Sequence[Entry]) -> dict[int, list[int]]:
    """Return the positions of the entries that have a word, by word; words of more than _RARE entries are left out."""
    having: defaultdict[int, list[int]] = defaultdict(list)
    for position, entry in enumerate(entries):
        for word in dict.fromkeys(entry.words):
            having[word].append(position)
    return {word: positions for word, positions in having.items() if len(positions) <= _RARE}


def _code(words: Sequence[int]) -> int:
    code = 0
    for exponent, word in enumerate(words):
        code |= word << exponent * _BITS
    return code


def _runs(words: Sequence[int]) -> list[int]:
    """Return the codes of a text's runs of three words; of a shorter text, the code of the whole."""
    if len(words) < _RUN:
        return [_code(words)] if words else []
    return [
        a | b << _BITS | c << 2 * _BITS for a, b, c in zip(words, words[1:], words[2:], strict=False) if a and b and c
    ]
