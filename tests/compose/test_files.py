"""Tests the compose files without containers: every compose program accepts them, and no network leads out.

A network that is not internal would let a backend send an ego's history out, or fetch gold from elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
import yaml

from tests.compose.stack import ROOT, compose_programs

COMPOSE = ROOT / "compose"
OWN_STACK = {"spark.yaml"}
"""Stands alone and has tests of its own."""
ADDED = sorted(path.name for path in COMPOSE.glob("*.yaml") if path.name not in {"base.yaml", *OWN_STACK})
# SGLang wants the host's shared memory and writes compiled kernels; PostgreSQL writes beside its data.
WRITES_ROOT = {"reader-sglang.yaml:reader", "memobase.yaml:memobase-db"}
PROGRAMS = compose_programs()


def content_of(name: str) -> dict[str, Any]:
    content = yaml.safe_load((COMPOSE / name).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.mark.skipif(not PROGRAMS, reason="no docker-compose and no docker compose here")
@pytest.mark.parametrize("name", ADDED)
def test_every_compose_that_is_here_takes_the_file(name: str) -> None:
    """Neither needs a daemon for it. docker-compose 1.29 holds files to the schema of the Compose Specification."""
    files = ["-f", str(COMPOSE / "base.yaml"), "-f", str(COMPOSE / name)]
    for program in PROGRAMS:
        result = subprocess.run([*program, *files, "config"], capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, f"{program}: {result.stderr}"
        assert set(content_of(name)["services"]) <= set(yaml.safe_load(result.stdout)["services"])
        assert not [line for line in result.stderr.splitlines() if "is not set" in line or "obsolete" in line]


def test_all_files_were_looked_at() -> None:
    readers = {"reader-llamacpp.yaml", "reader-sglang.yaml"}
    assert readers | {"memobase.yaml", "bm25.yaml", "example_typescript.yaml"} <= set(ADDED)
    assert len(ADDED) == len(list(COMPOSE.glob("*.yaml"))) - 2


@pytest.mark.parametrize("name", ["base.yaml", *ADDED])
def test_every_network_is_internal_and_every_service_is_on_one(name: str) -> None:
    content = content_of(name)
    assert [network for network, how in content.get("networks", {}).items() if how != {"internal": True}] == []
    for service, how in content["services"].items():
        assert how.get("networks") or service == "harness" or how.get("network_mode") == "none", service
        assert not {"ports", "privileged", "pid"} & set(how), service
        assert how.get("network_mode", "none") == "none"
        # The harness becomes the owner of its folder, and has no right left then (test_up).
        assert how.get("cap_add", []) == (
            ["SETUID", "SETGID", "KILL"] if "user" in how and service == "harness" else []
        )


@pytest.mark.skipif(not PROGRAMS, reason="no docker-compose and no docker compose here")
@pytest.mark.parametrize("memory", ["bm25", "oracle", "example_typescript"])
def test_without_options_each_compose_takes_the_harness_and_the_memory_that_is_named(memory: str) -> None:
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("COMPOSE", "MEMARENA_"))}
    environment = {} if memory == "bm25" else {"MEMARENA_MEMORY": memory}
    for program in PROGRAMS:
        result = subprocess.run(
            [*program, "config", "--services"],
            cwd=COMPOSE,
            env={**usual, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, set(result.stdout.split())) == (0, {"harness", "exit-code", memory}), result.stderr


OF_ANOTHER_S_IMAGE = ("oracle.yaml", "mem0_raw.yaml")
"""Variants, whose command differs from that of the image."""


@pytest.mark.parametrize("name", [name for name in ADDED if not name.startswith("reader-")])
def test_a_backend_is_ended_with_the_run_and_otherwise_what_its_image_says(name: str) -> None:
    backend = content_of(name)["services"][name.removesuffix(".yaml")]
    lines = (COMPOSE / backend["build"]["context"] / backend["build"]["dockerfile"]).read_text().splitlines()
    instructions = {
        line.split()[0]: json.loads(line.split(maxsplit=1)[1]) for line in lines if line.startswith(("ENTRY", "CMD"))
    }
    assert backend["entrypoint"] == ["sh", "/until-run-ends.sh", *instructions["ENTRYPOINT"]]
    # Compose forgets an image's command when it is given an entrypoint.
    assert backend.get("command") == instructions.get("CMD") or name in OF_ANOTHER_S_IMAGE
    assert {"lifetime:/lifetime:ro", "./until-run-ends.sh:/until-run-ends.sh:ro"} <= set(backend["volumes"])


@pytest.mark.parametrize("name", [name for name in ADDED if not name.startswith("reader-")])
def test_a_backend_that_ends_in_the_middle_of_a_run_is_started_again(name: str) -> None:
    """The harness waits for it, has it prove its days, and asks a lost question again; nobody else would start it."""
    backend = content_of(name)["services"][name.removesuffix(".yaml")]
    assert backend["restart"] == "on-failure"


def test_the_harness_is_told_of_signals_and_given_time() -> None:
    harness = content_of("base.yaml")["services"]["harness"]
    assert (harness["init"], harness["stop_grace_period"]) == (True, "60s")


@pytest.mark.parametrize("name", [name for name in ADDED if not name.startswith("reader-")])
def test_a_backend_is_bound_as_one_that_the_harness_starts_itself(name: str) -> None:
    services = content_of(name)["services"]
    for service in set(services) - {"harness"}:
        assert services[service]["pids_limit"] == 1024
        assert services[service]["mem_limit"] == "${MEMARENA_BACKEND_MEMORY:-4g}"
        assert services[service]["cpus"] == "${MEMARENA_BACKEND_CPUS:-0}"
        assert services[service].get("tmpfs", ["/tmp:size=1g"]) == ["/tmp:size=1g"]


@pytest.mark.parametrize("name", ADDED)
def test_only_the_harness_and_model_servers_are_on_the_network_of_models(name: str) -> None:
    on_it = {service for service, how in content_of(name)["services"].items() if "models" in how.get("networks", ())}
    assert on_it <= {"reader"}
    assert "models" in content_of("base.yaml")["services"]["harness"]["networks"]


@pytest.mark.parametrize("name", ["base.yaml", *ADDED])
def test_no_service_keeps_rights_that_it_does_not_need(name: str) -> None:
    for service, how in content_of(name)["services"].items():
        if name != "base.yaml" and service == "harness":
            continue  # what the base says of it holds
        if f"{name}:{service}" not in WRITES_ROOT:
            assert how.get("read_only") is True, service
        if f"{name}:{service}" != "reader-sglang.yaml:reader":
            assert how.get("cap_drop") == ["ALL"], service
            assert how.get("security_opt") == ["no-new-privileges:true"], service


@pytest.mark.parametrize("name", ADDED)
def test_variables_that_the_files_take_are_in_the_guide(name: str) -> None:
    guides = [COMPOSE / "README.md"]
    # A backend's own settings are in its own guide.
    built = [
        service["build"]
        for service in content_of(name)["services"].values()
        if "dockerfile" in service.get("build", {})
    ]
    guides += [(COMPOSE / each["context"] / each["dockerfile"]).with_name("README.md") for each in built]
    guide = "".join(path.read_text(encoding="utf-8") for path in guides if path.exists())
    variables = set(_variables((COMPOSE / name).read_text(encoding="utf-8")))
    assert sorted(variable for variable in variables if variable not in guide) == []


def _variables(text: str) -> list[str]:
    return [part.split("}")[0].split(":")[0] for part in text.split("${")[1:]]


def test_memsearch_is_told_every_setting_that_it_reads() -> None:
    environment = content_of("memsearch.yaml")["services"]["memsearch"]["environment"]
    source = (ROOT / "backends/memsearch/README.md").read_text(encoding="utf-8")
    documented = {
        word
        for word in source.replace("`", " ").replace(",", " ").replace("=", " ").split()
        if word.startswith("MEMSEARCH_")
    }
    assert documented == set(environment)
    assert len(documented) >= 7
