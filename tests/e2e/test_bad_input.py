"""Tests bad input: one clear line on standard error, exit code 2, and no loss of files that were already written."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena.log.store import LogReader, LogWriter, log_path, read_records

from .harnessing import EXAMPLE, command, here, memarena, overridden

pytestmark = pytest.mark.usefixtures("shared_extractive_reader")


def refused(*arguments: str | Path) -> str:
    """Run the command, which must refuse its input; return its line."""
    return line_of(here(*arguments))


def line_of(result: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of standard error of a command that refused its input."""
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in result.stderr
    return lines[0]


def run_on(dataset: Path, out: Path, *more: str | Path) -> str:
    """Run bm25 over ``dataset``, which must be refused; return its line."""
    usual = ("--dataset", dataset, "--backend", "bm25", "--reader", "extractive", "--out", out)
    return refused("run", *overridden(usual, more))


def test_a_named_run_that_lacks_a_backends_requirement_says_how_to_leave_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMOBASE_URL", "MEMOBASE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    flags = ("--dataset", EXAMPLE, "--reader", "extractive", "--out", tmp_path / "run")
    assert "main-grid: needs --embedder: " in refused("run", "main-grid", *flags)
    message = refused("run", "main-grid", "--embedder", "embedded", *flags)
    assert "--backend memobase: cannot be started: MEMOBASE_URL and MEMOBASE_TOKEN must be set" in message
    assert message.endswith("; without it: --backend vanilla,bm25,memsearch,oracle")


def copy_of_example(folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, folder / "data"))


def without_a_file(data: Path) -> None:
    (data / "corpus_sessions.jsonl").unlink()


def broken_json(data: Path) -> None:
    path = data / "corpus_sessions.jsonl"
    lines = path.read_text().splitlines()
    lines[4] = lines[4][:100]
    path.write_text("\n".join(lines) + "\n")


def missing_evidence(data: Path) -> None:
    path = data / "eval_instances" / "d7_qa.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["evidence_session_ids"] = ["sess_that_never_was"]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def wrong_type(data: Path) -> None:
    path = data / "corpus_sessions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[2]["turns"][0]["timestamp"] = "noon"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


