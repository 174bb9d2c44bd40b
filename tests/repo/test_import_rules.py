"""Who may import whom: every contract in pyproject.toml holds, can fail, and covers what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
SOURCES = {
    path.name: path.relative_to(ROOT)
    for pattern in ("*/src/*", "*/*/src/*")
    for path in ROOT.glob(pattern)
    if path.is_dir() and path.name.isidentifier() and not path.relative_to(ROOT).parts[0].startswith(".")
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages and settings of this repository, without anything else."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for source in SOURCES.values():
        shutil.copytree(ROOT / source, folder / source, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def verdicts(folder: Path) -> dict[str, str]:
    """KEPT or BROKEN by contract, as the tool of ``make lint`` says."""
    path = os.pathsep.join(str(folder / source.parent) for source in SOURCES.values())
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))
    assert found, done.stdout + done.stderr
    assert done.returncode == ("BROKEN" in found.values())
    return found


def test_every_contract_holds(copy: Path) -> None:
    assert verdicts(copy) == {contract["name"]: "KEPT" for contract in SETTINGS["contracts"]}


VIOLATIONS = {
    "the contract package and the answering engine are leaves": ("memarena_answering", "memarena_proto"),
    "the kit knows the contract and the answering engine": ("memarena_backend", "memarena.dataset"),
    "a backend knows the kit, the answering engine and the contract": ("memarena_backend_bm25", "memarena.client"),
    "the simulator knows the data set, and its command the bars": ("masim", "memarena.run"),
    "the bars of the simulator know the data set and nothing of the simulator": ("masim_bars", "masim.errors"),
    "the harness imports no backend": ("memarena.cli", "memarena_backend_vanilla_oracle"),
    "the data set, the guarded processes and what commands and packages share import nothing else of ours": (
        "memarena.dataset",
        "memarena.log.records",
    ),
    "the log and the readings of words know the data set": ("memarena.text", "memarena.log"),
    "scoring and judging know the log and the data set": ("memarena.judge", "memarena.scoring"),
    "reports know scores, the log and the data set": ("memarena.report", "memarena.judge"),
    "the client knows the contract": ("memarena.client", "memarena.run"),
    "the conformance suite knows the client and the contract": ("memarena.conformance", "memarena.run"),
    "the gateway knows the log and the answering engine": ("memarena.gateway", "memarena.dataset.model"),
    "readers know the gateway, the log, guarded processes and the answering engine": (
        "memarena.readers",
        "memarena.run",
    ),
    "meters know guarded processes and the log": ("memarena.meters", "memarena.run"),
    "a run neither judges, scores nor reports": ("memarena.run", "memarena.scoring"),
    "the latency study runs and reads runs, and renders nothing": ("memarena.latency", "memarena.judge"),
    "named configurations know what a run is": ("memarena.configs", "memarena.scoring"),
    "certification knows the harness and the answering engine": ("memarena_spark", "masim"),
    "tables and figures of the latency study know its results, reports and the log": (
        "memarena.latency_report",
        "memarena.run",
    ),
    "nothing but the commands, the latency study's tables and certification imports reports": (
        "memarena.run",
        "memarena.report",
    ),
    "nothing imports the commands": ("memarena.report", "memarena.cli.main"),
    "data sets, scores and reports reach no network": ("memarena.scoring", "grpc"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_contract_is_broken_by_an_import_that_it_forbids(copy: Path, name: str) -> None:
    package, imported = VIOLATIONS[name]
    root, *rest = package.split(".")
    module = copy.joinpath(SOURCES[root], *rest, "added_by_the_test.py")
    module.write_text(f"def late() -> None:\n    import {imported}\n", encoding="utf-8")
    try:
        assert verdicts(copy)[name] == "BROKEN"
    finally:
        module.unlink()


def test_every_contract_was_seen_to_fail() -> None:
    assert set(VIOLATIONS) == {contract["name"] for contract in SETTINGS["contracts"]}


def test_every_package_is_covered() -> None:
    """A package that is added must be given its rule."""
    assert set(SETTINGS["root_packages"]) == set(SOURCES)
    ruled = {
        module
        for contract in SETTINGS["contracts"]
        if contract["type"] == "may_import_only"
        for module in contract["source_modules"]
    }
    assert set(SOURCES) <= ruled
    harness = ROOT / SOURCES["memarena"]
    parts = {
        f"memarena.{path.stem}"
        for path in harness.iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name.isidentifier() and any(path.glob("*.py")))
    }
    assert parts - {"memarena.__init__", "memarena.__main__", "memarena.cli"} <= ruled
