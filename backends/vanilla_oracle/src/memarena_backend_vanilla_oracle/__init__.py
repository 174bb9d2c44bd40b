"""Two memories that need no search: Vanilla (the latest turns) and Oracle (the evidence itself)."""

from memarena_backend_vanilla_oracle.oracle import OracleMemory
from memarena_backend_vanilla_oracle.vanilla import VanillaMemory

__all__ = ["OracleMemory", "VanillaMemory"]
