"""``python -m memarena_spark.warm``: loads an embedding model into ollama and checks that all of it is on the GPU.

Run between the start of ollama and that of the model server, which would otherwise take the memory first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memarena_spark.checks.services import check_embedder
from memarena_spark.machine.services import ask_embedder
from memarena_spark.plans import EmbedderSpec


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if the model is loaded, warm and on the GPU; print the reasons and return 1 if not."""
    parser = argparse.ArgumentParser(prog="memarena_spark.warm")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    options = parser.parse_args(argv)
    spec = EmbedderSpec(url=options.url, model=options.model)
    refusals = list(check_embedder(ask_embedder(spec), spec))
    for refusal in refusals:
        sys.stderr.write(f"refused {refusal.code}: {refusal.reason}\n")
    return 1 if refusals else 0


if __name__ == "__main__":
    sys.exit(main())
