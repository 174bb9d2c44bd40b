"""Who a judge with a model is: the settings that decide its verdicts, and their hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from memarena.judge.addressing import table_sha256
from memarena.judge.model.prompts import decoy, prompt_file

_PROTOCOL = "4"
"""Raised by hand when the way in which replies are asked for, read or handed over changes what verdicts come out."""


@dataclass(frozen=True)
class ModelJudge:
    """A judge with a model. ``name`` is that under which its verdicts stand in the log."""

    name: str
    model: str
    temperature: float = 0.0
    seed: int | None = 0
    """None: no seed is sent."""

    @property
    def version(self) -> str:
        """SHA-256 over everything of ours that decides: settings, prompts, tables.

        Where the judge hands an answer over, the verdict names the version of the rules that decided.
        """
        tasks = ("answer", "behaviour", "bucket")
        parts = [
            f"protocol {_PROTOCOL}",
            f"model {self.model}",
            f"temperature {self.temperature!r}",
            f"seed {self.seed}",
            *(f"prompt {prompt_file(task).name} {prompt_file(task).sha256}" for task in tasks),
            f"decoy {decoy().sha256}",
            f"addressing {table_sha256()}",
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
