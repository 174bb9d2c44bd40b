"""Memories that need no search: Vanilla and Omniscient (the latest turns), Oracle (the evidence itself).

Other memories are compared with them: with the latest turns alone, and with a perfect search.
"""

from memarena_backend_vanilla_oracle.oracle import OracleMemory
from memarena_backend_vanilla_oracle.vanilla import OmniscientMemory, VanillaMemory

__all__ = ["OmniscientMemory", "OracleMemory", "VanillaMemory"]
