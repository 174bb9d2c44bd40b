"""Tests that every distribution declares what it imports, so that it works when installed alone."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(
    path.parent.relative_to(ROOT)
    for pattern in ("*/pyproject.toml", "*/*/pyproject.toml")
    for path in ROOT.glob(pattern)
    if not path.relative_to(ROOT).parts[0].startswith(".")
)
# Import names that several distributions share, by the longest prefix that tells them apart.
SHARED = {"google.protobuf": "protobuf", "google.rpc": "googleapis-common-protos"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(folder: Path) -> set[str]:
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    names = {normal(re.split(r"[^A-Za-z0-9._-]", line)[0]) for names in lists for line in names}
    return names | {normal(project["name"])}


def ours() -> dict[str, str]:
    """The distributions of this repository by import name; installed editable, they list no files."""
    return {
        path.name: normal(
            tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
        )
        for folder in FOLDERS
        for path in (ROOT / folder / "src").iterdir()
    }


BRINGS = {
    **{top: {normal(name) for name in names} for top, names in importlib.metadata.packages_distributions().items()},
    **{top: {name} for top, name in ours().items()},
}


def imported(source: str) -> set[str]:
    """Absolute names of the modules that a piece of code imports, also inside functions."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def providers(module: str) -> set[str]:
    """The distributions that may bring a module; empty for the standard library."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return set()
    for prefix, distribution in SHARED.items():
        if module.startswith(prefix):
            return {distribution}
    return BRINGS.get(top, {f"a distribution that provides {top}"})


def apart(folder: Path) -> bool:
    """Whether a folder is a backend with its own environment: its requirements are not installed here."""
    manifest = ROOT / folder / "backend.toml"
    return manifest.exists() and "environment" in tomllib.loads(manifest.read_text(encoding="utf-8"))


def missing(folder: Path, sources: dict[str, str]) -> list[str]:
    known = declared(folder)
    return sorted(
        f"{name} imports {module}, but {folder}/pyproject.toml does not declare {' or '.join(sorted(brings))}"
        for name, source in sources.items()
        for module in imported(source)
        if (brings := providers(module))
        and not brings & known
        and not (apart(folder) and module.partition(".")[0] not in BRINGS)
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_distribution_declares_what_it_imports(folder: Path) -> None:
    files = (ROOT / folder / "src").rglob("*.py")
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    assert sources
    assert "\n".join(missing(folder, sources)) == ""


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("import numpy", "numpy"),
        ("def f():\n    from scipy.stats import norm", "scipy"),
        ("from google.rpc import status_pb2", "googleapis-common-protos"),
        ("import memarena.log", "memarena"),
        ("import no_such_module", "no_such_module"),
    ],
)
def test_an_undeclared_import_would_be_found(source: str, word: str) -> None:
    faults = missing(Path("proto"), {"x.py": source})
    assert len(faults) == 1
    assert word in faults[0]


def test_declared_imports_and_the_standard_library_are_no_fault() -> None:
    source = (
        "import json\nimport grpc\nfrom google.protobuf import message\nfrom . import sibling\nimport memarena_proto"
    )
    assert missing(Path("proto"), {"x.py": source}) == []
