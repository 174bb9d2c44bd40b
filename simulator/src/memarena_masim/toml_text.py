"""Parses the TOML of a pack: each text once per process, as a pack is checked and then read by several modules."""

from __future__ import annotations

import copy
import tomllib
from functools import lru_cache
from typing import Any


def parsed(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text, which the caller may change. tomllib.TOMLDecodeError if it is no TOML."""
    return copy.deepcopy(_parsed_once(text))


@lru_cache(maxsize=128)
def _parsed_once(text: str) -> dict[str, Any]:
    return tomllib.loads(text)
