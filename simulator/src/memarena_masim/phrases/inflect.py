"""Forms the past and the -ing form of English verbs from the base form."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

VerbForm = Literal["base", "past", "ing"]

_FILE = Path(__file__).resolve().parent / "verbs.v1.txt"
_KEEPS_E = frozenset({"be", "see", "agree", "dye", "flee", "free", "singe"})
_IE = frozenset({"lie", "die", "tie"})


@cache
def _irregular() -> tuple[dict[str, str], frozenset[str]]:
    """Return the past forms of irregular verbs, by base form, and the verbs whose last letter doubles."""
    lists: list[list[str]] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("=="):
            lists.append([])
        elif lists:
            lists[-1].extend(line.split())
    past, doubled = lists  # the two sections of the file, in this order
    return dict(pair.split(":") for pair in past), frozenset(doubled)


def inflect(verb: str, form: VerbForm) -> str:
    """Return ``verb`` in the form ``form``: ``inflect("stop", "ing")`` is ``stopping``."""
    if form == "base":
        return verb
    return _past(verb) if form == "past" else _ing(verb)


def _past(verb: str) -> str:
    past, doubled = _irregular()
    if verb in past:
        return past[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return (verb + verb[-1] if verb in doubled else verb) + "ed"


def _ing(verb: str) -> str:
    if verb in _IE:
        return verb[:-2] + "ying"
    if verb.endswith("e") and verb not in _KEEPS_E:
        return verb[:-1] + "ing"
    return (verb + verb[-1] if verb in _irregular()[1] else verb) + "ing"
