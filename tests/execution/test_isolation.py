"""Tests isolation grades with a backend that searches for gold: what it can read, and what the report says of it.

An *isolation grade* is how far a backend is kept from data set and gold; a report that claimed more than the machine
gives would vouch for a cheat.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from memarena.execution.backends.isolation import ProcessIsolation, WorkFolder, why_not_confined
from memarena.execution.backends.process import _checkout_of, program_folders
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.processes import Confinement, GuardedProcess

from ..e2e.harnessing import here

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
SPY = Path(__file__).with_name("spying_backend.py")

needs_namespaces = pytest.mark.skipif(bool(why_not_confined()), reason=f"no namespaces here: {why_not_confined()}")


@dataclass(frozen=True)
class Spied:
    """What the spy could read (``loot.json``), the run's standard error and its folder."""

    loot: dict[str, Any]
    errors: str
    out: Path


@pytest.fixture
def spy(tmp_path: Path) -> Callable[..., Spied]:
    """Return a function that runs the spy by its manifest over a data set that no other process was started with."""
    world = tmp_path / "secret" / "world"
    shutil.copytree(EXAMPLE, world)
    folder = tmp_path / "backend"
    folder.mkdir()
    command = json.dumps(["{python}", str(SPY), "{address_file}", "{data_dir}"])
    (folder / "backend.toml").write_text(
        f'schema = 1\n[[backend]]\nname = "spy"\nkind = "competitor"\ndescription = "spies"\ncommand = {command}\n',
        encoding="utf-8",
    )

    def run(isolation: str, **settings: str) -> Spied:
        out = tmp_path / "hidden" / f"run-{isolation}"
        words = [sys.executable, "-m", "memarena", "run", "--dataset", str(world), "--out", str(out)]
        words += ["--backend", str(folder / "backend.toml"), "--reader", "extractive", "--limit", "1"]
        words += ["--floor-samples", "0", "--isolation", isolation]
        for name, value in settings.items():
            words += ["--setting", f"spy.{name}={value.format(world=world, out=out)}"]
        result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=world)
        assert result.returncode == 0, result.stderr
        loot = json.loads((out / "cells/spy@extractive-s1/data/loot.json").read_text())
        # Files of other runs on this machine may be readable; they do not count.
        gold = [file for file in loot["gold"] if Path(file).is_relative_to(tmp_path)]
        return Spied({**loot, "gold": gold}, result.stderr, out)

    return run


@needs_namespaces
def test_a_confined_process_reads_no_gold_even_if_it_gets_the_path(spy: Callable[..., Spied]) -> None:
    mark = Path("/tmp") / f"memarena-spy-{uuid.uuid4().hex}"
    # Named, so that the spy's own modules are there also where the checkout is below /tmp.
    checkout = str(Path(__file__).parents[2])
    spied = spy("user", SPY_ALL="1", SPY_TOLD="{world}", SPY_RUN="{out}", SPY_MARK=str(mark), SPY_CHECKOUT=checkout)
    assert spied.loot == {"gold": [], "mark": False}
    assert not mark.exists()
    assert "isolation user: spy" in spied.errors
    assert "not_isolated" not in marks_of(spied.out)


@needs_namespaces
@pytest.mark.parametrize("order", [1, -1])
def test_a_hidden_folder_may_lie_in_another_and_an_option_may_look_like_a_path(tmp_path: Path, order: int) -> None:
    world, cell = tmp_path / "world", tmp_path / "world" / "run" / "cell"
    for folder in (cell, world / "run" / "cache"):
        folder.mkdir(parents=True)
        (folder / "secret").touch()
    hidden = [str(world), str(world / "run"), str(world / "run" / "cache")][::order]
    confinement = Confinement(hide=tuple(hidden), keep=(str(cell), "/no_think " + "at all " * 50))
    log = tmp_path / "log"
    with GuardedProcess.start(["find", str(world), "-type", "f"], log_path=log, confinement=confinement) as process:
        assert process.wait(60) == 0, log.read_text()
    assert log.read_text().split() == [str(cell / "secret")]


def test_packages_that_an_environment_links_to_are_kept(tmp_path: Path) -> None:
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "linked.pth").write_text(f"# a comment\n{tmp_path}/checkout/src\nimport os\n", encoding="utf-8")
    folders = program_folders(str(tmp_path / "env" / "bin" / "python"))
    assert {tmp_path / "env", tmp_path / "checkout" / "src", Path(sys.prefix)} <= set(folders)
    assert all(folder.is_absolute() for folder in folders)


def test_a_list_of_folders_loses_the_hidden_ones_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "data"
    monkeypatch.setenv("PATH", os.pathsep.join(["/bin", f"{hidden}/bin", f"{hidden}base/bin"]))
    monkeypatch.setenv("WORLD", f"{hidden}:/bin")
    monkeypatch.setenv("ANOTHER", f"{hidden}base")
    blanked = ProcessIsolation("none", (hidden,)).blanked()
    assert (blanked["PATH"], blanked["WORLD"], blanked["PWD"]) == (f"/bin{os.pathsep}{hidden}base/bin", "", "")
    assert "ANOTHER" not in blanked


def test_without_isolation_no_argument_folder_or_open_file_reveals_the_gold(spy: Callable[..., Spied]) -> None:
    spied = spy("none")
    assert spied.loot["gold"] == []
    assert "isolation none: spy could look for the data set and its gold" in spied.errors
    assert "not_isolated" in marks_of(spied.out)
    report = here("report", spied.out)
    assert "⊗ not isolated, could read the data set and its gold: spy@extractive" in report.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="arguments are overwritten on Linux alone")
