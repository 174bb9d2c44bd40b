"""Tests backends of installed distributions: listed by their entry points; a name clash is a one-line error."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from memarena.execution.backends.installed import installed_manifests
from memarena.execution.backends.manifests import LaunchableBackend, choose_backend
from memarena.execution.errors import RunError

from scripts import backend_folders

ROOT = Path(__file__).parents[2]


def manifest(name: str, command: str = '["{python}", "-m", "mine"]') -> str:
    return f'schema = 1\n[[backend]]\nname = "{name}"\nkind = "competitor"\ncommand = {command}\n'


def install(site: Path, value: str = "acme.memory", text: str | None = None) -> None:
    """Write what pip installs of a distribution whose package fails if it is imported to read its manifest."""
    folder = site / "acme" / "memory"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").write_text('raise RuntimeError("imported by the harness")\n', encoding="utf-8")
    (folder / "backend.toml").write_text(manifest("acme") if text is None else text, encoding="utf-8")
    info = site / "acme_memory-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-memory\nVersion: 1.2\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[memarena.backends]\nacme = {value}\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, in addition to those of this environment."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("MEMARENA_BACKENDS", raising=False)
    for name in [module for module in sys.modules if module.startswith("memarena_backend_")]:
        monkeypatch.delitem(sys.modules, name)  # another test's import would hide the package that is installed here
    return folder


def test_an_installed_backend_is_found_by_its_name_and_not_imported(site: Path) -> None:
    install(site)
    backend = choose_backend("acme")
    assert isinstance(backend, LaunchableBackend)
    assert backend.folder == site / "acme" / "memory"
    assert "acme" not in sys.modules


@pytest.mark.parametrize(
    "value", ["acme", "acme.nothing", "no_such_package", "acme.memory:manifest", "json", "__main__"]
)
def test_an_entry_point_without_a_manifest_gives_a_one_line_error(site: Path, value: str) -> None:
    install(site, value)
    with pytest.raises(RunError) as caught:
        choose_backend("bm25")
    expected = "expected the name of a package that holds backend.toml"
    assert str(caught.value) == f"acme-memory 1.2: entry point acme = {value!r} of memarena.backends: {expected}"


def test_two_backends_of_one_name_give_a_one_line_error_and_others_still_work(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site)
    other = tmp_path / "given" / "mine"
    other.mkdir(parents=True)
    (other / "backend.toml").write_text(manifest("acme", '["{python}", "{folder}/other.py"]'), encoding="utf-8")
    monkeypatch.setenv("MEMARENA_BACKENDS", str(other.parent))
    with pytest.raises(RunError) as caught:
        choose_backend("acme")
    assert str(caught.value) == (
        f"--backend acme: different backends have this name: {other}/backend.toml and "
        f"{site}/acme/memory/backend.toml; remove one of them, or give the path of the one that is meant"
    )
    assert choose_backend("bm25").name == "bm25"
    assert choose_backend(str(other)).name == "acme"


@pytest.mark.parametrize(("module", "clashes"), [("mine", False), ("{folder}", True)])
def test_identical_manifests_are_one_backend_unless_they_start_code_in_their_folder(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, clashes: bool
) -> None:
    text = manifest("acme", f'["{{python}}", "-m", "{module}"]')
    install(site, text=text)
    other = tmp_path / "given" / "mine"
    other.mkdir(parents=True)
    (other / "backend.toml").write_text(text.replace("schema = 1", "schema = 1  # a copy"), encoding="utf-8")
    monkeypatch.setenv("MEMARENA_BACKENDS", str(other.parent))
    if clashes:
        with pytest.raises(RunError, match="different backends have this name"):
            choose_backend("acme")
    else:
        assert choose_backend("acme").name == "acme"


PYTHON_BACKENDS = [folder.name for folder in backend_folders.folders() if (folder / "pyproject.toml").exists()]


@pytest.mark.parametrize("folder", PYTHON_BACKENDS)
def test_the_wheel_of_each_backend_contains_its_manifest(folder: str, site: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "backends" / folder, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    (installed,) = [path for path in installed_manifests() if path.is_relative_to(site)]
    assert installed.read_bytes() == (ROOT / "backends" / folder / "backend.toml").read_bytes()


def test_an_editable_installation_has_its_manifest_next_to_src(site: Path, tmp_path: Path) -> None:
    install(site, "acme")
    package = tmp_path / "project" / "src" / "acme"
    package.parent.mkdir(parents=True)
    (site / "acme").rename(package)
    (tmp_path / "project" / "backend.toml").write_text(manifest("beside"), encoding="utf-8")
    sys.path.insert(0, str(package.parent))
    try:
        backend = choose_backend("beside")
    finally:
        sys.path.remove(str(package.parent))
    assert isinstance(backend, LaunchableBackend)
    assert backend.folder == tmp_path / "project"
