"""Tests that MemOS is confined: no connection beyond loopback, no write outside the data folder, no content in logs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.memos.tests.system import Running, all_written, memory_of, names_pet, reason_to_skip, running
from tests.backends.support import make_day
from tests.support.model_server import ModelServer

GUARD = Path(__file__).parent / "guard"


def guarded(folder: Path, *may_write: Path) -> dict[str, str]:
    """Return settings of a process that may connect only to loopback, and write only below these folders."""
    return {
        "PYTHONPATH": str(GUARD),
        "MEMARENA_GUARD_LOG": str(folder / "refused"),
        "MEMARENA_GUARD_FOLDERS": os.pathsep.join(map(str, may_write)),
    }


@pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or "")
def test_it_connects_only_to_the_gateway_and_writes_only_to_its_folder(tmp_path: Path, model: ModelServer) -> None:
    names = ("data", "tmp", "address", "address.tmp")
    settings = guarded(tmp_path, *(tmp_path / name for name in names))
    settings |= {"MEMOS_BASE_PATH": str(tmp_path / "elsewhere"), "CUSTOM_LOGGER_URL": "http://example.org/"}
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / ".env").write_text("MEMOS_BASE_PATH=/elsewhere\n")
    with running(tmp_path, model, settings) as backend:
        backend.ingest(make_day("n", 0, [names_pet("s1", "dog", "Rolo")]))
        model.script = lambda _: "Rolo is no JSON"
        backend.ingest(make_day("n", 1, [names_pet("s2", "dog", "Rolo", day=1)]))
        assert backend.texts("n", 1) == [memory_of("dog", "Rolo")]
        assert backend.process.poll() is None
        threads = len(list(Path(f"/proc/{backend.process.pid}/task").iterdir()))
    assert not (tmp_path / "refused").exists(), (tmp_path / "refused").read_text()
    assert [path.name for path in all_written(tmp_path / "current")] == [".env"]
    assert all_written(tmp_path / "home") == []
    assert all_written(tmp_path / "tmp") == []
    # The library creates its log file on import, and it stays empty.
    assert [path.read_bytes() for path in all_written(tmp_path / "data" / "library")] == [b""]
    assert "Rolo" not in (tmp_path / "stderr.log").read_text()
    assert threads < 40, "the library's schedulers are not started"


def test_the_guard_refuses_connections_lookups_and_writes(tmp_path: Path) -> None:
    for code in (
        "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
        "import socket; socket.getaddrinfo('example.org', 80)",
        f"open({str(tmp_path / 'out')!r}, 'w')",
        f"import sqlite3; sqlite3.connect({str(tmp_path / 'out')!r})",
    ):
        environment = {**os.environ, **guarded(tmp_path, tmp_path / "in")}
        result = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert "PermissionError" in result.stderr, result.stderr
    assert len((tmp_path / "refused").read_text().splitlines()) == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(reason_to_skip() is not None, reason=reason_to_skip() or "")
def test_an_invalid_setting_ends_the_start_with_an_error_of_one_line(tmp_path: Path, model: ModelServer) -> None:
    with (
        pytest.raises(AssertionError, match="error: MEMARENA_MEMOS_REPLY_TOKENS: expected a whole number from 64"),
        running(tmp_path, model, {"MEMARENA_MEMOS_REPLY_TOKENS": "many"}),
    ):
        pass


def test_the_log_has_no_content_of_sessions_or_replies(backend: Running) -> None:
    backend.model.script = lambda _: "A reply of Rolo that cannot be read"
    backend.ingest(make_day("n", 0, [names_pet("s1", "dog", "Rolo")]))
    assert "Rolo" not in backend.log()
