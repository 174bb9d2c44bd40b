"""``memarena doctor`` starts what is there and names what is missing or broken."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .harnessing import ROOT, command, memarena


def test_the_backends_of_this_checkout_are_started_and_described() -> None:
    done = memarena("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("bm25", "vanilla", "oracle"):
        (line,) = [x for x in done.stdout.splitlines() if x.startswith(f"backend {name} ")]
        assert " ok " in line


def test_a_backend_whose_server_is_not_named_is_missing_and_not_broken(tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "backend.toml").write_text(
        'schema = 1\n[[backend]]\nname = "apart"\nkind = "competitor"\nrequires_env = ["APART_URL", "APART_KEY"]\n'
        'command = ["{python}", "-c", "raise SystemExit(7)"]\n'
    )
    given = {**os.environ, "MEMARENA_BACKENDS": str(tmp_path), "APART_KEY": "k"}
    done = subprocess.run(command("doctor"), capture_output=True, text=True, check=False, cwd=ROOT, env=given)
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("backend apart ")]
    assert "missing" in line and "APART_URL must be set" in done.stdout
    run = ["run", "--dataset", "tests/data/example", "--reader", "extractive", "--backend", "apart"]
    refused = subprocess.run(
        command(*run, "--out", str(tmp_path / "run")), capture_output=True, text=True, check=False, cwd=ROOT, env=given
    )
    assert refused.returncode == 2
    assert "APART_URL must be set" in refused.stderr


def test_a_backend_that_does_not_start_is_broken(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "backend.toml").write_text(
        'schema = 1\n[[backend]]\nname = "bad"\nkind = "competitor"\n'
        'command = ["{python}", "-c", "raise SystemExit(7)"]\n'
    )
    done = subprocess.run(
        command("doctor"),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "MEMARENA_BACKENDS": str(tmp_path)},
    )
    assert done.returncode == 1
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("backend bad ")]
    assert "broken" in line
    assert "exit code 7" in done.stdout