def test_arguments_are_overwritten_however_a_path_is_written() -> None:
    code = (
        "from memarena.execution.backends.isolation import hide_arguments; from pathlib import Path\n"
        "hide_arguments([Path('world/a')]); print(Path('/proc/self/cmdline').read_text().split(chr(0))[3:-1])"
    )
    words = ["world/a", "./world/a/", "--out=world/a/", "world/b", "--seed=1"]
    result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert result.stdout == "['.......', '..........', '..............', 'world/b', '--seed=1']\n"


def test_without_isolation_a_spy_that_gets_the_path_reads_the_gold(spy: Callable[..., Spied]) -> None:
    """The control of the other tests: the spy does look."""
    assert any(file.endswith(".jsonl") for file in spy("none", SPY_TOLD="{world}").loot["gold"])


def marks_of(out: Path) -> list[str]:
    report = here("report", out, "--format", "json")
    (row,) = json.loads(report.stdout)["runs"][0]["rows"]
    return list(row["marks"])


def test_isolation_container_refuses_a_backend_by_name(tmp_path: Path) -> None:
    values = {"dataset": EXAMPLE, "backends": ["bm25"], "readers": [{"spec": "extractive"}], "isolation": "container"}
    with pytest.raises(RunError, match="--isolation container: bm25 is a process here"):
        execute(RunRequest(out=tmp_path / "run", config=parse_config(values, "test")))


def test_files_of_a_killed_run_are_used_again(tmp_path: Path) -> None:
    isolation = ProcessIsolation("none", (tmp_path,))
    killed = WorkFolder(tmp_path / "cell", isolation)
    (killed.data / "days").write_text("1")
    assert not killed.path.is_relative_to(tmp_path)
    resumed = WorkFolder(tmp_path / "cell", isolation)
    assert (resumed.path, (resumed.data / "days").read_text()) == (killed.path, "1")
    resumed.bring_back()
    assert not killed.path.exists()
    again = WorkFolder(tmp_path / "cell", isolation)
    assert (again.data / "days").read_text() == "1"
    again.bring_back()
    assert (tmp_path / "cell" / "data" / "days").read_text() == "1"
    assert not (tmp_path / "cell" / "data").is_symlink()


def test_the_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"memarena-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="expected a folder of this user"):
        WorkFolder(tmp_path / "cell", ProcessIsolation("none", (tmp_path / "world",)))


def test_a_confined_run_uses_the_files_of_a_run_that_was_killed_unconfined(tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    unconfined, confined = ProcessIsolation("none", (tmp_path,)), ProcessIsolation("user", (tmp_path,))
    killed = WorkFolder(cell, unconfined)
    (killed.data / "days").write_text("1")
    assert (WorkFolder(cell, confined).data / "days").read_text() == "1"
    assert not (cell / "data").is_symlink()
    assert not killed.path.exists()
    shutil.rmtree(WorkFolder(cell, unconfined).path)  # as when the machine was started again
    assert WorkFolder(cell, confined).data.is_dir()


def test_a_link_that_a_user_made_is_followed_and_what_lies_next_to_its_target_stays(tmp_path: Path) -> None:
    disk, cell = tmp_path / "disk", tmp_path / "cell"
    (disk / "days").mkdir(parents=True)
    (disk / "another").touch()
    cell.mkdir()
    (cell / "data").symlink_to(disk / "days")
    folder = WorkFolder(cell, ProcessIsolation("none", (tmp_path,)))
    (folder.data / "first").touch()
    folder.bring_back()
    assert (disk / "another").exists()
    assert (cell / "data").readlink() == disk / "days"
    assert (disk / "days" / "first").exists()


def test_files_that_could_not_be_brought_back_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = ProcessIsolation("none", (tmp_path,))
    folder = WorkFolder(tmp_path / "cell", isolation)
    (folder.data / "days").write_text("1")

    def full_disk(_: Path, target: Path) -> None:
        target.mkdir()
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no space"):
        patched.setattr(shutil, "move", full_disk)
        folder.bring_back()
    resumed = WorkFolder(tmp_path / "cell", isolation)
    assert (resumed.data / "days").read_text() == "1"
    resumed.bring_back()
    assert (tmp_path / "cell" / "data" / "days").read_text() == "1"
    assert not list((tmp_path / "cell").glob("*.part"))


def test_sockets_and_pipes_of_a_backend_do_not_keep_its_files_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkFolder(tmp_path / "cell", ProcessIsolation("none", (tmp_path,)))
    (folder.data / "days").write_text("1")
    os.mkfifo(folder.data / "pipe")
    rename = os.rename

    def to_another_disk(source: str | Path, target: str | Path) -> None:
        if Path(source).parent == folder.path:
            raise OSError(errno.EXDEV, "another disk")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", to_another_disk)
        folder.bring_back()
    assert [path.name for path in (tmp_path / "cell" / "data").iterdir()] == ["days"]


def test_a_folder_named_backends_alone_does_not_make_a_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "world" / "backends" / "mine"
    folder.mkdir(parents=True)
    assert _checkout_of(folder) == folder
    contract = tmp_path / "world" / "proto" / "memarena" / "v1"
    contract.mkdir(parents=True)
    (contract / "memory_backend.proto").touch()
    assert _checkout_of(folder) == tmp_path / "world"