def too_long_a_turn(data: Path) -> None:
    path = data / "corpus_sessions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[2]["turns"][1]["text"] = "a" * ((256 << 10) + 1)
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (without_a_file, ["corpus_sessions.jsonl"]),
        (broken_json, ["corpus_sessions.jsonl:5"]),
        (missing_evidence, ["d7_qa.jsonl:2", "sess_that_never_was"]),
        (wrong_type, ["corpus_sessions.jsonl:3", "timestamp"]),
        (too_long_a_turn, ["corpus_sessions.jsonl:3", "turns.1.text", "262,144"]),
    ],
)
def test_a_damaged_data_set_is_named_by_file_and_line(
    tmp_path: Path, damage: Callable[[Path], None], expected: list[str]
) -> None:
    data = copy_of_example(tmp_path)
    damage(data)
    line = run_on(data, tmp_path / "run")
    assert all(part in line for part in expected), line
    assert not log_path(tmp_path / "run").exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Run in its own process, as a user would."""
    flags = ("--backend", "bm25", "--reader", "extractive", "--out", tmp_path / "run")
    assert "nowhere" in line_of(memarena("run", "--dataset", tmp_path / "nowhere", *flags))


def test_an_impossible_file_name_gives_a_one_line_error(tmp_path: Path) -> None:
    assert "too long" in run_on(Path("x" * 300), tmp_path / "run")


def test_an_unknown_backend_lists_the_known_ones(tmp_path: Path) -> None:
    line = refused(
        "run", "--dataset", EXAMPLE, "--backend", "elephant", "--reader", "extractive", "--out", tmp_path / "run"
    )
    assert "elephant" in line
    assert "bm25" in line


def test_a_backend_that_ends_before_it_serves_is_reported_once_with_its_exit_code(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('127.0.0.1:9'); print('no model'); sys.exit(0)"
    manifest = tmp_path / "backend.toml"
    manifest.write_text(
        'schema = 1\n[[backend]]\nname = "brief"\nkind = "competitor"\n'
        f'command = ["{{python}}", "-c", "{code}", "{{address_file}}"]\n'
    )
    line = run_on(EXAMPLE, tmp_path / "run", "--backend", tmp_path, "--floor-samples", "0", "--meter", "none")
    assert line == "error: --backend brief: backend brief did not start: exit code 0: no model"


def closed_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_an_unreachable_reader_is_named(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    line = refused("run", "--dataset", EXAMPLE, "--backend", "bm25", "--reader", url, "--out", tmp_path / "run")
    assert url in line
    assert not log_path(tmp_path / "run").exists()


def test_an_unreachable_backend_is_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{closed_port()}"
    line = refused(
        *("run", "--dataset", EXAMPLE, "--backend", f"mine={address}", "--reader", "extractive"),
        *("--deadline", "health=1", "--out", tmp_path / "run"),
    )
    assert "mine" in line
    assert address in line


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        line = run_on(EXAMPLE, tmp_path / "run", "--gateway-port", str(port))
    assert f"--gateway-port {port}" in line


def test_a_log_of_a_newer_schema_is_refused_by_every_reader(tmp_path: Path) -> None:
    out = tmp_path / "run"
    LogWriter(out).close()
    db = sqlite3.connect(log_path(out))
    db.execute("UPDATE meta SET value = '999'")
    db.commit()
    db.close()
    for arguments in (("run", "--out", out, "--resume"), ("report", out), ("score", out), ("show", out, "--failures")):
        assert "schema_version is 999" in refused(*arguments)


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "run"
    LogWriter(out).close()
    assert "--resume" in run_on(EXAMPLE, out)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("mine")
    assert "empty folder" in run_on(EXAMPLE, other)
    assert (other / "precious.txt").read_text() == "mine"


def test_resuming_without_a_log_is_refused(tmp_path: Path) -> None:
    assert "holds no run log" in refused("run", "--out", tmp_path / "none", "--resume")


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = here(
        *("run", "--dataset", EXAMPLE, "--backend", "bm25", "--reader", "extractive", "--out", out),
        *("--limit", "2", "--floor-samples", "0", "--meter", "none"),
    )
    assert result.returncode == 0, result.stderr
    arguments = ("run", "--dataset", EXAMPLE, "--backend", "bm25", "--reader", "extractive", "--out", out)
    assert "limit" in refused(*arguments, "--limit", "3", "--resume")
    assert "backends" in refused(
        *("run", "--dataset", EXAMPLE, "--backend", "vanilla", "--reader", "extractive", "--out", out),
        *("--limit", "2", "--resume"),
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--ego", "nobody"], "--ego nobody"),
        (["--question-ids", "/dev/null/x"], "--question-ids"),
        (["--option", "bm25.colour=blue"], "colour"),
        (["--option", "nonsense"], "BACKEND.KEY=VALUE"),
        (["--option", "vanilla.k=1"], "vanilla"),
        (["--question-ids", "/dev/null"], "names no instance"),
        (["--reader-window", "300"], "--reader-window"),
        (["--reader", "extractive,extractive"], "a reader extractive is in the run already"),
        (["--deadline", "search=soon"], "--deadline search: expected a"),
        (["--deadline", "search=inf"], "--deadline search: expected a"),
        (["--deadline", "ingest=1e12"], "--deadline ingest: expected at most 1e+06, got '1e12'"),
        (["--max-context-tokens", "99999999999999999999"], "--max-context-tokens: expected at most 4294967295"),
        (["--max-items", "4294967297"], "--max-items: expected at most 4294967295"),
        (["--reader-window", "4294967297"], "--reader-window: expected at most 4294967295"),
        (["--gateway-host", ""], "--gateway-host: expected a value"),
        (["--gateway-host", "x" * 300], "--gateway-host"),
        (["--bearer-token-file", "/bin/sh"], "--bearer-token-file"),
        (["--bearer-token-file", "/dev/null"], "--bearer-token-file"),
        (["--out", "x" * 300], "--out"),
        (["--seeds", "s7"], "seeds"),
        (["--protocol", "backwards"], "protocol"),
        (["--limit", "0"], "limit"),
        (["--id-key", "xyz"], "--id-key: expected text of the form"),
        (["--max-answer-tokens", "0"], "--max-answer-tokens: expected 1 or more"),
        (["--tls-ca", "/no/such/file"], "--tls-ca"),
        (["--setting", "bm25"], "BACKEND.VARIABLE=VALUE"),
        (["--setting", "vanilla.X=1"], "--setting vanilla: no backend of this name"),
        (["--setting", "bm25.BM25_VECTORS=perhaps"], "BM25_VECTORS: expected off or on"),
        (["--setting", "bm25.API_KEY=x"], "export a secret"),
        (["--option", "bm25.retrieval=dense"], "declares no such option"),
        (["--prompt-style", "vanilla=json_context"], "--prompt-style vanilla"),
        (["--whole-corpus", "bm25"], "only a diagnostic"),
        (["--access-markers", "bm25"], "only a diagnostic"),
        (["--family", "d99_unknown"], "family: expected one of d5_cloze, "),
        (["--after-crash", "pray"], "--after-crash: expected one of verify, fresh"),
        (["--backend-memory", "lots"], "--backend-memory: expected text of the form"),
    ],
)
def test_a_bad_flag_is_named(tmp_path: Path, flags: list[str], expected: str) -> None:
    assert expected in run_on(EXAMPLE, tmp_path / "run", *flags)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--dataset", EXAMPLE, "--backend", "bm25", "--backend", "oracle", "--reader", "extractive"),
        ("run", "--dataset", EXAMPLE, "--backend=bm25", "--reader", "extractive", "--backend=oracle"),
        ("latency", "growth", "--dataset", EXAMPLE, "--backend", "bm25", "--days", "1", "--backend", "vanilla"),
    ],
    ids=lambda arguments: f"{arguments[0]}{'=' if '=' in ''.join(map(str, arguments)) else ''}",
)
def test_an_option_given_twice_is_refused(tmp_path: Path, arguments: tuple[str | Path, ...]) -> None:
    line = refused(*arguments, "--out", tmp_path / "run")
    assert "--backend: given more than once, but it takes one value" in line
    assert not (tmp_path / "run").exists()


def test_repeatable_options_and_values_that_look_like_options_do_not_count_as_repeated(tmp_path: Path) -> None:
    line = run_on(EXAMPLE, tmp_path / "run", "--family", "d7_qa", "--family", "d99_unknown")
    assert line.endswith("got 'd99_unknown'")
    line = run_on(EXAMPLE, tmp_path / "run", "--model", "--backend", "--limit", "zero")
    assert "--limit" in line
    assert "more than once" not in line


def test_an_option_that_the_backend_refuses_ends_the_run_and_is_not_its_failure(tmp_path: Path) -> None:
    """Only the backend knows the values of its options; a wrong one is the user's mistake, not its failure."""
    out = tmp_path / "run"
    flags = ("--backend", "bm25", "--reader", "extractive", "--option", "bm25.k=zero", "--limit", "1")
    result = here("run", "--dataset", EXAMPLE, "--out", out, *flags, "--floor-samples", "0", "--meter", "none")
    assert result.returncode == 2
    assert "error: --option bm25: the backend refuses what was set: options: k: expected an integer" in result.stderr
    assert "Traceback" not in result.stderr
    kinds = [record.kind for record in read_records(out)]
    assert "asked" not in kinds
    assert kinds[-1] == "run_ended"


