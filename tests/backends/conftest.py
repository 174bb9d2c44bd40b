"""Fixtures of the kit's tests: a small memory served over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.support import Served, Verbatim, serve


@pytest.fixture
def memory() -> Verbatim:
    return Verbatim()


@pytest.fixture
def served(memory: Verbatim, tmp_path: Path) -> Iterator[Served]:
    with serve(memory, tmp_path / "data") as running:
        yield running
