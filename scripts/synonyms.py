"""Makes the extractive reader's table of synonyms from WordNet 3.0.

``python scripts/synonyms.py --wordnet DIR --words FILE…`` writes ``lexicons/synonyms.v1.txt.gz`` of the readers. DIR
contains ``data.*`` and ``index.*`` (Debian's wordnet-base), the FILEs are lists of common words, one a line (Debian's
wamerican-small and wbritish-small). The words related to a word are, of its most common senses, the synonyms, the
direct hypernyms, the derived forms and the content words of the definition; words that occur in too many definitions
("person", "make") are excluded. The table has the pairs of which each word is related to the other, both with enough
related words. The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena.readers import extractive_words
from memarena.readers.extractive_words import SYNONYM_FILE, content_words, stem

PARTS = ("noun", "verb", "adj", "adv")
SENSES = {"noun": 3, "verb": 3, "adj": 2, "adv": 1}
"""Number of senses of a word that are used, the most common first."""
POINTERS = frozenset({"@", "&", "+", "\\"})
"""Hypernym, similar, derived form, pertains to: WordNet's wninput(5)."""
DEFINED_BY = {"noun": 2, "verb": 1, "adj": 1, "adv": 1}
"""Number of senses whose definition is used."""
TOO_COMMON = 0.004
"""A word in this share of all definitions says nothing about what is defined."""
MAX_RELATED = 28
MIN_RELATED = 5
"""A word with fewer related words is excluded, to keep the table small."""
NOTICE = (
    "# From WordNet 3.0, Copyright 2006 by Princeton University. All rights reserved. Licence: synonyms.LICENSE.txt.",
    "# A stem and its synonyms' stems a line, each pair once. Made by scripts/synonyms.py.",
)


@dataclass(frozen=True, slots=True)
class Synset:
    """One sense: its words, its definition, and the senses that it points to."""

    words: tuple[str, ...]
    gloss: str
    pointers: tuple[tuple[str, tuple[str, int]], ...]
    """Symbol of the relation, one of :data:`POINTERS`, and the sense: part of speech and offset in its file."""


def synsets(folder: Path) -> dict[tuple[str, int], Synset]:
    """Return all senses by part of speech and offset in its file.

    A line: ``00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 … | that which is perceived``, which is offset, file, part
    of speech, number of words (hexadecimal), each word with an id, number of pointers, each pointer with symbol,
    offset, part of speech and word numbers, then the definition.
    """
    by_offset = {}
    letters = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    for part in PARTS:
        for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            fields, _, gloss = line.partition(" | ")
            values = fields.split()
            word_count = int(values[3], 16)
            words = tuple(re.sub(r"\(\w+\)$", "", word) for word in values[4 : 4 + 2 * word_count : 2])
            start = 4 + 2 * word_count
            pointers = [values[start + 1 + 4 * i : start + 5 + 4 * i] for i in range(int(values[start]))]
            targets = tuple(
                (symbol, (letters[of_part], int(offset)))
                for symbol, offset, of_part, _ in pointers
                if symbol in POINTERS
            )
            by_offset[part, int(values[0])] = Synset(words, re.split(r';\s*"', gloss)[0], targets)
    return by_offset


def senses(folder: Path, part: str) -> dict[str, list[int]]:
    """Return the offsets of the senses of each word, the most common sense first."""
    offsets = {}
    for line in (folder / f"index.{part}").read_text(encoding="latin-1").splitlines():
        if not line.startswith("  "):
            values = line.split()
            offsets[values[0]] = [int(offset) for offset in values[-int(values[2]) :]]
    return offsets


def related(folder: Path, common: frozenset[str]) -> dict[str, list[str]]:
    """Return for each stem its related stems, those of the most reliable source first."""
    all_synsets = synsets(folder)
    frequency = Counter(word for synset in all_synsets.values() for word in content_words(synset.gloss))
    vague = {word for word, count in frequency.items() if count > TOO_COMMON * len(all_synsets)}
    common_stems = {stem(word) for word in common}
    table: dict[str, dict[str, None]] = {}
    for part in PARTS:
        for word, offsets in senses(folder, part).items():
            if word not in common or not (word_stem := stem(word)):
                continue
            row = table.setdefault(word_stem, {})
            for rank, offset in enumerate(offsets[: SENSES[part]]):
                synset = all_synsets[part, offset]
                by_reliability = [" ".join(synset.words)]
                by_reliability += [" ".join(all_synsets[target].words) for _, target in synset.pointers]
                if rank < DEFINED_BY[part]:
                    by_reliability.append(synset.gloss)
                for text in by_reliability:
                    for other in sorted(content_words(text.replace("_", " "))):
                        if other != word_stem and other in common_stems and other not in vague:
                            row.setdefault(other)
    return {word: list(row)[:MAX_RELATED] for word, row in sorted(table.items()) if row}


def both_ways(table: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the pairs that are related both ways, each once, of words with at least MIN_RELATED related words."""
    degree = Counter(word for row in table.values() for word in row)
    frequent = {word for word, count in degree.items() if count >= MIN_RELATED}
    pairs = sorted(
        (a, b) for a, row in table.items() for b in row if a < b and {a, b} <= frequent and a in table.get(b, ())
    )
    others: dict[str, list[str]] = {}
    for word, other in pairs:
        others.setdefault(word, []).append(other)
    return others


def main() -> None:
    """Write the table and print its size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--words", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    common = frozenset(word for path in options.words for word in path.read_text(encoding="utf-8").split())
    table = both_ways(related(options.wordnet, common))
    lines = [*NOTICE, *(f"{word} {' '.join(others)}" for word, others in table.items())]
    out = Path(extractive_words.__file__).parent / SYNONYM_FILE
    out.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))
    sys.stdout.write(f"{out}: {len(table)} words, {out.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
