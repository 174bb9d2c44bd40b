"""The readers of a run: started together, stopped together, started again one by one when they die."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from memarena.execution.errors import RunError
from memarena.execution.models.shared_readers import published
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.gateway import Upstream
from memarena.readers.helpers import HELPER_ROLES, HelperRole, start_helper
from memarena.readers.remote import DEFAULT_WINDOW_TOKENS, Note
from memarena.readers.request_settings import RequestSettings
from memarena.readers.sglang_settings import SglangSettings
from memarena.readers.starting import SGLANG, start_reader
from memarena.readers.types import RunningReader

_GPU_FLAG = "--base-gpu-id"
"""SGLang's flag for the GPU of a server."""


class ReaderPool:
    """Readers by name, in the order given. Use it as a context manager: leaving it stops all that it started."""

    def __init__(
        self,
        configs: tuple[ReaderConfig, ...],
        work_dir: Path,
        api_key: str | None,
        note: Note = lambda _: None,
    ) -> None:
        """``note`` takes warnings, and how long a server takes to load its model.

        Raises RunError for servers of ours that do not fit on one GPU together.
        """
        _check_gpu_memory(configs)
        self._note = note
        self._configs = configs
        self._work_dir = work_dir
        self._api_key = api_key
        self._running: dict[str, tuple[ReaderConfig, RunningReader]] = {}

    def __enter__(self) -> Self:
        """Start all. Raises ReaderError if one cannot be started or reached; those before it are stopped again."""
        try:
            for config in self._configs:
                reader = self._start(config)
                if reader.ref.name in self._running:
                    reader.stop()
                    raise RunError(f"--reader {config.spec}: a reader {reader.ref.name} is in the run already")
                self._running[reader.ref.name] = (config, reader)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for _config, reader in self._running.values():
            reader.stop()

    def __getitem__(self, name: str) -> RunningReader:
        return self._running[name][1]

    def readers(self) -> list[RunningReader]:
        """All of them, in order."""
        return [reader for _config, reader in self._running.values()]

    def config(self, name: str) -> ReaderConfig:
        """What a reader was configured with."""
        return self._running[name][0]

    def restart(self, name: str) -> RunningReader:
        """Start a reader again whose process has ended. Raises ReaderError if it does not come back."""
        config, dead = self._running[name]
        dead.stop()
        fresh = self._start(config)
        self._running[name] = (config, fresh)
        return fresh

    def _start(self, config: ReaderConfig) -> RunningReader:
        reader = published(config) or start_configured(config, self._work_dir, self._api_key, self._note)
        details = {**reader.ref.details, **_settings_of(config)}
        update = {"details": details, "name": config.name or reader.ref.name}
        return replace(reader, ref=reader.ref.model_copy(update=update))


def _check_gpu_memory(configs: Sequence[ReaderConfig]) -> None:
    """Raise RunError where readers that are started together ask for more than the whole memory of a GPU."""
    by_gpu: dict[str, list[ReaderConfig]] = {}
    for config in configs:
        if config.spec.startswith(SGLANG):
            flags = " ".join(config.server_flags).replace("=", " ").split()
            gpu = flags[flags.index(_GPU_FLAG) + 1] if _GPU_FLAG in flags[:-1] else "0"
            by_gpu.setdefault(gpu, []).append(config)
    for readers in by_gpu.values():
        if len(readers) > 1 and sum(reader.mem_fraction for reader in readers) > 1:
            named = ", ".join(f"{reader.spec} ({reader.mem_fraction:g})" for reader in readers)
            raise RunError(
                f"--reader: servers started together on one GPU with these shares of its memory: {named}; "
                "one reader for each run, mem_fraction of 1 in sum, or memarena reproduce, which takes them in turn"
            )


def start_configured(
    config: ReaderConfig, work_dir: Path, api_key: str | None = None, note: Note = lambda _: None
) -> RunningReader:
    """Start or reach a reader as it is configured. Raises ReaderError, as :func:`start_reader`."""
    return start_reader(
        config.spec,
        work_dir=work_dir,
        model=config.model,
        api_key=api_key,
        window_tokens=config.window_tokens,
        # Unset leaves it to what the server says of its template.
        no_system_role=config.no_system_role or None,
        sglang=_sglang(config),
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
    """What a run changed in the requests to a reader, for its manifest."""
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
        context_tokens=config.window_tokens or DEFAULT_WINDOW_TOKENS,
        mem_fraction=config.mem_fraction,
        no_system_role=config.no_system_role,
        extra_flags=config.server_flags,
    )


class HelperPool:
    """The models beside the readers: an embedder, an extractor, a reranker, as far as they are configured.

    Use it as a context manager, like :class:`ReaderPool`.
    """

    def __init__(self, config: RunConfig, work_dir: Path, readers: Sequence[RunningReader]) -> None:
        self._configs: dict[HelperRole, HelperConfig] = {}
        for role in HELPER_ROLES:
            chosen: HelperConfig | None = getattr(config, role)
            if chosen is not None:
                self._configs[role] = chosen
        self._work_dir = work_dir
        self._taken = {reader.upstream.model for reader in readers}
        self._running: dict[HelperRole, RunningReader] = {}

    def __enter__(self) -> Self:
        """Start all. Raises ReaderError if one cannot be started or reached; those before it are stopped again."""
        try:
            for role, config in self._configs.items():
                helper = self._start(role, config)
                self._running[role] = helper
                if helper.upstream.model in self._taken:
                    raise RunError(f"--{role} {config.spec}: a model {helper.upstream.model} is in the run already")
                self._taken.add(helper.upstream.model)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._running.values():
            helper.stop()

    def items(self) -> list[tuple[HelperRole, RunningReader]]:
        """All of them with their roles."""
        return list(self._running.items())

    def upstreams(self) -> tuple[Upstream, ...]:
        """All of them as models behind the gateway."""
        return tuple(helper.upstream for helper in self._running.values())

    def restart(self, role: HelperRole) -> RunningReader:
        """Start a model again whose process has ended. Raises ReaderError if it does not come back."""
        self._running[role].stop()
        fresh = self._running[role] = self._start(role, self._configs[role])
        return fresh

    def _start(self, role: HelperRole, config: HelperConfig) -> RunningReader:
        return start_helper(role, config.spec, work_dir=self._work_dir, model=config.model)
