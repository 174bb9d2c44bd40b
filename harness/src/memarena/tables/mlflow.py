"""Exports a run's scores to MLflow: one MLflow run for each cell, figures as metrics, settings as parameters."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from memarena.tables.columns import Row
from memarena.tables.errors import TableError
from memarena.tables.run import Run

_COUNTS = ("planned", "correct", "wrong", "backend_failed", "infra_failed", "reader_not_applicable")
_SAME = "memarena.cell"
"""Tag that identifies the MLflow run of a cell, to replace an earlier export."""


def export_to_mlflow(run: Run, uri: str, experiment: str) -> list[str]:
    """Log every cell to the tracking server ``uri``; return the ids of the MLflow runs, in the order of the cells.

    An earlier export of a cell to this experiment is replaced. A figure without a value gives no metric; the ends of an
    interval are ``FIGURE.interval_low`` and ``FIGURE.interval_high``. No right answer is exported.

    Raises:
        TableError: MLflow is not installed, or the server refuses or cannot be reached.
    """
    try:
        tracking, entities = import_module("mlflow.tracking"), import_module("mlflow.entities")
        failure: type[Exception] = import_module("mlflow.exceptions").MlflowException
    except ImportError as error:
        raise TableError("--mlflow: MLflow is not installed", remedy="pip install 'memarena[mlflow]'") from error
    scores: dict[str, dict[str, float]] = {}
    for score in run.scores():
        scores.setdefault(str(score["cell_id"]), {}).update(_metrics(score))
    try:
        client = tracking.MlflowClient(tracking_uri=uri)
        experiment_id = _experiment(client, experiment)
        return [
            _log_cell(client, entities, experiment_id, run, cell, scores.get(str(cell["cell_id"]), {}))
            for cell in run.cells()
        ]
    except failure as error:
        raise TableError(f"--mlflow {uri}: {' '.join(str(error).split())[:300]}") from error


def metric_name(figure: str) -> str:
    """Return a figure's name in characters that MLflow allows: ``D5_star`` for D5*, ``J known`` for J|known."""
    return figure.replace("*", "_star").replace("|", " ")


def _experiment(client: Any, name: str) -> str:
    existing = client.get_experiment_by_name(name)
    return str(existing.experiment_id if existing is not None else client.create_experiment(name))


def _log_cell(client: Any, entities: Any, experiment_id: str, run: Run, cell: Row, metrics: dict[str, float]) -> str:
    """Log a cell as a new MLflow run, delete its earlier exports, and return the run's id."""
    scores = run.scored.scores
    cell_tag = f"{scores.run_id} {cell['cell_id']}"
    earlier_exports = client.search_runs([experiment_id], filter_string=f"tags.`{_SAME}` = '{cell_tag}'")
    new_run = client.create_run(experiment_id, run_name=str(cell["cell_id"]), tags={_SAME: cell_tag})
    run_id: str = new_run.info.run_id
    params = {
        "run_id": scores.run_id,
        "memarena_version": scores.memarena_version,
        "dataset": scores.dataset.name,
        "dataset_sha256": scores.dataset.sha256,
        "protocol": scores.protocol,
        "judge": scores.judge,
        **{name: value for name, value in cell.items() if name not in _COUNTS and value is not None},
    }
    counts = {name: float(str(cell[name])) for name in _COUNTS}
    at_ms = new_run.info.start_time
    client.log_batch(
        run_id,
        metrics=[entities.Metric(name, value, at_ms, 0) for name, value in {**counts, **metrics}.items()],
        params=[entities.Param(name, str(value)) for name, value in params.items()],
    )
    client.set_terminated(run_id)
    # Last: if the export breaks off, the earlier export still exists.
    for previous in earlier_exports:
        client.delete_run(previous.info.run_id)
    return run_id


def _metrics(score: Row) -> dict[str, float]:
    """Return the metrics of a figure: its value and the ends of its interval, without missing ones."""
    figure = metric_name(str(score["figure"]))
    ends = {"": score["value"], ".interval_low": score["interval_low"], ".interval_high": score["interval_high"]}
    return {f"{figure}{end}": value for end, value in ends.items() if isinstance(value, float)}