def test_settings_with_a_bare_resume_are_refused(tmp_path: Path) -> None:
    """A resumed run reads its settings from the log: further flags would be ignored, so they are refused."""
    out = tmp_path / "run"
    LogWriter(out).close()
    assert "--deadline" in refused("run", "--out", out, "--resume", "--deadline", "search=1")


@pytest.mark.parametrize("arguments", [("run", "--no-such-flag"), ("run", "--limit", "many"), ("no-such-verb",)])
def test_usage_errors_exit_with_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    result = here(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param("<&-", marks=pytest.mark.gate),
        pytest.param(">&-", marks=pytest.mark.gate),
        "2>&-",
        "<&- >&- 2>&-",
    ],
)
def test_a_command_with_closed_standard_streams_works(closed: str, tmp_path: Path) -> None:
    """Output of its children is dropped, and never goes into a file that got the number of a closed stream."""
    words = command(
        *("run", "--dataset", EXAMPLE, "--backend", "vanilla", "--reader", "extractive", "--limit", "2"),
        *("--floor-samples", "0", "--meter", "none", "--out", tmp_path / "run"),
    )
    result = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *words], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    with LogReader(tmp_path / "run") as log:
        log.verify()


@pytest.mark.parametrize(
    ("started", "message"),
    [
        ('"$@" >/dev/full', "cannot write: No space left on device"),
        ('mkdir gone && cd gone && rmdir ../gone && "$@"', "the current folder was removed"),
    ],
)
def test_a_full_disk_and_a_removed_folder_give_a_one_line_error(started: str, message: str, tmp_path: Path) -> None:
    words = command("doctor")
    result = subprocess.run(
        ["sh", "-c", started, "sh", *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert message in line_of(result)


def test_characters_outside_the_terminals_encoding_become_question_marks() -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    result = subprocess.run(
        command("run", "--help"), capture_output=True, env={**os.environ, **ascii_only}, check=False
    )
    assert result.returncode == 0, result.stderr
    assert b"?" in result.stdout
