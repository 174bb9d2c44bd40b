"""Gated memory backend: a gate over any other memory, which withholds what an asker may not know.

It reads from the turns what people wish to be shared or withheld, and filters each search by these wishes.
"""

from memarena_backend_gated.memory import GatedMemory

__all__ = ["GatedMemory"]
