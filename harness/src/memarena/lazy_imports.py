"""Imports the names of a package on first use, so that using one module of it does not load the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def imported_later(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package (PEP 562): Python calls it for a name that the package does not have yet.

    ``places``: by name, the full name of the module that defines it.
    """

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return get
