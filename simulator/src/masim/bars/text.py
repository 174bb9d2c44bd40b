"""Text bars of design 6: how template-bound a corpus reads, from its files alone.

Words are ``[A-Za-z0-9']+`` in lower case. A window is made of whole sessions drawn at random over all days and
participants; coverage is the share of its tokens inside an n-gram that occurs more than once in it.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masim.errors import MasimError

_WORDS = re.compile(r"[A-Za-z0-9']+")
WINDOW_WORDS = 60_000
WINDOWS = 5
COMMONEST = 150


def words(text: str) -> list[str]:
    """Words of a text."""
    return [word.lower() for word in _WORDS.findall(text)]


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a file, plain or compressed. MasimError if there is neither."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            return
    raise MasimError(f"{folder}: {name} is missing")


@dataclass(frozen=True, slots=True)
class TextFigures:
    """Figures of one corpus; shares between 0 and 1."""

    masked_8gram: float
    plain_6gram: float
    sessions: int
    turns: int
    words_per_turn: float
    words_per_session: float
    repeated_long_turns: int


def text_figures(sessions: list[list[str]]) -> TextFigures:
    """Figures of a corpus given as texts of turns by session. MasimError if it is empty."""
    if not any(sessions):
        raise MasimError("no turn to measure")
    tokens = [[words(text) for text in session] for session in sessions]
    flat = [[word for turn in session for word in turn] for session in tokens]
    masked, plain = [], []
    for draw in range(WINDOWS):
        window = _window(flat, random.Random(draw))  # noqa: S311 (a sample for a measure)
        common = {word for word, _ in Counter(window).most_common(COMMONEST)}
        masked.append(coverage([word if word in common else "_" for word in window], 8))
        plain.append(coverage(window, 6))
    turns = [turn for session in tokens for turn in session]
    long = Counter(" ".join(turn) for turn in turns if len(turn) > 12)
    total = sum(map(len, turns))
    return TextFigures(
        masked_8gram=statistics.median(masked),
        plain_6gram=statistics.median(plain),
        sessions=len(sessions),
        turns=len(turns),
        words_per_turn=total / len(turns),
        words_per_session=total / len(sessions),
        repeated_long_turns=sum(count for count in long.values() if count > 1),
    )


def coverage(tokens: list[str], n: int) -> float:
    """Share of tokens inside an n-gram that occurs more than once."""
    grams = [tuple(tokens[place : place + n]) for place in range(len(tokens) - n + 1)]
    counts = Counter(grams)
    covered = bytearray(len(tokens))
    for place, gram in enumerate(grams):
        if counts[gram] > 1:
            covered[place : place + n] = b"\x01" * n
    return sum(covered) / max(1, len(tokens))


def _window(sessions: list[list[str]], rng: random.Random) -> list[str]:
    order = list(range(len(sessions)))
    rng.shuffle(order)
    taken: list[str] = []
    for place in order:
        taken += sessions[place]
        if len(taken) >= WINDOW_WORDS:
            break
    return taken[:WINDOW_WORDS]


def world_texts(folder: Path) -> list[list[str]]:
    """Texts of the turns of each session."""
    return [[turn["text"] for turn in row["turns"]] for row in rows(folder, "corpus_sessions.jsonl")]


def locomo_texts(path: Path) -> list[list[str]]:
    """The same for a file of LoCoMo conversations."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return [
        [turn["text"] for turn in talk["conversation"][key]]
        for talk in data
        for key in talk["conversation"]
        if re.fullmatch(r"session_\d+", key)
    ]
