"""Tests that each command block of the documentation is run by the gate or states why not."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from scripts import documented_commands
from scripts.documented_commands import (
    REASONS,
    Block,
    DocumentedCommandError,
    Shell,
    blocks_of,
    documents,
    run_documents,
)


def test_every_block_of_commands_is_run_or_says_why_not() -> None:
    """And most of those that could run are run."""
    blocks = [block for path in documents() for block in blocks_of(path)]
    marked = [block for block in blocks if block.info.startswith("sh")]
    assert {block.skipped for block in marked if block.skipped} <= set(REASONS)
    assert sum(bool(block.commands()) for block in blocks if block.info == "sh") >= 18


@pytest.mark.parametrize(
    ("fence", "problem"),
    [
        ("```\nmemarena report RUN\n```\n", "commands need a fence with info string sh"),
        ("```sh skip=whim\nmemarena report RUN\n```\n", "expected sh, or sh skip=REASON"),
    ],
)
def test_a_block_without_a_known_info_string_is_named(
    fence: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With file and line."""
    monkeypatch.setattr(documented_commands, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(f"# A page\n\n{fence}", encoding="utf-8")
    with pytest.raises(DocumentedCommandError, match=rf"page\.md:3: .*{problem}"):
        blocks_of(Path("page.md"))


def test_comments_and_forms_are_no_commands() -> None:
    """Lines that end with a backslash are one command; a # inside a word begins no comment."""
    lines = ("# first", "make test    # and wait", "memarena run … --out RUN", "masim generate \\", "    --out a#b")
    assert Block(Path("page.md"), 1, "sh", lines).commands() == ["make test", "masim generate      --out a#b"]


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    """Commands within a pipe and undefined variables fail too."""
    shell = Shell(tmp_path)
    shell.call("true", tmp_path)
    for command in ("echo said; exit 3", "echo said; false | cat", "echo said; echo $NOBODY_SET_THIS"):
        with pytest.raises(DocumentedCommandError, match=r"exit code \d+\nsaid"):
            shell.call(command, tmp_path)


def test_a_server_has_to_say_where_and_to_end_well(tmp_path: Path) -> None:
    """One that goes by itself, or ends badly on Ctrl-C, is a failure; one in the background stays."""
    shell = Shell(tmp_path)
    ends_well = (
        "python -c 'import signal, sys; signal.signal(2, lambda *_: sys.exit(0));"
        ' print("http://here", flush=True); signal.pause()'
        "'"
    )
    shell.serve(ends_well, tmp_path, stop=True)
    for command in ("echo http://here", ends_well.replace("sys.exit(0)", "sys.exit(4)")):
        with pytest.raises(DocumentedCommandError, match="exit code"):
            shell.serve(command, tmp_path, stop=True)
    shell.serve(ends_well + " told-apart", tmp_path, stop=False)
    assert _running("told-apart")
    shell.end()
    assert not _running("told-apart")


def test_each_block_runs_once_and_every_failure_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where two run at a time, and one fails while the other runs. No block here needs a finished run."""
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(documented_commands, "make_originals", lambda _: (tmp_path / "kept", "q1"))
    page = tmp_path / "page.md"
    commands = ("ls tests", "exit 3", "sleep 1", "ls tests", "ls no-such-file")
    page.write_text("".join(f"```sh\n{command}\n```\n" for command in commands), encoding="utf-8")
    failures = run_documents([page], tmp_path)
    assert {failure.split("\n")[0] for failure in failures} == {
        f"{page}:4: exit 3: exit code 3",
        f"{page}:13: ls no-such-file: exit code 2",
    }
    output = capsys.readouterr().out
    assert output.count("1 commands in") == 2
    assert "2 commands ran in" in output
    assert "2 blocks failed" in output


def _running(argument: str) -> bool:
    return any(argument in (process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
