"""Runs llama.cpp's server on loopback as a child process of the harness, for ``embedded`` and ``llamacpp:FILE``.

``python embedded_server.py --weights F.gguf --address-file F …`` loads the weights, says where it listens, and serves
until SIGTERM. It imports nothing but xllamacpp, since MemArena may not be installed in the environment that runs it.
"""

from __future__ import annotations

import argparse
import os
import signal
import urllib.parse
from pathlib import Path

WAIT_POLICY = "passive"
"""OMP_WAIT_POLICY of the server: what its threads do while they wait."""


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address-file", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--window-tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    # SIGTERM is blocked until the main thread waits for it, so that llama.cpp's threads never run a Python handler.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    # OpenMP's threads otherwise spin while they wait: under any other load a prompt then takes several times as long.
    os.environ["OMP_WAIT_POLICY"] = WAIT_POLICY

    import xllamacpp  # noqa: PLC0415  (optional, and only this process needs it)

    params = xllamacpp.CommonParams()
    params.model.path = str(arguments.weights)
    params.model_alias = {arguments.model}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free port, which the address file names
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
    part = arguments.address_file.with_suffix(".part")
    part.write_text(f"{urllib.parse.urlparse(server.listening_address).netloc}\n", encoding="utf-8")
    part.replace(arguments.address_file)  # whoever reads it sees all of it
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
