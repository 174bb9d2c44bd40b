"""Tests a sweep on this machine whose driver is killed, stopped and restarted: each cell once, a plain run's scores."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from memarena.log.records import Problem, QuestionAsked
from memarena.log.store import LOG_NAME, LogReader, LogWriter, read_records
from memarena.sweep.storage import RemoteStorage

from tests.e2e.harnessing import here, memarena
from tests.support.summed import put_body, put_text

from .sweeping import MEMORIES, Settled, asked_so_far, of_sweep, reader_urls, sent, state, struck, sweep_file


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep whose driver was killed while questions were asked, stopped by Ctrl-C, and started once more."""
    folder = tmp_path_factory.mktemp("swept")
    out, scratch = folder / "out", folder / "scratch"
    arguments = (sweep_file(folder, MEMORIES), "--out", out, "--scratch", scratch, "--cores", "2")
    code, surviving = struck(arguments, lambda: asked_so_far(scratch) >= 2, signal.SIGKILL)
    assert (code, surviving) == (-signal.SIGKILL, [])
    assert asked_so_far(scratch) >= 2, "the logs stay"
    sent_before = len(sent(out))
    code, surviving = struck(arguments, lambda: len(sent(out)) > sent_before, signal.SIGINT)
    assert (code, surviving) == (130, [])
    result = memarena("sweep", *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == f"2 of 2 cells sealed; memarena report {out}"
    assert not scratch.exists(), "nothing stays"
    return out


def test_every_cell_is_sealed_once_with_the_scores_of_a_plain_run(swept: Path, plain: Settled) -> None:
    sweep_state = state(swept)
    assert sweep_state.planned is not None
    assert sorted(sweep_state.sealed) == sorted(cell.name for cell in sweep_state.planned.cells)
    assert {sealed.seal.outcome for sealed in sweep_state.sealed.values()} == {"complete"}
    assert of_sweep(swept) == [plain] != [{}]


def test_the_same_command_again_changes_nothing(swept: Path, tmp_path: Path) -> None:
    manifest_before = (swept / "sweep.jsonl").read_bytes()
    result = here("sweep", sweep_file(tmp_path, MEMORIES), "--out", swept)
    assert result.returncode == 0
    assert (swept / "sweep.jsonl").read_bytes() == manifest_before


def test_reports_and_comparisons_accept_a_sweep_like_a_run(swept: Path) -> None:
    report = json.loads(here("report", swept, "--format", "json").stdout)
    (run,) = report["runs"]
    assert [(row["label"], row["timed"]) for row in run["rows"]] == [
        ("bm25@extractive", False),
        ("vanilla@extractive", False),
    ]
    assert run["ended"] == "completed"
    assert "<html" in here("report", swept, "--format", "html").stdout
    compared = here("compare", swept, "--cell", "bm25@extractive", "--cell", "vanilla@extractive")
    assert compared.returncode == 0, compared.stderr


@pytest.fixture
def sealed_cell(swept: Path, tmp_path: Path) -> Path:
    """A cell of a copy of the sweep; the sweep's folder is two levels above."""
    return next((Path(shutil.copytree(swept, tmp_path / "copy")) / "cells").iterdir())


def test_records_added_to_a_sealed_log_are_counted(sealed_cell: Path) -> None:
    with LogWriter(sealed_cell) as log:
        log.append(Problem(at="2026-01-01T00:00:00Z", where="test", cause="infra", message="added"))
    result = here("report", sealed_cell.parents[1])
    assert result.returncode == 0, result.stderr
    assert f"{sealed_cell}: since it was sealed 1 records were added to its log (1 problem)" in result.stderr


@pytest.mark.parametrize("what", ["record", "text", "record taken away"])
def test_a_sealed_record_that_was_changed_with_its_checksum_is_refused(what: str, sealed_cell: Path) -> None:
    """The log has also grown, as after a later judging."""
    path = sealed_cell / LOG_NAME
    with LogWriter(sealed_cell) as log:
        log.append(Problem(at="2026-01-01T00:00:00Z", where="test", cause="infra", message="x" * 100_000))
    if what == "record":
        attempt = next(r for r in read_records(sealed_cell, "asked") if isinstance(r, QuestionAsked) and r.answer)
        with LogReader(sealed_cell) as reader:
            seq = next(row.seq for row in reader.rows("asked"))
        assert attempt.answer is not None
        changed = attempt.model_copy(update={"answer": attempt.answer.model_copy(update={"answer": "another"})})
        put_body(path, seq, changed.model_dump_json())
    elif what == "text":
        put_text(path, 1, "another")
    else:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DROP TRIGGER records_no_delete")
            db.execute("DELETE FROM records WHERE seq = (SELECT max(seq) - 1 FROM records)")
    result = here("report", sealed_cell.parents[1])
    assert result.returncode == 2
    assert "sealed records was changed" in result.stderr


def test_a_changed_or_missing_cell_is_named(swept: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(swept, tmp_path / "copy")
    cell = next((copy / "cells").iterdir())
    next(cell.glob("cells/*/backend.log")).write_text("changed")
    result = here("report", copy)
    assert result.returncode == 2
    assert "backend.log is not as it was sealed" in result.stderr
    shutil.rmtree(cell)
    result = here("report", copy)
    assert result.returncode == 2
    assert "is missing, though the manifest says that it was sealed" in result.stderr


def test_cells_at_a_url_are_fetched_and_checked_against_their_seals(swept: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(swept, tmp_path / "copy")
    remote = RemoteStorage(f"file://{tmp_path}/store")
    remote.check()
    for name, sealed in state(copy).sealed.items():
        remote.bring(copy / "cells" / name, sealed.seal)
        assert remote.seal_of(name) == sealed.seal
    assert remote.seal_of("another") is None
    shutil.rmtree(copy / "cells")
    manifest = copy / "sweep.jsonl"
    manifest.write_text(manifest.read_text().replace('"storage":null', f'"storage":"{remote.url}"'))
    assert of_sweep(copy) == of_sweep(swept)
    shutil.rmtree(copy / "cells")
    log = next((tmp_path / "store").glob("*/run.sqlite"))
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    result = here("report", copy)
    assert result.returncode == 2
    assert "damaged on its way: run.sqlite is not as it was sealed" in result.stderr


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///proc/nowhere", "storage file:///proc/nowhere: No such file or directory"),
        ("nonsense://x", "--storage nonsense://x: Protocol not known: nonsense"),
    ],
)
def test_an_unusable_storage_gives_one_line_before_any_run(tmp_path: Path, url: str, message: str) -> None:
    result = here("sweep", sweep_file(tmp_path, MEMORIES), "--out", tmp_path / "out", "--storage", url)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert sent(tmp_path / "out") == []


def test_a_full_disk_gives_one_line_and_loses_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memarena.sweep.work.MIN_FREE_BYTES", 1 << 60)
    out = tmp_path / "out"
    result = here("sweep", sweep_file(tmp_path, MEMORIES), "--out", out)
    assert result.returncode == 2
    assert "put aside: local; OSError: [Errno 28] No space left on device" in result.stderr.splitlines()[-1]
    assert {lost.by_node for losses in state(out).lost.values() for lost in losses} == {True}


def test_bad_input_of_one_cell_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = sweep_file(tmp_path, ("nobody", "vanilla"), limit=1)
    result = here("sweep", file, "--out", out)
    assert result.returncode == 3
    (refused,) = state(out).refused.values()
    assert refused.cell in result.stderr
    assert "nobody" in refused.cause
    assert [name.split("_")[1] for name in state(out).sealed] == ["vanilla"]


def test_one_model_with_two_settings_is_two_readers_in_a_report(tmp_path: Path) -> None:
    """They differ by the names in the file; without names the file is refused."""
    file = sweep_file(tmp_path, MEMORIES)
    second = '[[readers]]\nspec = "extractive"\nwindow_tokens = 2048\n'
    file.write_text(file.read_text() + second)
    result = memarena("sweep", file, "--plan")
    assert result.returncode == 2 and "readers: extractive is named twice" in result.stderr, result.stderr
    file.write_text(file.read_text() + 'name = "short"\n')
    result = memarena("sweep", file, "--out", tmp_path / "out", "--scratch", tmp_path / "scratch")
    assert result.returncode == 0, result.stderr
    (cells,) = of_sweep(tmp_path / "out")
    assert {cell for cell, _ in cells} == {
        f"{memory}@{reader}/s1" for memory in MEMORIES for reader in ("extractive", "short")
    }
    result = memarena("report", tmp_path / "out")
    assert result.returncode == 0 and "short" in result.stdout, result.stderr
    first, _, second, _ = urls = reader_urls(tmp_path / "out")
    assert urls == [first, first, second, second] and first != second, "each is started once for all of its cells"
