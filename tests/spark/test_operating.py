"""Tests what an operator installs (systemd units, the compose stack, the guide docs/spark.md) against the program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from memarena_spark.errors import EXIT_REFUSED
from memarena_spark.machine.images import DECLARED, ORDER
from memarena_spark.profiles import known_profiles
from memarena_spark.refusal_codes import REMEDIES

from .conftest import ROOT

GUIDE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
STACK = ROOT / "compose" / "spark.yaml"
UNITS = sorted((ROOT / "spark" / "systemd").glob("memarena-spark*"))
DIGEST = "sha256:" + "ab" * 32
SETTINGS = {
    "MEMARENA_OLLAMA_IMAGE": f"ollama/ollama@{DIGEST}",
    "MEMARENA_SGLANG_IMAGE": f"lmsysorg/sglang@{DIGEST}",
    "MEMARENA_BACKEND_IMAGE": f"memarena-backend-bm25@{DIGEST}",
    "MEMARENA_OLLAMA_MODELS": "/models",
    "MEMARENA_PLAN": "/plan",
    "MEMARENA_DATASET": "/dataset",
    "MEMARENA_SIGNING_KEY": "/key",
    "MEMARENA_USER": "1000:1000",
}


def test_the_guide_explains_every_refusal() -> None:
    _, _, refusals = GUIDE.partition("## Refusals before a run")
    refusals, _, _ = refusals.partition("## What is in a bundle")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| \S", refusals, flags=re.MULTILINE)
    assert sorted(rows) == sorted(REMEDIES)


def test_the_guide_names_every_profile() -> None:
    assert all(f"| `{name}` |" in GUIDE for name in known_profiles())


def test_the_guide_lists_what_was_not_measured() -> None:
    assert "still to be measured" in GUIDE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_each_unit(unit: Path, tmp_path: Path) -> None:
    """The copy names a program that exists here instead of the one that will be installed."""
    for each in UNITS:
        text = each.read_text(encoding="utf-8").replace("/opt/memarena/bin/memarena-spark", "/bin/true")
        (tmp_path / each.name).write_text(text, encoding="utf-8")
    result = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(tmp_path / unit.name)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr


def test_units_run_once_with_a_limit_and_the_timers_name_them() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in UNITS}
    assert set(texts) == {f"memarena-spark{audit}.{kind}" for audit in ("", "-audit") for kind in ("service", "timer")}
    for name, text in texts.items():
        if name.endswith(".service"):
            assert "Type=oneshot" in text
            assert "TimeoutStartSec=" in text
        else:
            assert f"Unit={name.replace('.timer', '.service')}" in text


def test_only_success_and_a_refusal_are_orderly_ends_of_a_unit() -> None:
    (unit,) = (path for path in UNITS if path.name == "memarena-spark.service")
    codes = re.findall(r"^SuccessExitStatus=(.*)$", unit.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert codes == [str(EXIT_REFUSED)]
    assert f"| {EXIT_REFUSED} | refused" in GUIDE


# ------------------------------------------------------------------ the stack


def test_every_service_of_the_stack_has_the_profile_spark() -> None:
    stack = yaml.safe_load(STACK.read_text(encoding="utf-8"))
    assert set(stack["services"]) == {"ollama", "embedder-warm", "sglang", "backend", "certify", "meters"}
    assert all(service["profiles"] == ["spark"] for service in stack["services"].values())


def test_the_stack_starts_in_the_order_that_preflight_requires() -> None:
    services = yaml.safe_load(STACK.read_text(encoding="utf-8"))["services"]
    after = {name: service.get("depends_on", {}) for name, service in services.items()}
    assert after["embedder-warm"] == {"ollama": {"condition": "service_healthy"}}
    assert after["sglang"] == {"embedder-warm": {"condition": "service_completed_successfully"}}
    assert after["certify"]["sglang"] == {"condition": "service_healthy"}


def test_no_health_check_calls_a_model_server() -> None:
    """SGLang's /health generates a token on the GPU, which would disturb a timing."""
    for file, name in (("spark.yaml", "sglang"), ("reader-sglang.yaml", "reader")):
        server = yaml.safe_load((STACK.parent / file).read_text(encoding="utf-8"))["services"][name]
        assert server["environment"]["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"] == "0"
        program = server["healthcheck"]["test"]
        assert program[:3] == ["CMD", "python3", "-c"]
        assert not [word for word in program if "health" in word or "http" in word]


def test_no_documented_command_ends_the_stack_when_its_warm_up_ends() -> None:
    texts = [STACK.read_text(encoding="utf-8"), GUIDE, (STACK.parent / "certify-spark.sh").read_text(encoding="utf-8")]
    assert not [text for text in texts if "abort-on-container-exit" in text or "exit-code-from" in text]
    assert all("certify-spark.sh" in text for text in texts[:2])


def test_all_networks_are_internal_and_the_backend_shares_none_with_models() -> None:
    stack = yaml.safe_load(STACK.read_text(encoding="utf-8"))
    assert all(network["internal"] is True for network in stack["networks"].values())
    assert stack["services"]["backend"]["networks"] == ["backend"]
    assert set(stack["services"]["certify"]["networks"]) == {"backend", "models"}
    mounts = [mount for service in stack["services"].values() for mount in service.get("volumes", ())]
    assert not [mount for mount in mounts if "docker.sock" in mount]


def capabilities(service: dict[str, Any]) -> set[str]:
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    return set(device["capabilities"])


def test_services_get_the_gpu_capabilities_that_they_need() -> None:
    """A list of capabilities replaces the runtime's default, which includes ``compute``."""
    services = yaml.safe_load(STACK.read_text(encoding="utf-8"))["services"]
    assert {"gpu", "compute", "utility"} <= capabilities(services["certify"])
    assert {"gpu", "utility"} <= capabilities(services["meters"])
    for name in ("ollama", "sglang"):
        assert capabilities(services[name]) in ({"gpu"}, {"gpu", "compute", "utility"})


def test_the_declared_order_is_the_order_of_starting() -> None:
    services = yaml.safe_load(STACK.read_text(encoding="utf-8"))["services"]
    first, second = services["certify"]["environment"][ORDER].split()

    def after(name: str) -> set[str]:
        direct = set(services[name].get("depends_on", {}))
        return direct.union(*(after(each) for each in direct))

    assert (first, second) == ("ollama", "sglang")
    assert first in after(second)


def composes() -> list[list[str]]:
    programs = [["docker-compose"]] if shutil.which("docker-compose") else []
    if shutil.which("docker"):
        probe = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        programs += [["docker", "compose"]] if probe.returncode == 0 else []
    return programs


@pytest.mark.skipif(not composes(), reason="no docker-compose and no docker compose here")
def test_every_installed_compose_accepts_the_stack() -> None:
    for program in composes():
        command = [*program, "-f", str(STACK), "--profile", "spark", "config"]
        environment = {**os.environ, **SETTINGS}
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        services = yaml.safe_load(result.stdout)["services"]
        assert set(services) == {"ollama", "embedder-warm", "sglang", "backend", "certify", "meters"}
        declared = services["certify"]["environment"][DECLARED]
        assert f"sglang=lmsysorg/sglang@{DIGEST}" in declared


@pytest.mark.skipif(not composes(), reason="no docker-compose and no docker compose here")
@pytest.mark.parametrize("variable", SETTINGS)
def test_the_stack_does_not_start_without_a_digest_or_folder(variable: str) -> None:
    environment = {**os.environ, **SETTINGS}
    del environment[variable]
    command = [*composes()[0], "-f", str(STACK), "--profile", "spark", "config", "-q"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode != 0
    assert variable in result.stderr
