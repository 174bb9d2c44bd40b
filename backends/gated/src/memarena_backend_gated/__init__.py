"""Gate of who may know what, over any memory."""

from memarena_backend_gated.memory import GatedMemory

__all__ = ["GatedMemory"]
