"""Measures repetition in a corpus: the share of it in word sequences that occur more than once.

Texts that are drawn from phrase banks repeat their wordings, which a memory can learn by heart. The coverages are
reported without a bar.

A window is made of whole sessions drawn at random over all days and participants. Coverage is the share of its words
that stand inside an n-gram which occurs more than once in the window; "masked" replaces every word but the commonest of
the window by one token, so that what repeats is the build of the sentences.
"""

from __future__ import annotations

import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.tokenization import words

WINDOW_WORDS = 60_000
WINDOWS = 5
COMMONEST = 150
LONG_TURN_WORDS = 12


@dataclass(frozen=True, slots=True)
class TextFigures:
    """Figures of one corpus. Coverages are medians over the windows, between 0 and 1."""

    masked_8gram: float
    plain_6gram: float
    sessions: int
    turns: int
    words_per_turn: float
    words_per_session: float
    repeated_long_turns: int
    """Turns above twelve words that stand in the corpus twice or more."""


def text_figures(sessions: Sequence[Sequence[str]]) -> TextFigures:
    """Return the figures of a corpus, which is the texts of turns by session. QualityError if it is empty."""
    tokens = [[words(text) for text in session] for session in sessions]
    turns = [turn for session in tokens for turn in session]
    total = sum(map(len, turns))
    if not total:
        raise QualityError("the corpus holds no word to measure")
    flat = [[word for turn in session for word in turn] for session in tokens]
    masked, plain = [], []
    for draw in range(WINDOWS):
        window = _window(flat, random.Random(draw))  # noqa: S311 (a sample for a measure)
        common = {word for word, _ in Counter(window).most_common(COMMONEST)}
        masked.append(coverage([word if word in common else "_" for word in window], 8))
        plain.append(coverage(window, 6))
    long = Counter(" ".join(turn) for turn in turns if len(turn) > LONG_TURN_WORDS)
    return TextFigures(
        masked_8gram=statistics.median(masked),
        plain_6gram=statistics.median(plain),
        sessions=len(sessions),
        turns=len(turns),
        words_per_turn=total / len(turns),
        words_per_session=total / len(sessions),
        repeated_long_turns=sum(count for count in long.values() if count > 1),
    )


def coverage(tokens: Sequence[str], n: int) -> float:
    """Return the share of tokens inside an n-gram that occurs more than once."""
    grams = [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]
    counts = Counter(grams)
    covered = bytearray(len(tokens))
    for start, gram in enumerate(grams):
        if counts[gram] > 1:
            covered[start : start + n] = b"\x01" * n
    return sum(covered) / max(1, len(tokens))


def _window(sessions: Sequence[Sequence[str]], rng: random.Random) -> list[str]:
    order = list(range(len(sessions)))
    rng.shuffle(order)
    window: list[str] = []
    for index in order:
        window += sessions[index]
        if len(window) >= WINDOW_WORDS:
            break
    return window[:WINDOW_WORDS]


def locomo_texts(path: Path) -> list[list[str]]:
    """Return the unchanged texts of turns, by session, of a LoCoMo file. QualityError if it is not such a file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [
            [str(turn["text"]) for turn in talk["conversation"][key]]
            for talk in data
            for key in talk["conversation"]
            if re.fullmatch(r"session_\d+", key)
        ]
    except OSError as error:
        raise QualityError(f"--locomo {path}: cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise QualityError(f"--locomo {path}: a file of LoCoMo conversations is expected ({error!r})") from error
