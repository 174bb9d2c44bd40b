"""Tests what is released: one version, complete metadata, allowed names, and wheels with the right files."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from memarena_masim import __version__ as masim_version

from scripts.build_wheels import NOT_SHIPPED, build, distributions, environment_files, project

ROOT = Path(__file__).parents[2]
PROJECTS: dict[str, dict[str, Any]] = {name: project(folder) for name, folder in distributions().items()}
VERSION = PROJECTS["memarena"]["version"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Files of every wheel, by the distribution's name."""
    built = build(tmp_path_factory.mktemp("wheels"))
    return {path.name.split("-")[0].replace("_", "-"): zipfile.ZipFile(path).namelist() for path in built}


@pytest.mark.parametrize("name", PROJECTS)
def test_all_distributions_have_one_version_and_require_each_other_in_it(name: str) -> None:
    settings = PROJECTS[name]
    assert settings["version"] == VERSION == masim_version
    lists = [settings["dependencies"], *settings.get("optional-dependencies", {}).values()]
    for requirement in (each for requirements in lists for each in requirements if re.match(r"memarena|masim", each)):
        required, extras = re.split(r"[\[=]", requirement)[0], re.search(r"\[(.*)\]", requirement)
        assert required in PROJECTS, f"{name} requires {requirement}, which is no distribution of ours"
        assert required == name or requirement.endswith(f"=={VERSION}")
        there = PROJECTS[required].get("optional-dependencies", {})
        assert extras is None or set(extras[1].split(",")) <= set(there)


@pytest.mark.parametrize("name", PROJECTS)
def test_metadata_are_complete(name: str) -> None:
    fields = ("description", "readme", "license", "authors", "requires-python", "keywords", "classifiers")
    assert [field for field in fields if not PROJECTS[name].get(field)] == []


def test_the_extra_for_everything_names_every_other() -> None:
    extras = PROJECTS["memarena"]["optional-dependencies"]
    assert extras["all"] == [f"memarena[{','.join(each for each in extras if each != 'all')}]"]


def test_every_wheel_has_licence_types_and_the_data_of_its_source(wheels: dict[str, list[str]]) -> None:
    assert set(wheels) == set(PROJECTS)
    for name, folder in distributions().items():
        source = folder / "src"
        files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        expected = {path.relative_to(source).as_posix() for path in files}
        assert expected - set(wheels[name]) == set()
        assert any(file.endswith(".dist-info/licenses/LICENSE") for file in wheels[name])
        assert any(file.endswith("/py.typed") for file in wheels[name])
        assert ((folder / "backend.toml").exists()) == any(file.endswith("/backend.toml") for file in wheels[name])
        beside = {file.removesuffix("backend.toml") for file in wheels[name] if file.endswith("/backend.toml")}
        assert {f"{prefix}{file}" for prefix in beside for file in environment_files(folder)} <= set(wheels[name])


def test_what_trains_the_judge_is_in_no_wheel(wheels: dict[str, list[str]]) -> None:
    assert NOT_SHIPPED.isdisjoint(wheels)
    assert [file for files in wheels.values() for file in files if "judge_training" in file] == []


def test_an_environment_is_made_from_releases_where_a_checkout_has_folders(tmp_path: Path) -> None:
    for name in ("kit", "apart"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text(f'[project]\nname = "our-{name}"\nversion = "0.2.0"\n')
    folder = tmp_path / "apart"
    assert environment_files(folder) == {}
    (folder / "backend.toml").write_text(
        '[environment]\nrequirements = "r.txt"\nconstraints = "c.txt"\nhashes = "h.txt"\n'
    )
    (folder / "r.txt").write_text("-e ../kit[fast]\n-e .\nother>=1\n")
    (folder / "c.txt").write_text("other==1.5\n")
    (folder / "h.txt").write_text("other==1.5 --hash=sha256:0\n")
    assert environment_files(folder) == {
        "r.txt": "our-kit[fast]==0.2.0\nour-apart==0.2.0\nother>=1\n",
        "c.txt": "other==1.5\n",
        "h.txt": "other==1.5 --hash=sha256:0\n",
    }
