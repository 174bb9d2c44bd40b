"""Starts, restarts and stops the readers of a run, and the models that memories call (helpers).

If a run has several servers that need a GPU, each starts when a cell needs it, one at a time; all others start with the
run. Each is started again when it dies, and stopped with the run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from memarena.execution.errors import RunError
from memarena.execution.models.reader_environments import server_program
from memarena.execution.models.shared_readers import device_of, published
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.gateway import Upstream
from memarena.log.records import ReaderRef
from memarena.readers.errors import ReaderError
from memarena.readers.helpers import HELPER_ROLES, HelperRole, start_helper
from memarena.readers.remote import DEFAULT_WINDOW_TOKENS, Note
from memarena.readers.request_settings import RequestSettings
from memarena.readers.sglang import planned
from memarena.readers.sglang_settings import SglangSettings
from memarena.readers.starting import LLAMACPP, SGLANG, planned_llamacpp, start_reader
from memarena.readers.types import RunningReader


@dataclass
class _Entry:
    """A reader of the run, running or not."""

    config: ReaderConfig
    expected: RunningReader
    """The reader at its first start, or as planned before it."""
    running: RunningReader | None = None
    on_demand: bool = False
    """Whether it starts when a cell needs it, not with the run."""


class ReaderPool:
    """Readers by name, in the order of the run. Use it as a context manager: leaving it stops those that it started."""

    def __init__(
        self,
        configs: tuple[ReaderConfig, ...],
        work_dir: Path,
        api_key: str | None,
        note: Note = lambda _: None,
    ) -> None:
        """``note`` takes warnings, and how long a server takes to load its model."""
        self._note = note
        self._configs = configs
        self._work_dir = work_dir
        self._api_key = api_key
        self._entries: dict[str, _Entry] = {}

    def __enter__(self) -> Self:
        """Start all readers but those that start on demand.

        Raises ReaderError if one cannot be started or reached; those before it are stopped again.
        """
        several = sum(device_of(config) is not None for config in self._configs) > 1
        try:
            for config in self._configs:
                on_demand = several and device_of(config) is not None
                reader = self._with_name(config, planned_reader(config)) if on_demand else self._start(config)
                if reader.ref.name in self._entries:
                    reader.stop()
                    raise RunError(f"--reader {config.spec}: a reader {reader.ref.name} is in the run already")
                running = None if on_demand else reader
                self._entries[reader.ref.name] = _Entry(config, reader, running, on_demand)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self.readers():
            reader.stop()

    def __getitem__(self, name: str) -> RunningReader:
        """Return a running reader by name."""
        running = self._entries[name].running
        assert running is not None, f"reader {name} is asked before it was started"
        return running

    def readers(self) -> list[RunningReader]:
        """Return the running readers, in order."""
        return [entry.running for entry in self._entries.values() if entry.running is not None]

    def refs(self) -> list[ReaderRef]:
        """Return the descriptions of all readers, in order; of those not started, as planned."""
        return [(entry.running or entry.expected).ref for entry in self._entries.values()]

    def models(self) -> list[str]:
        """Return the names of their models at the gateway, in order."""
        return [entry.expected.upstream.model for entry in self._entries.values()]

    def config(self, name: str) -> ReaderConfig:
        """Return the configuration of a reader."""
        return self._entries[name].config

    def is_running(self, name: str) -> bool:
        """Whether a reader was started and not stopped, even if it has died since."""
        return self._entries[name].running is not None

    def start(self, name: str) -> RunningReader:
        """Start a reader that starts on demand. Raises ReaderError if it does not start as planned."""
        entry = self._entries[name]
        reader = self._start(entry.config)
        if (reader.ref.name, reader.upstream.model) != (name, entry.expected.upstream.model):
            reader.stop()
            raise ReaderError(f"reader {name}: the server's model is {reader.upstream.model}, expected was {name}")
        entry.running = reader
        return reader

    def stop_on_demand(self, except_for: str) -> list[str]:
        """Stop all readers that start on demand but ``except_for``; return the models that are no longer served."""
        names = []
        for name, entry in self._entries.items():
            if entry.on_demand and entry.running is not None and name != except_for:
                entry.running.stop()
                names.append(entry.running.upstream.model)
                entry.running = None
        return names

    def restart(self, name: str) -> RunningReader:
        """Start a reader again whose process has ended. Raises ReaderError if it does not come back."""
        self[name].stop()
        fresh = self._entries[name].running = self._start(self._entries[name].config)
        return fresh

    def _start(self, config: ReaderConfig) -> RunningReader:
        reader = published(config) or start_configured(config, self._work_dir, self._api_key, self._note)
        return self._with_name(config, reader)

    def _with_name(self, config: ReaderConfig, reader: RunningReader) -> RunningReader:
        details = {**reader.ref.details, **_settings_of(config)}
        update = {"details": details, "name": config.name or reader.ref.name}
        return replace(reader, ref=reader.ref.model_copy(update=update))


def planned_reader(config: ReaderConfig) -> RunningReader:
    """Return a reader as planned, before the harness starts it. Raises ReaderError for invalid settings."""
    if config.spec.startswith(LLAMACPP):
        return planned_llamacpp(config.spec, config.window_tokens)
    settings = _sglang(config)
    assert settings is not None, f"{config.spec} starts with the run"
    return planned(settings)


def start_configured(
    config: ReaderConfig, work_dir: Path, api_key: str | None = None, note: Note = lambda _: None
) -> RunningReader:
    """Start or connect to a reader as configured. Raises ReaderError, as :func:`start_reader` does."""
    return start_reader(
        config.spec,
        work_dir=work_dir,
        model=config.model,
        api_key=api_key,
        window_tokens=config.window_tokens,
        # If unset, the server's report on its template decides.
        no_system_role=config.no_system_role or None,
        sglang=_sglang(config),
        program=server_program("llamacpp") if config.spec.startswith(LLAMACPP) else (sys.executable,),
        request=RequestSettings(
            config.params,
            config.drop,
            config.concurrency or 0,
            config.requests_per_minute or 0.0,
            config.patience_s,
        ),
        note=note,
    )


def _settings_of(config: ReaderConfig) -> dict[str, str]:
    """Return the run's changes to the requests to a reader, for the manifest."""
    return {
        **({"request_params": json.dumps(config.params, sort_keys=True)} if config.params else {}),
        **({"request_drop": ", ".join(config.drop)} if config.drop else {}),
        **({"concurrency": str(config.concurrency)} if config.concurrency else {}),
        **({"requests_per_minute": f"{config.requests_per_minute:g}"} if config.requests_per_minute else {}),
    }


