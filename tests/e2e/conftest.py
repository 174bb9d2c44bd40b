"""Fixtures of the tests of whole runs: one extractive reader that all of them share."""

from __future__ import annotations

from ..support.shared_reader import _extractive_readers, shared_extractive_reader

__all__ = ["_extractive_readers", "shared_extractive_reader"]
