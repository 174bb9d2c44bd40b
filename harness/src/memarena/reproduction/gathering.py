"""Reads the results of the steps: scores of sealed cells of sweeps, the latency study, the size of the data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memarena_dataset.stats import Spread, stats

from memarena import judging
from memarena.evaluation import evaluate, load_facts
from memarena.latency.errors import LatencyError
from memarena.latency.pipeline import study_runs
from memarena.latency.results import Study
from memarena.latency.study import PHASES
from memarena.log.store import log_path
from memarena.reproduction.figures import Measured
from memarena.reproduction.score_figures import ScoredRow
from memarena.reproduction.steps import Settings, Step
from memarena.scoring.costs import run_costs
from memarena.scoring.errors import ScoringError
from memarena.scoring.joining import join_facts
from memarena.scoring.results import RunScores
from memarena.scoring.run import ScoredRun
from memarena.sweep.errors import SweepError
from memarena.sweep.manifest import is_sweep, read_manifest
from memarena.sweep.results import missing, swept_worlds


@dataclass(frozen=True)
class Gathered:
    """The measurements, the scores of their runs, and notes for the tables."""

    measured: Measured
    runs: tuple[RunScores, ...]
    notes: tuple[str, ...]


def gather(steps: Sequence[Step], settings: Settings, say: Callable[[str], None]) -> Gathered:
    """Read all results of the steps so far. ``say`` takes lines for the user."""
    rows: dict[tuple[str, str, str], ScoredRow] = {}
    runs: list[RunScores] = []
    notes: list[str] = []
    for step in (step for step in steps if step.kind == "sweep"):
        for scored in _score(step, settings, say, notes):
            runs.append(scored.scores)
            rows |= {(step.name, step.reader, row.backend): ScoredRow(row, scored) for row in scored.scores.rows}
    folders = [run for step in steps if step.kind == "study" for run in _runs_of(step.folder)]
    study = _study(folders, notes)
    size = _size(settings.world) if settings.world.is_dir() else {}
    return Gathered(Measured(rows, study, _decoding(folders), size), tuple(runs), tuple(notes))


def _score(step: Step, settings: Settings, say: Callable[[str], None], notes: list[str]) -> Iterator[ScoredRun]:
    if not is_sweep(step.folder) or not read_manifest(step.folder).sealed:
        return
    if unsealed := missing(step.folder):
        notes.append(f"{step.title}: {len(unsealed)} cells are not sealed yet")
    readers = settings.readers
    judge = readers.judge.name if readers.judge and readers.missing_judge is None else judging.JUDGE_NAME
    try:
        for world in swept_worlds(step.folder, say):
            yield evaluate(join_facts([load_facts(log) for log in world.runs], world.run_id), judge)
    except (ScoringError, SweepError) as error:  # such as cells of two versions of this program
        notes.append(f"{step.title}: in no table: {error}")


def _runs_of(study: Path) -> list[Path]:
    return [study / phase for phase in PHASES if log_path(study / phase).exists()]


def _study(folders: Sequence[Path], notes: list[str]) -> Study | None:
    if not folders:
        return None
    try:
        return study_runs(folders)
    except LatencyError as error:
        notes.append(f"latency study: {error}")
        return None


def _decoding(folders: Sequence[Path]) -> dict[tuple[str, str], float]:
    """Return tokens per second of the study's answers, by (reader, memory)."""
    speeds: dict[tuple[str, str], float] = {}
    for folder in folders:
        facts = load_facts(folder)
        scored = evaluate(facts)
        costs = {cost.label: cost for cost in run_costs(facts, scored.scores.rows, scored.questions)}
        for row in scored.scores.rows:
            cost = costs.get(row.label)
            speed = cost.efficiency.decode_tokens_per_s_p50 if cost and cost.efficiency else None
            if speed is not None:
                speeds[row.reader, row.backend] = speed
    return speeds


def _size(world: Path) -> dict[str, float]:
    """Return the size of a data set by the paper's labels; tokens as UTF-8 bytes / 4."""
    figures = stats(world)
    means: dict[str, tuple[Spread | None, float]] = {
        "turns per session, mean": (figures.turns_per_session, 1),
        "tokens per session, mean": (figures.bytes_per_session, 4),
        "sessions per ego, mean": (figures.ego_sessions_per_agent, 1),
        "turns per ego, mean": (figures.ego_turns_per_agent, 1),
        "tokens observed per ego, mean": (figures.ego_bytes_per_agent, 4),
        "tokens observed per ego and day, mean": (figures.ego_bytes_per_agent_day, 4),
    }
    return {
        "agents": figures.agents,
        "days": figures.days,
        "sessions": figures.sessions,
        "turns": figures.turns,
        "tokens": figures.bytes / 4,
        "words": figures.words,
        "questions": figures.instances,
        **{name: spread.mean / divisor for name, (spread, divisor) in means.items() if spread is not None},
    }
