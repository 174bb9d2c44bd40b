"""Whether somebody who is not the owner may hear a sentence, by what its speaker says of that next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from memarena_answering.assets import prompt_text

from memarena.readers.extractive_scoring import Sentence

SHARING_FILE = "lexicons/sharing.v1.txt"
"""A rule per line: ``all``, ``friends`` or ``none``, a blank, a pattern; ``near`` says who is a friend."""
_NEAR = "near"
_NEXT = 2
"""Sentences after one that may say who may hear it."""


@cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    lines = files(__package__).joinpath(SHARING_FILE).read_text(encoding="utf-8").splitlines()
    rules = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in rules)


def _is_near(asked_by: str) -> bool:
    """Whether the prompt calls who asks a friend or relative of the owner ("Ana Reed, sister of the owner")."""
    relationship = asked_by.partition(",")[2]
    return any(name == _NEAR and pattern.search(relationship) for name, pattern in _rules())


def may_hear(asked_by: str, sentences: Sequence[Sentence], told: Sentence) -> bool:
    """Whether who asks (as the prompt shows them) may hear a sentence: the owner always, others unless ruled out."""
    if asked_by in ("", prompt_text().asker_owner):
        return True
    at = next((place for place, each in enumerate(sentences) if each is told), None)
    if at is None:
        return True
    for each in sentences[at + 1 : at + 1 + _NEXT]:
        if (each.item, each.speaker) != (told.item, told.speaker):
            break
        for name, pattern in _rules():
            if name != _NEAR and pattern.search(each.said):
                return name == "all" or (name == "friends" and _is_near(asked_by))
    return True
