"""Tests backends/environments.py: a backend's own Python environment is made once, atomically, and isolated."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from memarena.execution.backends.environment_making import make_environment, remove_environments
from memarena.execution.backends.environments import Interpreter, find_interpreter
from memarena.execution.backends.manifests import backends_by_name, choose_backend
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.preflight import make_environments

from tests.support.psutil_processes import has_ended

from .environment_doubles import Given, given_double, interpreter

PATIENCE_S = 90.0


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    return given_double(tmp_path, monkeypatch)


def install(case: Given) -> list[str]:
    """Make the environment; return the lines that were printed."""
    lines: list[str] = []
    make_environment(case.environment, lines.append)
    return lines


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``memarena backends …`` as a process; those still running at the end of the test are killed."""
    processes: list[subprocess.Popen[str]] = []

    def command(*arguments: str) -> subprocess.Popen[str]:
        # A background job of a shell ignores SIGINT, and its children inherit that. (env of coreutils 8.31 or newer.)
        own_signals = ["env", "--default-signal=INT"]
        argv = [*own_signals, sys.executable, "-m", "memarena", "backends", *arguments]
        processes.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield command
    for process in processes:
        process.kill()
        process.communicate()


Begin = Callable[..., subprocess.Popen[str]]


def asleep_below(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the ``sleep`` processes among the descendants of a process."""
    children = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child for child in children if child.name() == "sleep"]
    return []


def once_asleep(process: subprocess.Popen[str]) -> psutil.Process:
    """Wait for the process's descendant ``sleep`` and return it; fail with the output if the process ends before."""
    end = time.monotonic() + PATIENCE_S
    while not (asleep := asleep_below(process)):
        if process.poll() is not None:
            pytest.fail(f"ended with exit code {process.returncode}: {process.communicate()}")
        if time.monotonic() > end:
            running = [other.info for other in psutil.process_iter(["pid", "ppid", "status", "cmdline"])]
            pytest.fail(f"nothing is asleep below {process.pid}: {running}")
        time.sleep(0.02)
    (pip,) = asleep
    return pip


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_environment_is_made_once_with_a_line_at_start_and_end(mine: Given) -> None:
    assert mine.backend.missing() == "not installed: run memarena backends install mine"
    first, last = install(mine)
    assert first == "making the environment of mine (once; about a minute) …"
    assert last.startswith("the environment of mine is made, in ")
    assert mine.backend.missing() is None
    assert install(mine) == []
    (call,) = mine.pip_calls()
    assert call.endswith("--no-input -c constraints.txt -r requirements.txt")


def test_with_hashes_packages_are_pinned_by_them_and_the_backend_is_installed_without_dependencies(mine: Given) -> None:
    manifest = (mine.folder / "backend.toml").read_text(encoding="utf-8")
    mine.write("backend.toml", manifest.replace("[[backend]]", 'hashes = "hashes.txt"\n[[backend]]', 1))
    assert "hashes.txt: cannot be read" in (mine.backend.missing() or "")
    mine.write("hashes.txt", "one==1 --hash=sha256:0")
    install(mine)
    first, second = mine.pip_calls()
    assert first.endswith("--no-input --no-deps --require-hashes -r hashes.txt")
    assert second.endswith("--no-input -c constraints.txt --no-deps --no-build-isolation -r requirements.txt")
    mine.write("hashes.txt", "one==1 --hash=sha256:1")
    assert mine.backend.missing() is not None


def test_the_backend_runs_in_its_environment_without_the_harness_on_its_path(
    mine: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(mine)
    monkeypatch.setenv("VIRTUAL_ENV", "/of/the/harness")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    assert Path(mine.backend.python).is_relative_to(mine.root)
    with pytest.raises(LaunchError, match="exit code 9: PYTHONPATH= VIRTUAL_ENV= -P -m mine"):
        launch(mine.backend, tmp_path / "cell")
    with pytest.raises(LaunchError, match="exit code 9: PYTHONPATH=/given VIRTUAL_ENV= -P -m mine"):
        launch(mine.backend, tmp_path / "other cell", settings={"PYTHONPATH": "/given"})


def test_a_backend_without_its_environment_is_not_started(mine: Given, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="mine cannot be started: not installed: run memarena backends install mine"):
        launch(mine.backend, tmp_path / "cell")


@pytest.mark.parametrize("file", ["requirements.txt", "constraints.txt", "more/named.txt", "kit/pyproject.toml"])
def test_a_changed_input_file_makes_the_environment_out_of_date(mine: Given, file: str) -> None:
    mine.write("requirements.txt", "-r more/named.txt  # with a reason\n-e kit[fast]\n")
    for name in ("more/named.txt", "kit/pyproject.toml", "kit/src/kit.py"):
        mine.write(name, "")
    install(mine)
    mine.write("kit/src/kit.py", "changed = True")
    os.utime(mine.folder / file, (0, 0))
    assert mine.backend.missing() is None
    mine.write(file, (mine.folder / file).read_text() + "# changed\n")
    assert mine.backend.missing() is not None
    assert len(install(mine)) == 2
    assert [outdated.folder for outdated in mine.environment.out_of_date()] == [mine.folder]


def test_the_same_files_in_another_folder_are_another_environment(mine: Given) -> None:
    install(mine)
    old_path = mine.environment.environment_path().path
    mine.folder.rename(mine.folder.with_name("moved"))
    assert choose_backend("mine").name == "mine"
    assert mine.environment.environment_path().path != old_path
    assert mine.backend.missing() is not None


def test_a_copy_in_another_folder_is_another_backend(mine: Given) -> None:
    other = mine.folder.with_name("other")
    other.mkdir()
    for path in mine.folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    assert len(backends_by_name()["mine"]) == 2


def test_an_environment_without_its_python_is_made_again(mine: Given) -> None:
    install(mine)
    Path(mine.backend.python).unlink()
    assert mine.backend.missing() is not None
    assert len(install(mine)) == 2
    assert mine.backend.missing() is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_installation_counts_as_missing_and_is_repeated(
    mine: Given, begin: Begin, number: signal.Signals
) -> None:
    mine.write("pip.sh", "sleep 600")
    process = begin("install", "mine")
    pip = once_asleep(process)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    wait_until(lambda: has_ended(pip))
    assert mine.backend.missing() is not None
    mine.write("pip.sh", "test ! -e ../left || exit 1")
    assert len([line for line in install(mine) if "waiting" not in line]) == 2
    assert mine.backend.missing() is None


def test_files_of_an_unfinished_environment_are_removed_before_the_next(mine: Given) -> None:
    half = mine.environment.environment_path().path
    half.mkdir(parents=True)
    (half / "left").touch()
    install(mine)
    assert not (half / "left").exists()


def test_of_two_processes_one_makes_the_environment_and_the_other_waits(mine: Given, begin: Begin) -> None:
    mine.write("pip.sh", "while [ ! -e go ]; do sleep 0.02; done")
    processes = [begin("install", "mine") for _ in range(2)]
    first_lines = []
    for process in processes:
        assert process.stderr is not None
        first_lines.append(process.stderr.readline())
    (mine.folder / "go").touch()
    for process in processes:
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert out.startswith("mine: environment of ")
    assert sorted(line.partition(" ")[0] for line in first_lines) == ["making", "waiting"], first_lines
    assert len(mine.pip_calls()) == 1


def test_a_failure_of_pip_gives_a_one_line_error_and_exit_code_2(mine: Given, begin: Begin) -> None:
    mine.write("pip.sh", "echo Collecting it; echo 'ERROR: first'; echo 'ERROR: No such thing'; echo notice; exit 3")
    process = begin("install", "mine")
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    log = mine.root / "mine.log"
    message = "the environment of mine could not be made (exit code 3): ERROR: first | ERROR: No such thing"
    assert stderr.splitlines()[1:] == [f"error: {message} (all of it: {log})"]
    assert "Collecting it" in log.read_text()
    assert mine.environment.all_of_this_name() == []


def test_a_root_that_cannot_be_written_to_gives_a_one_line_error(mine: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMARENA_ENVIRONMENTS", str(mine.folder / "requirements.txt"))
    with pytest.raises(RunError, match=r"MEMARENA_ENVIRONMENTS: .*requirements.txt: cannot be written to: "):
        install(mine)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "constraints.txt").unlink(), "constraints.txt: cannot be read: No such file"),
        (lambda folder: (folder / "requirements.txt").write_text("-r requirements.txt"), "names itself with -r or -c"),
    ],
)
def test_unusable_requirement_files_are_named_as_missing(
    mine: Given, change: Callable[[Path], object], message: str
) -> None:
    change(mine.folder)
    assert message in (mine.backend.missing() or "")


