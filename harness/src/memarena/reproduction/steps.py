"""Derives the steps that tables need: sweeps and studies, each a command on a file that is written first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memarena.configs import Configuration, read_named
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.errors import RunError
from memarena.latency.selection import EGOS, PER_FAMILY
from memarena.reproduction.missing import missing_of_reader
from memarena.reproduction.reader_set import ReaderSet
from memarena.reproduction.tables import ConfigurationUse, PaperTable, use_of
from memarena.reproduction.toml_text import to_toml
from memarena.sweep.configured import memory_entry, named_backends, run_fields
from memarena.sweep.plan import ReaderEntry

WORLD = ("--preset", "l", "--seed", "42")
"""Arguments for the default data set, of the size of the paper's, which is not published."""
STUDY_GROUPS: Mapping[str, tuple[str, ...]] = {
    "fit": ("vanilla", "oracle", "bm25"),
    "memsearch": ("memsearch",),
    "memobase": ("memobase",),
}
"""Memories that are timed in one study, by its name; the paper times memsearch only with its smallest reader."""
_MEMOBASE = "memobase"
_STRUCTURED = "structured"
"""Name of the backend ``memobase_oracle`` in the configuration ``memobase-oracle``; it needs Memobase too."""
_FIRST_READER_ONLY = ("memsearch",)
"""Studies that run only with the first reader of the set."""
_STUDY_EMBEDDER = "nomic-embed-text"
"""Name of the embedder of the studies, as in the file of readers."""
Kind = Literal["sweep", "study"]


@dataclass(frozen=True)
class Settings:
    """The settings of a reproduction."""

    readers: ReaderSet
    out: Path
    dataset: Path | None = None
    limit: int | None = None
    gpus: int = 1
    executor: tuple[str, ...] = ()
    """Flags of each sweep for where its cells run."""

    @property
    def world(self) -> Path:
        """Return the folder of the data set: ``dataset``, else the default that is generated."""
        return (self.dataset or self.out / "world").absolute()


@dataclass(frozen=True)
class Step:
    """A sweep of a configuration, or a study, with one reader: a command that can be resumed."""

    kind: Kind
    name: str
    """Name of the configuration, or of the study's group of memories."""
    reader: str
    folder: Path
    content: str
    """Content of the file that the command reads."""
    cells: tuple[tuple[str, str], ...] = ()
    """(memory, seed) of each cell, including those in ``left_out``."""
    missing: tuple[str, ...] = ()
    """Why the step cannot run at all on this machine."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Memories that are left out on this machine, and why."""

    @property
    def left_out_by_reason(self) -> Mapping[str, tuple[str, ...]]:
        """Memories that are left out, by reason; () for a reason that stops the whole step."""
        by_reason: dict[str, tuple[str, ...]] = dict.fromkeys(self.missing, ())
        for memory, reason in self.left_out.items():
            if reason not in self.missing:
                by_reason[reason] = (*by_reason.get(reason, ()), memory)
        return by_reason

    @property
    def asks_memobase(self) -> bool:
        """Whether some of its cells need the Memobase server, which can use a single gateway at a time."""
        return any(
            _MEMOBASE in memory or memory == _STRUCTURED for memory, _ in self.cells if memory not in self.left_out
        )

    @property
    def title(self) -> str:
        """Return its name for messages."""
        return f"{self.kind} {self.name}, {self.reader}"


def steps_of(tables: Iterable[PaperTable], settings: Settings) -> tuple[Step, ...]:
    """Return the steps that tables need, each once, by reader, sweeps before studies.

    Raises RunError for a bad configuration.
    """
    tables = list(tables)
    names = list(dict.fromkeys(name for table in tables for name in table.configurations))
    study = any(table.study for table in tables)
    steps: list[Step] = []
    for reader in settings.readers.readers:
        steps += [_sweep(read_named(name), reader, settings) for name in names if _asks(name, reader, settings)]
        steps += _studies(reader, settings) if study else []
    return tuple(steps)


def steps_for(table: PaperTable, steps: Sequence[Step]) -> list[Step]:
    """Return the steps that a table needs."""
    return [s for s in steps if (s.name in table.configurations if s.kind == "sweep" else table.study)]


def _asks(configuration: str, reader: ReaderEntry, settings: Settings) -> bool:
    """Whether a configuration is run with a reader: one of the paper's choice, else the first reader of the set."""
    chosen = use_of(configuration).readers
    names = [str(each.name) for each in settings.readers.readers]
    return not chosen or (reader.name in chosen if set(chosen) & set(names) else reader.name == names[0])


# ------------------------------------------------------------------ sweeps


