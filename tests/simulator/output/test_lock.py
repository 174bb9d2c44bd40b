"""Tests output/lock.py, and resuming a generation that is killed between its last file and its end."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from memarena_masim.config import WorldConfig
from memarena_masim.errors import MasimError
from memarena_masim.output import generate as generating
from memarena_masim.output import parts
from memarena_masim.output.generate import generate
from memarena_masim.output.lock import only_writer

CONFIG = WorldConfig(name="custom", agents=4, days=2, density=0.25, question_share=2.0, seed=110)
FLAGS = ("--agents", "4", "--days", "2", "--density", "0.25", "--seed", "110", "--workers", "1", "--quiet")


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file that depends on the seed alone, by relative path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run_info.json"
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of the files of a world that is made without interruption."""
    out = tmp_path_factory.mktemp("whole") / "w"
    generate(CONFIG, out)
    return contents(out)


def test_of_two_generations_at_once_the_second_ends_with_one_line(whole: dict[str, str], tmp_path: Path) -> None:
    """The same command twice: the second to lock the folder exits with 2 and changes nothing."""
    out = tmp_path / "w"
    command = [sys.executable, "-m", "memarena_masim", "generate", *FLAGS, "--out", str(out)]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], errors
    (refused,) = (text for process, text in zip(both, errors, strict=True) if process.returncode == 2)
    assert refused.startswith(f"error: --out {out}: ")
    assert refused.count("\n") == 1
    assert contents(out) == whole


def test_a_folder_that_is_written_is_refused_until_it_is_free(whole: dict[str, str], tmp_path: Path) -> None:
    """No file is written to it meanwhile."""
    out = tmp_path / "new" / "w"
    with only_writer(out, lambda _: None):
        with pytest.raises(MasimError, match=f"--out {out}: another process is making a data set there"):
            generate(CONFIG, out)
        assert list(out.iterdir()) == []
    generate(CONFIG, out)
    assert contents(out) == whole


def test_a_file_system_without_locks_is_reported(
    whole: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world is made, and a line of progress says that the folder cannot be locked."""

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    lines: list[str] = []
    generate(CONFIG, tmp_path / "w", progress=lines.append)
    assert lines[0].startswith(f"{tmp_path / 'w'}: cannot be locked (")
    assert contents(tmp_path / "w") == whole


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_without_the_stamp(folder: Path) -> None:
    (folder / "configuration.json").unlink()
    _die()


POINTS: dict[str, tuple[Any, str, Any]] = {
    "before the machine is noted": (generating, "_write_run_info", _die),
    "before the days are given up": (parts.Parts, "remove", _die),
    "before they are deleted": (shutil, "rmtree", _die),
    "while they are deleted": (shutil, "rmtree", _die_without_the_stamp),
}


def _killed_at(point: str, out: Path) -> None:
    holder, name, instead = POINTS[point]
    setattr(holder, name, instead)
    generate(CONFIG, out)


@pytest.mark.parametrize("point", list(POINTS))
def test_a_generation_killed_at_its_end_is_resumed(point: str, whole: dict[str, str], tmp_path: Path) -> None:
    """At each moment between the last file and the end: the same bytes, no hidden file left, none missing."""
    out = tmp_path / "w"
    child = multiprocessing.get_context("spawn").Process(target=_killed_at, args=(point, out))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    counts = generate(CONFIG, out)
    assert sum(counts.values()) > 0
    assert contents(out) == whole
    assert (out / "run_info.json").exists()
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]


def test_leftovers_of_a_complete_world_are_not_removed_for_another_seed(
    whole: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the command that made a data set removes what is left of its days."""
    out = tmp_path / "w"
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            generate(CONFIG, out)
    with pytest.raises(MasimError, match="another configuration"):
        generate(CONFIG.model_copy(update={"seed": 111}), out)
    assert {name: digest for name, digest in contents(out).items() if not name.startswith(".")} == whole


def _interrupt(_: Path) -> None:
    raise KeyboardInterrupt
