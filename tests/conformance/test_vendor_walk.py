"""Tests docs/vendors.md by following its steps in an empty folder, with its own commands."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "vendors.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "tests" / "data" / "example"

BACKEND = """#!{python}
'''A memory that learns one RPC after another: the file ``stage`` says how far its author has come.'''
import os
from pathlib import Path

import grpc
from memarena_backend import servicer
from memarena_backend.errors import CallError
from memarena_backend_bm25.__main__ import main

STAGE = int(Path(__file__).with_name("stage").read_text())


def later(stage, name):
    if STAGE < stage:
        def not_there(self, *arguments):
            raise CallError(grpc.StatusCode.UNIMPLEMENTED, name + " is not there yet")
        setattr(servicer.Servicer, name, not_there)


later(4, "ingest"), later(4, "reset"), later(5, "search"), later(6, "answer"), later(6, "forget")
main()
"""


def blocks(kind: str = "sh") -> list[str]:
    """Return the guide's fenced blocks of a language, without their indent."""
    returned = re.findall(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", GUIDE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, of, body in returned if of == kind]


def step(number: int) -> str:
    """Return the text of a numbered step."""
    return re.split(r"^\d\. ", GUIDE.split("## The order of work")[1], flags=re.MULTILINE)[number]


class Walk:
    """A vendor's folder with a backend in it, on a port that the system chose."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        (folder / "data").mkdir()
        backend = folder / "my-backend"
        backend.write_text(BACKEND.format(python=sys.executable))
        backend.chmod(0o755)
        script = next(block for block in blocks() if block.startswith("#!/bin/sh"))
        restart = folder / "kill-and-start.sh"
        restart.write_text(self.here(script))
        restart.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def here(self, text: str) -> str:
        """Return the guide's text with the address of this test."""
        return text.replace("127.0.0.1:50051", self.address)

    def run(self, command: str, **more: str) -> str:
        """Run a command of the guide, which must pass, and return its stdout."""
        result = subprocess.run(
            shlex.split(self.here(command)),
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout[-3000:]}\n{result.stderr[-2000:]}"
        return result.stdout

    def begin(self, stage: int) -> None:
        """Start the backend as it is at a stage of its development."""
        (self.folder / "stage").write_text(str(stage))
        self.run("./kill-and-start.sh")
        host, port = self.address.split(":")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection((host, int(port)), 1):
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "backend.log").read_text())

    def end(self) -> None:
        """Kill the backend if it runs."""
        pid = self.folder / "backend.pid"
        if pid.exists():
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    new_walk = Walk(tmp_path)
    try:
        yield new_walk
    finally:
        new_walk.end()


def test_each_step_ends_with_a_command_that_passes(walk: Walk) -> None:
    reported = {number: re.findall(r"--only ([a-z.]+)", step(number)) for number in (2, 3, 4, 5)}
    assert reported == {
        2: ["dsc", "hlt"],
        3: ["dig.gate"],
        4: ["ing", "dig", "rst"],
        5: ["src", "idn", "err", "txt", "lim"],
    }
    whole = next(line for line in step(2).splitlines() if "memarena conformance" in line).strip().strip("`")
    for number in (2, 3, 4):
        walk.begin(4 if number == 3 else number)
        flags = " ".join(f"--only {each}" for each in reported[number])
        ingested = walk.run(f"{whole.split(' --only')[0]} {flags}")
        assert "FAIL" not in ingested
        assert " 0 failed" in ingested and " passed" in ingested


def test_it_is_found_by_its_manifest_and_measured(walk: Walk, tmp_path: Path) -> None:
    (walk.folder / "stage").write_text("7")
    manifest = next(block for block in blocks("toml") if "backend.toml" in block)
    vendor = tmp_path / "vendor" / "mine"
    vendor.mkdir(parents=True)
    (vendor / "backend.toml").write_text(manifest)
    for name in ("my-backend", "stage"):
        (vendor / name).write_bytes((walk.folder / name).read_bytes())
        (vendor / name).chmod(0o755)
    folder_match = re.search(r'MEMARENA_BACKENDS="\$PWD/(\w+)"', manifest)
    assert folder_match is not None
    returned = {"MEMARENA_BACKENDS": str(tmp_path / folder_match[1])}
    assert "backend mine" in walk.run("memarena doctor", **returned)
    start, measure, report = blocks()[-1].splitlines()
    assert start.startswith("./my-backend --listen 127.0.0.1:50051")
    assert measure.startswith("memarena run --dataset tests/data/example --backend mine=")
    first = measure.replace("tests/data/example", str(EXAMPLE)).replace("mine=127.0.0.1:50051", "mine")
    walk.run(f"{first} --limit 2 --floor-samples 0", **returned)
    assert "mine" in walk.run(report)
