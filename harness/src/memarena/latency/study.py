"""Runs a study: phase 1 times readers with memories that use no model, phase 2 memories that use models.

Each phase is a run in its own folder. The fits of phase 1 then predict readers that phase 2 does not run
(:mod:`memarena.latency.pipeline`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.io.reading import open_dataset

from memarena.execution.backends.manifests import BackendChoice, LaunchableBackend, choose_backend
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS, RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunOutcome, RunRequest
from memarena.latency.errors import LatencyError
from memarena.latency.selection import EGOS, PER_FAMILY, Selection, select_queries, write_selection
from memarena.log.records import NamedConfiguration
from memarena.log.store import log_path

DataFiles = Callable[[], Mapping[str, str]]

QUERIES_FILE = "queries.txt"
PHASES = ("phase1", "phase2")
PHASE1 = ("vanilla", "oracle", "bm25")
PHASE2 = ("memsearch", "memobase")
VANILLA_TOKENS = 512
"""Budget of the backend ``vanilla``, which returns the latest turns that fit."""
WARM_UP = 8
"""Requests to each reader of every prompt length before anything is timed (``warm_up`` of a run)."""
IDLE_S = 120.0
"""Seconds at rest before and after each phase, needed for net energy."""

SET_BY_THE_STUDY: Mapping[str, str] = {
    each.name: each.setting.set_by_study for each in SETTINGS if each.setting.set_by_study
}
"""Settings of a run that a study sets itself, each with its reason."""


@dataclass(frozen=True)
class StudyPlan:
    """The settings of a study; the defaults are those of the paper."""

    config: RunConfig
    """Configuration of phase 1. Fields in :data:`SET_BY_THE_STUDY` are not read from it, except for its backends."""
    out: Path
    phase2: tuple[str, ...] = PHASE2
    """Backends of phase 2, which run with the first reader only; empty: no phase 2."""
    queries: Path | None = None
    """File with the list of queries; None: choose them."""
    egos: int = EGOS
    per_family: int = PER_FAMILY
    vanilla_tokens: int = VANILLA_TOKENS
    cell_token: str | None = None
    """The key that a memory's own server sends to the gateway."""
    reader_api_key: str | None = None
    scoring_files: tuple[DataFiles, ...] = ()
    configuration: NamedConfiguration | None = None
    """The file that ``config`` was read from, if it was."""


@dataclass(frozen=True)
class PhaseOutcome:
    """How a phase's run ended."""

    folder: Path
    outcome: RunOutcome


def run_study(plan: StudyPlan, execute: Callable[[RunRequest], RunOutcome]) -> list[PhaseOutcome]:
    """Choose the queries, and run or resume both phases; end after a phase that did not complete.

    Both phases are checked before the first begins. A study whose folder exists is resumed. Raises
    :class:`LatencyError` and what a run raises.
    """
    phases = _phases(plan)
    ids = _queries(plan)
    # All configurations first, so that a fault of phase 2 is reported before the hours of phase 1.
    configs = [(name, _config(plan, ids, chosen)) for name, chosen in zip(PHASES, phases, strict=False)]
    outcomes = []
    for name, config in configs:
        folder = plan.out / name
        request = RunRequest(
            out=folder,
            config=config,
            resume=log_path(folder).exists(),
            reader_api_key=plan.reader_api_key,
            cell_token=plan.cell_token,
            scoring_files=plan.scoring_files,
            configuration=plan.configuration,
        )
        outcome = execute(request)
        outcomes.append(PhaseOutcome(folder, outcome))
        if outcome.reason != "completed":
            break
    return outcomes


def run_dirs(study: Path) -> list[Path]:
    """Return the runs in a study's folder; a run's folder itself. Raises :class:`LatencyError` for any other folder."""
    if log_path(study).exists():
        return [study]
    folders = [study / name for name in PHASES if log_path(study / name).exists()]
    if not folders:
        raise LatencyError(f"{study}: neither a run nor a study: there is no log in it")
    return folders


@dataclass(frozen=True)
class _Phase:
    """The backends of a phase as the user wrote them, by name."""

    backends: Mapping[str, str]
    readers: int | None
    """Number of readers that it uses, from the first; None: all."""


