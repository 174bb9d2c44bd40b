"""Watches a run's readers in a separate process: ``python -m … RUN FILE``.

It waits for the log's manifest, which has every reader's address, inspects the processes every few seconds until
SIGTERM, and then writes its observations into ``FILE``. Weights are hashed at the end, when nothing is timed any more.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil
from memarena.log.manifest import ReaderRef
from memarena.log.store import LogError, read_records

from memarena_spark.facts import Unknown
from memarena_spark.files import canonical_json, write_whole
from memarena_spark.watching.addresses import Reach, is_loopback, port_of, reach_of
from memarena_spark.watching.processes import (
    Link,
    command_of,
    executable_of,
    hash_weights,
    links,
    listeners,
    peers,
    weights_of,
)
from memarena_spark.watching.records import ModelFiles, ReaderProcess, ReaderWatch, ReaderWatches, Role

PERIOD_S = 2.0
_POLL_S = 0.1
_MOST_LINES = 50
_SETTINGS = ("model_path", "version", "build_info")
"""Details of a reader's server that are reported in place of weights that no process names."""
_Key = tuple[int, float]
"""Process id and start time, since ids are reused."""


@dataclass
class Watched:
    """A reader under watch, with the observations so far."""

    reader: ReaderRef
    reach: Reach
    roots: dict[_Key, psutil.Process] = field(default_factory=dict)
    """Processes that listen on its port, and processes of this machine to which the reader's are connected."""
    peers: set[_Key] = field(default_factory=set)
    seen: dict[_Key, ReaderProcess] = field(default_factory=dict)
    weights: set[Path] = field(default_factory=set)
    looks_ns: list[int] = field(default_factory=list)
    loopback: set[tuple[str, int]] = field(default_factory=set)
    elsewhere: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)

    def look(self) -> None:
        """Inspect its processes and their connections once; a failure is a line of ``unknown``."""
        if self.reach != "loopback":
            return
        try:
            self._find()
            family = self._family()
            complete = [self._connections(key, process, family) for key, process in family.items()]
        except psutil.Error as error:
            self._note(f"connections of this machine cannot be read: {type(error).__name__}")
            return
        if any(complete):
            self.looks_ns.append(time.monotonic_ns())

    def _find(self) -> None:
        self.roots = {key: process for key, process in self.roots.items() if process.is_running()}
        if self.roots.keys() - self.peers:
            return
        owners, reason = listeners(port_of(str(self.reader.base_url)))
        if reason and not self.seen:  # a reader of the run itself ends with it
            self._note(reason)
        self.roots.update({_key(process): process for process in owners})

    def _family(self) -> dict[_Key, psutil.Process]:
        family: dict[_Key, psutil.Process] = {}
        for root in self.roots.values():
            try:
                descendants = root.children(recursive=True)
            except psutil.NoSuchProcess:
                continue
            family |= {_key(member): member for member in (root, *descendants)}
        for key, process in family.items():
            if key not in self.seen:
                self._describe(key, process)
        return family

    def _describe(self, key: _Key, process: psutil.Process) -> None:
        """Record a process once: role, program, arguments and weights."""
        role: Role = "peer" if key in self.peers else "listener" if key in self.roots else "child"
        try:
            try:
                command = command_of(process.cmdline())
                self.weights.update(weights_of(process))
            except psutil.AccessDenied:
                command = ()
                self._note(f"arguments and files of process {process.pid} may not be read")
            executable, sha256 = executable_of(process)
        except psutil.NoSuchProcess:  # it ends now, so there is no connection of it either
            return
        self.seen[key] = ReaderProcess(
            pid=process.pid,
            started_at_unix=key[1],
            role=role,
            executable=executable,
            executable_sha256=sha256,
            command=command,
        )

    def _connections(self, key: _Key, process: psutil.Process, family: Mapping[_Key, psutil.Process]) -> bool:
        """Record to which addresses a process is connected. Return whether that could be read."""
        try:
            connected, listening = links(process)
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            self._note(f"connections of process {process.pid} may not be read: start it as the run's user")
            return False
        for link in connected:
            if not is_loopback(link.remote):
                where = f"[{link.remote}]" if ":" in link.remote else link.remote
                line = f"{where}:{link.remote_port} of {process.name()} {process.pid}"
                if len(self.elsewhere) < _MOST_LINES:
                    self.elsewhere.setdefault(line)
                continue
            end = (link.remote, link.remote_port)
            if end not in self.loopback and link.tcp and link.local_port not in listening:
                self._follow(link, family)
            self.loopback.add(end)
        return True

    def _follow(self, link: Link, family: Mapping[_Key, psutil.Process]) -> None:
        """Watch the process to which a reader connects on this machine like the reader itself: it may be a relay."""
        owners, reason = peers(link)
        if reason:
            self._note(reason)
        for process in owners:
            if (key := _key(process)) not in family:
                self.peers.add(key)
                self.roots[key] = process

    def _note(self, line: str) -> None:
        if len(self.unknown) < _MOST_LINES:
            self.unknown.setdefault(line)

    def result(self) -> ReaderWatch:
        """Return the observations, and hash the weights."""
        if self.reach == "container":
            self._note("it runs in another container, whose processes cannot be looked at")
        elif self.reach == "elsewhere":
            self._note("it is not on this machine's loopback")
        elif not self.seen:
            self._note("no process was seen")
        return ReaderWatch(
            name=self.reader.name,
            base_url=str(self.reader.base_url),
            reach=self.reach,
            processes=tuple(self.seen[key] for key in sorted(self.seen)),
            model=self._model(),
            looks=len(self.looks_ns),
            first_ns=min(self.looks_ns, default=0),
            last_ns=max(self.looks_ns, default=0),
            longest_gap_ns=max((after - before for before, after in pairwise(self.looks_ns)), default=0),
            loopback=len(self.loopback),
            elsewhere=tuple(self.elsewhere),
            unknown=tuple(self.unknown),
        )

    def _model(self) -> tuple[ModelFiles, ...] | Unknown:
        try:
            if hashed := tuple(hash_weights(path) for path in sorted(self.weights)):
                return hashed
        except OSError as error:
            return Unknown(unknown=f"its weights cannot be read: {error.strerror}")
        details = self.reader.details
        settings = ", ".join(f"{name} {details[name]}" for name in _SETTINGS if name in details)
        return Unknown(
            unknown=f"no file of weights is named or mapped; the server states model {self.reader.model}"
            + (f" ({settings})" if settings else "")
        )


def _key(process: psutil.Process) -> _Key:
    return process.pid, process.create_time()


def _readers_of(run: Path, stop: threading.Event) -> tuple[ReaderRef, ...]:
    """Wait until the log has the run's readers and return them; empty if ``stop`` is set before."""
    while True:
        try:
            for record in read_records(run, "run_started"):
                if record.kind == "run_started":
                    return record.manifest.readers
        except LogError:
            pass  # not there yet
        if stop.wait(_POLL_S):
            return ()


def main() -> None:
    """Watch until SIGTERM, then write the file."""
    run, out = Path(sys.argv[1]), Path(sys.argv[2])
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    readers = _readers_of(run, stop)
    watched = [Watched(reader, reach_of(str(reader.base_url))) for reader in readers]
    while True:
        for reader_watch in watched:
            reader_watch.look()
        if stop.wait(PERIOD_S):
            break
    write_whole(out, canonical_json(ReaderWatches(readers=tuple(reader_watch.result() for reader_watch in watched))))


if __name__ == "__main__":
    main()
