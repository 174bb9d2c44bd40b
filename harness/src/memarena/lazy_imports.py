"""Names of a package that are imported when they are asked for: who needs one module of it does not load the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def imported_later(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package. ``places``: the module of each of its names, wherever that stands."""

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return get
