"""MemSearch memory backend: markdown files and a hybrid index over them."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memarena_backend_memsearch.memory import MemSearchMemory

__all__ = ["MemSearchMemory"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the memory when it is asked for (PEP 562): its libraries take seconds."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.memory"), name)
