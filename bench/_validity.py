"""Runs ``memarena dataset validate --profile full`` on a world and counts its faults."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from _commands import run as run_command

_FAULTS = 1
"""Exit code of a data set that has faults."""


def faults_of(world: Path) -> Counter[str]:
    """Return the number of faults by check. RuntimeError if a check was left out: no fault would then say little."""
    command = ["dataset", "validate", str(world), "--profile", "full", "--format", "json"]
    report = json.loads(run_command("memarena", *command, accepted=(0, _FAULTS)))
    if report["not_checked"]:
        raise RuntimeError(f"{world}: not checked: {report['not_checked'][0]}")
    return Counter(str(error["check"]) for error in report["errors"])
