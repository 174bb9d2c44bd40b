"""Tests environments of the readers' servers: their packages, requirements of the machine, and who uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from memarena.execution.backends.environments import ROOT_VARIABLE, STAMP, Stamp
from memarena.execution.errors import RunError
from memarena.execution.models import reader_environments
from memarena.execution.models.model_pool import ReaderPool, start_configured
from memarena.execution.models.reader_environments import SERVERS, lacks, reader_environment, server_program
from memarena.execution.planning.model_config import ReaderConfig
from memarena.readers.embedded import find_weights
from memarena.reproduction.missing import missing_of_reader

from tests.support.gpu_servers import install

UV = "uv==0.13.9"
SGLANG = ReaderConfig(spec="sglang:qwen")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "environments"))
    return tmp_path


def scripted_environment(server: str, variables: str) -> Path:
    """An environment with this Python behind a script, which has further variables; its folder."""
    environment = reader_environment(server).environment_path()
    environment.python.parent.mkdir(parents=True)
    environment.python.write_text(f'#!/bin/sh\n{variables} exec {sys.executable} "$@"\n')
    environment.python.chmod(0o755)
    stamp = Stamp(key=environment.key, folder=reader_environment(server).folder, python="3.11.0", size_bytes=1)
    (environment.path / STAMP).write_text(stamp.model_dump_json())
    return environment.path


def test_a_server_starts_with_its_environment_where_that_is_there(root: Path) -> None:
    assert server_program("sglang") == (sys.executable,)
    assert reader_environment("sglang").missing() == "not installed: run memarena readers install sglang"
    assert "sglang (not installed: run memarena readers install sglang)" in missing_of_reader(SGLANG)
    variables = install(root / "packages")
    scripted_environment("sglang", f"PYTHONPATH={variables}")
    assert not any("sglang" in line for line in missing_of_reader(SGLANG))
    reader = start_configured(SGLANG, root)
    try:
        assert reader.ref.details["version"] == "0.5.23"
    finally:
        reader.stop()


@pytest.mark.llm
def test_llamacpp_starts_one_model_after_another_with_the_program_of_its_environment(root: Path) -> None:
    """Two names of the embedded reader's weights: a run with both has them one at a time."""
    log = root / "started"
    scripted_environment("llamacpp", f"echo started >> {log};")
    weights = find_weights().path
    configs = []
    for name in ("first", "second"):
        (root / f"{name}.gguf").symlink_to(weights)
        configs.append(ReaderConfig(spec=f"llamacpp:{root / name}.gguf", window_tokens=512))
    with ReaderPool(tuple(configs), root / "readers", None) as pool:
        assert [(ref.name, ref.details["weights_sha256"]) for ref in pool.refs()] == [
            (name, find_weights().sha256()) for name in ("first", "second")
        ]
        assert not pool.readers() and not log.exists()
        first = pool.start("first")
        assert (first.ref.kind, first.ref.base_url, log.read_text()) == (
            "llamacpp",
            first.upstream.base_url,
            "started\n",
        )
        assert pool.stop_on_demand("second") == ["first"]
        assert not first.alive()


def test_what_a_machine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lacks("sglang", "580.65.06", "2.36") == []
    assert lacks("sglang", "550.54", "2.36") == ["the NVIDIA driver is 550.54, CUDA 13.0 needs 580 or newer"]
    assert lacks("vllm", None, "2.31") == [
        "no NVIDIA driver answers, CUDA 13.0 needs 580 or newer",
        "glibc is 2.31, the wheels need 2.34 or newer",
    ]
    assert lacks("llamacpp", None, "") == []
    monkeypatch.setattr(reader_environments, "DRIVERS", {11: 450, 12: 525})
    assert lacks("sglang", "580.65.06", "2.36") == [
        "the driver that CUDA 13.0 needs is not known, only those of CUDA 11, 12"
    ]
    with pytest.raises(RunError, match="ollama: no reader server of this name"):
        reader_environment("ollama")


def test_every_set_of_packages_is_what_the_index_resolves(root: Path) -> None:
    """The requirements of each server under its pins need those packages and no others. Nothing is installed."""
    venv = root / "uv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "-q", UV], check=True)
    for server in SERVERS:
        folder = reader_environment(server).folder
        shutil.copy(folder / "requirements.txt", root / "requirements.txt")
        target = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_34")
        command: list[str | Path] = [
            venv / "bin" / "uv",
            "pip",
            "compile",
            "-q",
            "--no-annotate",
            "--no-header",
            *target,
        ]
        command += ["-c", folder / "constraints.txt", root / "requirements.txt"]
        resolved = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ}).stdout
        assert resolved.split() == (folder / "constraints.txt").read_text().split(), server
