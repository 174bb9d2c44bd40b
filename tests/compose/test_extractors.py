"""Tests, without containers, that a model named as extractor reaches the harness with every compose program."""

from __future__ import annotations

import os
import subprocess

import pytest
import yaml

from tests.compose.stack import ROOT, compose_programs

PROGRAMS = compose_programs()
EXTRACTING = ("graphiti", "langmem", "memobase", "memos", "mem0")
NAMED = {"MEMARENA_EXTRACTOR": "http://model:8000/v1", "MEMARENA_EXTRACTOR_MODEL": "one"}


def environment_of_the_harness(*files: str, **more: str) -> dict[str, str]:
    """Return the harness's environment, on which all compose programs of this machine agree."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("COMPOSE", "MEMARENA_"))}
    file_options = [part for file in files for part in ("-f", str(ROOT / file))]
    environments = []
    for program in PROGRAMS:
        result = subprocess.run(
            [*program, *file_options, "config"],
            env={**usual, **more},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, f"{program}: {result.stderr}"
        environments.append(yaml.safe_load(result.stdout)["services"]["harness"]["environment"])
    assert all(each == environments[0] for each in environments)
    return dict(environments[0])


@pytest.mark.skipif(not PROGRAMS, reason="no docker-compose and no docker compose here")
@pytest.mark.parametrize("memory", EXTRACTING)
def test_a_model_that_is_named_to_extract_reaches_the_harness(memory: str) -> None:
    files = ("compose/base.yaml", f"compose/{memory}.yaml")
    assert environment_of_the_harness(*files, **NAMED).items() >= NAMED.items()
    # Empty variables: the reader extracts.
    assert {environment_of_the_harness(*files)[name] for name in NAMED} == {""}


@pytest.mark.skipif(not PROGRAMS, reason="no docker-compose and no docker compose here")
@pytest.mark.parametrize("memory", [memory for memory in EXTRACTING if memory != "memobase"])
def test_rules_can_take_the_place_of_that_model(memory: str) -> None:
    files = ("compose/base.yaml", f"compose/{memory}.yaml", "tests/compose/extractor-by-rules.yaml")
    assert environment_of_the_harness(*files)["MEMARENA_EXTRACTOR"] == "http://extractor:8000/v1"
