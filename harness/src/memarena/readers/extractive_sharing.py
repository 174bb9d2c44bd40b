"""Whether somebody who is not the owner may hear a sentence, by what its speaker says of that next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from memarena.readers.extractive_scoring import Sentence

SHARING_FILE = "lexicons/sharing.v1.txt"
"""A rule per line: ``all``, ``friends`` or ``none``, a blank, a pattern."""
_NEXT = 2
"""Sentences after one that may say who may hear it."""
_NEAR = re.compile(r"(?<!\bof )\b(?:friend|family|partner|spouse|relative)\b", re.IGNORECASE)


@cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    lines = files(__package__).joinpath(SHARING_FILE).read_text(encoding="utf-8").splitlines()
    rules = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in rules)


def may_hear(asked_by: str, sentences: Sequence[Sentence], told: Sentence) -> bool:
    """Whether who asks (as the prompt shows them) may hear a sentence: the owner always, others unless ruled out."""
    if not asked_by or "owner of this" in asked_by:
        return True
    at = next((place for place, each in enumerate(sentences) if each is told), None)
    if at is None:
        return True
    for each in sentences[at + 1 : at + 1 + _NEXT]:
        if (each.item, each.speaker) != (told.item, told.speaker):
            break
        for name, pattern in _rules():
            if pattern.search(each.said):
                return name == "all" or (name == "friends" and bool(_NEAR.search(asked_by)))
    return True
