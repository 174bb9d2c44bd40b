"""What tests of executing runs share."""

from __future__ import annotations

from ..support.shared_reader import _extractive_readers, shared_extractive_reader

__all__ = ["_extractive_readers", "shared_extractive_reader"]
