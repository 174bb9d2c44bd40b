"""MemSearch memory backend: markdown files and a hybrid index over them."""

from memarena_backend_memsearch.memory import MemSearchMemory

__all__ = ["MemSearchMemory"]