def _phases(plan: StudyPlan) -> list[_Phase]:
    """Return the phases. Raises LatencyError for a backend that does not exist or cannot be started."""
    if plan.vanilla_tokens < 1:
        raise LatencyError(f"--vanilla-tokens {plan.vanilla_tokens}: expected at least 1")
    first = _backends_by_name(plan, plan.config.backends, "--backend")
    second = _backends_by_name(plan, plan.phase2, "--phase2")
    if twice := sorted(first.keys() & second.keys()):
        raise LatencyError(f"--phase2 {twice[0]}: phase 1 times it already")
    _check_names(plan.config, [*first, *second])
    return [_Phase(first, None), *([_Phase(second, 1)] if second else [])]


def _backends_by_name(plan: StudyPlan, backends: Sequence[str], flag: str) -> dict[str, str]:
    """Return the backends by name, as written. Raises LatencyError if one cannot be started or a name repeats."""
    by_name: dict[str, str] = {}
    for text in backends:
        try:
            choice = choose_backend(text)
        except RunError as error:
            raise LatencyError(str(error).replace("--backend", flag, 1)) from error
        if choice.name in by_name:
            raise LatencyError(f"{flag}: two backends go by the name {choice.name}; write NAME=… to distinguish them")
        if (missing := _missing(choice, plan.config.settings.get(choice.name))) is not None:
            other_backends = ",".join(backend for backend in backends if backend != text) or "none"
            raise LatencyError(f"{flag} {text}: {missing}; without it: {flag} {other_backends}")
        by_name[choice.name] = text
    return by_name


def _missing(choice: BackendChoice, settings: Mapping[str, str] | None) -> str | None:
    """Return why a backend cannot be started; None if it can, or need not be."""
    return choice.unmet(settings) if isinstance(choice, LaunchableBackend) else None


_BY_BACKEND = ("options", "settings", "prompt_styles", "diagnostic", "access_markers", "whole_corpus")
"""Settings by backend: each phase gets the entries of its own backends."""


def _check_names(config: RunConfig, names: Sequence[str]) -> None:
    for field in _BY_BACKEND:
        for name in getattr(config, field):
            if name not in names:
                raise LatencyError(f"{field}: {name}: no backend of this name in the study ({', '.join(names)})")


def _config(plan: StudyPlan, ids: tuple[str, ...], phase: _Phase) -> RunConfig:
    """Return the configuration of a phase: the plan's settings, and those that the study sets itself."""
    values = {name: value for name, value in plan.config.model_dump().items() if name not in SET_BY_THE_STUDY}
    for field in _BY_BACKEND:
        by_backend = values[field]
        names = [name for name in by_backend if name in phase.backends]
        values[field] = {name: by_backend[name] for name in names} if isinstance(by_backend, dict) else names
    if "vanilla" in phase.backends:
        budget = {"budget_tokens": str(plan.vanilla_tokens)}
        values["options"]["vanilla"] = {**budget, **values["options"].get("vanilla", {})}
    values |= {
        "backends": list(phase.backends.values()),
        "readers": values["readers"][: phase.readers],
        # Days first, then questions: so ingest and answers are separate phases, each long enough to be metered.
        "protocol": "end_of_horizon",
        "question_ids": ids,
    }
    return parse_config(values, "memarena latency run")


def _queries(plan: StudyPlan) -> tuple[str, ...]:
    """Return the study's queries: from the list in its folder, else from ``plan.queries``, else chosen now.

    Raises :class:`LatencyError` if ``plan.queries`` differs from the list in the study's folder.
    """
    study_list = plan.out / QUERIES_FILE
    if study_list.exists() and plan.queries is not None and read_queries(plan.queries) != read_queries(study_list):
        raise LatencyError(
            f"--queries {plan.queries}: not the list that the study began with, {study_list}; "
            "leave it out, or choose another --out"
        )
    source = study_list if study_list.exists() else plan.queries
    if source is None:
        with open_dataset(plan.config.dataset, leave_out=plan.config.leave_out) as dataset:
            selection: Selection = select_queries(dataset, egos=plan.egos, per_family=plan.per_family)
        plan.out.mkdir(parents=True, exist_ok=True)
        write_selection(selection, study_list)
        return selection.instance_ids
    ids = read_queries(source)
    if source != study_list:
        plan.out.mkdir(parents=True, exist_ok=True)
        study_list.write_bytes(source.read_bytes())
    return ids


def read_queries(path: Path) -> tuple[str, ...]:
    """Read a list of instance ids, one per line; lines that begin with # are skipped. Raises :class:`LatencyError`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LatencyError(f"--queries {path}: cannot be read: {error}") from error
    ids = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not ids:
        raise LatencyError(f"--queries {path}: names no instance; expected one id per line")
    return ids
