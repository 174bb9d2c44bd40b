"""Tests growth: Search times, memory and disk by days of one ego's history, sidecar servers, and incomplete runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from memarena.cli.main import app
from memarena.latency.errors import LatencyError
from memarena.latency.growth import growth_config, read_growth
from memarena.latency.report.growth import growth_document
from memarena.latency.results import Growth
from memarena.latency.sidecar_footprint import BESIDE_FILE, sidecars
from memarena.log.records import IngestDone, RunEnded, RunStarted, SearchesTimed
from memarena.log.store import LogWriter, read_records
from memarena.report.charts.scale import tick_label
from memarena.report.render.markdown import to_markdown
from typer.testing import CliRunner

EXAMPLE = Path(__file__).parents[1] / "data" / "example"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of bm25 and vanilla after one and two days, with a process as sidecar and a folder of known size."""
    folder = tmp_path_factory.mktemp("growth")
    (folder / "database").mkdir()
    (folder / "database" / "rows").write_bytes(os.urandom(300_000))
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; kept = b'x' * 30_000_000; time.sleep(600)"])
    try:
        result = CliRunner().invoke(
            app,
            [
                "latency", "growth", "--dataset", str(EXAMPLE), "--backend", "bm25,vanilla", "--days", "1,2",
                "--searches", "12", "--meter", "none", "--out", str(folder / "run"), "--files", str(folder / "files"),
                "--format", "md", "--beside", f"server={sleeper.pid}",
                "--beside-disk", f"server={folder / 'database'}", "--beside-disk", f"archive={folder / 'database'}",
            ],
        )  # fmt: skip
    finally:
        sleeper.kill()
        sleeper.wait()
    assert result.exit_code == 0, result.output
    assert "| bm25" in result.output
    assert "gateway less direct" in result.output
    return folder / "run"


@pytest.fixture(scope="module")
def growth(run_dir: Path) -> Growth:
    return read_growth(run_dir)


def test_growth_times_search_after_each_number_of_days(run_dir: Path, growth: Growth) -> None:
    assert [(p.backend, p.days) for p in growth.points] == [("bm25", 1), ("bm25", 2), ("vanilla", 1), ("vanilla", 2)]
    for first, second in (growth.points[:2], growth.points[2:]):
        assert first.search.n == second.search.n == 12
        assert first.turns < second.turns
        assert first.ingest_s < second.ingest_s
        assert (first.footprint.disk.value or 0) <= (second.footprint.disk.value or 0)
        assert first.search.p50 is not None
        assert 0 < first.search_min_ms <= first.search.p50 <= first.search_max_ms
    assert (run_dir.parent / "files" / "growth.svg").read_text().startswith("<svg ")
    again = CliRunner().invoke(app, ["latency", "growth", str(run_dir), "--format", "json"])
    assert json.loads(again.output) == json.loads(growth.model_dump_json())


def test_turns_are_counted_for_the_measured_ego_only(run_dir: Path, growth: Growth) -> None:
    (ego,) = growth.egos
    ingested = [r for r in read_records(run_dir, "ingest") if isinstance(r, IngestDone)]
    turns = {(r.cell_id.partition("@")[0], r.day): r.turns for r in ingested}
    assert {r.ego for r in ingested} == {ego}
    for point in growth.points:
        assert point.turns == sum(turns[point.backend, day] for day in range(point.days))


def test_sidecar_servers_are_reported_separately_from_the_backend(run_dir: Path, growth: Growth) -> None:
    for point in growth.points:
        assert [sidecar.name for sidecar in point.beside] == ["server", "archive"]
        server, archive = point.beside
        assert server.memory.value is not None
        assert server.memory_peak.value is not None
        assert 30e6 < server.memory.value <= server.memory_peak.value < 200e6
        assert server.disk.value is not None
        assert 300_000 <= server.disk.value < 400_000
        assert (archive.memory.status, archive.disk.value) == ("unavailable", server.disk.value)
        assert "no --beside archive" in archive.memory.reason
    text = to_markdown(growth_document(growth))
    backend_tables, _, sidecar_tables = text.partition("## Servers next to the backends")
    assert "server" not in backend_tables.partition("## Search")[2]
    assert sidecar_tables.count("| bm25 |") == 4
    csv = (run_dir.parent / "files" / "growth.csv").read_text()
    assert "beside.0.memory.value" in csv.splitlines()[0]


def test_points_without_sidecar_figures_are_named(growth: Growth) -> None:
    without = growth.model_copy(update={"points": tuple(p.model_copy(update={"beside": ()}) for p in growth.points)})
    assert "Servers next to" not in to_markdown(growth_document(without))
    part = growth.model_copy(update={"points": (growth.points[0], *without.points[1:])})
    assert "bm25 after 2 days: not taken" in to_markdown(growth_document(part))


