"""``certify-spark.sh`` with every compose that is here, to a bundle that verifies: only the GPU's servers are scripted.

Needs Docker and the images, so it runs by ``make compose-test`` (MEMARENA_COMPOSE_TEST=1).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.compose.stack import ROOT, compose_programs, docker
from tests.e2e.harnessing import EXAMPLE
from tests.support.gpu_servers import EMBEDDING_MODEL

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MEMARENA_COMPOSE_TEST"), reason="needs Docker: make compose-test"),
    pytest.mark.timeout(900),
]
MODEL = "Qwen/Qwen3-0.6B"
DIGESTS = {"ollama": f"sha256:{'0c' * 32}", "sglang": f"sha256:{'56' * 32}"}
SERVERS = ROOT / "tests/support"
PROFILE = ROOT / "tests/spark/profile-quick.toml"
GB10 = yaml.safe_load((ROOT / "spark/plans/gb10.yaml").read_text(encoding="utf-8"))
PLAN = {
    "schema": 1,
    "profile": PROFILE.name,
    "advertise": "certify",
    "run": {
        "dataset": "/dataset",
        "backends": ["backend=backend:50051"],
        "readers": [{"spec": "http://sglang:30000/v1", "model": MODEL}],
        "embedder": {"spec": "http://ollama:11434/v1", "model": EMBEDDING_MODEL},
        "gateway_host": "0.0.0.0",
        "gateway_port": 8100,
        "gateway_url": "http://certify:8100/v1",
        "floor_samples": 11,
        "limit": 12,
        "meters": ["procfs"],
    },
    "embedder": {"url": "http://ollama:11434", "model": EMBEDDING_MODEL, "container": "ollama"},
    "reader_server": {
        "url": "http://sglang:30000",
        "model": MODEL,
        "container": "sglang",
        "flags": {**GB10["reader_server"]["flags"], "version": "0.5.23"},
    },
    "pins": {"images": DIGESTS},
}
"""The plan for the stack, with the fields that docs/spark.md names."""


@dataclass(frozen=True)
class Certifying:
    """A certification that is running, started with one compose program."""

    project: str
    folder: Path
    process: subprocess.Popen[str]

    def container(self, service: str) -> str:
        labels = (f"com.docker.compose.project={self.project}", f"com.docker.compose.service={service}")
        return docker("ps", "-a", "-q", *(part for label in labels for part in ("--filter", f"label={label}"))).strip()


def without_a_gpu(content: dict[str, Any], project: str) -> dict[str, Any]:
    """Return the stack without what only a node with a GPU has: its devices and the images of its servers."""
    services = content["services"]
    for how in services.values():
        how.pop("deploy", None)
        how.pop("build", None)
    for name in ("ollama", "sglang"):
        services[name]["image"] = "memarena-spark"
        services[name]["volumes"].append(f"{SERVERS}:/tests/support:ro")
        services[name]["working_dir"] = "/"
    services["backend"]["image"] = "memarena-backend-bm25"
    services["ollama"]["entrypoint"] = ["python3", "-m", "tests.support.gpu_servers", "ollama"]
    # The program of the health check.
    services["ollama"]["volumes"].append("./ollama:/usr/local/bin/ollama:ro")
    command = services["sglang"]["command"]
    assert command[:3] == ["python3", "-m", "sglang.launch_server"]
    services["sglang"]["entrypoint"] = ["python3", "-m", "tests.support.gpu_servers", "sglang"]
    services["sglang"]["command"] = command[3:]
    # So that two stacks of a test, and a run of somebody else on this machine, do not wait for each other.
    services["certify"]["environment"]["MEMARENA_SPARK_LOCK"] = f"/run/lock/{project}.lock"
    return content


def begin(folder: Path, program: list[str], key: Path) -> Certifying:
    """The documented command, in a copy of ``compose/``, with the documented variables."""
    project = f"memarena-test-{secrets.token_hex(4)}"
    compose, plan, out = folder / "compose", folder / "plan", folder / "out"
    for each in (compose, plan, out):
        each.mkdir(parents=True)
    content = yaml.safe_load((ROOT / "compose/spark.yaml").read_text(encoding="utf-8"))
    (compose / "spark.yaml").write_text(yaml.safe_dump(without_a_gpu(content, project)), encoding="utf-8")
    shutil.copy(ROOT / "compose/certify-spark.sh", compose)
    check = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:11434/api/version')"
    (compose / "ollama").write_text(f'#!/bin/sh\nexec python3 -c "{check}"\n')
    (compose / "ollama").chmod(0o755)
    demanding = PROFILE.read_text()
    for name in ("reader_server", "embedder", "signature"):
        demanding = demanding.replace(f"{name} = false", f"{name} = true")
    (plan / PROFILE.name).write_text(demanding)
    (plan / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    environment = {
        "COMPOSE": " ".join(program),
        "COMPOSE_PROJECT_NAME": project,
        "MEMARENA_OLLAMA_IMAGE": f"ollama/ollama@{DIGESTS['ollama']}",
        "MEMARENA_OLLAMA_MODELS": str(folder),
        "MEMARENA_SGLANG_IMAGE": f"lmsysorg/sglang@{DIGESTS['sglang']}",
        "HF_HOME": str(folder),
        "MEMARENA_BACKEND_IMAGE": f"memarena-backend-bm25@sha256:{'ba' * 32}",
        "MEMARENA_PLAN": str(plan),
        "MEMARENA_DATASET": str(EXAMPLE),
        "MEMARENA_SIGNING_KEY": str(key),
        "MEMARENA_OUT": str(out),
        "MEMARENA_USER": str(os.getuid()),
    }
    process = subprocess.Popen(
        ["./certify-spark.sh"],
        cwd=compose,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Certifying(project, folder, process)


def end(stack: Certifying) -> None:
    """Everything of a project, and nothing else."""
    label = f"label=com.docker.compose.project={stack.project}"
    stack.process.kill()
    stack.process.communicate()
    for kind, remove in (("container", ["rm", "-f", "-v"]), ("network", ["rm"]), ("volume", ["rm"])):
        ids = docker(kind, "ls", "-q", *(["-a"] if kind == "container" else []), "--filter", label).split()
        if ids:
            docker(kind, *remove, *ids)
    Path(f"/run/lock/{stack.project}.lock").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Iterator[dict[str, Certifying]]:
    """Start a stack with each compose program, at the same time, since each mostly checks that servers stay idle."""
    begun: dict[str, Certifying] = {}
    try:
        for program in compose_programs():
            name = " ".join(program)
            begun[name] = begin(tmp_path_factory.mktemp("stack") / "made", program, key)
        yield begun
    finally:
        for stack in begun.values():
            end(stack)


@pytest.mark.parametrize("program", [" ".join(program) for program in compose_programs()])
def test_the_documented_command_ends_with_a_bundle_that_verifies(
    stacks: dict[str, Certifying], key: Path, program: str
) -> None:
    stack = stacks[program]
    output, _ = stack.process.communicate(timeout=600)
    assert stack.process.returncode == 0, output[-4000:]
    (bundle,) = (stack.folder / "out").glob("*.bundle")
    assert f"certified: /out/{bundle.name}" in output

    allowed = stack.folder / "allowed_signers"
    allowed.write_text(f"node {key.with_suffix('.pub').read_text()}")
    verify = [sys.executable, "-m", "memarena_spark", "verify", str(bundle), "--allowed-signers", str(allowed)]
    verified = subprocess.run(verify, capture_output=True, text=True, timeout=120, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.endswith("verified\n")

    # What the warm-up did, in whose order it was, and that nothing took the engine's time beside the run.
    assert docker("wait", stack.container("embedder-warm")).strip() == "0"
    paths = [line.split()[1] for line in docker("logs", stack.container("sglang")).splitlines() if "asked" in line]
    assert paths.count("/v1/chat/completions") >= PLAN["run"]["limit"]  # type: ignore[index]
    # The probe asks once whether the server is loading, before anything is metered.
    assert [path for path in paths if path.startswith("/health")] in ([], ["/health"])
    started = {
        name: json.loads(docker("inspect", stack.container(name)))[0]["State"]["StartedAt"]
        for name in ("ollama", "embedder-warm", "sglang", "certify")
    }
    assert sorted(started, key=started.__getitem__) == list(started)
