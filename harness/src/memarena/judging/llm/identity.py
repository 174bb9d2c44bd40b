"""Identifies a judge with a model: the settings that decide its verdicts, and their hash.

The hash is in every verdict. A log refuses verdicts of two different judges under one name (``jobs.py``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from memarena.judging.llm.prompts import decoy, prompt_files
from memarena.judging.prompt_injection import table_sha256

_PROTOCOL = "5"
"""Raised by hand when replies are requested, read or handed over in a way that can change verdicts."""


@dataclass(frozen=True)
class ModelJudge:
    """A judge with a model. ``name`` is that of its verdicts in the log."""

    name: str
    model: str
    temperature: float = 0.0
    seed: int | None = 0
    """None: no seed is sent."""

    @property
    def version(self) -> str:
        """SHA-256 over all that decides except the model itself: settings, prompts, tables.

        If the judge hands an answer over to the rules, the verdict names the version of the rules that decided.
        """
        parts = [
            f"protocol {_PROTOCOL}",
            f"model {self.model}",
            f"temperature {self.temperature!r}",
            f"seed {self.seed}",
            *(f"prompt {prompt.name} {prompt.sha256}" for prompt in prompt_files()),
            f"decoy {decoy().sha256}",
            f"addressing {table_sha256()}",
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
