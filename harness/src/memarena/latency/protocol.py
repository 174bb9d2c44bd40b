"""Running a study: phase 1 times readers over memories that cost nothing, phase 2 what memories cost to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena.dataset.reading import open_dataset
from memarena.latency.errors import LatencyError
from memarena.latency.selection import EGOS, PER_FAMILY, Selection, select_queries, write_selection
from memarena.log.store import log_path
from memarena.run.config import HelperConfig, ReaderConfig, RunConfig
from memarena.run.display import Display
from memarena.run.engine import execute
from memarena.run.request import RunOutcome, RunRequest

DataFiles = Callable[[], Mapping[str, str]]

QUERIES_FILE = "queries.txt"
PHASES = ("phase1", "phase2")
VANILLA_TOKENS = 512
WARM_UP = 8


@dataclass(frozen=True)
class StudyPlan:
    """What a study does; figures of the paper are the defaults."""

    dataset: Path
    out: Path
    readers: tuple[ReaderConfig, ...]
    phase1: tuple[str, ...] = ("vanilla", "oracle", "bm25")
    phase2: tuple[str, ...] = ("memsearch", "memobase")
    """Asked of the first reader alone; empty leaves phase 2 out."""
    queries: Path | None = None
    """A list made before; None chooses one."""
    egos: int = EGOS
    per_family: int = PER_FAMILY
    vanilla_tokens: int = VANILLA_TOKENS
    max_context_tokens: int = 8192
    max_answer_tokens: int = 400
    embedder: HelperConfig | None = None
    extractor: HelperConfig | None = None
    meters: tuple[str, ...] = ("auto",)
    system_rail: str | None = None
    idle_s: float = 120.0
    warm_up: int = WARM_UP
    floor_samples: int = 200
    order_seed: int = 0
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    gateway_port: int = 0
    """Where the gateway listens, for a memory whose own server is told it once; 0 for any port."""
    cell_token: str | None = None
    """The key that such a server sends."""
    reader_api_key: str | None = None
    scoring_files: tuple[DataFiles, ...] = ()


@dataclass(frozen=True)
class PhaseOutcome:
    """How a phase's run ended."""

    folder: Path
    outcome: RunOutcome


def run_study(plan: StudyPlan, display: Callable[[], Display]) -> list[PhaseOutcome]:
    """Choose the queries and do what is left of both phases; ends after a phase that did not complete.

    A study whose folder is there already is gone on with. Raises :class:`LatencyError` and what a run raises.
    """
    ids = _queries(plan)
    done = []
    for name, config in _configs(plan, ids):
        folder = plan.out / name
        resume = log_path(folder).exists()
        request = RunRequest(
            out=folder,
            config=config,
            resume=resume,
            reader_api_key=plan.reader_api_key,
            cell_token=plan.cell_token,
            scoring_files=plan.scoring_files,
        )
        outcome = execute(request, display())
        done.append(PhaseOutcome(folder, outcome))
        if outcome.reason != "completed":
            break
    return done


def run_dirs(study: Path) -> list[Path]:
    """The runs of a study's folder, or the run itself where one is given. Raises :class:`LatencyError` for neither."""
    if log_path(study).exists():
        return [study]
    found = [study / name for name in PHASES if log_path(study / name).exists()]
    if not found:
        raise LatencyError(f"{study}: neither a run nor a study: there is no log in it")
    return found


def _configs(plan: StudyPlan, ids: tuple[str, ...]) -> list[tuple[str, RunConfig]]:
    def config(backends: Sequence[str], readers: tuple[ReaderConfig, ...]) -> RunConfig:
        options = {name: values for name, values in plan.options.items() if name in backends}
        if "vanilla" in backends:
            options["vanilla"] = {"budget_tokens": str(plan.vanilla_tokens), **options.get("vanilla", {})}
        return RunConfig(
            dataset=plan.dataset,
            backends=tuple(backends),
            readers=readers,
            embedder=plan.embedder,
            extractor=plan.extractor,
            # Days first, then questions: ingest and answers are phases of their own, each long enough to be metered.
            protocol="end_of_horizon",
            question_ids=ids,
            max_context_tokens=plan.max_context_tokens,
            max_answer_tokens=plan.max_answer_tokens,
            options=options,
            order_seed=plan.order_seed,
            meters=plan.meters,
            system_rail=plan.system_rail,
            idle_s=plan.idle_s,
            warm_up=plan.warm_up,
            floor_samples=plan.floor_samples,
            gateway_port=plan.gateway_port,
        )

    found = [("phase1", config(plan.phase1, plan.readers))]
    if plan.phase2:
        found.append(("phase2", config(plan.phase2, plan.readers[:1])))
    return found


def _queries(plan: StudyPlan) -> tuple[str, ...]:
    """The study's queries, from its own list, from the one given, or chosen now."""
    own = plan.out / QUERIES_FILE
    source = own if own.exists() else plan.queries
    if source is None:
        with open_dataset(plan.dataset) as dataset:
            selection: Selection = select_queries(dataset, egos=plan.egos, per_family=plan.per_family)
        plan.out.mkdir(parents=True, exist_ok=True)
        write_selection(selection, own)
        return selection.instance_ids
    ids = read_queries(source)
    if source != own:
        plan.out.mkdir(parents=True, exist_ok=True)
        own.write_bytes(source.read_bytes())
    return ids


def read_queries(path: Path) -> tuple[str, ...]:
    """Instance ids of a list, one per line; lines that begin with # are passed over. Raises :class:`LatencyError`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LatencyError(f"--queries {path}: cannot be read: {error}") from error
    ids = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not ids:
        raise LatencyError(f"--queries {path}: names no instance; expected one id per line")
    return ids
