"""Tests the example in the kit's README as a complete backend, and the probe that checks whether a backend serves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from memarena_backend import Memory
from memarena_backend.probe import is_serving
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, launch, make_day, make_session, serve

README = Path(__file__).parents[2] / "backends" / "kit" / "README.md"


def example_source() -> str:
    (source,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    return str(source)


def test_the_example_finds_what_was_said(tmp_path: Path) -> None:
    defined: dict[str, object] = {"__name__": "example"}
    exec(compile(example_source(), "example", "exec"), defined)
    memory_type = defined["LastWords"]
    assert isinstance(memory_type, type)
    memory = memory_type()
    assert isinstance(memory, Memory)
    with serve(memory, tmp_path) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["the boat", "a plane", "that boat there"])]))
        assert served.find("n1", "which boat", 0) == ["Maya Chen: that boat there", "Maya Chen: the boat"]
        assert served.find("n1", "which boat", 0, max_items=1) == ["Maya Chen: that boat there"]
        assert pb.CAPABILITY_ANSWER in served.stub.Describe(pb.DescribeRequest(), timeout=30).capabilities


def test_the_example_runs_as_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "last_words_example.py").write_text(example_source(), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with launch("last_words_example", tmp_path) as backend:
        assert is_serving(backend.address)


def test_the_probe_says_by_exit_code_whether_a_backend_serves(served: Served) -> None:
    def probe(*arguments: str) -> int:
        command = [sys.executable, "-m", "memarena_backend.probe", *arguments]
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode

    assert probe(served.address) == 0
    assert probe("127.0.0.1:1") == 1
    assert probe() == 2
