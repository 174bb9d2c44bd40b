"""Tests how images are made, without Docker: packages of others are installed in a step before our sources.

So a change of our code installs no package again, and every installed package has a pinned hash.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts import install_in_image
from scripts.install_in_image import foreign
from tests.compose.stack import ROOT

DOCKERFILES = sorted(
    path for path in ROOT.glob("**/Dockerfile") if "install_in_image.py ours" in path.read_text(encoding="utf-8")
)


def folders_of(step: str, text: str) -> list[str]:
    """What a Dockerfile gives a step, without extras."""
    lines = re.findall(rf"install_in_image\.py {step} ([^\n\\]*)", text)
    return [word.strip('"').partition("[")[0] for line in lines for word in line.split()]


def test_every_image_of_python_is_looked_at() -> None:
    folders = {str(path.parent.relative_to(ROOT)) for path in DOCKERFILES}
    assert {"harness", "spark", "backends/bm25", "backends/memobase", "backends/memsearch"} <= folders


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_an_image_installs_all_that_its_distributions_need_and_copies_sources_after_that(dockerfile: Path) -> None:
    text = dockerfile.read_text(encoding="utf-8")
    ours = folders_of("ours", text)
    if "install_in_image.py environment" not in text:
        assert set(ours) == {*folders_of("dependencies", text), *folders_of("more", text)}
    projects = [tomllib.loads((ROOT / each / "pyproject.toml").read_text())["project"] for each in ours]
    requirements = {re.split(r"[\[=<>]", each)[0] for project in projects for each in project["dependencies"]}
    assert {each for each in requirements if each.startswith("memarena")} <= {project["name"] for project in projects}
    first = text[: text.index("install_in_image.py ours")]
    copied = re.findall(r"^COPY (.*) \S+$", first[: first.rindex("AS build")], re.MULTILINE)
    assert copied
    assert not [each for each in copied if each.endswith("/") and not each.startswith("--from")]
    assert "apt-get install" not in text or "apt-get clean" in text


def test_a_package_without_a_hash_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_in_image, "HASHES", tmp_path / "hashes.txt")
    (tmp_path / "hashes.txt").write_text("# two\nPy_YAML==6 --hash=sha256:0\nnumpy==2 --hash=sha256:1\n")
    assert install_in_image.hashed(["py.yaml"]) == "Py_YAML==6 --hash=sha256:0\n"
    with pytest.raises(SystemExit, match="no hash of scipy"):
        install_in_image.hashed(["numpy", "scipy"])


def test_what_others_wrote_is_told_apart_from_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "memarena-x"\ndependencies = ["memarena==1", "memarena-proto==1", "numpy>=2"]\n'
        '[project.optional-dependencies]\nmore = ["memarena-backend-y[z]==1", "scipy"]\n'
    )
    assert foreign([str(tmp_path)]) == ["numpy>=2"]
    assert foreign([f"{tmp_path}[more]", str(tmp_path)]) == ["numpy>=2", "scipy"]
