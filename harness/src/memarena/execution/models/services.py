"""Manages a run's models and their gateway together: prepares them, and restarts them after failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from memarena_answering import ReaderClient

from memarena.execution.errors import InfraError
from memarena.execution.models.model_pool import HelperPool, ReaderPool
from memarena.execution.models.reader_warmup import prepare_reader
from memarena.execution.planning.config import RunConfig
from memarena.gateway import Gateway
from memarena.log.records import Problem
from memarena.readers.errors import ReaderError
from memarena.readers.probing import probe
from memarena.readers.types import RunningReader

Append = Callable[..., None]
"""Writes records to the log."""


@dataclass(frozen=True)
class ModelServices:
    """The models of a run, and the gateway through which all of them are called."""

    readers: ReaderPool
    helpers: HelperPool
    """Models other than readers: an embedder, an extractor, a reranker, as configured."""
    gateway: Gateway

    def client(self) -> ReaderClient:
        """Return a client that calls readers through the gateway."""
        return ReaderClient(self.gateway.base_url)

    def start(self, name: str, config: RunConfig, append: Append) -> None:
        """Start and prepare a reader that starts on demand, after stopping other readers of that kind.

        Raises InfraError if it cannot be made ready.
        """
        self.release(except_for=name)
        if self.readers.is_running(name):
            return
        try:
            reader = self.readers.start(name)
        except ReaderError as error:
            raise InfraError(str(error)) from error
        self.gateway.add_upstream(reader.upstream)
        # The manifest is written already, so what the server reports about itself goes into the probe's record.
        prepare_reader(reader, self.readers.config(name), config, self.gateway, append, after_manifest=True)

    def release(self, except_for: str) -> None:
        """Stop all readers that start on demand but ``except_for``, as a GPU holds a single reader at a time."""
        for model in self.readers.stop_on_demand(except_for):
            self.gateway.remove_upstream(model)

    def begin_cell(self, name: str) -> RunningReader:
        """Return the reader ``name`` for a new cell. Raises InfraError if it cannot be made ready."""
        reader = self.readers[name]
        try:
            reader.begin_cell()
        except ReaderError as error:
            raise InfraError(str(error)) from error
        return reader

    def prepare(self, config: RunConfig, append: Append) -> None:
        """Probe and warm up all running readers, before anything is timed."""
        for reader in self.readers.readers():
            prepare_reader(reader, self.readers.config(reader.ref.name), config, self.gateway, append)

    def heal(self, name: str, append: Append) -> None:
        """Restart helpers and this reader if their processes have ended, and probe the reader.

        Called after a failure of infrastructure, so that the next question does not go to a dead model. Raises
        InfraError if a model does not come back or the probe fails.
        """
        self._heal_helpers(append)
        reader = self.readers[name]
        if not reader.alive():
            message = f"the reader's process ended and is started again: {reader.last_words()}"
            append(Problem(at=_now(), where=f"reader {name}", cause="infra", message=message))
            try:
                reader = self.readers.restart(name)
            except ReaderError as error:
                raise InfraError(f"the reader did not come back: {error}") from error
            self.gateway.replace_upstream(reader.upstream)
        result = probe(reader, self.gateway)
        if not result.ok:
            append(result)
            raise InfraError(f"reader {name}: {result.message}")

    def _heal_helpers(self, append: Append) -> None:
        for role, helper in self.helpers.items():
            if helper.alive():
                continue
            message = f"its process ended and is started again: {helper.last_words()}"
            append(Problem(at=_now(), where=f"{role} {helper.ref.name}", cause="infra", message=message))
            try:
                self.gateway.replace_upstream(self.helpers.restart(role).upstream)
            except ReaderError as error:
                raise InfraError(f"the {role} did not come back: {error}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