def _sglang(config: ReaderConfig) -> SglangSettings | None:
    if not config.spec.startswith(SGLANG):
        return None
    return SglangSettings(
        config.spec.removeprefix(SGLANG),
        result_class="cold_prefill" if config.prefill == "cold" else "warm_prefix",
        image=config.image,
        program=(sys.executable,) if config.image else server_program("sglang"),
        context_tokens=config.window_tokens or DEFAULT_WINDOW_TOKENS,
        mem_fraction=config.mem_fraction,
        no_system_role=config.no_system_role,
        extra_flags=config.server_flags,
    )


class HelperPool:
    """The helpers of a run: those that are configured of an embedder, an extractor and a reranker.

    Use it as a context manager, like :class:`ReaderPool`.
    """

    def __init__(self, config: RunConfig, work_dir: Path, models: Collection[str]) -> None:
        """``models`` are the names that the gateway serves already."""
        self._configs: dict[HelperRole, HelperConfig] = {}
        for role in HELPER_ROLES:
            helper_config: HelperConfig | None = getattr(config, role)
            if helper_config is not None:
                self._configs[role] = helper_config
        self._work_dir = work_dir
        self._names_in_use = set(models)
        self._running: dict[HelperRole, RunningReader] = {}

    def __enter__(self) -> Self:
        """Start all. Raises ReaderError if one cannot be started or reached; those before it are stopped again."""
        try:
            for role, config in self._configs.items():
                helper = self._start(role, config)
                self._running[role] = helper
                if helper.upstream.model in self._names_in_use:
                    raise RunError(f"--{role} {config.spec}: a model {helper.upstream.model} is in the run already")
                self._names_in_use.add(helper.upstream.model)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._running.values():
            helper.stop()

    def items(self) -> list[tuple[HelperRole, RunningReader]]:
        """Return all helpers with their roles."""
        return list(self._running.items())

    def upstreams(self) -> tuple[Upstream, ...]:
        """Return all helpers as models behind the gateway."""
        return tuple(helper.upstream for helper in self._running.values())

    def restart(self, role: HelperRole) -> RunningReader:
        """Start a model again whose process has ended. Raises ReaderError if it does not come back."""
        self._running[role].stop()
        fresh = self._running[role] = self._start(role, self._configs[role])
        return fresh

    def _start(self, role: HelperRole, config: HelperConfig) -> RunningReader:
        return start_helper(role, config.spec, work_dir=self._work_dir, model=config.model)
