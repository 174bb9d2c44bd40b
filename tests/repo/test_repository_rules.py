"""Tests rules for every file and every distribution of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import hashes

ROOT = Path(__file__).parents[2]

# Put together here, so that this file does not break its own rules.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("files", "pythonhosted", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("ftp", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("proxy", "golang", "org"),
        ("static", "crates", "io"),
        ("index", "crates", "io"),
    )
]
MACHINE_PATHS = ["/" + "work/", "/" + "root/", "/" + "home/" + r"\w", "/" + "Users/" + r"\w"]
MACHINE_PATH = re.compile(rf"(?<![\w.~}}*-])(?:{'|'.join(MACHINE_PATHS)})")
INDEX_OPTION = re.compile(r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links|--trusted-host)\b")
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==[A-Za-z0-9.+!]+( *;.*)?$")


def committed() -> list[Path]:
    """Every committed file, and those about to be, as paths below the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in output.split("\0") if name and (ROOT / name).is_file()]


def text_lines(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """``file:line`` and the line, for every file that is text."""
    for path in paths:
        data = (ROOT / path).read_bytes()
        if b"\0" not in data:
            for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
                yield f"{path}:{number}", line


def registry_faults(lines: Iterable[tuple[str, str]]) -> list[str]:
    return [where for where, line in lines if any(host in line.lower() for host in REGISTRIES)]


def machine_path_faults(lines: Iterable[tuple[str, str]]) -> list[str]:
    return [where for where, line in lines if MACHINE_PATH.search(line)]


def merge_mark_faults(lines: Iterable[tuple[str, str]]) -> list[str]:
    return [where for where, line in lines if line.startswith((7 * "<" + " ", 7 * ">" + " "))]


def constraint_faults(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    names = [re.split(r"[=<>~;! ]", line)[0].lower().replace("_", "-").replace(".", "-") for line in lines]
    return [line for line in lines if not PIN.match(line)] + [name for name in set(names) if names.count(name) > 1]


def builds() -> list[Path]:
    return sorted(path.parent for path in committed() if path.name == "pyproject.toml" and path.parent != Path())


def distributions() -> list[Path]:
    """Ours: a pyproject.toml without a project says how the wheel of somebody else's library is made."""
    return [folder for folder in builds() if "project" in settings_of(folder)]


def test_no_file_names_a_package_registry() -> None:
    assert registry_faults(text_lines(committed())) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert machine_path_faults(text_lines(committed())) == []


def test_no_file_holds_the_marks_of_a_merge() -> None:
    assert merge_mark_faults([("x:1", "<" * 7 + " HEAD"), ("x:2", ">>> print()")]) == ["x:1"]
    assert merge_mark_faults(text_lines(committed())) == []


@pytest.mark.parametrize("line", [f"see https://{host}/simple" for host in REGISTRIES])
def test_a_registry_would_be_found(line: str) -> None:
    assert registry_faults([("x:1", line)]) == ["x:1"]


@pytest.mark.parametrize(
    "line", ["open('/work" + "/main/x')", "HOME=/ro" + "ot/x", "/ho" + "me/me/x", "a:/Us" + "ers/x"]
)
def test_a_path_of_one_machine_would_be_found(line: str) -> None:
    assert machine_path_faults([("x:1", line)]) == ["x:1"]


@pytest.mark.parametrize(
    "line", ["people/wo" + "rk/", "network/homework/", "{data}/ho" + "me/ward", "~/wo" + "rk/x", "../wo" + "rk/x"]
)
def test_other_paths_are_left_alone(line: str) -> None:
    assert machine_path_faults([("x:1", line)]) == []


def test_every_constraint_is_an_exact_version_given_once() -> None:
    for name in ("constraints.txt", "proto/requirements-generate.txt"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert constraint_faults(text) == [], name
        assert len(PIN.findall(text.splitlines()[-1])) == 1, name


@pytest.mark.parametrize(
    "line", ["numpy>=2", "numpy", "numpy==2.*", "numpy @ file:///x", "--index-url x", "a==1\nA==2"]
)
def test_an_inexact_constraint_would_be_found(line: str) -> None:
    assert constraint_faults(line) != []


def test_a_pin_without_a_hash_and_a_hash_without_a_pin_are_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashes, "ROOT", tmp_path)
    pins = tmp_path / "constraints.txt"
    pins.write_text("# pins\nnumpy==2\nPy_YAML==6\n")
    assert list(hashes.compare(pins)) == ["hashes.txt: is not there; run python -m scripts.hashes"]
    (tmp_path / "hashes.txt").write_text("# hashes\nnumpy==2 --hash=sha256:0\npyyaml==6\nscipy==1 --hash=sha256:0\n")
    assert [line.split("; ")[0] for line in hashes.compare(pins)] == [
        "hashes.txt: py-yaml==6 has no hash",
        "hashes.txt: scipy==1 is pinned no more",
    ]


def test_no_requirements_file_names_an_index() -> None:
    paths = [path for path in committed() if re.match(r"(requirements|constraints|hashes)[\w.-]*\.txt$", path.name)]
    assert len(paths) >= 4
    assert [where for where, line in text_lines(paths) if INDEX_OPTION.match(line)] == []


def test_everything_that_is_required_is_constrained() -> None:
    """Every dependency named in the repository has a pinned version, so that two set-ups are the same.

    What a backend with an environment of its own requires is pinned by its own constraints.
    """
    ours = {settings_of(folder)["project"]["name"] for folder in distributions()}
    requirements: set[str] = set()
    for folder in distributions():
        settings = settings_of(folder)
        optional = settings["project"].get("optional-dependencies", {}).values()
        required = {name for names in (settings["project"].get("dependencies", []), *optional) for name in names}
        manifest = ROOT / folder / "backend.toml"
        table = tomllib.loads(manifest.read_text(encoding="utf-8")).get("environment") if manifest.exists() else None
        if table is not None:
            assert sorted(names_of(required) - ours - pinned(folder / table["constraints"])) == [], folder
        requirements.update(settings["build-system"]["requires"], () if table is not None else required)
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    requirements.update(line for line in lines if line and not line.startswith("#"))
    assert sorted(names_of(requirements) - ours - pinned(Path("constraints.txt"))) == []


def settings_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def names_of(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", each)[0].lower().replace("_", "-") for each in requirements}


def pinned(constraints: Path) -> set[str]:
    lines = (ROOT / constraints).read_text(encoding="utf-8").splitlines()
    return names_of(line for line in lines if "==" in line)


def test_the_licence_is_mit() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("MIT License\n")
    assert 'THE SOFTWARE IS PROVIDED "AS IS"' in licence


def test_there_are_distributions() -> None:
    assert {"proto", "harness", "harness/answering", "backends/kit"} <= {str(path) for path in distributions()}


@pytest.mark.parametrize("folder", distributions(), ids=str)
def test_a_distribution_is_typed_licensed_and_has_a_src_layout(folder: Path) -> None:
    settings = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    assert project["license"] == "MIT"
    assert project["requires-python"] == ">=3.11"
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    here = [path.relative_to(folder) for path in committed() if folder in path.parents]
    assert packages
    for package in packages:
        assert package.startswith("src/")
        assert Path(package) / "py.typed" in here
        assert Path(package) / "__init__.py" in here
    nested = {other.relative_to(folder).parts[0] for other in builds() if folder in other.parents}
    top = {path.parts[0] for path in here if path.suffix == ".py" and "tests" not in path.parts}
    assert top <= {"src", *nested}, "code outside src/"
    generic = {"harness", "simulator", "proto", "backends", "tests", "spark", "compose"}
    assert generic.isdisjoint(Path(package).name for package in packages)


def test_the_gate_runs_what_the_readme_tells() -> None:
    gate = ROOT / ".ci" / "run"
    assert os.access(gate, os.X_OK)
    words = gate.read_text(encoding="utf-8")
    assert "set -euo pipefail" in words
    for target in ("lint", "test", "test-gate", "demo"):
        assert f"make --no-print-directory {target}\n" in words


def test_python_stubs_are_kept_out_of_style_checks_only_by_name() -> None:
    """The only files that style and types do not see are the generated ones."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["ruff"]["extend-exclude"] == ["proto/src/memarena_proto/*_pb2*"]
    assert settings["mypy"]["exclude"] == ["_pb2"]
    assert settings["mypy"]["strict"] is True
