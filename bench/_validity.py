"""What ``memarena dataset validate --profile full`` says of a world."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from _commands import run as run_command

_FAULTS = 1
"""Exit code of a data set that has faults."""


def faults_of(world: Path) -> Counter[str]:
    """Faults by the check that found them. RuntimeError if a check was left out: no fault would say little then."""
    asked = ["dataset", "validate", str(world), "--profile", "full", "--format", "json"]
    said = json.loads(run_command("memarena", *asked, accepted=(0, _FAULTS)))
    if said["not_checked"]:
        raise RuntimeError(f"{world}: not checked: {said['not_checked'][0]}")
    return Counter(str(one["check"]) for one in said["errors"])
