"""Fixtures: small worlds for the tests of this folder."""

from __future__ import annotations

from ..support.small_worlds import other_small_worlds, small_config, small_world, tiny_world, world_of

__all__ = ["other_small_worlds", "small_config", "small_world", "tiny_world", "world_of"]
