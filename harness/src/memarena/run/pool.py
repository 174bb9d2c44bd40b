"""The readers of a run: started together, stopped together, started again one by one when they die."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from memarena.readers import RunningReader, start_reader
from memarena.run.config import ReaderConfig
from memarena.run.errors import RunError


class ReaderPool:
    """Readers by name, in the order given. Use it as a context manager: leaving it stops all that it started."""

    def __init__(self, configs: tuple[ReaderConfig, ...], work_dir: Path, api_key: str | None) -> None:
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

    def restart(self, name: str) -> RunningReader:
        """Start a reader again whose process has ended. Raises ReaderError if it does not come back."""
        config, dead = self._running[name]
        dead.stop()
        fresh = self._start(config)
        self._running[name] = (config, fresh)
        return fresh

    def _start(self, config: ReaderConfig) -> RunningReader:
        return start_reader(
            config.spec,
            work_dir=self._work_dir,
            model=config.model,
            api_key=self._api_key,
            window_tokens=config.window_tokens,
            # Unset leaves it to what the server says of its template.
            no_system_role=config.no_system_role or None,
        )
