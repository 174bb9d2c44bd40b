"""The embedded reader's server: llama.cpp on loopback, run as a child process of the harness.

``python -m memarena.readers.embedded_server --weights F.gguf --address-file F …`` loads the weights, says where it
listens, and serves until SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import urllib.parse
from pathlib import Path

from memarena.readers.embedded import WAIT_POLICY
from memarena.readers.serving import write_address


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address-file", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--window-tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    # SIGTERM waits until the main thread asks for it, so that llama.cpp's own threads never run a Python handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    # Threads of OpenMP otherwise spin while they wait: beside any other load a prompt then takes several times as long.
    os.environ["OMP_WAIT_POLICY"] = WAIT_POLICY

    import xllamacpp  # noqa: PLC0415  (optional, and only this process needs it)

    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.weights)
    params.model_alias = {arguments.model}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = arguments.window_tokens
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams_batch.n_threads = arguments.threads
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.ui = False
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise SystemExit(f"cannot load {arguments.weights}: {error}") from error
    write_address(arguments.address_file, urllib.parse.urlparse(server.listening_address).netloc)
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
