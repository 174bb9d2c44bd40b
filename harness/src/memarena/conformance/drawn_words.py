"""Draws words from the seed of a run: made-up Latin words, and words of every script, with and without marks."""

from __future__ import annotations

import random
import unicodedata
from functools import cache

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"
_MARKED = 0.35
"""Share of letters with a combining mark, in scripts that have marks."""

_BLOCKS: dict[str, tuple[int, int]] = {
    "Latin with combining marks": (0x61, 0x7A),
    "accented Latin": (0xDF, 0x17E),
    "Greek": (0x3B1, 0x3C9),
    "Cyrillic": (0x430, 0x45F),
    "Armenian": (0x561, 0x586),
    "Hebrew": (0x5B0, 0x5EA),
    "Arabic": (0x621, 0x652),
    "Syriac": (0x710, 0x74A),
    "Devanagari": (0x905, 0x94D),
    "Bengali": (0x985, 0x9CD),
    "Gurmukhi": (0xA05, 0xA4D),
    "Gujarati": (0xA85, 0xACD),
    "Tamil": (0xB85, 0xBCD),
    "Telugu": (0xC05, 0xC4D),
    "Kannada": (0xC85, 0xCCD),
    "Malayalam": (0xD05, 0xD4D),
    "Sinhala": (0xD85, 0xDCA),
    "Thai": (0xE01, 0xE4E),
    "Lao": (0xE81, 0xECD),
    "Tibetan": (0xF40, 0xF84),
    "Myanmar": (0x1000, 0x103E),
    "Georgian": (0x10D0, 0x10F0),
    "Ethiopic": (0x1200, 0x1357),
    "Cherokee": (0x13A0, 0x13F4),
    "Khmer": (0x1780, 0x17D1),
    "Mongolian": (0x1820, 0x1877),
    "Hiragana": (0x3041, 0x3096),
    "Katakana": (0x30A1, 0x30FA),
    "Han": (0x4E00, 0x9FA5),
    "Hangul": (0xAC00, 0xD7A3),
    "Gothic": (0x10330, 0x10340),
    "Deseret": (0x10428, 0x1044F),
    "Han beyond the basic plane": (0x20000, 0x2A6D6),
}
"""First and last code point that letters and marks of a script are drawn from; all of Unicode 6.1 or older."""
_COMBINING = [chr(code) for code in range(0x300, 0x33F)]
_EMOJI = (0x1F300, 0x1F5FF)
SCRIPTS = tuple(_BLOCKS)


@cache
def _signs(script: str) -> tuple[list[str], list[str]]:
    """Return the letters and the marks of a script."""
    first, last = _BLOCKS[script]
    signs = [chr(code) for code in range(first, last + 1)]
    # Only letters whose case can be changed and changed back, and that are a single letter in both cases.
    letters = [sign for sign in signs if unicodedata.category(sign)[0] == "L" and sign.upper().lower() == sign.lower()]
    letters = [sign for sign in letters if len(sign.lower()) == 1]
    marks = [sign for sign in signs if unicodedata.category(sign) in ("Mn", "Mc")]
    return letters, _COMBINING if script == SCRIPTS[0] else marks


class Words:
    """Draws made-up words, each only once, so that a word identifies the text that contains it."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 (nothing secret)
        self._used: set[str] = set()

    def next(self) -> str:
        """Return a word of four syllables, for example ``Zulobira``."""
        return self._fresh(lambda: "".join(map(self._pick, (_CONSONANTS, _VOWELS) * 4))).capitalize()

    def of_script(self, script: str) -> str:
        """Return a word of five to seven letters of a script, some with a mark if the script has marks."""
        letters, marks = _signs(script)

        def drawn() -> str:
            signs = [self._pick(letters) for _ in range(self._random.randint(5, 7))]
            return "".join(s + (self._pick(marks) if marks and self._random.random() < _MARKED else "") for s in signs)

        return self._fresh(drawn)

    def emoji(self) -> str:
        """Return a symbol outside the basic plane."""
        return chr(self._random.randint(*_EMOJI))

    def _pick(self, signs: str | list[str]) -> str:
        return self._random.choice(signs)

    def _fresh(self, draw: object) -> str:
        assert callable(draw)
        while (word := str(draw())) in self._used:
            pass
        self._used.add(word)
        return word
