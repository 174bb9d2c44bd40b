"""Writes latency studies for tests, with the command."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import pytest
from memarena.cli.main import main


def write_study_of(folder: Path, *logs: Path) -> Path:
    """Run ``memarena latency report LOG… --out folder`` and return the folder."""
    command = ["memarena", "latency", "report", *map(str, logs), "--format", "json", "--out", str(folder)]
    with mock.patch.object(sys, "argv", command), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return folder