def test_a_broken_file_of_servers_is_named(run_dir: Path, tmp_path: Path) -> None:
    copied(run_dir, tmp_path / "run")
    (tmp_path / "run" / BESIDE_FILE).write_text((run_dir / BESIDE_FILE).read_text() + '{"cell_id": "bm25"}\n')
    with pytest.raises(LatencyError, match=r"beside\.jsonl, line 9: "):
        read_growth(tmp_path / "run")


@pytest.mark.parametrize(
    ("memory", "disk", "message"),
    [
        (["server"], [], "--beside server: expected NAME=PID"),
        (["=1"], [], "--beside =1: expected NAME=PID"),
        (["server=999999999"], [], "no such process"),
        (["server=/tmp"], [], "neither a process id nor the folder of a control group"),
        ([f"server={os.getpid()}", f"server={os.getpid()}"], [], "server is given twice"),
        ([], ["server=/nowhere"], "--beside-disk server=/nowhere: no such folder"),
    ],
)
def test_missing_sidecar_servers_are_refused(memory: list[str], disk: list[str], message: str) -> None:
    with pytest.raises(LatencyError, match=message):
        sidecars(memory, disk)


def test_a_control_group_is_read_from_its_folder(tmp_path: Path) -> None:
    for name, value in (("memory.current", 5_000_000), ("memory.peak", 9_000_000)):
        (tmp_path / name).write_text(f"{value}\n")
    (tmp_path / "memory.stat").write_text("inactive_file 1000000\n")
    (sidecar,) = sidecars([f"db={tmp_path}"], [])
    footprint = sidecar.footprint()
    assert footprint.memory_peak.value == 9_000_000
    assert 4_000_000 <= (footprint.memory.value or 0) <= 5_000_000
    assert "no --beside-disk db" in footprint.disk.reason


def copied(run_dir: Path, to: Path, *, ego: str = "", ended: bool = True, days: int = 2) -> None:
    """Copy the run with changes: searches of another ego, without its end, or with fewer days."""
    with LogWriter(to) as log:
        for record in read_records(run_dir):
            if isinstance(record, RunEnded) and not ended:
                continue
            if isinstance(record, SearchesTimed) and record.day + 1 > days and record.cell_id.startswith("bm25"):
                continue
            if isinstance(record, SearchesTimed) and ego and record.day:
                log.append(record.model_copy(update={"ego": ego}))
            else:
                log.append(record)


def test_a_run_over_several_egos_has_no_growth(run_dir: Path, tmp_path: Path) -> None:
    copied(run_dir, tmp_path / "run", ego="somebody_else")
    with pytest.raises(LatencyError, match=r"searches of 2 egos were timed .*--ego"):
        read_growth(tmp_path / "run")


def test_gaps_of_a_run_are_noted_in_its_tables(run_dir: Path, tmp_path: Path) -> None:
    copied(run_dir, tmp_path / "run", ended=False, days=1)
    lacking = read_growth(tmp_path / "run")
    assert lacking.failed == {"bm25": "no search was timed after 2 days: see the problems in the run's report"}
    text = to_markdown(growth_document(lacking))
    assert "the run is not complete: running, or killed" in text
    assert "bm25: no search was timed after 2 days" in text
    assert "not complete" not in to_markdown(growth_document(read_growth(run_dir)))


def test_the_ego_with_most_questions_is_measured_or_the_one_that_is_named() -> None:
    def egos(ego: str | None) -> tuple[str, ...]:
        readers = [{"spec": "extractive"}]
        return growth_config(
            {"dataset": EXAMPLE, "backends": ["bm25"], "readers": readers, "search_days": [1]}, ego=ego
        ).egos

    (most,) = egos(None)
    started = json.loads((EXAMPLE / "ego_session_map.json").read_text())
    other_ego = next(name for name in sorted(started) if name != most)
    assert egos(other_ego) == (other_ego,)
    with pytest.raises(LatencyError, match="--ego nobody: no questions of this ego"):
        egos("nobody")


def test_a_run_without_timed_searches_has_no_growth(tmp_path: Path, run_dir: Path) -> None:
    with LogWriter(tmp_path / "run") as log:
        for record in read_records(run_dir):
            if isinstance(record, RunStarted):
                config = json.loads(record.manifest.config_json) | {"search_days": []}
                manifest = record.manifest.model_copy(update={"config_json": json.dumps(config)})
                log.append(record.model_copy(update={"manifest": manifest}))
            elif not isinstance(record, SearchesTimed):
                log.append(record)
    with pytest.raises(LatencyError, match="no search was timed by length of history"):
        read_growth(tmp_path / "run")


@pytest.mark.parametrize(
    ("value", "label"), [(0.0, "0"), (0.6, "0.6"), (2.4, "2.4"), (12.5, "12.5"), (1200.0, "1,200")]
)
def test_tick_labels_show_their_values(value: float, label: str) -> None:
    assert tick_label(value) == label
