"""Tests ``memarena conformance`` with this repository's backends, and with backends that die, hang or lose data."""

from __future__ import annotations

import os
import signal
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from memarena.cli.main import app
from memarena.conformance import CheckResult, Settings, restart_by, run_suite
from typer.testing import CliRunner

from tests.conformance.support import restartable

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((Path(__file__).parent / "defects.toml").read_text(encoding="utf-8"))


def command_of(name: str) -> list[str]:
    """Return a backend's command from its manifest, without --listen and the options after it."""
    for path in sorted(ROOT.glob("backends/*/backend.toml")):
        for backend in tomllib.loads(path.read_text(encoding="utf-8"))["backend"]:
            if backend["name"] == name:
                argv: Sequence[str] = backend["command"]
                words = argv[: list(argv).index("--listen")]
                return [
                    word.replace("{python}", sys.executable).replace("{folder}", str(path.parent)) for word in words
                ]
    raise LookupError(name)


def test_a_backend_passes_and_survives_sigkill(tmp_path: Path) -> None:
    """The whole suite, by the command; ``make conformance`` runs it against every backend, but without restarts."""
    report = tmp_path / "report.xml"
    with restartable(command_of("bm25"), tmp_path) as backend:
        arguments = ["--target", backend.address, "--restart-command", backend.restart_command, "--junit", str(report)]
        result = CliRunner().invoke(app, ["conformance", *arguments])
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("FAIL")] == [], (tmp_path / "log").read_text()
    assert result.exit_code == 0
    assert any(line.startswith("ok   hlt.restart") for line in lines)
    assert lines[-1].startswith("bm25 ")
    suite = ElementTree.parse(report).getroot()
    assert int(suite.attrib["tests"]) == len(lines) - 1
    assert suite.attrib["failures"] == "0"
    clauses = {each.attrib["value"] for each in suite.iter("property")}
    assert {"ING-7", "HLT-3", "SRC-5"} <= clauses


@pytest.mark.parametrize("name", ["vanilla", "oracle"])
def test_a_backend_survives_sigkill(name: str, tmp_path: Path) -> None:
    with restartable(command_of(name), tmp_path) as backend:
        result = run_suite(backend.address, only=["hlt"], restart=restart_by(backend.restart_command))
    assert result.passed
    assert "hlt.restart" in result.ids("passed")


@pytest.mark.parametrize("name", ["not-durable", "reset-not-durable", "reset-keeps-old-days"])
def test_backend_that_loses_data_on_sigkill_fails_its_checks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    report = tmp_path / "report.xml"
    with restartable([sys.executable, "-m", "tests.conformance.broken_processes", name], tmp_path) as backend:
        arguments = ["--target", backend.address, "--restart-command", backend.restart_command, "--junit", str(report)]
        result = CliRunner().invoke(app, ["conformance", *arguments, "--only", "hlt", "--only", "rst"])
    assert result.exit_code == 1
    failed = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("FAIL")]
    assert failed == TABLE[name]["fails"]
    assert [
        case.attrib["name"] for case in ElementTree.parse(report).iter("testcase") if case.find("failure") is not None
    ] == failed


def test_backend_that_dies_is_reported_once_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    checks = ["dsc.complete", "ing.session-rules", "ing.no-trailer", "src.finds"]
    settings = Settings(timeout_s=10.0, log=tmp_path / "log")
    with restartable([sys.executable, "-m", "tests.conformance.broken_processes", "dies"], tmp_path) as backend:
        again = restart_by(backend.restart_command)
        restarted = run_suite(backend.address, only=checks, restart=again, settings=settings)
        alone = run_suite(backend.address, only=checks, settings=settings)
    for result in (restarted, alone):
        assert not result.passed
        assert result.ids("failed") == TABLE["dies"]["fails"]
        (message,) = [each.message for each in result.results if each.status == "failed"]
        assert message.startswith("the backend died during this check: nothing listens at its address any more")
        assert message.endswith("std::out_of_range'")
    assert restarted.ids("passed") == ["dsc.complete", "ing.no-trailer", "src.finds"]
    assert {each.message for each in alone.results if each.status == "skipped"} == {
        "not run: the backend died during ing.session-rules"
    }


def test_backend_that_stops_answering_fails_one_check_and_ends_the_run(tmp_path: Path) -> None:
    with restartable(command_of("bm25"), tmp_path) as backend:

        def freeze(result: CheckResult) -> None:
            if result.check.check_id == "ing.required":
                os.kill(backend.pid, signal.SIGSTOP)

        try:
            result = run_suite(backend.address, only=("ing", "src"), settings=Settings(timeout_s=2.0), on_result=freeze)
        finally:
            os.kill(backend.pid, signal.SIGCONT)
    assert not result.passed
    assert result.ended_early
    assert result.ids("failed") == ["ing.empty-day"]
    notes = {each.message for each in result.results if "not run" in each.message}
    assert notes == {"not run: the backend has stopped answering since ing.empty-day"}
    assert result.results[-1].message in notes


def test_a_suite_that_runs_out_of_time_does_not_pass(tmp_path: Path) -> None:
    with restartable(command_of("bm25"), tmp_path) as backend:
        result = run_suite(backend.address, only=("rst", "dsc"), settings=Settings(total_s=0.0))
    assert not result.passed
    assert {each.message for each in result.results} == {"not run: 0 s have passed"}
