"""Tests the command ``masim``: bad input gives one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from memarena_dataset.model import Family
from memarena_masim.cli import main
from memarena_masim.config import PA_SESSIONS_PER_AGENT_DAY, preset
from memarena_masim.generation import SESSIONS_PER_PROCESS, usual_workers
from memarena_masim.output.worlds import shortage, summary

TINY = ("generate", "--preset", "tiny", "--seed", "3", "--workers", "1", "--quiet")


CONFINED = """
import resource, runpy, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
runpy.run_module("memarena_masim", run_name="__main__")
"""
"""The limit is set in the new process: a fork that has work to do before it runs a command disturbs gRPC's threads."""


def masim(*arguments: str, file_size: int | None = None) -> subprocess.CompletedProcess[str]:
    """The command; no file that it writes can become larger than ``file_size`` bytes."""
    command = [sys.executable, "-m", "memarena_masim", *arguments]
    if file_size is not None:
        command = [sys.executable, "-c", CONFINED, str(file_size), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def here(capsys: pytest.CaptureFixture[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in this process, which spares the start of another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["masim", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main()
    assert isinstance(leaving.value.code, int)
    said = capsys.readouterr()
    return subprocess.CompletedProcess(arguments, leaving.value.code, said.out, said.err)


def refused(done: subprocess.CompletedProcess[str], beginning: str) -> None:
    """One line on stderr, nothing on stdout, exit code 2."""
    assert done.stderr.startswith(f"error: {beginning}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert done.returncode == 2


def test_generates_a_tiny_world(tmp_path: Path) -> None:
    """The folder has the layout of a data set."""
    done = masim("generate", "--preset", "tiny", "--seed", "3", "--out", str(tmp_path / "w"), "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w" / "corpus_sessions.jsonl").exists()


def test_unknown_preset_is_one_line(tmp_path: Path) -> None:
    """It names the flag and what is expected."""
    done = masim("generate", "--preset", "huge", "--out", str(tmp_path / "w"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --preset huge")
    assert done.stderr.count("\n") == 1


def test_sizes_out_of_range_are_one_line(tmp_path: Path) -> None:
    """A world of one person is refused, without a stack trace."""
    done = masim("generate", "--agents", "1", "--out", str(tmp_path / "w"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: --agents")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("--seed", "-1", "0 or more"),
        ("--workers", "-3", "1 or more"),
        ("--workers", "0", "1 or more"),
        ("--density", "nan", "a number above 0"),
        ("--density", "inf", "a number above 0"),
        ("--density", "0.0", "a number above 0"),
        ("--days", "1", "2 to 365"),
    ],
)
def test_numbers_out_of_range_are_one_line(
    flag: str, value: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the flag, the value and what is expected; nothing is written."""
    done = here(capsys, "generate", flag, value, "--out", str(tmp_path / "w"))
    refused(done, f"{flag} {value}: {expected}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("generate", "--bogus"), "No such option: --bogus"),
        (("generate", "--out", "w", "--seed", "abc"), "Invalid value for '--seed'"),
        (("generate",), "Missing option '--out'"),
        ((), "Missing command"),
        (("invent",), "No such command 'invent'"),
        (("bars", "w", "--json", "a", "--json", "b"), "Invalid value: --json: given more than once"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_one_line(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says where help is, and draws no box."""
    done = here(capsys, *arguments)
    refused(done, said)
    assert done.stderr.endswith("(--help says what there is)\n")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in its place or above it, and a file system that takes no folders."""
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "w", Path("/proc/nope")):
        refused(here(capsys, *TINY, "--out", str(out)), f"--out {out}: ")
    assert file.read_text() == "mine"


def test_a_file_that_cannot_be_written_is_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """As on a full disk. The folder is named, and is finished once there is room."""
    out = tmp_path / "w"
    refused(masim(*TINY, "--out", str(out), file_size=20_000), f"--out {out}: ")
    assert not (out / "pipeline_report.json").exists()
    assert masim(*TINY, "--out", str(out)).returncode == 0
    assert (out / "pipeline_report.json").exists()


def test_a_world_of_which_nothing_can_be_asked_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So few sessions that there is none, or no question. The folder can be used again."""
    out = str(tmp_path / "w")
    done = here(capsys, *TINY, "--density", "0.00001", "--out", out)
    refused(done, "--density 1e-05: 0 sessions of 6 people over 3 days")
    assert list((tmp_path / "w").iterdir()) == []


def test_questions_of_witness_pairs_are_counted_apart() -> None:
    """The extension is no part of the number that the released set has."""
    assert summary({"d5_cloze": 1000, "d7_qa": 579, "x1_witness": 100}) == "1,579 questions, and 100 in witness pairs"


def test_a_shortage_names_families_found_and_wanted() -> None:
    """Those that have what they should have are not named."""
    config = preset("tiny", 1)
    counts = {family.value: config.questions(family) for family in Family}
    assert shortage(config, counts) == ""
    short = {**counts, "d2_anaphora": 0, "d5_cloze": counts["d5_cloze"] - 1}
    cloze = counts["d5_cloze"]
    assert shortage(config, short) == f"d5_cloze {cloze - 1} of {cloze}, d2_anaphora 0 of {counts['d2_anaphora']}"


def test_a_shortage_is_said_even_if_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, as the report has it."""
    out = tmp_path / "w"
    done = here(capsys, *TINY, "--density", "0.03", "--out", str(out))
    assert done.returncode == 0, done.stderr
    short = json.loads((out / "pipeline_report.json").read_text())["short"]
    assert short
    said = {f"{family} {one['found']} of {one['wanted']}" for family, one in short.items()}
    head, _, families = done.stderr.strip().partition(": fewer questions than aimed at: ")
    assert head == str(out)
    assert set(families.split(", ")) == said


def test_a_world_from_preset_s_on_has_enough_permission_questions() -> None:
    """60 of each action with their controls; smaller worlds have their share, larger ones the released count."""
    counts = [preset(name, 1).questions(Family.PERMISSION) for name in ("tiny", "s", "m", "l")]
    assert counts == [10, 172, 172, 200]


def test_a_small_world_is_worded_by_one_process_and_a_large_one_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process reads all banks before its first word."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert [usual_workers(preset(name, 1)) for name in ("tiny", "l")] == [1, 4]
    middling = preset("l", 1).model_copy(update={"days": 2, "question_share": 0.2})
    sessions = 2 * 50 * (PA_SESSIONS_PER_AGENT_DAY + middling.talks_per_agent_day)
    assert 2 * SESSIONS_PER_PROCESS < sessions < 3 * SESSIONS_PER_PROCESS
    assert usual_workers(middling) == 2


@pytest.mark.parametrize(("met", "flags", "code"), [(True, [], 0), (False, [], 1), (False, ["--lenient"], 0)])
def test_a_bar_that_is_missed_is_the_exit_code(
    met: bool, flags: list[str], code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memarena_dataset_quality.command.bars", lambda *_, **__: (["a line of the table"], met))
    done = here(capsys, "bars", "a folder", *flags)
    assert (done.returncode, done.stdout) == (code, "a line of the table\n")
