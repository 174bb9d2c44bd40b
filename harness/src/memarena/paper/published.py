"""Loads the paper's published tables from the package's data file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from memarena.paper.published_types import Published


@cache
def load_published() -> Published:
    """Return the published tables, as ``tables/published.v2.json`` holds them."""
    text = (files("memarena.paper") / "tables" / "published.v2.json").read_text(encoding="utf-8")
    return Published.model_validate_json(text)