def test_remove_deletes_all_environments_of_a_backend_and_no_other(mine: Given) -> None:
    install(mine)
    mine.write("constraints.txt", "# changed")
    install(mine)
    (mine.root / "mine-extra-0123456789ab").mkdir()  # of a backend with another name
    assert remove_environments("mine", print) == 2
    assert mine.backend.missing() is not None
    assert remove_environments("mine", print) == 0
    assert (mine.root / "mine-extra-0123456789ab").exists()
    assert len(install(mine)) == 2


def test_a_run_makes_no_environment_if_one_of_its_backends_is_refused(mine: Given) -> None:
    plain = parse_config({"dataset": ".", "backends": ["mine"], "readers": [{"spec": "extractive"}]}, "here")
    make_environments([choose_backend("mine"), choose_backend("memobase"), choose_backend("[::1]:1")], plain, print)
    assert mine.backend.missing() is not None
    make_environments([choose_backend("mine"), choose_backend("bm25")], plain, print)
    assert mine.backend.missing() is None


def test_the_harness_s_own_python_is_used_if_it_fits_else_the_oldest_that_does(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    interpreter(first, "python3.97", "3.97.0")
    interpreter(second, "python3.96", "3.96.5")
    interpreter(second, "python3.97", "3.97.9")
    interpreter(second, "python3.98-config", "3.98.0")
    (first / "python3.95").write_text("no program")
    path = f"{tmp_path / 'nothing'}:{first}:{second}"
    assert find_interpreter("mine", ">=3.11", path).program == sys.executable
    assert find_interpreter("mine", ">=3.95", path) == Interpreter(str(second / "python3.96"), "3.96.5")
    assert find_interpreter("mine", ">3.96.5", path) == Interpreter(str(first / "python3.97"), "3.97.0")
    with pytest.raises(RunError, match=r"mine needs Python >=3\.98, found 3\.\d+\.\d+, 3\.96\.5, 3\.97\.0: put"):
        find_interpreter("mine", ">=3.98", path)


def test_an_interpreter_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memarena.execution.backends.environments._ANSWER_TIMEOUT_S", 0.2)
    silent = tmp_path / "python3.97"
    silent.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    silent.chmod(0o755)
    with pytest.raises(RunError, match=rf"found 3\.\d+\.\d+, {silent} \(no answer in 0 s\): put"):
        find_interpreter("mine", ">=3.97", str(tmp_path))
