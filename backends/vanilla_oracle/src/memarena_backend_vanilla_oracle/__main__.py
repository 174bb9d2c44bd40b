"""Entry of ``python -m memarena_backend_vanilla_oracle``."""

from __future__ import annotations

import sys

from memarena_backend import run_backend

from memarena_backend_vanilla_oracle.oracle import OracleMemory
from memarena_backend_vanilla_oracle.vanilla import OmniscientMemory, VanillaMemory


def main() -> None:
    """Serve the variant that ``--variant`` names until SIGTERM."""
    sys.exit(
        run_backend(
            {
                "vanilla": lambda _: VanillaMemory(),
                "oracle": lambda _: OracleMemory(),
                "omniscient": lambda _: OmniscientMemory(),
            }
        )
    )


if __name__ == "__main__":
    main()
