"""``python -m tests.backends.gated.bm25_at_a_port TOKEN``: bm25 at a free port, behind a token; prints HOST:PORT."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

from memarena_backend import BackendServer, Security
from memarena_backend_bm25 import Bm25Memory


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = BackendServer(lambda _: Bm25Memory(), Path(folder), "127.0.0.1:0", Security(bearer_token=sys.argv[1]))
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
