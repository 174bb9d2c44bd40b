"""Tests the table of commands: its lines match the commands' help, and a command imports only what it needs."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import memarena
import pytest
import typer
from memarena.cli.main import Commands, app
from memarena.cli.progress import ProgressDisplay
from memarena.execution.errors import InfraError
from memarena_dataset.errors import DatasetError, MemArenaError
from memarena_dataset.programs import run_guarded
from memarena_spark.errors import Refusal, RefusedError
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

HEAVY = ("aiohttp", "grpc", "memarena.execution", "memarena.scoring", "numpy", "psutil", "scipy")


@pytest.mark.parametrize("name", Commands.entries)
def test_a_line_of_the_table_is_the_first_paragraph_of_the_commands_help(name: str) -> None:
    entry = Commands.entries[name]
    module, _, attribute = entry.target.partition(":")
    command = getattr(import_module(module), attribute)
    loaded = entry.load(name)
    assert loaded.name == name
    assert loaded.callback is not None or isinstance(command, typer.Typer)
    summary = inspect.cleandoc(loaded.help or "").split("\n\n")[0]
    assert entry.help == " ".join(summary.split())


def test_help_lists_every_command_with_its_line() -> None:
    help_text = " ".join(CliRunner().invoke(app, ["--help"]).output.replace("│", " ").split())
    for name, entry in Commands.entries.items():
        assert f"{name} {entry.help}" in help_text


@pytest.mark.parametrize("name", Commands.entries)
def test_help_of_a_command_is_its_own(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"], prog_name="memarena")
    assert result.exit_code == 0
    assert f"Usage: memarena {name} " in result.output
    assert Commands.entries[name].help.split(":", maxsplit=1)[0].split()[0] in result.output


def help_lines(command: Any) -> Iterator[str]:
    """Yield the help texts of all options and arguments of a command and its subcommands."""
    yield from (text for parameter in command.params if (text := getattr(parameter, "help", None)))
    for below in getattr(command, "commands", {}).values():
        yield from help_lines(below)


@pytest.mark.parametrize("name", Commands.entries)
def test_no_help_text_has_brackets_that_markup_would_remove(name: str) -> None:
    for text in help_lines(Commands.entries[name].load(name)):
        assert Text.from_markup(text).plain == text.replace("\\[", "[")


def test_brackets_in_a_progress_line_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    display._console = Console(stderr=True, force_terminal=True, width=100)
    display.begin(1, 0)
    display.note("pip install 'memarena[nvml]'")
    display.end()
    assert "memarena[nvml]" in re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)


def test_a_misspelt_command_gets_the_nearest_suggestion() -> None:
    result = CliRunner().invoke(app, ["scores"])
    assert result.exit_code == 2
    assert "'score'" in result.output


@pytest.mark.parametrize(
    ("program", "distribution"),
    [("memarena", "memarena"), ("masim", "memarena-masim"), ("memarena-spark", "memarena-spark")],
)
def test_every_program_prints_its_version(program: str, distribution: str) -> None:
    path = Path(sys.executable).with_name(program)
    result = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"{program} {version(distribution)}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["no-such-command"]])
def test_no_command_is_imported_if_none_runs(arguments: list[str]) -> None:
    loaded = modules_after(arguments)
    assert not loaded & set(HEAVY)
    assert not {entry.target.partition(":")[0] for entry in Commands.entries.values()} & loaded


def modules_after(arguments: list[str]) -> set[str]:
    """Return the names of the modules that a command line has imported when it ends."""
    script = (
        "import sys\nsys.argv[1:] = sys.argv[2:]\nfrom memarena.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint('modules:', *sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "memarena", *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(result.stdout.rpartition("modules:")[2].split())


class WithRemedyError(MemArenaError):
    exit_code = 7


NO_MEMORY = "error: not enough memory for this process (ulimit -v states its limit)\n"
ENDS: dict[str, tuple[BaseException, int, str]] = {
    "two lines become one": (DatasetError("a.jsonl:3:\n  expected a text"), 2, "error: a.jsonl:3: expected a text\n"),
    "a failure of ours": (InfraError("the reader is gone"), 3, "error: the reader is gone\n"),
    "with a remedy": (WithRemedyError("needs Ray", remedy="pip install ray"), 7, "error: needs Ray: pip install ray\n"),
    "a file": (FileNotFoundError(2, "No such file", "runs/x"), 2, "error: runs/x: No such file\n"),
    "no memory": (MemoryError(), 2, NO_MEMORY),
    "no memory for a library": (ImportError("grpc.so: failed to map segment from shared object"), 2, NO_MEMORY),
    "Ctrl-C": (KeyboardInterrupt(), 130, ""),
    "refused": (RefusedError("run", [Refusal(code="swap", reason="2 GB", remedy="swapoff -a")]), 4, ""),
}


@pytest.mark.parametrize("case", ENDS)
def test_an_error_ends_a_program_with_one_line_and_its_exit_code(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    error, code, line = ENDS[case]
    error = pickle.loads(pickle.dumps(error))  # as an error from a worker process would arrive
    program = typer.Typer()

    @program.command()
    def command() -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["program"])
        run_guarded(program)
    printed = capsys.readouterr()
    assert (end.value.code, printed.err) == (code, line)
    assert printed.out == ("refused  swap: 2 GB\n         do: swapoff -a\n" if case == "refused" else "")


def test_every_error_of_the_errors_modules_that_reaches_a_user_has_the_base() -> None:
    """The others never reach a user: those of the client, and two by which a conformance check ends."""
    handled = {"BackendCallError", "BackendContractError", "BrokenError", "SkippedError"}
    files = Path(memarena.__file__).parent.glob("*/errors.py")
    modules = [import_module(f"memarena.{path.parent.name}.errors") for path in files]
    errors = {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if name.endswith("Error") and kind.__module__.startswith("memarena")
    }
    assert len(errors) > len(handled) + 5
    assert {name for name, kind in errors.items() if not issubclass(kind, MemArenaError)} == handled
