"""Tests that code and documents for all backends name none of them: each backend's facts are in its folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from memarena.execution.backends.manifests import load_manifest

from scripts import backend_folders, check_types

ROOT = Path(__file__).parents[2]
SHARED = (
    "Makefile",
    "pyproject.toml",
    ".ci/run",
    ".ci/prepare",
    "scripts/conformance.py",
    "scripts/check_types.py",
    "scripts/import_rules.py",
    "scripts/backend_folders.py",
    "scripts/setup_environment.py",
    "harness/src/memarena/cli/doctor.py",
    "harness/src/memarena/execution/backends/manifests.py",
    "harness/src/memarena/execution/backends/installed.py",
    "harness/src/memarena/execution/backends/environments.py",
    "harness/src/memarena/execution/backends/environment_making.py",
    "harness/src/memarena/cli/backends.py",
    "tests/compose/stack.py",
)
EXAMPLES = {
    ("Makefile", "bm25"),
    ("Makefile", "mem0"),
    ("tests/compose/stack.py", "bm25"),
    ("tests/compose/stack.py", "memobase"),
}
"""In help texts, as the image of helpers, and in a pointer to other tests."""


@pytest.mark.parametrize("file", SHARED)
def test_a_file_for_all_backends_names_none(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8").replace("rank_bm25", "")  # a library, which other parts use too
    names = {*backend_folders.backend_names(), *(folder.name for folder in backend_folders.folders())}
    mentions = {(file, name) for name in names if re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)}
    assert mentions <= EXAMPLES


def test_tools_see_the_folders_that_the_harness_sees() -> None:
    names = [each.name for folder in backend_folders.folders() for each in load_manifest(folder / "backend.toml")]
    assert names == backend_folders.backend_names()
    assert {"bm25", "oracle", "example_typescript"} <= set(names)


def test_types_of_a_backend_that_is_added_are_checked(tmp_path: Path) -> None:
    package = tmp_path / "backends" / "added" / "src" / "memarena_backend_added"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package.parents[1] / "backend.toml").touch()
    (package.parents[1] / "tests").mkdir()
    (tmp_path / "backends" / "no_backend" / "src" / "other").mkdir(parents=True)
    assert backend_folders.packages(tmp_path) == {"memarena_backend_added": package}
    sources = check_types.sources(tmp_path, ["proto/src"])
    assert sources == [Path("proto/src"), package.relative_to(tmp_path), Path("backends/added/tests")]
    assert Path("backends/bm25/src/memarena_backend_bm25") in check_types.sources()


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A repository with a backend in the harness's environment and one in its own, each with a compose file."""
    for name, environment in (("near", ""), ("apart", '[environment]\nrequirements = "requirements.txt"\n')):
        (tmp_path / "backends" / name).mkdir(parents=True)
        (tmp_path / "backends" / name / "backend.toml").write_text(
            f'schema = 1\n{environment}[[backend]]\nname = "{name}"\ncompose = "compose.yaml"\n', encoding="utf-8"
        )
    return tmp_path


def test_images_of_backends_with_an_environment_of_their_own_are_built_when_asked_for(two: Path) -> None:
    near, apart = "-f ../backends/near/compose.yaml", "-f ../backends/apart/compose.yaml"
    assert backend_folders.build_options(two) == f"{near} build harness near"
    assert backend_folders.build_options(two, everything=True) == f"{apart} {near} build harness apart near"
    assert backend_folders.build_options(two, ["apart"]) == f"{apart} build apart"
    with pytest.raises(SystemExit, match=r"nobody: no backend of this name has a compose file \(apart, near\)"):
        backend_folders.build_options(two, ["nobody"])


@pytest.mark.parametrize("arguments", [[], ["build"], ["compose", "--every"], ["compose", "--all", "bm25"]])
def test_a_tool_that_asks_for_something_else_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert backend_folders.main(arguments) == 2
    assert capsys.readouterr() == ("", "error: expected compose, then names of backends or --all\n")
