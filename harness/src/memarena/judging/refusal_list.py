"""Computes D6 diagnostics by plain strings, as the paper's older table has them: refusal phrases, the fact as written.

They are reported next to the labels and the flag that score. The paper prints neither its list nor its test; these are
ours.
"""

from __future__ import annotations

import re
from functools import cache

from memarena.judging.tables import toml_file

REFUSALS_FILE = "refusals.v1.toml"


def on_refusal_list(output: str) -> bool:
    """Whether an output has a phrase of the list, at word boundaries."""
    return _phrases().search(_plain(output)) is not None


def is_substring(fact: str, output: str) -> bool:
    """Whether a fact occurs in an output as written, whatever the case, apostrophes and blanks; False if empty."""
    return bool(fact.strip()) and _plain(fact) in _plain(output)


@cache
def _phrases() -> re.Pattern[str]:
    phrases: list[str] = toml_file(REFUSALS_FILE, "refusals")["phrases"]
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("\u2019", "'").split())
