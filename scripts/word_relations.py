"""Makes the judge's table of related words from WordNet 3.0.

``python -m scripts.word_relations --wordnet DIR --words FILE…`` writes ``tables/word_relations.v1.txt.gz`` of judging.
DIR contains ``data.*``, ``index.*`` and ``*.exc`` (Debian's wordnet-base), the FILEs are lists of common words, one a
line (Debian's wamerican-small and wbritish-small). The table has three kinds of lines:

* ``= happy glad felic``: a stem, then the stems that share a sense with it or are derived from the same word;
* ``~ dog canin animal``: a stem, then the stems of its direct hypernyms and of similar words;
* ``> went go``: an irregular form and its base form.

The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from memarena_dataset.values.word_lists import word_list
from memarena_dataset.values.words import stem

from scripts.synonyms import PARTS, senses, synsets

TABLE = "word_relations.v1.txt.gz"
SENSES = {"noun": 2, "verb": 3, "adj": 3, "adv": 2}
"""Number of senses of a word that are used, the most common first."""
MOST = {"=": 14, "~": 8}
"""Maximum of related words of one word, by kind of line; the first in order of part of speech and sense are used."""
LEAST_PREFIX = 3
"""Number of first letters that a derived form must share with its word."""
NOTICE = (
    "# From WordNet 3.0, Copyright 2006 by Princeton University. All rights reserved. Licence: synonyms.LICENSE.txt.",
    "# Made by scripts/word_relations.py.",
)
_DERIVED = "+"


def relations(folder: Path, common: frozenset[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the lines ``=`` and ``~`` of the table: by stem the stems of the same meaning, and the near ones."""
    all_synsets = synsets(folder)
    grammar = word_list("function_words.v1.txt")
    common_stems = {stem(word) for word in common}
    same: dict[str, dict[str, None]] = {}
    near: dict[str, dict[str, None]] = {}
    for part in PARTS:
        for word, offsets in senses(folder, part).items():
            if word not in common or word in grammar:
                continue
            base = stem(word)
            for offset in offsets[: SENSES[part]]:
                synset = all_synsets[part, offset]
                _add(same, base, synset.words, common_stems)
                for mark, target in synset.pointers:
                    words = all_synsets[target].words
                    if mark == _DERIVED:
                        _add(same, base, (w for w in words if w[:LEAST_PREFIX] == word[:LEAST_PREFIX]), common_stems)
                    else:
                        _add(near, base, words, common_stems)
    near = {word: {other: None for other in row if other not in same.get(word, ())} for word, row in near.items()}
    return _rows(same, "="), _rows(near, "~")


def irregular(folder: Path, common: frozenset[str]) -> dict[str, str]:
    """Return irregular forms, whose stem is not that of their base, with their base; both are common words."""
    result: dict[str, str] = {}
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"{part}.exc").read_text(encoding="latin-1").splitlines():
            form, base, *_ = line.split()
            if form in common and base in common and stem(form) != stem(base):
                result.setdefault(form, base)
    return dict(sorted(result.items()))


def _add(table: dict[str, dict[str, None]], base: str, words: Iterable[str], known: set[str]) -> None:
    row = table.setdefault(base, {})
    for word in words:
        other = stem(word.lower())
        if other != base and other in known:
            row.setdefault(other)


def _rows(table: dict[str, dict[str, None]], kind: str) -> dict[str, list[str]]:
    return {word: list(row)[: MOST[kind]] for word, row in sorted(table.items()) if row}


def main() -> None:
    """Write the table and print its size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--words", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    common = frozenset(
        word.lower() for path in options.words for word in path.read_text(encoding="utf-8").split() if word.isalpha()
    )
    same, near = relations(options.wordnet, common)
    lines = [
        *NOTICE,
        *(f"= {word} {' '.join(others)}" for word, others in same.items()),
        *(f"~ {word} {' '.join(others)}" for word, others in near.items()),
        *(f"> {form} {base}" for form, base in irregular(options.wordnet, common).items()),
    ]
    out = Path(str(files("memarena.judging.tables"))) / TABLE
    out.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), 9, mtime=0))
    sys.stdout.write(f"{out}: {len(same)} and {len(near)} words, {out.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
