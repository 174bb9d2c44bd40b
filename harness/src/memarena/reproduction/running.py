"""Runs the steps as memarena processes: sweeps in parallel by GPU, then the timed studies, each alone."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena_dataset.io.reading import open_dataset
from memarena_dataset.safe_files import write_whole

from memarena.processes import GuardedProcess, python_module
from memarena.reproduction.steps import STUDY_GROUPS, WORLD, Settings, Step, selection_size
from memarena.sweep.manifest import is_sweep, read_manifest

Say = Callable[[str], None]
_POLL_S = 0.1
_GRACE_S = 70.0
"""How long a sweep may take to end its cells after a signal."""
_COMPLETE = 0
"""Exit code of a command that succeeded."""
QUERIES = Path("latency", "queries.txt")
"""File with the questions that all studies time, below the folder of the reproduction."""
_MADE = Path("world.made")
"""Marker file: it exists if the data set was generated completely."""
_DEVICES = "CUDA_VISIBLE_DEVICES"


class StoppedError(Exception):
    """A signal requested the end."""


@dataclass
class Runner:
    """One call of a reproduction; a later call with the same steps continues where this one stopped."""

    settings: Settings
    say: Say
    stop: threading.Event
    failed: dict[str, str] = field(default_factory=dict)
    """Steps that did not complete, by title, with the last line of their command."""
    _memobase: threading.Lock = field(default_factory=threading.Lock)
    """Held by the sweep that uses the Memobase server, which can serve one gateway at a time."""

    def run(self, steps: Sequence[Step]) -> None:
        """Run all steps that are possible on this machine. Raises :class:`StoppedError`."""
        todo = [step for step in steps if not step.missing]
        if self.settings.dataset is None and not self._make_world():
            return
        self._in_lanes([step for step in todo if step.kind == "sweep"])
        studies = [step for step in todo if step.kind == "study"]
        if studies and self._choose_queries():
            for step in studies:  # timed: nothing else runs meanwhile
                self._study(step)

    # -------------------------------------------------------------- the steps

    def _make_world(self) -> bool:
        marker = self.settings.out / _MADE
        if marker.exists():
            return True
        argv = python_module("memarena_masim", "generate", *WORLD, "--out", str(self.settings.world), "--quiet")
        if not self._command("world", argv, "the data set"):
            return False
        write_whole(marker, "\n")
        return True

    def _in_lanes(self, steps: Sequence[Step]) -> None:
        """Run sweeps by reader, as many readers in parallel as there are GPUs, each with its own GPU."""
        readers = list(dict.fromkeys(step.reader for step in steps))
        lanes = [[s for s in steps if s.reader in readers[n :: self.settings.gpus]] for n in range(self.settings.gpus)]
        threads = [
            threading.Thread(target=self._lane, args=(lane, number)) for number, lane in enumerate(lanes) if lane
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._check()

    def _lane(self, steps: Sequence[Step], gpu: int) -> None:
        with contextlib.suppress(StoppedError):
            for step in steps:
                self._sweep(step, {_DEVICES: str(gpu)} if self.settings.gpus > 1 else {})

    def _sweep(self, step: Step, env: Mapping[str, str]) -> None:
        with self._memobase if step.asks_memobase else contextlib.nullcontext():
            self._sweep_whole(step, env)

    def _sweep_whole(self, step: Step, env: Mapping[str, str]) -> None:
        file = self._write(step, "sweep.toml")
        argv = ["sweep", str(file), "--out", str(step.folder), *self.settings.executor]
        if self._command(step.title, python_module("memarena", *argv), step.title, env):
            self._judge(step)

    def _judge(self, step: Step) -> None:
        """Run the judge with a model over each sealed cell; answers that have a verdict are skipped."""
        judge = self.settings.readers.judge
        if judge is None or self.settings.readers.missing_judge is not None or not is_sweep(step.folder):
            return
        for cell in sorted(read_manifest(step.folder).sealed):
            argv = ["judge", str(step.folder / "cells" / cell), "--judge", judge.name, "--endpoint", judge.endpoint]
            argv += ["--model", judge.model] if judge.model else []
            argv += ["--api-key-env", judge.api_key_env] if judge.api_key_env else []
            self._command(f"judge {cell}", python_module("memarena", *argv), step.title)

    def _choose_queries(self) -> bool:
        path = self.settings.out / QUERIES
        if path.exists():
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        egos, per_family = selection_size(self.settings.limit)
        with open_dataset(self.settings.world) as dataset:
            egos = min(egos, len(dataset.egos))
        argv = ["latency", "select", "--dataset", str(self.settings.world), "--out", str(path)]
        argv += ["--egos", str(egos), "--per-family", str(per_family)]
        return self._command("queries of the studies", python_module("memarena", *argv), "queries")

    def _study(self, step: Step) -> None:
        file = self._write(step, "study.toml")
        argv = ["latency", "run", "--config", str(file), "--phase2", "none", "--out", str(step.folder)]
        argv += ["--backend", ",".join(STUDY_GROUPS[step.name])]
        argv += ["--queries", str(self.settings.out / QUERIES)]
        self._command(step.title, python_module("memarena", *argv), step.title)

    # -------------------------------------------------------------- a command

    def _write(self, step: Step, name: str) -> Path:
        step.folder.mkdir(parents=True, exist_ok=True)
        path = step.folder / name
        write_whole(path, step.content)
        return path

    def _command(self, name: str, argv: Sequence[str], title: str, env: Mapping[str, str] | None = None) -> bool:
        """Run a command to its end; return False, with a line for the user, if it failed. Raises StoppedError."""
        self._check()
        log = self.settings.out / "output" / f"{title.replace(', ', '-').replace(' ', '-')}.txt"
        began = time.monotonic()
        with GuardedProcess.start(list(argv), log_path=log, env=env, cwd=Path.cwd(), grace_s=_GRACE_S) as child:
            while (code := child.poll()) is None:
                if self.stop.wait(_POLL_S):
                    child.stop(_GRACE_S)
                    raise StoppedError
            last_line = child.log_tail(1).removeprefix("error: ")
        self.say(f"{name}: {last_line or 'done'} ({time.monotonic() - began:.0f} s)")
        if code != _COMPLETE:
            self.failed[name] = f"exit code {code}: {last_line}; all that it printed: {log}"
        return code == _COMPLETE

    def _check(self) -> None:
        if self.stop.is_set():
            raise StoppedError
