"""Make the extractive reader's table of synonyms from WordNet 3.0.

``python scripts/synonyms.py --wordnet DIR --words FILE…`` writes ``lexicons/synonyms.v1.txt.gz`` of the readers.
DIR holds ``data.*`` and ``index.*`` (Debian's wordnet-base), the FILEs are lists of common words, one a line (Debian's
wamerican-small and wbritish-small). A word goes with its synonyms, with what is directly above it, with its derived
forms, and with the words that its definition is made of, by its first senses; words that define everything ("person",
"make") are left out. Of these pairs the table holds those that go both ways, of words that enough others go with. The
same input gives the same bytes.
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
"""Senses of a word that are taken, the commonest first."""
POINTERS = frozenset({"@", "&", "+", "\\"})
"""Hypernym, similar, derived form, pertains to: WordNet's wninput(5)."""
DEFINED_BY = {"noun": 2, "verb": 1, "adj": 1, "adv": 1}
"""Senses whose definition is taken."""
TOO_COMMON = 0.004
"""A word in so many of the definitions says nothing of what is defined."""
MOST = 28
LEAST_RELATED = 5
"""So many words go with each word of the table: rarer ones are left out, to keep it small."""
NOTICE = (
    "# From WordNet 3.0, Copyright 2006 by Princeton University. All rights reserved. Licence: synonyms.LICENSE.txt.",
    "# A stem and its synonyms' stems a line, each pair once. Made by scripts/synonyms.py.",
)


@dataclass(frozen=True, slots=True)
class Synset:
    """One sense: its words, its definition, the places of the senses it points to."""

    words: tuple[str, ...]
    gloss: str
    pointers: tuple[tuple[str, tuple[str, int]], ...]
    """Mark of the relation, and the sense that it leads to."""

    @property
    def near(self) -> tuple[tuple[str, int], ...]:
        """The senses that :data:`POINTERS` lead to."""
        return tuple(target for mark, target in self.pointers if mark in POINTERS)


def synsets(folder: Path) -> dict[tuple[str, int], Synset]:
    """All senses by part of speech and place in its file."""
    synsets = {}
    letters = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    for part in PARTS:
        for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue
            fields, _, gloss = line.partition(" | ")
            each = fields.split()
            count = int(each[3], 16)
            words = tuple(re.sub(r"\(\w+\)$", "", word) for word in each[4 : 4 + 2 * count : 2])
            at = 4 + 2 * count
            pointers = [each[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(each[at]))]
            targets = tuple((p[0], (letters[p[2]], int(p[1]))) for p in pointers if p[0] in POINTERS)
            synsets[part, int(each[0])] = Synset(words, re.split(r';\s*"', gloss)[0], targets)
    return synsets


def senses(folder: Path, part: str) -> dict[str, list[int]]:
    """Places of the senses of every single word, the commonest first."""
    senses = {}
    for line in (folder / f"index.{part}").read_text(encoding="latin-1").splitlines():
        if not line.startswith("  "):
            each = line.split()
            senses[each[0]] = [int(offset) for offset in each[-int(each[2]) :]]
    return senses


def related(folder: Path, common: frozenset[str]) -> dict[str, list[str]]:
    """Stems by stem, the surest first."""
    all_synsets = synsets(folder)
    frequency = Counter(word for synset in all_synsets.values() for word in content_words(synset.gloss))
    vague = {word for word, count in frequency.items() if count > TOO_COMMON * len(all_synsets)}
    known = {stem(word) for word in common}
    table: dict[str, dict[str, None]] = {}
    for part in PARTS:
        for word, places in senses(folder, part).items():
            if word not in common or not (of := stem(word)):
                continue
            row = table.setdefault(of, {})
            for rank, offset in enumerate(places[: SENSES[part]]):
                synset = all_synsets[part, offset]
                by_sureness = [" ".join(synset.words)]
                by_sureness += [" ".join(all_synsets[near].words) for near in synset.near]
                if rank < DEFINED_BY[part]:
                    by_sureness.append(synset.gloss)
                for text in by_sureness:
                    for other in sorted(content_words(text.replace("_", " "))):
                        if other != of and other in known and other not in vague:
                            row.setdefault(other)
    return {word: list(row)[:MOST] for word, row in sorted(table.items()) if row}


def both_ways(table: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Pairs that go both ways, each once, of words that at least LEAST_RELATED others go with."""
    degree = Counter(word for row in table.values() for word in row)
    frequent = {word for word, count in degree.items() if count >= LEAST_RELATED}
    pairs = sorted(
        (a, b) for a, row in table.items() for b in row if a < b and {a, b} <= frequent and a in table.get(b, ())
    )
    others: dict[str, list[str]] = {}
    for word, other in pairs:
        others.setdefault(word, []).append(other)
    return others


def main() -> None:
    """Entry of the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--words", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    common = frozenset(word for each in options.words for word in each.read_text(encoding="utf-8").split())
    table = both_ways(related(options.wordnet, common))
    lines = [*NOTICE, *(f"{word} {' '.join(others)}" for word, others in table.items())]
    out = Path(extractive_words.__file__).parent / SYNONYM_FILE
    out.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))
    sys.stdout.write(f"{out}: {len(table)} words, {out.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
