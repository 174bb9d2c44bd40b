"""Shares readers between several runs on one machine: each is started once, and recorded in a folder for the others.

A program that executes many runs in parallel (:mod:`memarena.sweep`) starts a reader and records it in a folder. A run
with the folder in ``MEMARENA_SHARED_READERS`` uses the reader recorded there if it answers, and starts its own
if it does not.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from memarena_dataset.safe_files import write_whole
from pydantic import BaseModel, ConfigDict

from memarena.execution.planning.model_config import ReaderConfig
from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.readers.errors import ReaderError
from memarena.readers.starting import LLAMACPP, SGLANG
from memarena.readers.types import RunningReader

VARIABLE = "MEMARENA_SHARED_READERS"
"""Environment variable of a run: the folder in which shared readers are recorded."""
_CONNECT_S = 2.0
"""Time in which a shared reader must accept a connection."""
_GPU_FLAG = "--base-gpu-id"
"""SGLang's flag for the GPU of a server."""

Start = Callable[[ReaderConfig, Path], RunningReader]
"""Starts a reader; the folder takes its log."""


class _Note(BaseModel):
    """The record of a shared reader in the folder, as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: ReaderRef
    upstream: Upstream


def may_be_shared(config: ReaderConfig, *, timed: bool) -> bool:
    """Whether runs may share one server of this reader: at the same time or, if ``timed``, one after the other.

    A reader at a URL is shared anyway. In timed runs the harness's small servers are started for each run, as in a run
    alone; a cache that is emptied between questions is not shared by parallel runs.
    """
    if config.spec.startswith(SGLANG):
        return timed or config.prefill == "cold"
    return not timed and (config.spec in {"embedded", "extractive"} or config.spec.startswith(LLAMACPP))


def device_of(config: ReaderConfig) -> str | None:
    """Return the device that a server of the harness occupies: the number of a GPU, or ``cpu``; None for neither."""
    if config.spec.startswith(LLAMACPP):
        return "cpu"
    if not config.spec.startswith(SGLANG):
        return None
    flags = " ".join(config.server_flags).replace("=", " ").split()
    return flags[flags.index(_GPU_FLAG) + 1] if _GPU_FLAG in flags[:-1] else "0"


def published(config: ReaderConfig) -> RunningReader | None:
    """Return the shared reader of that configuration; None if no such reader answers."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    try:
        note = _Note.model_validate_json((Path(folder) / f"{server_key(config)}.json").read_bytes())
    except FileNotFoundError:
        return None
    return RunningReader(note.ref, note.upstream) if _answers(note.upstream.base_url) else None


@dataclass
class _SharedReader:
    """A reader of the host, running or not."""

    gpu: str | None = None
    """Device that it occupies, as :func:`device_of` returns it: a GPU's number or ``cpu``; None for neither."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    reader: RunningReader | None = None


class ReaderHost:
    """The shared readers of a machine, started when first needed. Safe to share between threads.

    A GPU, like the CPU, has a single server of the harness at a time: a cell that needs another one ends the first.
    """

    def __init__(self, folder: Path, start: Start) -> None:
        self.folder = folder
        self._start = start
        self._mutex = threading.Lock()
        self._readers: dict[str, _SharedReader] = {}

    def need(self, config: ReaderConfig) -> None:
        """Start a reader unless it runs.

        A reader that cannot be started is not recorded: the run then starts its own and reports why that fails.
        """
        key = server_key(config)
        with self._mutex:
            use = self._readers.setdefault(key, _SharedReader(device_of(config)))
            same_gpu = [
                name
                for name, other_use in self._readers.items()
                if other_use.gpu is not None and other_use.gpu == use.gpu
            ]
        for name in same_gpu:
            if name != key:
                self._release(name)
        with use.lock:
            if use.reader is not None and use.reader.alive():
                return
            if use.reader is not None:
                use.reader.stop()  # removes its remaining processes
            note = self.folder / f"{key}.json"
            note.unlink(missing_ok=True)
            try:
                use.reader = self._start(config, self.folder / key)
            except ReaderError:
                use.reader = None
                return
            content = _Note(ref=use.reader.ref, upstream=use.reader.upstream).model_dump_json()
            write_whole(note, content, mode=0o600)  # a server may have a key

    def release(self, config: ReaderConfig) -> None:
        """Stop a reader that no run uses; :meth:`need` starts it again."""
        self._release(server_key(config))

    def stop(self) -> None:
        """Stop all readers."""
        with self._mutex:
            keys = list(self._readers)
        for key in keys:
            self._release(key)

    def _release(self, key: str) -> None:
        with self._mutex:
            use = self._readers.get(key)
        if use is None:
            return
        with use.lock:
            (self.folder / f"{key}.json").unlink(missing_ok=True)
            if use.reader is not None:
                use.reader.stop()
                use.reader = None


def server_key(config: ReaderConfig) -> str:
    """Return the key of a server: a hash of its configuration without its name in reports.

    ``needs`` is a field of a sweep's readers alone (:class:`memarena.sweep.plan.ReaderEntry`), which no run knows.
    """
    return hashlib.sha256(config.model_dump_json(exclude={"name", "needs"}).encode()).hexdigest()[:16]


def _answers(base_url: str) -> bool:
    parts = urlsplit(base_url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True
