"""Tests a run's scores in MLflow, read back by MLflow's client."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import memarena
import pytest
from memarena.tables import mlflow as exporting
from memarena.tables.errors import TableError
from memarena.tables.mlflow import export_to_mlflow, metric_name
from memarena.tables.run import Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of eight cells, one of them with a range instead of a figure."""
    return memarena.open_run(
        shutil.copytree(ROOT / "tests" / "golden" / "small_run", tmp_path_factory.mktemp("small") / "run")
    )


@pytest.mark.filterwarnings("ignore")
def test_every_cell_is_an_mlflow_run_with_its_figures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="needs the extra mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "store").as_uri()
    ids = export_to_mlflow(run, uri, "memories")
    client = tracking.MlflowClient(tracking_uri=uri)
    experiment_id = client.get_experiment_by_name("memories").experiment_id
    logged = {mlflow_run.data.params["cell_id"]: mlflow_run.data for mlflow_run in client.search_runs([experiment_id])}
    cells = {cell["cell_id"]: cell for cell in run.cells()}
    assert set(logged) == set(cells)
    for cell_id, cell in cells.items():
        assert logged[cell_id].metrics["correct"] == cell["correct"]
        assert logged[cell_id].params["dataset_sha256"] == run.scored.scores.dataset.sha256
    missing = 0
    for score in run.scores():
        metrics = logged[score["cell_id"]].metrics
        missing += score["value"] is None
        assert metrics.get(metric_name(str(score["figure"]))) == score["value"], (
            "a figure without a value has no metric"
        )
    assert missing > 0
    assert export_to_mlflow(run, uri, "memories") != ids
    assert len(client.search_runs([experiment_id])) == len(cells), "what was exported before is replaced"


@pytest.mark.filterwarnings("ignore")
def test_a_server_that_cannot_be_used_is_one_line(run: Run) -> None:
    pytest.importorskip("mlflow.tracking", reason="needs the extra mlflow")
    with pytest.raises(TableError, match="--mlflow nothing://here: "):
        export_to_mlflow(run, "nothing://here", "memories")


def test_without_mlflow_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(exporting, "import_module", missing)
    with pytest.raises(TableError, match=r"pip install 'memarena\[mlflow\]'"):
        export_to_mlflow(run, "http://127.0.0.1:1", "memories")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "error: export: expected either --out DIR or --mlflow URI\n"),
        (["--mlflow", "http://127.0.0.1:1", "--gold"], "error: --gold: goes with --out, not with --mlflow\n"),
    ],
)
def test_where_it_goes_has_to_be_said(run: Run, flags: list[str], message: str) -> None:
    command = [sys.executable, "-m", "memarena", "export", str(run.path), *flags]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (2, message)
