"""Text as features of a linear model: clauses of words, and word n-grams. Training and judging share this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memarena_dataset.values.words import clauses, tidy, words

LONGEST = 3
"""Words of the longest n-gram."""
_MARKUP = re.compile(r"\*\*|__|^\s*#+\s*|^\s*>\s?", re.MULTILINE)


def spoken_clauses(text: str) -> list[tuple[str, ...]]:
    """The text's clauses as words in lower case, contractions spelled out; Markdown emphasis is dropped."""
    found = (tuple(words(clause.text)) for clause in clauses(tidy(_MARKUP.sub("", text))))
    return [clause for clause in found if clause]


def word_ngrams(tokens: Sequence[str], *, longest: int = LONGEST, mark: str = "") -> Iterator[str]:
    """Every run of 1 to ``longest`` tokens between ``^`` and ``$``, joined by blanks, with ``mark`` in front."""
    yield from (mark + token for token in tokens)
    framed = ("^", *tokens, "$")
    for width in range(2, longest + 1):
        for start in range(len(framed) - width + 1):
            yield mark + " ".join(framed[start : start + width])
