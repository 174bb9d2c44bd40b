"""Tests the import rules in pyproject.toml: each holds, can fail, and covers all packages."""

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

from scripts import backend_folders

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
    for backend in backend_folders.folders():
        target = folder / backend.relative_to(ROOT)
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(backend / "backend.toml", target)
    return folder


def verdicts(folder: Path, *more: Path) -> dict[str, str]:
    """KEPT or BROKEN by contract, as the tool of ``make lint`` says; packages lie in ``more``, too."""
    path = os.pathsep.join(map(str, [*(folder / source.parent for source in SOURCES.values()), *more]))
    result = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    verdict_by_contract = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", result.stdout, re.MULTILINE))
    assert verdict_by_contract, result.stdout + result.stderr
    assert result.returncode == ("BROKEN" in verdict_by_contract.values())
    return verdict_by_contract


def test_every_contract_holds(copy: Path) -> None:
    assert verdicts(copy) == {contract["name"]: "KEPT" for contract in SETTINGS["contracts"]}


VIOLATIONS = {
    "the contract package, the answering engine and the data set are leaves": (
        "memarena_dataset",
        "memarena.log.records",
    ),
    "the kit knows the contract and the answering engine": ("memarena_backend", "memarena_dataset"),
    "a backend knows the kit, the answering engine and the contract": ("memarena_backend_bm25", "memarena.client"),
    "the simulator knows the data set and how servers are asked, and its command the quality measures": (
        "memarena_masim",
        "memarena.execution",
    ),
    "each step of the simulator imports only the steps before it": (
        "memarena_masim.plan",
        "memarena_masim.questions.book",
    ),
    "the quality measures know the data set and nothing of the simulator": (
        "memarena_dataset_quality",
        "memarena_masim.errors",
    ),
    "the harness imports no backend": ("memarena.cli", "memarena_backend_vanilla_oracle"),
    "confinement, the forked worker and lazy imports import nothing else of ours": (
        "memarena.forked_worker",
        "memarena.log.records",
    ),
    "guarded processes know what confines them": ("memarena.processes", "memarena.log.records"),
    "evaluation knows judging, scoring and the log": ("memarena.evaluation", "memarena.report"),
    "the paper's tables know the form of records": ("memarena.paper", "memarena.scoring"),
    "no circle between files or folders": ("memarena.log", "memarena.scoring.run"),
    "the log knows the data set": ("memarena.log", "memarena.client"),
    "judging knows the log, the data set and how servers are asked": ("memarena.judging", "memarena.scoring"),
    "training of the judge's models knows judging and scoring": ("judge_training", "memarena.report"),
    "answers from anywhere are planned as a run plans, judged and scored": (
        "memarena.evaluation_of_answers",
        "memarena.report",
    ),
    "scoring knows the rules of judging, the log and the data set": ("memarena.scoring", "memarena.report"),
    "reports know scores, the log and the data set": ("memarena.report", "memarena.judging"),
    "the client knows the contract": ("memarena.client", "memarena.execution"),
    "the conformance suite knows the client and the contract": ("memarena.conformance", "memarena.execution"),
    "the gateway knows the log and the answering engine": ("memarena.gateway", "memarena_dataset.model"),
    "readers know the gateway, the log, guarded processes, readings of values and the answering engine": (
        "memarena.readers",
        "memarena.execution",
    ),
    "meters know guarded processes and the log": ("memarena.meters", "memarena.execution"),
    "a run neither judges, scores nor reports": ("memarena.execution", "memarena.scoring"),
    "the latency study runs and reads runs, and renders nothing": ("memarena.latency", "memarena.judging"),
    "named configurations know what a run is": ("memarena.configs", "memarena.scoring"),
    "a sweep starts runs as processes, and knows their plans and logs": ("memarena.sweep", "memarena.scoring"),
    "a reproduction starts commands as processes, and reads and reports what they left": (
        "memarena.reproduction",
        "memarena.viewer",
    ),
    "tables of a run know scores, evaluation, judging and the log": ("memarena.tables", "memarena.execution"),
    "a run started from Python judges nothing": ("memarena.starting", "memarena.scoring"),
    "certification knows the harness and the answering engine": ("memarena_spark", "memarena_masim"),
    "a site knows reports, evaluation, scoring, the log, the forked worker and the data set": (
        "memarena.site",
        "memarena.execution",
    ),
    "the viewer knows reports, scores, evaluation, judging, the log and the data set": (
        "memarena.viewer",
        "memarena.execution",
    ),
    "only the commands, the viewer, reproductions, the latency study's tables and certification import reports": (
        "memarena.execution",
        "memarena.report",
    ),
    "nothing imports the commands": ("memarena.report", "memarena.cli.main"),
    "data sets, scores and reports reach no network": ("memarena.scoring", "grpc"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_contract_is_broken_by_an_import_that_it_forbids(copy: Path, name: str) -> None:
    package, imported = VIOLATIONS[name]
    root, *rest = package.split(".")
    target = copy.joinpath(SOURCES[root], *rest)
    module = target / "added_by_the_test.py" if target.is_dir() else target.with_suffix(".py")
    before = module.read_text(encoding="utf-8") if module.exists() else None
    module.write_text(f"{before or ''}\n\ndef late() -> None:\n    import {imported}\n", encoding="utf-8")
    try:
        assert verdicts(copy)[name] == "BROKEN"
    finally:
        if before is None:
            module.unlink()
        else:
            module.write_text(before, encoding="utf-8")


def test_a_backend_that_is_added_is_held_to_the_rules_without_being_named(copy: Path) -> None:
    rule = "a backend knows the kit, the answering engine and the contract"
    package = copy / "backends" / "added" / "src" / "memarena_backend_added"
    package.mkdir(parents=True)
    (package.parents[1] / "backend.toml").write_text("schema = 1\n", encoding="utf-8")
    files = {"__init__": "", "first": "import memarena_backend_added.second", "second": "import memarena_backend"}
    for name, source in files.items():
        (package / f"{name}.py").write_text(f"{source}\n", encoding="utf-8")
    try:
        assert verdicts(copy)[rule] == "KEPT"  # also where it is not installed
        assert verdicts(copy, package.parent)[rule] == "KEPT"
        (package / "second.py").write_text("import memarena.client\n", encoding="utf-8")
        assert verdicts(copy, package.parent)[rule] == "BROKEN"
        (package / "second.py").write_text("import memarena_backend_added.first\n", encoding="utf-8")
        assert verdicts(copy, package.parent)[rule] == "BROKEN"
    finally:
        shutil.rmtree(package.parents[1])


def test_every_contract_was_seen_to_fail() -> None:
    assert set(VIOLATIONS) == {contract["name"] for contract in SETTINGS["contracts"]}


def test_every_package_is_covered() -> None:
    """A package that is added must be given its rule; one of a backend has it."""
    backends = set(backend_folders.packages())
    assert set(SETTINGS["root_packages"]) == set(SOURCES) - backends
    ruled = {
        module
        for contract in SETTINGS["contracts"]
        if contract["type"] == "may_import_only"
        for module in contract["source_modules"]
    }
    assert set(SOURCES) - backends <= ruled
    harness = ROOT / SOURCES["memarena"]
    parts = {
        f"memarena.{path.stem}"
        for path in harness.iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name.isidentifier() and any(path.glob("*.py")))
    }
    assert parts - {"memarena.__init__", "memarena.__main__", "memarena.cli"} <= ruled
