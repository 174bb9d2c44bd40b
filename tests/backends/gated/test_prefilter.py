"""Tests prefiltered patterns, which look for their words first: they match exactly what the plain patterns match.

The prefilter only saves time: a match that it misses is a wish that the gate ignores.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from memarena_backend_gated import english
from memarena_backend_gated.prefilter import PrefilteredPattern, required_words

from tests.backends.gated.test_grammar import NO_WISHES, TIMES, WISHES

# pattern -> sets of words of which each match holds one
NEEDED: list[tuple[str, list[set[str]]]] = [
    (r"\b(?:un)?til\b", [{"til"}]),
    (r"(?:tell|shared?) (?P<who>.+)", [{"share", "tell"}]),
    (r"(?:tell|.*) us\b", [{" us"}]),
    (r"(?:keep|hold|(?:in)? )(?:quiet|still)?", []),
    (r"(?<!not )(?:only)+ Ann(?= knows)", [{"only"}, {" ann"}, {" knows"}]),
    (r"[Mm]y (?:own )*secret|KEPT", [{"kept", "secret"}]),
]


@pytest.mark.parametrize(("pattern", "needed"), NEEDED)
def test_the_words_that_a_pattern_needs_follow_from_it(pattern: str, needed: list[set[str]]) -> None:
    assert [set(words) for words in required_words(pattern, re.IGNORECASE)] == needed


def test_a_filtered_pattern_matches_what_the_plain_one_matches() -> None:
    sentences = [*(case[0] for case in WISHES), *(case[0] for case in TIMES), *NO_WISHES]
    texts = [form for text in sentences for form in (text, text.upper(), text.replace("i", "ı").replace("s", "ſ"))]
    filtered: Any = [each for name in english._TABLES["patterns"] for each in english.patterns(name)]
    matches = 0
    for each in filtered:
        for text in texts:
            plain = [match.span() for match in each._plain.finditer(text)]
            assert [match.span() for match in each.finditer(text)] == plain, (each._plain.pattern, text)
            matches += len(plain)
    assert matches > 200
    assert not all(each.may_match(text) for each in filtered for text in texts)
    assert PrefilteredPattern("it", re.I).search("İT is") is not None