def _sweep(configuration: Configuration, reader: ReaderEntry, settings: Settings) -> Step:
    """Return the step that runs a configuration with one reader, without the memories that cannot run here."""
    use = use_of(configuration.name)
    run = dict(configuration.run)
    helpers, missing_helpers = _helpers(configuration.needs, use.helpers, settings.readers)
    backends = named_backends(run)
    memories: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for name, backend in backends:
        entry = memory_entry(name, backend, run)
        if _MEMOBASE in backend:
            entry |= _alone(entry.get("run"), settings.readers.gateway_port)
        reasons = [line for role, line in missing_helpers.items() if _needs(name, role, use)]
        if (reason := unmet(backend, entry.get("settings"))) is not None:
            reasons.insert(0, reason)
        if reasons:
            left_out[name] = reasons[0]
        else:
            memories.append(entry)
    seeds = seeds_of(configuration)
    limit = {"limit": settings.limit} if settings.limit else {}
    content = {
        "title": configuration.title,
        "worlds": [{"dataset": str(settings.world)}],
        "memories": memories,
        "readers": [_with_window(reader, use.window_tokens)],
        "seeds": seeds,
        "run": run_fields(run) | helpers | limit,
    }
    missing = missing_of_reader(reader)
    if not memories:
        missing = (*missing, *left_out.values())
    return Step(
        "sweep",
        configuration.name,
        str(reader.name),
        settings.out / "sweeps" / configuration.name / short(reader.name),
        to_toml(content),
        tuple((name, seed) for name, _ in backends for seed in seeds),
        tuple(dict.fromkeys(missing)),
        left_out,
    )


def _alone(run: Mapping[str, Any] | None, port: int) -> dict[str, Any]:
    """Return entries for a Memobase cell: its server knows a single gateway port, so the cell runs alone."""
    return {"run": {**(run or {}), "gateway_port": port}, "needs": {"cpus": os.cpu_count() or 1}}


def _needs(memory: str, role: str, use: ConfigurationUse) -> bool:
    """Whether a memory needs the model of a role; every memory does if the file of tables names none."""
    return memory in use.needed_by.get(role, (memory,))


def unmet(backend: str, settings: Mapping[str, str] | None = None) -> str | None:
    """Return why a memory cannot be started here; None if it can."""
    try:
        choice = choose_backend(backend)
    except RunError as error:
        return str(error).removeprefix("--backend ")
    return choice.unmet(settings) if isinstance(choice, LaunchableBackend) else None


def _helpers(
    needs: Iterable[str], names: Mapping[str, str], readers: ReaderSet
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the models that a configuration needs, as fields of a run by role, and what is missing, by role."""
    fields: dict[str, dict[str, Any]] = {}
    missing = {}
    for role in dict.fromkeys((*needs, *names)):
        name = names.get(role, role)
        if (helper := readers.helper(role, name)) is not None:
            fields[role] = helper.model_dump(exclude_none=True)
        else:
            missing[role] = f"an address of the {role} {name}"
    return fields, missing


def _with_window(reader: ReaderEntry, window_tokens: int | None) -> dict[str, Any]:
    """Return a reader's entry for a sweep's file; a stated window below ``window_tokens`` is raised to it."""
    stated = reader.window_tokens
    if window_tokens is not None and stated is not None and stated < window_tokens:
        reader = reader.model_copy(update={"window_tokens": window_tokens})
    return reader.model_dump(mode="json", exclude_defaults=True)


# ------------------------------------------------------------------ studies


def _studies(reader: ReaderEntry, settings: Settings) -> list[Step]:
    first = settings.readers.readers[0].name == reader.name
    groups = [name for name in STUDY_GROUPS if first or name not in _FIRST_READER_ONLY]
    return [_study(name, reader, settings) for name in groups]


def _study(group: str, reader: ReaderEntry, settings: Settings) -> Step:
    """Return the step that times a group of memories with one reader."""
    memories = STUDY_GROUPS[group]
    needs = () if group == "fit" else ("embedder",)
    helpers, missing = _helpers(needs, {"embedder": _STUDY_EMBEDDER} if needs else {}, settings.readers)
    timed = reader.model_copy(update={"prefill": "warm"})  # as the paper: SGLang keeps prefixes
    run: dict[str, Any] = {
        "dataset": str(settings.world),
        "readers": [timed.model_dump(mode="json", exclude={"needs"}, exclude_defaults=True)],
        **helpers,
    }
    if group == _MEMOBASE:
        run["gateway_port"] = settings.readers.gateway_port
    if settings.limit is not None:  # a trial: no rest for energy, no warm-up
        run |= {"idle_s": 0, "warm_up": 0, "floor_samples": 0, "meters": ["none"]}
    unmet_lines = [f"{name}: {reason}" for name in memories if (reason := unmet(name)) is not None]
    return Step(
        "study",
        group,
        str(reader.name),
        settings.out / "latency" / short(reader.name) / group,
        to_toml({"title": f"Times of {', '.join(memories)}", "run": run}),
        tuple((memory, "s1") for memory in memories),
        (*missing_of_reader(reader), *missing.values(), *unmet_lines),
    )


def selection_size(limit: int | None) -> tuple[int, int]:
    """Return the number of egos, and of queries per family, of a study."""
    return (EGOS, PER_FAMILY) if limit is None else (min(EGOS, limit), max(1, limit // 9))


def short(name: object) -> str:
    """Return a name in a form that is valid for a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", str(name)).strip("-.")[:64] or "x"


def seeds_of(configuration: Configuration) -> tuple[str, ...]:
    """Return the seeds of a configuration: those of the file of tables, else its own."""
    return use_of(configuration.name).seeds or _texts(configuration.run.get("seeds", ("s1",)))


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list | tuple) else ()
